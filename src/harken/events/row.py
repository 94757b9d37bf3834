"""A row: one record of a source as plain Python, or the error why it cannot be read."""

from __future__ import annotations

from typing import Any, NamedTuple

from harken.errors import HarkenError


class Row(NamedTuple):
    """One record. It has `content` or, if it cannot be read, `error`."""

    position: int
    """The index of the record in its source, from 0; rejected records count."""
    line: int | None
    """The line on which the record starts, from 1, if the source has lines."""
    content: dict[str, Any] | None
    error: HarkenError | None
    raw: str | None
    """The beginning of the record's text, if the source is text."""
