"""Findings: what is wrong with an input or worth a look, with its place, for people and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from harken.cli.screen import printable
from harken.errors import DuplicateIdError, HarkenError, Place

if TYPE_CHECKING:
    from rich.text import Text

    from harken.events import Refused
    from harken.subscriptions import Fault

Kind = Literal["schema", "subscription", "event", "match"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault or a warning. `match` is the kind of a subscription that failed on one event."""

    kind: Kind
    file: str
    error: HarkenError
    position: int | None = None
    """Which record of the file it is, from 0."""
    line: int | None = None
    """The line of the file."""
    id: str | None = None
    """The subscription."""
    raw: str | None = None
    is_warning: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data. `line` and `column` are in the text of a subscription, `file_line` in its file."""
        plain: dict[str, Any] = {"kind": self.kind, "severity": "warning" if self.is_warning else "fault"}
        named = {"file": self.file, "file_line": self.line, "position": self.position, "id": self.id}
        plain |= {name: value for name, value in named.items() if value is not None}
        plain |= self.error.to_dict()
        if self.is_warning:
            del plain["error"]
        return plain if self.raw is None else plain | {"raw": self.raw}

    def to_text(self) -> Text:
        """The finding for people: where, what, the excerpt and the hint."""
        from rich.text import Text

        mark = ("! ", "yellow") if self.is_warning else ("✗ ", "red")
        error = self.error
        inside = "" if error.place is None or error.place.source is not None else f" ({error.place})"
        lines = [f"  {printable(error.message)}{inside}"]
        if error.excerpt is not None:
            lines.extend("    " + printable(line) for line in error.excerpt.split("\n"))
        if error.hint is not None:
            lines.append(f"  hint: {printable(error.hint)}")
        return Text.assemble(mark, (self._where(), "bold"), "\n", "\n".join(lines))

    def _where(self) -> str:
        place = self.error.place
        if place is None or place.source is None:
            place = None if self.line is None else Place(self.line, None, self.file)
        parts = [self.file if place is None else str(place)]
        if self.position is not None and (self.kind != "subscription" or self.id is None):
            parts.append(f"{'event' if self.kind == 'match' else self.kind} {self.position}")
        if self.id is not None:
            parts.append(f"subscription {self.id!r}")
        return printable(", ".join(parts))


def of_fault(file: str, fault: Fault) -> Finding:
    """The finding for a subscription that was refused."""
    error = fault.error
    if isinstance(error, DuplicateIdError):
        error.hint = "`harken match --replace` takes the last one of an id"
    return Finding("subscription", file, error, fault.position, fault.line, fault.id)


def of_refused(file: str, refused: Refused) -> Finding:
    """The finding for an event that was refused."""
    return Finding("event", file, refused.error, refused.position, None, None, refused.raw)
