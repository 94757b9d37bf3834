"""The work of `harken match`: subscriptions are loaded, then events stream through the engine, a batch at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from harken.cli.asked_in_vain import MissingAttributes
from harken.cli.input_findings import InputFinding, Kind, of_fault, of_rejected
from harken.cli.inputs import EventFiles, FileBatch, SubscriptionFiles, loaded_operators, saved_engine
from harken.cli.match_rows import EventNames, Row, SubscriptionFields
from harken.cli.outputs import destination
from harken.cli.rejections import Rejections, rejections
from harken.cli.screen import Screen, counted
from harken.engine import Engine
from harken.errors import EventError, HarkenError, SourceError
from harken.events.sources import STANDARD_INPUT
from harken.language.registry import DEFAULT_LANGUAGE
from harken.live.notebook import EVENT
from harken.live.results import BatchMatches
from harken.live.subscriptions import Fault, Record
from harken.matchers.algorithm_registry import DEFAULT_ALGORITHM
from harken.matchers.document_algorithms import DEFAULT_DOCUMENTS
from harken.operators import OperatorSet
from harken.schema import load_schema

_STEP = 1_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MatchRequest:
    """The arguments of the command line."""

    events: Sequence[str]
    subscriptions: Sequence[str]
    """Files, or the folder of a saved engine; empty if there are texts in `where`."""
    schema: str | None = None
    algorithm: str | None = None
    output: str | None = None
    event_id: str | None = None
    rejected: str | None = None
    format: str | None = None
    batch_size: int = 4_096
    replace: bool = False
    threads: int = 1
    save: str | None = None
    split: str | None = None
    operators: Sequence[str] | None = None
    documents: str | None = None
    database: str | None = None
    where: Sequence[str] = ()
    language: str = DEFAULT_LANGUAGE
    """The language of the texts in `where`."""


@dataclass(slots=True)
class MatchSummary:
    """The result of matching. `failed` counts pairs of an event and a subscription that could not be evaluated."""

    events: int = 0
    rejected_events: int = 0
    subscriptions: int = 0
    rejected_subscriptions: int = 0
    matches: int = 0
    failed: int = 0
    seconds: float = 0.0
    matching_seconds: float = 0.0

    @property
    def has_rejections(self) -> bool:
        return bool(self.rejected_events or self.rejected_subscriptions or self.failed)

    @property
    def events_per_second(self) -> float:
        """Without the time it took to load the subscriptions."""
        return self.events / self.matching_seconds if self.matching_seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {"kind": "summary", **asdict(self), "events_per_second": round(self.events_per_second, 1)}

    def __str__(self) -> str:
        parts = [
            f"{counted(self.events, 'event')}{_rejected(self.rejected_events)}",
            f"{counted(self.subscriptions, 'subscription')}{_rejected(self.rejected_subscriptions)}",
            f"{counted(self.matches, 'match')}" + (f" ({self.failed:,} failed)" if self.failed else ""),
            f"{self.seconds:.2f} s",
            f"{self.events_per_second:,.0f} events/s while matching",
        ]
        return " · ".join(parts)


def run(request: MatchRequest, screen: Screen) -> MatchSummary:
    """Match as requested. Raises HarkenError if nothing can be matched."""
    started = perf_counter()
    names = EventNames(request.event_id)
    operators = loaded_operators(request.operators)
    settings = {"--schema": request.schema, "--algorithm": request.algorithm, "--documents": request.documents}
    saved = saved_engine(request.subscriptions, settings, operators, request.database)
    engine = _new_engine(request, operators) if saved is None else saved
    # Both raise at once if a file is missing, before anything is written.
    records = SubscriptionFiles(request.subscriptions) if saved is None and request.subscriptions else None
    events = EventFiles(request.events, request.format, engine.schema, request.batch_size, request.split)
    with destination(request.output, screen) as open_output, rejections(screen, request.rejected) as rejected:
        if records is not None:
            subscribe(engine, records, request.replace, screen, rejected)
        for text in dict.fromkeys(request.where):
            _subscribe_text(engine, text, request.language, rejected)
        if request.save is not None:
            log.info("version %d saved to %s", engine.save(request.save), request.save)
        fields = SubscriptionFields(engine)
        matching = _Matching(engine, request.threads, names, fields, rejected)
        decoded_names = names.with_field(engine.attributes())
        loaded = perf_counter()
        with closing(open_output(names, fields)) as output, screen.progress("matching events") as advance:
            for batch in events.batches(decoded_names):
                output.write(matching.rows(batch))
                if STANDARD_INPUT in events.files:  # which may never end
                    matching.warn_of_types(events)
                advance(batch.size)
        matching.warn_of_names(events, request.format)
        matching.warn_of_unparsed(events)
    if not matching.events:
        raise SourceError(f"there is no event in {events.title}")
    finished = perf_counter()
    log.info("the engine: %s", engine.stats())
    counts = rejected.counts
    return MatchSummary(
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

    def __init__(
        self, engine: Engine, threads: int, names: EventNames, fields: SubscriptionFields, rejected: Rejections
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._names = names
        self._fields = fields
        self._rejected = rejected
        self._missing = MissingAttributes(engine)
        self.events = 0
        self.matches = 0

    def rows(self, batch: FileBatch) -> Iterator[Row]:
        """The rows of a batch. Rejected events are reported."""
        matches = self._engine.match_batch(batch.decoded, threads=self._threads)
        for each in matches.rejected:
            self._rejected.add(of_rejected(batch, each))
        for position, id, error in matches.errors:
            self._rejected.add(_of_event("match", batch, error, position, id))
        self._missing.look(batch.decoded.batch)
        self.events += len(matches)
        log.debug("%d events: %d matches, %s", len(matches), len(matches.numbers), matches.seconds)
        return self._named_rows(batch, matches)

    def warn_of_types(self, events: EventFiles) -> None:
        """Warn, once, if attributes of the first events had another type than subscriptions compare them with."""
        error = self._missing.early_warning()
        if error is not None:
            self._rejected.warn(InputFinding("event", events.title, error, is_warning=True))

    def warn_of_unparsed(self, events: EventFiles) -> None:
        """Warn if strings are compared with timestamps or dates and are none."""
        for name, counts in self._engine.stats()["unparsed"].items():
            for kind, count in counts.items():
                many = f"1 string is not a full ISO 8601 {kind}"
                if count > 1:
                    many = f"{count:,} strings are not full ISO 8601 {kind}s"
                message = f"`{name}` is compared with a {kind}, and {many}"
                self._rejected.warn(InputFinding("event", events.title, HarkenError(message), is_warning=True))

    def warn_of_names(self, events: EventFiles, format: str | None) -> None:
        """Warn if a subscription uses an attribute that no event had."""
        for error in self._missing.warnings(events, format):
            self._rejected.warn(InputFinding("event", events.title, error, is_warning=True))

    def _named_rows(self, batch: FileBatch, matches: BatchMatches) -> Iterator[Row]:
        ids = matches.arrow_ids(plain=True).values.to_pylist()
        numbers, starts = matches.numbers.tolist(), matches.offsets.tolist()
        places = {position: place for place, position in enumerate(matches.positions)}
        events = batch.decoded.batch
        rejected = {each.position for each in matches.rejected}
        for position, name in zip(events.positions, self._names.of(events, batch.first), strict=True):
            if position in rejected:
                continue
            if isinstance(name, EventError):
                self._rejected.add(_of_event("event", batch, name, position))
                continue
            matched = slice(starts[places[position]], starts[places[position] + 1])
            self.matches += matched.stop - matched.start
            for number, id in zip(numbers[matched], ids[matched], strict=True):
                yield {EVENT: name, **self._fields.of(number, id, matches)}


def _of_event(kind: Kind, batch: FileBatch, error: HarkenError, position: int, id: str | None = None) -> InputFinding:
    """The finding for an event that has no name, or failed with a subscription."""
    return InputFinding(kind, batch.file, error, batch.first + position, id=id, first=batch.first)


def _new_engine(request: MatchRequest, operators: OperatorSet) -> Engine:
    schema = None if request.schema is None else load_schema(request.schema)
    options: dict[str, Any] = {} if request.database is None else {"database": request.database}
    return Engine(
        schema,
        request.algorithm or DEFAULT_ALGORITHM,
        documents=request.documents or DEFAULT_DOCUMENTS,
        operators=operators,
        **options,
    )


def subscribe(engine: Engine, files: SubscriptionFiles, replace: bool, screen: Screen, rejected: Rejections) -> None:
    """Load the subscriptions, and report rejected ones. Raises SourceError if all are rejected."""
    with screen.progress("loading subscriptions") as advance:

        def records() -> Iterator[Record | Fault]:
            for count, record in enumerate(files, 1):
                if count % _STEP == 0:
                    advance(_STEP)
                yield record

        report = engine.subscribe_many(records(), replace=replace)
    for fault in report.faults:
        file, first = files.origin(fault.position)
        rejected.add(of_fault(file, fault, first))
    for id, warning in report.warnings:
        rejected.warn(InputFinding("subscription", files.title, HarkenError(warning), id=id, is_warning=True))
    log.info("%d subscriptions loaded from %s, %d rejected", report.accepted, files.title, len(report.faults))
    if not report.accepted:
        raise _nothing_in(files, bool(report.faults))


def _subscribe_text(engine: Engine, text: str, language: str, rejected: Rejections) -> None:
    """Subscribe a text with itself as id. A fault raises LanguageError, as it was just typed and is easy to mend."""
    for warning in engine.check(text, language).warnings:
        rejected.warn(InputFinding("subscription", "--where", HarkenError(warning), id=text, is_warning=True))
    engine.subscribe(text, text, language)


def _nothing_in(files: SubscriptionFiles, has_faults: bool) -> SourceError:
    if not has_faults:
        return SourceError(f"{files.title} has no subscriptions")
    hint = f"`harken check --subscriptions {files.files[0]}` lists all that is wrong"
    return SourceError(f"{files.title} has no subscription that can be used", hint=hint)


def _rejected(count: int) -> str:
    return f" ({count:,} rejected)" if count else ""
