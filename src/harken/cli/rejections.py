"""Rejected inputs of a command: the first are shown, all are counted and, if there is a file, written to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TextIO

from harken.cli.input_findings import InputFinding, Kind
from harken.cli.json_output import to_json
from harken.cli.screen import Screen
from harken.errors import SourceError

_MOST_SHOWN = 5
_NAMES: dict[Kind, str] = {
    "event": "rejected events",
    "subscription": "rejected subscriptions",
    "match": "failed pairs",
}


class Rejections:
    """Counts rejected inputs by kind."""

    def __init__(self, screen: Screen, file: TextIO | None, more: str) -> None:
        self._screen = screen
        self._file = file
        self._more = more
        self._warnings = 0
        self.counts: Counter[Kind] = Counter()

    def add(self, finding: InputFinding) -> None:
        """Add a fault."""
        self.counts[finding.kind] += 1
        if self.counts[finding.kind] <= _MOST_SHOWN:
            self._screen.aside(finding.to_dict(), finding.to_text())
        if self._file is not None:
            self._keep(self._file, finding)

    def warn(self, finding: InputFinding) -> None:
        """Show a warning, if it is one of the first."""
        self._warnings += 1
        if self._warnings <= _MOST_SHOWN:
            self._screen.aside(finding.to_dict(), finding.to_text())

    def _keep(self, file: TextIO, finding: InputFinding) -> None:
        try:
            file.write(to_json(finding.to_dict()) + "\n")
        except OSError as error:
            raise _unwritable(file.name, error) from error

    def show_rest(self) -> None:
        """Show the number of those that were not shown."""
        hint = "" if self._file is not None else f"; {self._more}"
        for kind, count in self.counts.items():
            if count > _MOST_SHOWN:
                rest = count - _MOST_SHOWN
                text = f"… and {rest:,} more {_NAMES[kind]}{hint}"
                self._screen.aside({"kind": "more", "of": kind, "count": rest}, text)


@contextmanager
def rejections(
    screen: Screen, path: str | None, more: str = "--rejected FILE writes all of them"
) -> Iterator[Rejections]:
    """Rejections, written to the file at the path as they come: they are there even if the command fails.

    `more` tells the user how to see those that are not shown.
    """
    with nullcontext() if path is None else _opened(path) as file:
        reported = Rejections(screen, file, more)
        try:
            yield reported
        finally:
            reported.show_rest()


def _opened(path: str) -> TextIO:
    try:
        return open(path, "w", 1, "utf-8", "backslashreplace")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: str, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be written: {error.strerror or error}")
