"""Writes a document as Markdown. Its charts are files in a folder beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken_lab.experiments.experiment_pages import table_lines
from harken_lab.report.report_document import Block, Chart, Command, DataTable, Folded, Heading, Paragraph


def markdown(blocks: Iterable[Block], folder: str) -> str:
    """The text of the page. `folder` is the folder of its charts."""
    return "\n\n".join(_block(block, folder) for block in blocks) + "\n"


def _block(block: Block, folder: str) -> str:
    match block:
        case Heading(level, text, key):
            return f"{'#' * level} {text}" if not key else f'<a id="{key}"></a>\n\n{"#" * level} {text}'
        case Paragraph(text):
            return text
        case DataTable(headings, rows):
            return "\n".join(table_lines(headings, rows))
        case Command(text):
            return f"```sh\n{text}\n```"
        case Chart(name, title):
            return f"![{title}]({folder}/{name}.svg)"
        case Folded(title, blocks):
            return "\n\n".join(_folded(title, blocks, folder))


def _folded(title: str, blocks: Iterable[Block], folder: str) -> Iterator[str]:
    yield f"<details><summary>{title}</summary>"
    yield from (_block(block, folder) for block in blocks)
    yield "</details>"
