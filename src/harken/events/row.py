"""A row: one record of a source, as plain Python or with the reason why it cannot be read."""

from __future__ import annotations

from typing import Any, NamedTuple

from harken.errors import HarkenError


class Row(NamedTuple):
    """One record. It has `content` or, where it cannot be read, `error`."""

    position: int
    """The index of the record in its source, from 0; refused records count."""
    line: int | None
    """The line on which it starts, from 1, where the source has lines."""
    content: dict[str, Any] | None
    error: HarkenError | None
    raw: str | None
    """The beginning of its text, where it comes from text."""
