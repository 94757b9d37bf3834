"""The work of `harken match`: subscriptions are loaded, then events stream through the engine, a batch at a time."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from harken.cli.findings import Finding, of_fault, of_refused
from harken.cli.outputs import destination
from harken.cli.refusals import Refusals, refusals
from harken.cli.rows import EVENT, EventNames, Fields, Row
from harken.cli.screen import Screen, counted
from harken.engine import Engine
from harken.errors import EventError, HarkenError, SourceError
from harken.events import Decoded, read_events, read_rows
from harken.events import Row as RawRow
from harken.matchers.registry import DEFAULT_ALGORITHM
from harken.results import BatchMatches
from harken.schema import load_schema
from harken.subscriptions import Fault, Record, records_of_rows

_STEP = 1_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for on the command line."""

    events: str
    subscriptions: str
    schema: str | None = None
    algorithm: str | None = None
    output: str | None = None
    event_id: str | None = None
    refused: str | None = None
    format: str | None = None
    batch_size: int = 4_096
    replace: bool = False
    threads: int = 1
    save: str | None = None


@dataclass(slots=True)
class Summary:
    """What came of it. `failed` counts pairs of an event and a subscription that could not be evaluated."""

    events: int = 0
    refused_events: int = 0
    subscriptions: int = 0
    refused_subscriptions: int = 0
    matches: int = 0
    failed: int = 0
    seconds: float = 0.0
    matching_seconds: float = 0.0

    @property
    def has_refusals(self) -> bool:
        return bool(self.refused_events or self.refused_subscriptions or self.failed)

    @property
    def events_per_second(self) -> float:
        """Without the time it took to load the subscriptions."""
        return self.events / self.matching_seconds if self.matching_seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {"kind": "summary", **asdict(self), "events_per_second": round(self.events_per_second, 1)}

    def __str__(self) -> str:
        parts = [
            f"{counted(self.events, 'event')}{_refused(self.refused_events)}",
            f"{counted(self.subscriptions, 'subscription')}{_refused(self.refused_subscriptions)}",
            f"{counted(self.matches, 'match')}" + (f" ({self.failed:,} failed)" if self.failed else ""),
            f"{self.seconds:.2f} s",
            f"{self.events_per_second:,.0f} events/s",
        ]
        return " · ".join(parts)


def run(request: Request, screen: Screen) -> Summary:
    """Do what the request asks for. Raises HarkenError where nothing can be done."""
    started = perf_counter()
    names = EventNames(request.event_id)
    is_saved = os.path.isdir(request.subscriptions)
    engine = _saved_engine(request) if is_saved else _new_engine(request)
    # Both say at once if there is no such file, before anything is written.
    rows = None if is_saved else read_rows(request.subscriptions, types=False)
    batches = read_events(request.events, request.format, engine.schema, batch_size=request.batch_size)
    with destination(request.output, screen) as open_output, refusals(screen, request.refused) as refused:
        if rows is None:
            fields = Fields(engine, [each.id for each in engine])
        else:
            fields = _subscribe(engine, rows, request, screen, refused)
        if request.save is not None:
            log.info("version %d saved to %s", engine.save(request.save), request.save)
        matching = _Matching(engine, request, names, fields, refused)
        loaded = perf_counter()
        with closing(open_output(names, fields)) as output, screen.progress("matching events") as advance:
            for decoded in batches:
                output.write(matching.rows(decoded))
                advance(len(decoded.batch) + len(decoded.refused))
    finished = perf_counter()
    log.info("the engine: %s", engine.stats())
    counts = refused.counts
    return Summary(
        matching.events,
        counts["event"],
        len(engine),
        counts["subscription"],
        matching.matches,
        counts["match"],
        finished - started,
        finished - loaded,
    )


class _Matching:
    """Turns batches of events into rows, and counts."""

    def __init__(self, engine: Engine, request: Request, names: EventNames, fields: Fields, refused: Refusals) -> None:
        self._engine = engine
        self._file = request.events
        self._threads = request.threads
        self._names = names
        self._fields = fields
        self._refused = refused
        self.events = 0
        self.matches = 0

    def rows(self, decoded: Decoded) -> Iterator[Row]:
        """The rows of a batch. What was refused of it is reported."""
        for each in decoded.refused:
            self._refused.add(of_refused(self._file, each))
        found = self._engine.match_decoded(decoded, threads=self._threads)
        for position, id, error in found.errors:
            self._refused.add(Finding("match", self._file, error, position, id=id))
        self.events += len(found.ids)
        log.debug("%d events: %d matches, %s", len(found.ids), sum(found.counts), found.seconds)
        return self._named_rows(decoded, found)

    def _named_rows(self, decoded: Decoded, found: BatchMatches) -> Iterator[Row]:
        answers = dict(zip(found.positions, found.ids, strict=True))
        for position, event in zip(decoded.batch.positions, decoded.batch, strict=True):
            try:
                name = self._names.name(event, position)
            except EventError as error:
                self._refused.add(Finding("event", self._file, error, position))
                continue
            ids = answers[position]
            self.matches += len(ids)
            for id in ids:
                yield {EVENT: name, **self._fields.of(id)}


def _new_engine(request: Request) -> Engine:
    schema = None if request.schema is None else load_schema(request.schema)
    return Engine(schema, request.algorithm or DEFAULT_ALGORITHM)


def _saved_engine(request: Request) -> Engine:
    if request.schema is not None or request.algorithm is not None:
        hint = "leave out --schema and --algorithm: it has its own"
        raise SourceError(f"{request.subscriptions} is a folder with a saved engine", hint=hint)
    return Engine.load(request.subscriptions)


def _subscribe(engine: Engine, rows: Iterator[RawRow], request: Request, screen: Screen, refused: Refusals) -> Fields:
    """Load the subscriptions, and report those that are refused. Raises SourceError if none is left."""
    file = request.subscriptions
    ids: list[str] = []
    with screen.progress("loading subscriptions") as advance:

        def records() -> Iterator[Record | Fault]:
            for count, record in enumerate(records_of_rows(rows), 1):
                if isinstance(record, Record):
                    ids.append(record.id)
                if count % _STEP == 0:
                    advance(_STEP)
                yield record

        report = engine.subscribe_many(records(), replace=request.replace)
    for fault in report.faults:
        refused.add(of_fault(file, fault))
    for id, warning in report.warnings:
        refused.warn(Finding("subscription", file, HarkenError(warning), id=id, is_warning=True))
    log.info("%d subscriptions loaded from %s, %d refused", report.accepted, file, len(report.faults))
    if not report.accepted:
        raise _nothing_in(file, bool(report.faults))
    return Fields(engine, ids)


def _nothing_in(file: str, has_faults: bool) -> SourceError:
    if not has_faults:
        return SourceError(f"{file} has no subscriptions")
    hint = f"`harken check --subscriptions {file}` lists all that is wrong"
    return SourceError(f"{file} has no subscription that can be used", hint=hint)


def _refused(count: int) -> str:
    return f" ({count:,} refused)" if count else ""
