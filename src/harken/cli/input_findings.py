"""Findings: faults of an input and warnings about it, with their places, for people and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from harken.cli.screen import printable
from harken.errors import DuplicateIdError, HarkenError, Place

if TYPE_CHECKING:
    from rich.text import Text

    from harken.cli.inputs import FileBatch
    from harken.events import RejectedEvent
    from harken.live.subscriptions import Fault

Kind = Literal["schema", "subscription", "event", "match"]
FAULT, WARNING = ("✗ ", "red"), ("! ", "yellow")


@dataclass(frozen=True, slots=True)
class InputFinding:
    """A fault or a warning. `match` is the kind of a subscription that failed on one event."""

    kind: Kind
    file: str
    error: HarkenError
    position: int | None = None
    """The position of the record, from 0, counted over all files."""
    line: int | None = None
    """The line of the file."""
    id: str | None = None
    """The id of the subscription."""
    raw: str | None = None
    is_warning: bool = False
    first: int = 0
    """Number of records in the files before this one."""

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data. `line` and `column` are in the text of a subscription, `file_line` in its file."""
        plain: dict[str, Any] = {"kind": self.kind, "severity": "warning" if self.is_warning else "fault"}
        named = {"file": self.file, "file_line": self.line, "position": self.position, "id": self.id}
        plain |= {name: value for name, value in named.items() if value is not None}
        if self.position is not None and self.first:
            plain["file_position"] = self.position - self.first
        plain |= self.error.to_dict()
        if self.is_warning:
            del plain["error"]
        return plain if self.raw is None else plain | {"raw": self.raw}

    def to_text(self) -> Text:
        """The finding for people: where, what, the excerpt and the hint."""
        from rich.text import Text

        error = self.error
        inside = "" if error.place is None or error.place.source is not None else f" ({error.place})"
        lines = indented(f"{error.message}{inside}", 2)
        if error.excerpt is not None:
            lines += indented(error.excerpt, 4)
        if error.hint is not None:
            lines += indented(f"hint: {error.hint}", 2)
        return Text.assemble(WARNING if self.is_warning else FAULT, (self.where(), "bold"), "\n", "\n".join(lines))

    def where(self) -> str:
        """The file, and the place and name of the record in it."""
        place = self.error.place
        if place is None or place.source is None:
            place = None if self.line is None else Place(self.line, None, self.file)
        parts = [self.file if place is None else str(place)]
        if self.position is not None and (self.kind != "subscription" or self.id is None):
            in_file = f" ({self.position - self.first} in this file)" if self.first and place is None else ""
            parts.append(f"{'event' if self.kind == 'match' else self.kind} {self.position}{in_file}")
        if self.id is not None:
            parts.append(f"subscription {self.id!r}")
        return printable(", ".join(parts))


def of_fault(file: str, fault: Fault, first: int = 0) -> InputFinding:
    """The finding for a rejected subscription."""
    error = fault.error
    if isinstance(error, DuplicateIdError):
        error.hint = "`harken match --replace` takes the last one of an id"
    return InputFinding("subscription", file, error, fault.position, fault.line, fault.id, first=first)


def of_rejected(batch: FileBatch, rejected: RejectedEvent) -> InputFinding:
    """The finding for a rejected event."""
    position = batch.first + rejected.position
    return InputFinding("event", batch.file, rejected.error, position, None, None, rejected.raw, first=batch.first)


def indented(text: str, width: int) -> list[str]:
    """The lines of a text, without control codes, indented."""
    return [" " * width + printable(line) for line in text.split("\n")]
