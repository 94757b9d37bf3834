"""Writes a document as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files

from harken_lab.experiments.experiment_pages import VERDICTS
from harken_lab.report.outcomes import Verdict
from harken_lab.report.report_document import Block, Chart, Command, DataTable, Folded, Heading, Paragraph

_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_LINK = re.compile(r"\[([^\]]+)\]\((#[^)]+)\)")
_ID = re.compile(r'(\bid="|url\(#|href="#)')
_SIZE = re.compile(r'<svg\b(?P<before>[^>]*?) width="(?P<width>[\d.]+)" height="[\d.]+"')
_STANDING = {
    Verdict.HOLDS: "yes",
    Verdict.IN_PART: "part",
    Verdict.FAILS: "no",
    Verdict.NOT_MEASURED: "open",
    Verdict.UNTOLD: "open",
    VERDICTS["holds"]: "yes",
    VERDICTS["does not hold"]: "no",
}
"""The CSS class of a table cell whose text is a verdict."""


def html(blocks: Iterable[Block], title: str) -> str:
    """The whole page."""
    style = files(__package__).joinpath("page.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(_sections(blocks))
        + "\n</main>\n</body>\n</html>\n"
    )


def _sections(blocks: Iterable[Block]) -> Iterator[str]:
    """The HTML of all blocks. A heading of level 3 and the blocks below it are one section."""
    is_open = False
    for block in blocks:
        if isinstance(block, Heading):
            if is_open:
                yield "</section>"
            is_open = block.level == 3
            if is_open:
                yield "<section>"
        yield _block(block)
    if is_open:
        yield "</section>"


def _block(block: Block) -> str:
    match block:
        case Heading(level, text, key):
            id = f' id="{escape(key)}"' if key else ""
            return f"<h{level}{id}>{inline(text)}</h{level}>"
        case Paragraph(text, is_aside):
            return f'<p class="soft">{inline(text)}</p>' if is_aside else f"<p>{inline(text)}</p>"
        case DataTable():
            return _table(block)
        case Command(text):
            return f"<pre>{escape(text)}</pre>"
        case Chart(name, title, svg):
            return f'<figure class="chart" role="img" aria-label="{escape(title)}">{inlined(svg(), name)}</figure>'
        case Folded(title, blocks):
            return f"<details><summary>{inline(title)}</summary>{''.join(map(_block, blocks))}</details>"


def inline(text: str) -> str:
    """The HTML of a text: `code`, **bold** and [links](#key)."""
    text = _CODE.sub(r"<code>\1</code>", escape(text, quote=False))
    return _LINK.sub(r'<a href="\2">\1</a>', _BOLD.sub(r"<b>\1</b>", text))


def inlined(svg: str, name: str) -> str:
    """An SVG to stand in a page: it may shrink, and its ids get a prefix, so that charts do not share them."""
    svg = svg[svg.index("<svg") :]
    svg = _SIZE.sub(r'<svg\g<before> style="width:\g<width>px"', svg, count=1)
    return _ID.sub(rf"\g<1>{name}-", svg)


def _table(table: DataTable) -> str:
    kind = ' class="number"' if table.are_numbers else ""
    kinds = ["", *[kind] * (len(table.headings) - 1)]
    # On a narrow screen the cells of a row of texts are stacked, each after its heading.
    layout = "" if table.are_numbers else ' class="texts"'
    top = "".join(f"<th{kind}>{inline(name)}</th>" for kind, name in zip(kinds, table.headings, strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, row, kinds, table.headings))}</tr>" for row in table.rows)
    return f'<div class="wide"><table{layout}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str, kind: str, heading: str) -> str:
    name = f'{kind} data-name="{escape(heading)}"'
    standing = _STANDING.get(text)
    if standing is not None:
        return f'<td{name}><span class="verdict {standing}">{inline(text)}</span></td>'
    return f"<td{name}>{inline(text)}</td>"
