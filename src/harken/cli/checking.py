"""The work of `harken check`, which does not stop at the first fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from harken.cli.exits import ExitCode
from harken.cli.grouping import Groups
from harken.cli.input_findings import InputFinding, Kind, of_fault, of_rejected
from harken.cli.inputs import EventFiles, SubscriptionFiles, event_files, is_saved_engine, subscription_files, title_of
from harken.cli.observed import Observed
from harken.cli.screen import Screen, counted
from harken.engine import Engine
from harken.errors import DuplicateIdError, HarkenError, SchemaError, SegmentError, SourceError
from harken.events import without_bad_documents
from harken.language.compiled import Compiled, Compiler
from harken.language.xpath.document_plan import DocumentPlan
from harken.limits import DEFAULT_LIMITS
from harken.live.subscriptions import Fault, Record
from harken.operators import OperatorSet
from harken.schema import Schema, check_schema, load_schema
from harken.schema.paths import DOCUMENT

_STEP = 1_000


class Checking:
    """Checks inputs one after another and counts findings. Faults are shown at once, warnings grouped at the end.

    With `lists_all` every warning is shown at once too.
    """

    def __init__(self, screen: Screen, *, lists_all: bool, operators: OperatorSet) -> None:
        self._screen = screen
        self._operators = operators
        self._groups = None if lists_all else Groups()
        self._faults = 0
        self._warnings = 0
        self._checked: dict[str, int] = {}
        self._is_readable = True
        self._schema: Schema | None = None
        self._has_faulty_schema = False
        self._compiled: list[tuple[InputFinding, Compiled]] = []
        """The valid subscriptions, each with a warning about it that has no text yet."""

    @property
    def exit_code(self) -> ExitCode:
        if not self._is_readable:
            return ExitCode.UNUSABLE
        return ExitCode.FAULTS if self._faults else ExitCode.OK

    def schema(self, file: str) -> None:
        """Check a schema. If it can be used, later inputs are checked against it."""
        faults: list[SchemaError] = []
        with self._reading("schema", [file]):
            try:
                self._schema = load_schema(file)
            except SchemaError:
                _, faults = check_schema(Path(file).read_text("utf-8-sig"), file)
        for fault in faults:
            self._report(InputFinding("schema", file, fault))
        self._has_faulty_schema = self._schema is None

    def subscriptions(self, names: Sequence[str]) -> None:
        """Check subscriptions: their form, their ids, and their texts against the schema."""
        self._checked["subscription"] = 0
        with self._reading("subscription", names):
            files = subscription_files(names)
            if is_saved_engine(files[0]):
                self._check_saved(files[0])
            else:
                self._check_records(
                    SubscriptionFiles(files), Compiler(self._schema, signatures=self._operators.signatures)
                )
            if not self._checked["subscription"]:
                raise SourceError(f"there is no subscription in {title_of(files)}")

    def _check_saved(self, folder: str) -> None:
        """Check the subscriptions of a saved engine: against its own schema unless another is given."""
        saved = SavedRecords(folder, self._operators)
        if self._schema is None and not self._has_faulty_schema:
            self._schema = saved.engine.schema
        self._check_records(saved, Compiler(self._schema, saved.engine.internals.limits, self._operators.signatures))

    def _check_records(self, records: SubscriptionFiles | SavedRecords, compiler: Compiler) -> None:
        ids: set[str] = set()
        with self._screen.progress("checking subscriptions") as advance:
            for count, record in enumerate(records, 1):
                for finding in self._findings(*records.origin(record.position), record, ids, compiler):
                    self._report(finding)
                self._checked["subscription"] = count
                if count % _STEP == 0:
                    advance(_STEP)

    def _findings(
        self, file: str, first: int, record: Record | Fault, ids: set[str], compiler: Compiler
    ) -> Iterator[InputFinding]:
        """All findings about one subscription that do not depend on events."""
        if isinstance(record, Fault):
            yield of_fault(file, record, first)
            return
        if record.id in ids:
            yield of_fault(file, record.fault(DuplicateIdError(f"the id {record.id!r} is taken")), first)
        ids.add(record.id)
        try:
            compiled = compiler.compile(record.where, record.language)
        except HarkenError as error:
            for fault in compiler.faults(record.where, record.language) or [error]:
                yield of_fault(file, record.fault(fault), first)
            return
        template = replace(of_fault(file, record.fault(HarkenError("")), first), is_warning=True)
        for warning in compiled.warnings:
            yield replace(template, error=HarkenError(warning))
        self._compiled.append((template, compiled))

    def events(self, names: Sequence[str], format: str | None, split: str | None = None) -> None:
        """Check events against the schema; without one, warn of subscriptions on attributes that no event has."""
        self._checked["event"] = 0
        observed = Observed()
        with self._reading("event", names), self._screen.progress("checking events") as advance:
            files = EventFiles(event_files(names, format), format, self._schema, split=split)
            documents = [DOCUMENT] if any(each.plan.kind == DocumentPlan.kind for _, each in self._compiled) else []
            for batch in files:
                decoded = without_bad_documents(batch.decoded, documents, DEFAULT_LIMITS)
                for rejected in decoded.rejected:
                    self._report(of_rejected(batch, rejected))
                self._checked["event"] += batch.size
                advance(batch.size)
                if self._schema is None:
                    for event in decoded.batch:
                        observed.add(event)
            if not self._checked["event"]:
                raise SourceError(f"there is no event in {files.title}")
        if observed.events:
            for template, compiled in self._compiled:
                for message, hint in observed.doubts(compiled):
                    self._report(replace(template, error=HarkenError(message, hint=hint)))

    def show_summary(self) -> None:
        """Show what was checked, and the result."""
        if self._groups is not None:
            self._groups.show(self._screen)
        without = self._has_faulty_schema and bool(self._checked)
        if self._screen.json:
            counts: dict[str, Any] = {"faults": self._faults, "warnings": self._warnings, **_plural(self._checked)}
            self._screen.line({"kind": "summary", **counts, "schema_ignored": without})
            return
        if without:
            self._screen.show(
                f"The schema cannot be used: {' and '.join(_plural(self._checked))} were checked without it."
            )
        findings = [counted(self._faults, "fault"), *([counted(self._warnings, "warning")] if self._warnings else [])]
        checked = [counted(count, name) for name, count in self._checked.items()] or ["the schema"]
        self._screen.show(f"{', '.join(findings)} in {' and '.join(checked)}")

    @contextmanager
    def _reading(self, kind: Kind, names: Sequence[str]) -> Iterator[None]:
        """Report a file that cannot be read as a fault, and go on with the others."""
        try:
            yield
        except (SourceError, SegmentError) as error:
            self._is_readable = False
            self._report(InputFinding(kind, title_of(names), error))

    def _report(self, finding: InputFinding) -> None:
        if finding.is_warning:
            self._warnings += 1
        else:
            self._faults += 1
        if finding.is_warning and self._groups is not None:
            self._groups.add(finding)
        elif self._screen.json:
            self._screen.line(finding.to_dict())
        else:
            self._screen.show(finding.to_text())


class SavedRecords:
    """The subscriptions of a saved engine, with the interface of `SubscriptionFiles`."""

    def __init__(self, folder: str, operators: OperatorSet) -> None:
        self._folder = folder
        self.engine = Engine.load(folder, operators=operators)

    def __iter__(self) -> Iterator[Record]:
        return (replace(each.record(), position=position) for position, each in enumerate(self.engine))

    def origin(self, position: int) -> tuple[str, int]:
        """The folder, where `SubscriptionFiles` gives the file."""
        return self._folder, 0


def _plural(counts: dict[str, int]) -> dict[str, int]:
    return {noun + "s": count for noun, count in counts.items()}
