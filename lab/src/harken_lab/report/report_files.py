"""Writes the report: an HTML page with its charts in it, and a Markdown page with its charts beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harken.errors import SourceError
from harken.versions.atomic import output_file
from harken_lab.report.html import html
from harken_lab.report.markdown import markdown
from harken_lab.report.report_document import Block, Chart, Folded
from harken_lab.report.sections import TITLE

NAME = "report"
"""The name of the pages, without the ending, and of the folder of charts."""


def write(blocks: Sequence[Block], folder: str | Path) -> list[Path]:
    """Write report.html, and report.md with its charts. Returns the paths of the pages. Raises SourceError.

    Charts of an earlier report that this report does not have are removed.
    """
    place, pictures = Path(folder), Path(folder, NAME)
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"{folder} cannot be written to: {error.strerror or error}") from error
    drawn = {each.name: each.svg() for each in _charts(blocks)}
    for old in pictures.glob("*.svg"):
        if old.stem not in drawn:
            old.unlink()
    for name, text in drawn.items():
        _write(pictures / f"{name}.svg", text)
    pages = {place / f"{NAME}.html": html(_redrawn(blocks, drawn), TITLE), place / f"{NAME}.md": markdown(blocks, NAME)}
    for path, text in pages.items():
        _write(path, text)
    return list(pages)


def _charts(blocks: Sequence[Block]) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, Folded):
            yield from _charts(block.blocks)


def _redrawn(blocks: Sequence[Block], drawn: dict[str, str]) -> list[Block]:
    """The blocks with the drawn charts, so that each is drawn once: drawing takes most of the time."""
    return [
        replace(block, svg=lambda text=drawn[block.name]: text) if isinstance(block, Chart) else block  # type: ignore[misc]
        for block in blocks
    ]


def _write(path: Path, text: str) -> None:
    with output_file(str(path)) as stream:
        stream.write(text.encode())
