"""The work of `harken check`: nothing stops at the first fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from harken.cli.exits import ExitCode
from harken.cli.findings import Finding, Kind, of_fault, of_refused
from harken.cli.observed import Observed
from harken.cli.screen import Screen, counted
from harken.errors import DuplicateIdError, HarkenError, SchemaError, SourceError
from harken.events import read_events, read_rows
from harken.language.compiled import Compiled, Compiler
from harken.schema import Schema, check_schema, load_schema
from harken.subscriptions import Fault, Record, records_of_rows

_STEP = 1_000


class Checking:
    """Checks inputs one after another, tells every finding as it comes, and counts."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._faults = 0
        self._warnings = 0
        self._checked: dict[str, int] = {}
        self._is_readable = True
        self._has_faulty_schema = False
        self._doubtful: list[tuple[Finding, Compiled]] = []

    @property
    def exit_code(self) -> ExitCode:
        if not self._is_readable:
            return ExitCode.UNUSABLE
        return ExitCode.FAULTS if self._faults else ExitCode.OK

    def schema(self, file: str) -> Schema | None:
        """Check a schema. It is returned if it can be used."""
        faults: list[SchemaError] = []
        found = None
        with self._reading("schema", file):
            try:
                found = load_schema(file)
            except SchemaError:
                _, faults = check_schema(Path(file).read_text("utf-8-sig"), file)
        for fault in faults:
            self._tell(Finding("schema", file, fault))
        self._has_faulty_schema = found is None
        return found

    def subscriptions(self, file: str, schema: Schema | None) -> None:
        """Check subscriptions: their form, their ids, and their texts against the schema."""
        compiler = Compiler(schema)
        ids: set[str] = set()
        self._checked["subscription"] = 0
        with self._reading("subscription", file), self._screen.progress("checking subscriptions") as advance:
            for count, record in enumerate(records_of_rows(read_rows(file, types=False)), 1):
                for finding in self._findings(file, record, ids, compiler):
                    self._tell(finding)
                self._checked["subscription"] = count
                if count % _STEP == 0:
                    advance(_STEP)

    def _findings(self, file: str, record: Record | Fault, ids: set[str], compiler: Compiler) -> Iterator[Finding]:
        """All that there is to say about one subscription, as long as the events have not been seen."""
        if isinstance(record, Fault):
            yield of_fault(file, record)
            return
        if record.id in ids:
            yield of_fault(file, record.fault(DuplicateIdError(f"the id {record.id!r} is taken")))
        ids.add(record.id)
        try:
            compiled = compiler.compile(record.where, record.language)
        except HarkenError as first:
            for fault in compiler.faults(record.where, record.language) or [first]:
                yield of_fault(file, record.fault(fault))
            return
        about = Finding("subscription", file, HarkenError(""), record.position, record.line, record.id, is_warning=True)
        for warning in compiled.warnings:
            yield replace(about, error=HarkenError(warning))
        self._doubtful.append((about, compiled))

    def events(self, file: str, format: str | None, schema: Schema | None) -> None:
        """Check events against the schema; without one, warn of subscriptions that ask for what no event has."""
        self._checked["event"] = 0
        observed = Observed()
        with self._reading("event", file), self._screen.progress("checking events") as advance:
            for decoded in read_events(file, format, schema):
                for refused in decoded.refused:
                    self._tell(of_refused(file, refused))
                size = len(decoded.batch) + len(decoded.refused)
                self._checked["event"] += size
                advance(size)
                if schema is None:
                    for event in decoded.batch:
                        observed.add(event)
        if observed.events:
            for finding, compiled in self._doubtful:
                for message, hint in observed.doubts(compiled):
                    self._tell(replace(finding, error=HarkenError(message, hint=hint)))

    def show_summary(self) -> None:
        """Say what was checked, and what came of it."""
        without = self._has_faulty_schema and bool(self._checked)
        if self._screen.json:
            counts: dict[str, Any] = {"faults": self._faults, "warnings": self._warnings, **_plural(self._checked)}
            self._screen.line({"kind": "summary", **counts, "schema_ignored": without})
            return
        if without:
            self._screen.show(
                f"The schema cannot be used: {' and '.join(_plural(self._checked))} were checked without it."
            )
        found = [counted(self._faults, "fault"), *([counted(self._warnings, "warning")] if self._warnings else [])]
        checked = [counted(count, name) for name, count in self._checked.items()] or ["the schema"]
        self._screen.show(f"{', '.join(found)} in {' and '.join(checked)}")

    @contextmanager
    def _reading(self, kind: Kind, file: str) -> Iterator[None]:
        """A file that cannot be read is a fault too, and does not keep the others from being checked."""
        try:
            yield
        except SourceError as error:
            self._is_readable = False
            self._tell(Finding(kind, file, error))

    def _tell(self, finding: Finding) -> None:
        if finding.is_warning:
            self._warnings += 1
        else:
            self._faults += 1
        if self._screen.json:
            self._screen.line(finding.to_dict())
        else:
            self._screen.show(finding.to_text())


def _plural(counts: dict[str, int]) -> dict[str, int]:
    return {noun + "s": count for noun, count in counts.items()}
