"""Answers and engines in notebooks: data frames, and small tables in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any

from harken.errors import MissingExtraError

EVENT, SUBSCRIPTION = "event", "subscription"
MOST_SHOWN = 20
"""Rows of a table in HTML. Data frames have all of them."""
_LONGEST = 200
"""Characters of a cell in HTML."""
_CELL = 'style="text-align: left"'


def pandas_frame(table: Any) -> Any:
    """An Arrow table as a DataFrame of pandas. Raises MissingExtraError."""
    _imported("pandas")
    return table.to_pandas()


def polars_frame(table: Any) -> Any:
    """An Arrow table as a DataFrame of Polars. Raises MissingExtraError."""
    return _imported("polars").from_arrow(table)


def columns_of(fields: Iterable[str]) -> dict[str, str]:
    """The column of each field. A field called `event` or `subscription` gets underscores after its name."""
    taken = {EVENT, SUBSCRIPTION, *fields}
    columns: dict[str, str] = {}
    for name in fields:
        column = name
        if name in (EVENT, SUBSCRIPTION):
            while column in taken:
                column += "_"
        taken.add(column)
        columns[name] = column
    return columns


def counted(count: int, what: str, several: str | None = None) -> str:
    """A number and what it counts, in the plural unless it is one."""
    return f"{count:,} {what if count == 1 else several or what + 's'}"


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], more: int = 0) -> str:
    """A table below a title, and a last line if `more` rows were left out. All text is escaped."""
    cells = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in head)
    parts = [f"<p>{escape(title)}</p>", "<table>"]
    parts += [f"<thead><tr>{cells}</tr></thead>"] if head else []
    parts += ["<tbody>", *map(_row, rows), "</tbody></table>"]
    if more:
        parts.append(f"<p>… and {more:,} more</p>")
    return "".join(parts)


def _row(values: Sequence[object]) -> str:
    return "<tr>" + "".join(f"<td {_CELL}>{escape(_shown(value))}</td>" for value in values) + "</tr>"


def _shown(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:,}" if type(value) is int else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _imported(library: str) -> Any:
    """Import an optional library. Raises MissingExtraError, which says what to install."""
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        message = f"this needs {library}, which is not installed"
        raise MissingExtraError(message, hint=f"pip install {library}") from None
