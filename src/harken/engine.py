"""The engine in one process: subscribe, match, explain."""

from __future__ import annotations

import gc
import re
import threading
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

from harken.errors import DuplicateIdError, HarkenError, SchemaError, UnknownIdError, did_you_mean
from harken.events import Decoded, Event, EventBatch, Refused, validate
from harken.explain import Explanation, explain
from harken.language.compiled import Compiled, Compiler
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers import Capability, Entry, create_matcher, required_capabilities
from harken.matchers.registry import DEFAULT_ALGORITHM, refuse_incapable
from harken.schema import EVENT_TYPE, Extension, Schema, format_path
from harken.subscriptions import Fault, Record, Subscription, checked_id, records_of

_MOST_FOR_A_HINT = 10_000
_EVENT_TYPE = format_path(EVENT_TYPE)
_ONE_WORD = re.compile(r"[\w.:/@-]+")


@dataclass(frozen=True, slots=True)
class Matches:
    """What one event matched."""

    ids: list[str]
    candidates: int
    """How many subscriptions were examined to find them."""
    errors: list[tuple[str, HarkenError]] = field(default_factory=list)
    """Subscriptions that failed on this event."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Where the time went: decode and match."""


@dataclass(frozen=True)
class BatchMatches:
    """What the events of a batch matched. `ids`, `candidates` and `positions` have an item for every event."""

    ids: list[list[str]]
    """Of a refused event, none."""
    candidates: list[int]
    positions: list[int]
    """Where each event was in the input, from 0."""
    refused: tuple[Refused, ...] = ()
    errors: list[tuple[int, str, HarkenError]] = field(default_factory=list)
    """Subscriptions that failed on an event: (position of the event, id, error)."""
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def counts(self) -> list[int]:
        """The number of matches of each event."""
        return [len(ids) for ids in self.ids]


@dataclass(frozen=True, slots=True)
class Report:
    """What came of subscribing many: how many were taken, what was refused, what to look at."""

    accepted: int
    faults: list[Fault]
    warnings: list[tuple[str, str]]
    """(id, warning) of subscriptions that were taken."""


class Engine:
    """Subscriptions and the matcher that finds them. Threads may share an engine."""

    def __init__(
        self,
        schema: Schema | None = None,
        algorithm: str = DEFAULT_ALGORITHM,
        limits: Limits = DEFAULT_LIMITS,
        **options: Any,
    ) -> None:
        if schema is not None and not isinstance(schema, Schema):
            hint = "harken.load_schema(path) reads one from a file"
            raise SchemaError(f"a schema is a harken.Schema, not a {type(schema).__name__}", hint=hint)
        self.algorithm = algorithm
        self.limits = limits
        self._matcher = create_matcher(algorithm, limits, **options)
        self._is_limited = self._matcher.capabilities != frozenset(Capability)
        self._compiler = Compiler(schema, limits)
        self._subscriptions: dict[str, Subscription] = {}
        self._by_number: dict[int, Subscription] = {}
        self._free: list[int] = []
        # One at a time changes or matches, so that a number means the same from the matcher's answer to ours.
        self._lock = threading.RLock()

    @property
    def schema(self) -> Schema | None:
        return self._compiler.schema

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: object) -> bool:
        return (str(id) if type(id) is int else id) in self._subscriptions

    def __iter__(self) -> Iterator[Subscription]:
        """The subscriptions as they are now."""
        return iter(list(self._subscriptions.values()))

    def subscription(self, id: str | int) -> Subscription:
        """The subscription of this id. Raises UnknownIdError."""
        wanted = checked_id(id)
        found = self._subscriptions.get(wanted)
        if found is None:
            near = did_you_mean(wanted, self._subscriptions) if len(self) <= _MOST_FOR_A_HINT else None
            raise UnknownIdError(f"there is no subscription {wanted!r:.60}", hint=near)
        return found

    # Subscribing

    def subscribe(
        self,
        id: str | int,
        where: str,
        language: str = "sql",
        *,
        replace: bool = False,
        fields: Mapping[str, Any] | None = None,
    ) -> Subscription:
        """Take a subscription. Raises DuplicateIdError, LanguageError or LimitError."""
        record = Record(0, checked_id(id), where, language, dict(fields or {}))
        compiler = self._compiler
        compiled = self._compile(record, compiler)
        with self._lock:
            self._refuse_taken(record.id, replace, self._subscriptions)
            self._install([(record, compiled)], compiler)
            return self._subscriptions[record.id]

    def subscribe_many(self, source: Iterable[Any], *, replace: bool = False) -> Report:
        """Take subscriptions from (id, where) pairs, mappings or an Arrow table. The faulty are reported."""
        compiler = self._compiler
        compiled: list[tuple[Record, Compiled]] = []
        faults: list[Fault] = []
        with _collector_paused():
            for record in records_of(source):
                if isinstance(record, Fault):
                    faults.append(record)
                    continue
                try:
                    compiled.append((record, self._compile(record, compiler)))
                except HarkenError as error:
                    faults.append(record.fault(error))
            with self._lock:
                taken: dict[str, tuple[Record, Compiled]] = {}
                for record, form in compiled:
                    try:
                        self._refuse_taken(record.id, replace, self._subscriptions, taken)
                        taken[record.id] = (record, form)
                    except HarkenError as error:
                        faults.append(record.fault(error))
                self._install(taken.values(), compiler)
        faults.sort(key=lambda fault: fault.position)
        warnings = [(id, warning) for id, (_, form) in taken.items() for warning in form.warnings]
        return Report(len(taken), faults, warnings)

    def unsubscribe(self, id: str | int) -> None:
        """Let go of a subscription. Raises UnknownIdError, or CapabilityError if the algorithm only ever adds."""
        with self._lock:
            self._refuse_unless_removing()
            self._uninstall(self.subscription(id))

    def extend_schema(self, *extensions: Extension) -> Schema:
        """Extend the schema by its four rules, all of them or none. Raises SchemaError."""
        with self._lock:
            if self.schema is None:
                hint = "make the engine with one, if need be an empty one: Engine(Schema())"
                raise SchemaError("this engine has no schema to extend", hint=hint)
            extended = self.schema.extend(*extensions)
            compiler = Compiler(extended, self.limits)
            # A new event type is a new value of `event_type`: what may speak of that is compiled again.
            touched = [each.record() for each in self if _EVENT_TYPE in each.where]
            renewed = [(record, self._compile(record, compiler)) for record in touched]
            before, self._compiler = self._compiler, compiler
            try:
                self._install(renewed, compiler)
            except HarkenError:
                self._compiler = before
                raise
            return extended

    # Matching

    def match(self, event: Mapping[str, Any] | Event) -> Matches:
        """The subscriptions that are true of an event. Raises EventError if it is not a valid one."""
        started = perf_counter()
        valid = Event.of(event, self.schema, self.limits)
        found = self._match(Decoded(EventBatch((valid,), (0,)), ()), started)
        errors = [(id, error) for _, id, error in found.errors]
        return Matches(found.ids[0], found.candidates[0], errors, found.seconds)

    def match_batch(self, events: Iterable[Mapping[str, Any] | Event]) -> BatchMatches:
        """The subscriptions that are true of each event of a list or an Arrow table. Bad events are only refused."""
        started = perf_counter()
        return self._match(validate(events, self.schema, self.limits), started)

    def match_decoded(self, decoded: Decoded) -> BatchMatches:
        """The same for events that were decoded before, with the schema of this engine."""
        return self._match(decoded, perf_counter())

    def explain(self, subscription: str | int, event: Mapping[str, Any] | Event) -> Explanation:
        """Why an event matches a subscription or does not, given its id or a text of more than one word."""
        valid = Event.of(event, self.schema, self.limits)
        text = checked_id(subscription) if isinstance(subscription, int) else subscription
        known = self._subscriptions.get(text)
        if known is None and _ONE_WORD.fullmatch(text):
            known = self.subscription(text)  # raises: an id that was mistyped
        compiled = self._compiler.compile(text) if known is None else known.compiled
        return explain(compiled.expression, valid.attributes, self.schema, self.limits)

    def stats(self) -> dict[str, Any]:
        """Sizes and choices, as plain data."""
        with self._lock:
            shapes = self._compiler.shapes
            return {
                "algorithm": self.algorithm,
                "subscriptions": len(self),
                "schema_version": None if self.schema is None else self.schema.version,
                "shapes": {"hits": shapes.hits, "misses": shapes.misses},
                "matcher": self._matcher.stats(),
            }

    # Inside

    def _compile(self, record: Record, compiler: Compiler) -> Compiled:
        compiled = compiler.compile(record.where, record.language)
        if self._is_limited:
            refuse_incapable(self.algorithm, required_capabilities(compiled.normal_form, compiler.schema))
        return compiled

    def _refuse_taken(self, id: str, replace: bool, *holders: Container[str]) -> None:
        if not replace and any(id in holder for holder in holders):
            raise DuplicateIdError(f"the id {id!r} is taken", hint="pass replace=True to replace the subscription")

    def _install(self, compiled: Collection[tuple[Record, Compiled]], compiler: Compiler) -> None:
        """Take these in place of what has their ids: all of them or, if that raises, none."""
        if compiler is not self._compiler:  # the schema was extended meanwhile
            compiled = [(record, self._compile(record, self._compiler)) for record, _ in compiled]
        replaced = [self._subscriptions[record.id] for record, _ in compiled if record.id in self._subscriptions]
        if replaced:
            self._refuse_unless_removing()
        # Every number below this is taken or free.
        first_fresh = len(self._by_number) + len(self._free)
        recycled = self._free[max(0, len(self._free) - len(compiled)) :]
        numbers = [*recycled, *range(first_fresh, first_fresh + len(compiled) - len(recycled))]
        new = [
            Subscription(record.id, form, record.fields, number)
            for (record, form), number in zip(compiled, numbers, strict=True)
        ]
        self._matcher.add([Entry(each.number, each.compiled) for each in new])
        del self._free[len(self._free) - len(recycled) :]
        for subscription in replaced:
            self._uninstall(subscription)
        self._subscriptions.update((each.id, each) for each in new)
        self._by_number.update((each.number, each) for each in new)

    def _refuse_unless_removing(self) -> None:
        refuse_incapable(self.algorithm, frozenset({Capability.UNSUBSCRIBE}))

    def _uninstall(self, subscription: Subscription) -> None:
        self._matcher.remove([subscription.number])
        del self._subscriptions[subscription.id], self._by_number[subscription.number]
        self._free.append(subscription.number)

    def _match(self, decoded: Decoded, started: float) -> BatchMatches:
        """Match, and put the answers where the events were in the input."""
        batch, refused = decoded.batch, decoded.refused
        began = perf_counter()
        with self._lock:
            result = self._matcher.match(batch, lambda number: self._by_number[number].compiled.normal_form)
            ids = [[self._by_number[number].id for number in numbers] for numbers in result.by_event()]
            errors = [
                (batch.positions[index], self._by_number[number].id, error) for index, number, error in result.errors
            ]
        seconds = {"decode": began - started, "match": perf_counter() - began}
        examined: list[int] = result.candidates.tolist()
        if not refused:
            return BatchMatches(ids, examined, list(batch.positions), refused, errors, seconds)
        found = dict(zip(batch.positions, zip(ids, examined, strict=True), strict=True))
        positions = sorted([*batch.positions, *(each.position for each in refused)])
        answers = [found.get(position, ([], 0)) for position in positions]
        placed, candidates = [list(each) for each, _ in answers], [each for _, each in answers]
        return BatchMatches(placed, candidates, positions, refused, errors, seconds)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Bulk loading makes many objects and no cycles: the cycle collector would walk them over and over for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
