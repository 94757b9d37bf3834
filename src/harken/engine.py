"""The engine in one process: subscribe, match, explain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from harken.concurrency.forking import ENGINE, fork_rlock
from harken.errors import (
    CapabilityError,
    EventError,
    HarkenError,
    SchemaError,
    SegmentError,
    UnknownIdError,
    did_you_mean,
)
from harken.events import Decoded, Event, EventBatch, held, looked_at, validate, without_bad_documents
from harken.events.arrow_rows import at_rest, is_arrow, schema_of
from harken.events.raw import RawEvent, content
from harken.language.compiled import Compiler
from harken.language.explanation import Explanation
from harken.language.registry import DEFAULT_LANGUAGE
from harken.language.sql.parser import parse, reads_like_condition
from harken.limits import DEFAULT_LIMITS, Limits
from harken.live.changes import Change
from harken.live.home import SavedLocation
from harken.live.live_set import LiveSet
from harken.live.loading import (
    Checked,
    Replacement,
    Report,
    apply_changes,
    replace_records,
    subscribe_records,
    subscribe_table,
)
from harken.live.mismatch import Compared, Mismatches, OnMismatch, mismatches, require_word
from harken.live.notebook import html_table
from harken.live.results import BatchMatches, Matches, Reading
from harken.live.sampled import Sampled
from harken.live.subscriptions import NO_FIELDS, Record, Subscription, checked_id, has_predicates
from harken.live.unparsed import Unparsed, of_batch, of_event
from harken.matchers.algorithm_registry import DEFAULT_ALGORITHM, takes_option
from harken.matchers.base import OneMatch
from harken.matchers.document_algorithms import DEFAULT_DOCUMENTS, DocumentMatching
from harken.matchers.kinds import OPERATORS
from harken.matchers.roles import CallsOperators, Plans
from harken.matchers.sharing import match_shared
from harken.operators import ORDERS, Operating, Operator, OperatorSet
from harken.schema import EVENT_TYPE, EventColumns, Extension, Kind, Path, Schema, format_path
from harken.schema.derived import needed

if TYPE_CHECKING:
    import pyarrow as pa

    from harken.live.bulk import TableOfSubscriptions
    from harken.live.parts import Shard

_MOST_FOR_A_HINT = 10_000
_EVENT_TYPE = format_path(EVENT_TYPE)
_ONE_WORD = re.compile(r"[\w.:/@-]+")


class Engine:
    """Holds subscriptions and finds, for each event, those that are true of it.

    `len(engine)`, `id in engine` and `for each in engine` are about its subscriptions. Threads may share an engine:
    matching never waits for changes, and a match that begins after `subscribe` or `unsubscribe` has returned sees them.
    """

    def __init__(
        self,
        schema: Schema | None = None,
        algorithm: str = DEFAULT_ALGORITHM,
        limits: Limits = DEFAULT_LIMITS,
        documents: str = DEFAULT_DOCUMENTS,
        operators: Iterable[Operator | str] = (),
        order: str = ORDERS[0],
        **options: Any,
    ) -> None:
        """Make an empty engine. With a `schema`, subscriptions and events have to fit it.

        `algorithm` finds subscriptions over attributes (`harken algorithms` lists them) and takes the `options`,
        `documents` those over XML documents. `limits` bound the size of texts and events. `operators` are what
        subscriptions may call: each made by `harken.operator`, or as "module:name", or the name of an entry point.
        `order` is the order in which their predicates are evaluated (or, with `matching_tree`, that of its tests).
        """
        if schema is not None and not isinstance(schema, Schema):
            hint = "harken.load_schema(path) reads one from a file"
            raise SchemaError(f"a schema is a harken.Schema, not a {type(schema).__name__}", hint=hint)
        matching, options = DocumentMatching.chosen(documents, options, algorithm)
        if order not in ORDERS and takes_option(algorithm, "order"):
            order, options = ORDERS[0], {**options, "order": order}
        operating = Operating.of(operators, order, limits)
        compiler = Compiler(schema, limits, operating.operators.signatures)
        self._live = LiveSet(compiler, algorithm, options, operating=operating, documents=matching)
        self._location = SavedLocation()
        self._compared = Compared()
        self._sampled = Sampled()
        self._unparsed = Unparsed()
        # Held by changes. Matching does not take it.
        self._lock = fork_rlock(ENGINE)

    def __repr__(self) -> str:
        schema = "" if self.schema is None else f", schema version {self.schema.version}"
        count = "1 subscription" if len(self) == 1 else f"{len(self):,} subscriptions"
        return f"<Engine: {count}, {self.algorithm}{schema}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self).strip("<>"), [], _summary(self.stats()))

    def __reduce__(self) -> Any:
        raise TypeError("an engine cannot be pickled: save(path) it, and call Engine.load(path) in the other process")

    @property
    def schema(self) -> Schema | None:
        """The schema that subscriptions and events have to fit, if there is one."""
        return self._live.schema

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that finds subscriptions over attributes."""
        return self._live.algorithm

    @property
    def limits(self) -> Limits:
        """The limits on texts and events."""
        return self._live.limits

    @property
    def options(self) -> dict[str, Any]:
        """The options of the algorithm."""
        return dict(self._live.options)

    @property
    def operators(self) -> OperatorSet:
        """The operators that subscriptions may call, by name."""
        return self._live.operating.operators

    @property
    def order(self) -> str:
        """The order in which predicates of operators are evaluated."""
        return self._live.operating.order

    @property
    def version(self) -> int | None:
        """The number of the version that was last saved or loaded."""
        return self._location.version

    @property
    def sequence(self) -> int | None:
        """The sequence number of the last change applied, which is saved too. Follow a log from here on."""
        return self._live.sequence

    def __len__(self) -> int:
        return len(self._live.catalogue)

    def __contains__(self, id: object) -> bool:
        return (str(id) if type(id) is int else id) in self._live.catalogue

    def __iter__(self) -> Iterator[Subscription]:
        """The subscriptions as they are now."""
        with self._lock:
            return iter(list(self._live.catalogue))

    def subscription(self, id: str | int) -> Subscription:
        """The subscription of this id. Raises UnknownIdError."""
        wanted = checked_id(id)
        subscription = self._live.catalogue.get(wanted)
        if subscription is None:
            near = did_you_mean(wanted, self._live.catalogue.ids()) if len(self) <= _MOST_FOR_A_HINT else None
            raise UnknownIdError(f"there is no subscription {wanted!r:.60}", hint=near)
        return subscription

    def field_names(self) -> list[str]:
        """The names of the fields of subscriptions, such as `owner`."""
        return list(self._live.catalogue.field_counts())

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
        """Add a subscription: events match it while its text `where` is true of them.

        An id that is taken raises DuplicateIdError or, with `replace`, gets the new text. `fields` are kept with the
        subscription, such as its owner. `warnings` of the result point out what is probably a mistake. Raises
        LanguageError, with the place of the fault, or LimitError.
        """
        record = Record(0, checked_id(id), where, language, dict(fields) if fields else NO_FIELDS)
        compiler = self._live.compiler
        compiled = self._live.compile(record, compiler)
        with self._lock:
            if not replace:
                self._live.refuse_taken(record.id)
            return self._live.put([(record, compiled)], compiler)[0]

    def subscribe_many(
        self, source: Iterable[Any], *, replace: bool = False, progress: Callable[[int], None] | None = None
    ) -> Report:
        """Add subscriptions from (id, where) pairs, mappings or an Arrow table. Faulty ones are reported, not raised.

        An Arrow table may have `predicates` in place of `where`: lists of attribute, operator and value, which need no
        parsing. `progress` is called now and then with the number of subscriptions read.
        """
        if is_arrow(source):
            source = at_rest(source)
        if not has_predicates(source):
            return subscribe_records(self._live, self._changing, source, replace, progress)
        return subscribe_table(self._changing, self._predicates(source), replace, progress)

    def replace_all(self, source: Iterable[Any], *, progress: Callable[[int], None] | None = None) -> Replacement:
        """Replace all subscriptions by those of a source, which is as for `subscribe_many`.

        A match sees the change whole or not at all. Unchanged subscriptions are not touched. A faulty one is reported,
        and the subscription that had its id is kept. If the algorithm has no room for all of them, or cannot remove
        any, LimitError or CapabilityError is raised and nothing changes.
        """
        if is_arrow(source):
            source = at_rest(source)
        records = self._predicates(source).records() if has_predicates(source) else source
        return replace_records(self._changing, records, progress)

    def unsubscribe(self, id: str | int) -> None:
        """Remove a subscription. Raises UnknownIdError, or CapabilityError if the algorithm cannot remove any."""
        with self._lock:
            self._live.remove(self.subscription(id))

    def check(self, where: str, language: str = DEFAULT_LANGUAGE) -> Checked:
        """Parse and check a text without subscribing. Raises LanguageError, LimitError or CapabilityError."""
        live = self._live
        compiler = live.compiler
        return Checked(compiler, live.compile(Record(0, "checked", where, language), compiler))

    def apply(self, changes: Iterable[Change], checked: Mapping[str, Checked] | None = None) -> Report:
        """Apply the changes of a log in their order. A match sees none of them or all of them.

        Changes up to `sequence` were applied before and are skipped. A rejected record is reported, and the
        subscription that had its id is removed, because the log replaced it. `checked` has results of `check`, by id:
        their texts are not compiled again.
        """
        return apply_changes(self._live, self._changing, changes, checked or {})

    def extend_schema(self, *extensions: Extension) -> Schema:
        """Extend the schema by its four rules, all of them or none. Raises SchemaError."""
        with self._lock:
            if self.schema is None:
                hint = "make the engine with one, if need be an empty one: Engine(Schema())"
                raise SchemaError("this engine has no schema to extend", hint=hint)
            extended = self.schema.extend(*extensions)
            compiler = Compiler(extended, self.limits, self._live.compiler.signatures)
            # A new event type is a new value of `event_type`: subscriptions that may test it are compiled again.
            touched = [each.record() for each in self if _EVENT_TYPE in each.where]
            self._live.use(compiler, [(record, self._live.compile(record, compiler)) for record in touched])
            return extended

    # Matching

    def match(self, event: Any) -> Matches:
        """Find the subscriptions that are true of an event: a mapping, dataclass, named tuple, pydantic model or bytes.

        Bytes are an XML document: the attribute `document` of an event that has no other attribute.

        Raises EventError if the event is not valid. Attributes that no subscription uses are ignored.
        """
        return _match_one(self._current(), event, perf_counter(), self._unparsed)

    def match_batch(self, events: Any, *, threads: int = 1, on_mismatch: OnMismatch = "warn") -> BatchMatches:
        """Find the subscriptions that are true of each event of a list, another iterable, an Arrow table or data frame.

        Invalid events are refused, and the others matched. Raises SourceError for a column that no event can hold, if a
        subscription uses it. Several `threads` share the events, which pays from some thousand events on.

        The columns of a table are compared with those that subscriptions use. If one is missing, or of another type,
        there is a MismatchWarning, once; `on_mismatch="fail"` raises MismatchError, "ignore" does nothing. If events
        have no column types, the first 1,000 are compared: an attribute that always had another type is warned of.
        """
        require_word(on_mismatch)
        if type(threads) is not int or threads < 1:
            raise HarkenError(f"`threads` is a whole number from 1 on, not {threads!r:.20}")
        started = perf_counter()
        events = held(events)
        columns = schema_of(events) if is_arrow(events) else None
        live = self._current()
        if columns is not None:
            self._compared.tell(columns, live.asking(), live.catalogue, live.schema, on_mismatch)
        with _BatchMatch(live) as match:
            compiler = match.snapshot.compiler
            decoded = validate(events, compiler.schema, compiler.limits, match.snapshot.decoded_names)
            self._sampled.look(decoded.batch, live, on_mismatch, has_types=columns is not None)
            if live.operating.operators:
                decoded = decoded.with_source(events)
            return match.of(decoded, started, threads, self._unparsed)

    def match_decoded(self, decoded: Decoded, *, threads: int = 1) -> BatchMatches:
        """Match events that were decoded before, with the schema of this engine and all names of `attributes()`.

        Raises EventError if a subscription uses an attribute that was not decoded.
        """
        live = self._current()
        with _BatchMatch(live) as match:
            matches = match.of(decoded, perf_counter(), threads, self._unparsed)
        _refuse_narrow(decoded.batch.names, live.names_to_decode())
        return matches

    def learn(self, events: Any) -> None:
        """Plan the index for events like these. Invalid ones are left out.

        Matching learns as well: this gives a new engine a head start.
        """
        live = self._live
        if not isinstance(live.matcher, Plans):
            raise CapabilityError(f"the algorithm `{self.algorithm}` does not learn from events")
        decoded = validate(events, self.schema, self.limits, live.decoded_names)
        batch = without_bad_documents(decoded, live.index.document_paths(), self.limits).batch
        for matcher in live.index.matchers().values():
            if isinstance(matcher, Plans):
                matcher.learn(batch)
        self.merge()

    def merge(self) -> None:
        """Merge all layers of the index into one, and plan it again, now. The engine also does it in the background.

        Attributes that only removed subscriptions used are no longer decoded.
        """
        live = self._live
        for matcher in live.index.matchers().values():
            if isinstance(matcher, Plans):
                matcher.merge()
        with self._lock:
            live.drop_unused_names()

    def explain(self, subscription: str | int, event: Any, language: str | None = None) -> Explanation:
        """Explain why an event matches a subscription or does not: print the result, or use `matched` and `tree`.

        `subscription` is an id, or a text of more than one word. With a `language` it is always a text.
        """
        text = subscription if isinstance(subscription, str) else checked_id(subscription)
        by_id = self._live.catalogue.get(text) if language is None else None
        if by_id is None and language is None and _ONE_WORD.fullmatch(text):
            by_id = self.subscription(text)  # raises UnknownIdError: the id is mistyped
        compiler = self._live.compiler

        def find_event(names: frozenset[str]) -> Mapping[str, Any]:
            return Event.of(event, compiler.schema, compiler.limits, looked_at(names, compiler.schema)).attributes

        where, language = (text, language or DEFAULT_LANGUAGE) if by_id is None else (by_id.where, by_id.language)
        plan = compiler.compile(where, language).plan
        if plan.kind != OPERATORS:
            return compiler.explain(where, find_event, language)
        from harken.explain.operators import explain_calling

        return explain_calling(
            *(parse(where, compiler.limits), find_event(frozenset(plan.names())), RawEvent(content(event))),
            *(self._live.operating.callers, compiler.schema, compiler.limits),
        )

    def stats(self) -> dict[str, Any]:
        """Return sizes and choices as plain data: subscriptions, layers and groups of the index, operators.

        `unparsed` counts strings that are compared with timestamps or dates and are none, by attribute and kind.
        """
        live = self._live
        return {
            "algorithm": self.algorithm,
            "subscriptions": len(self),
            "schema_version": None if self.schema is None else self.schema.version,
            "unparsed": self._unparsed.to_dict(),
            **live.compiler.stats(),
            "matcher": live.matcher.stats(),
            **({"operators": live.operating.stats()} if live.operating.operators else {}),
            **live.index.stats(),
        }

    def operator_plan(self) -> list[dict[str, Any]]:
        """Return statistics of each predicate of operators, as plain data, the most useful first.

        `conjunctions` is the number that need it; `holding` the probability that it is true, learnt from `tried`
        outcomes or guessed if there are none; `worth` the number of conjunctions that evaluating it is expected to
        settle per millisecond.
        """
        matcher = self._live.index.others().get(OPERATORS)
        return matcher.plan() if isinstance(matcher, CallsOperators) else []

    # What subscriptions use

    def attributes(self) -> frozenset[str] | None:
        """Return the names of the top-level attributes that matching looks at; None: all of them.

        They are those that subscriptions use and those that the schema declares. With event types it is None, because
        the whole event is checked. Attributes that only removed subscriptions used are included until `merge`.
        """
        return self._live.names_to_decode()

    def validated(self) -> frozenset[str] | None:
        """Return those of `attributes()` whose values are checked. Others are for operators and may hold anything."""
        return self._live.decoded_names

    def asks(self) -> list[tuple[Path, Kind | None]] | None:
        """Return the attributes that subscriptions use, each with the kind of its values; None is any kind.

        Some may belong to removed subscriptions only. Returns None if the algorithm does not list them.
        """
        asking = self._live.index.asking()
        if asking is None:
            return None
        return list(dict.fromkeys(need for each in asking.columns() for need in needed(each.path, each.kind)))

    def documents(self) -> tuple[Path, ...]:
        """The attributes that subscriptions read as XML documents."""
        return self._live.index.document_paths()

    def mismatches(self, columns: pa.Schema | EventColumns) -> Mismatches:
        """The mismatches between subscriptions and events with these columns: print the result, or iterate over it.

        With an algorithm other than columnar, the first 10,000 subscriptions are compared.
        """
        events = columns if isinstance(columns, EventColumns) else EventColumns.from_arrow(columns)
        return mismatches(self._live.asking(), self._live.catalogue, events, self.schema)

    def unknown_fields(self, names: Iterable[str]) -> list[tuple[str, str | None]]:
        """The names that are no field of any subscription, each with a hint at a similar one."""
        fields = self.field_names()
        return [(name, did_you_mean(name, fields, case_sensitive=False)) for name in names if name not in fields]

    def favourite(self) -> str | None:
        """Return the top-level attribute by which most subscriptions are found, if there is one.

        Events that share its value find their subscriptions in the same place, so matching them one after the other
        is quicker.
        """
        matcher = self._live.matcher
        path = matcher.favourite() if isinstance(matcher, Plans) else None
        return None if path is None or len(path) > 1 else str(path[0])

    # On disk

    def save(self, path: str | PathLike[str]) -> int:
        """Write the engine to a folder, and return the number of the version that this makes.

        Saving is atomic: a crash leaves the version before. Engines that have loaded the folder may go on; those that
        follow it see the new version. Raises SegmentError if another engine was saved there since this one was loaded.
        """
        with self._lock:
            return self._location.save(path, self._live)

    def export(self, path: str | PathLike[str]) -> None:
        """Write the engine to a folder as `save` does, without remembering that folder."""
        from harken.live.saved import save
        from harken.versions.folder import Folder

        with self._lock:
            save(Folder(path), None, self._live)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        follow: bool = False,
        rebuild: bool = True,
        operators: Iterable[Operator | str] = (),
        order: str = ORDERS[0],
        **options: Any,
    ) -> Engine:
        """An engine from a folder that one was saved to, mapped into memory. Raises SegmentError.

        With `follow`, a version that is saved there later is loaded before the next match. With `rebuild`, an index
        that an earlier Harken saved is built again from the texts; else it is refused. The operators that
        subscriptions call have to be given: they are code and are not saved. `options` override the saved options of
        the algorithm.
        """
        location = SavedLocation.at(path, follow=follow, rebuild=rebuild)
        if order not in ORDERS:  # then it is one of the algorithm's
            order, options = ORDERS[0], {**options, "order": order}
        try:
            live = location.load(options, Operating.of(operators, order))
        except SegmentError as error:
            if isinstance(path, str) and reads_like_condition(path):
                error.hint = "it reads like a condition: Engine().subscribe(id, where) takes one"
            raise
        engine = cls(live.schema, live.algorithm, live.limits, **live.options)
        engine._live, engine._location = live, location
        return engine

    def refresh(self) -> bool:
        """Load a later version from the folder of the engine; return whether there was one.

        Raises SegmentError if that would lose changes that were not saved.
        """
        if not self._location.is_behind():
            return False
        with self._lock:
            newer = self._location.newer(self._live)
            self._live = newer or self._live
            return newer is not None

    def cut(self, parts: int) -> list[Engine]:
        """Divide the subscriptions among `parts` new engines. An event costs about the same in each."""
        from harken.live.parts import cut

        with self._changing() as live:
            shards = cut(live.index, live.catalogue, live.numbering.size, parts)
            return [self._of_part(each, live.sequence) for each in shards]

    @classmethod
    def join(cls, engines: Sequence[Engine]) -> tuple[Engine, list[str]]:
        """One engine with the subscriptions of several that have the same settings, and the ids that more than one had.

        Of subscriptions with the same id, the first is kept.
        """
        from harken.live.parts import join

        sets = [each._live for each in engines]
        part, duplicates = join([(each.index, each.catalogue, each.numbering.size) for each in sets])
        sequences = [each.sequence for each in sets]
        sequence = None if None in sequences else min(each for each in sequences if each is not None)
        return engines[0]._of_part(part, sequence), duplicates

    # Inside

    def _predicates(self, source: Any) -> TableOfSubscriptions:
        """The source as a table of predicates."""
        import pyarrow

        from harken.live.bulk import TableOfSubscriptions

        return TableOfSubscriptions(source if isinstance(source, pyarrow.Table) else pyarrow.table(source), self.limits)

    @contextmanager
    def _changing(self) -> Iterator[LiveSet]:
        """Hold the write lock and yield the live set."""
        with self._lock:
            yield self._live

    def _of_part(self, part: Shard, sequence: int | None) -> Engine:
        """An engine with the settings of this one, other subscriptions, and the changes of a log up to `sequence`."""
        engine = Engine(self.schema, self.algorithm, self.limits, **self.options)
        parts = part.index, part.catalogue, part.numbering
        live = self._live
        engine._live = LiveSet(live.compiler, self.algorithm, self.options, *parts, live.operating, live.documents)
        engine._live.is_changed = True
        engine._live.sequence = sequence
        return engine

    def _current(self) -> LiveSet:
        """The live set to match with. If the engine follows a folder, a later version is loaded first."""
        if self._location.follows:
            self.refresh()
        return self._live


def _summary(stats: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The single values among statistics, and the numbers one level below."""
    for name, value in stats.items():
        if isinstance(value, int | float | str):
            yield name.replace("_", " "), value
        elif isinstance(value, Mapping):
            numbers = {key: each for key, each in value.items() if isinstance(each, int | float)}
            yield from ((f"{name}: {key.replace('_', ' ')}", each) for key, each in numbers.items())


class _BatchMatch:
    """Matches one batch with the live set as it is at the beginning."""

    def __init__(self, live: LiveSet) -> None:
        self._live = live
        self._reading = Reading(live.catalogue, live.numbering)  # first, so that no number of the snapshot is reused
        self.snapshot = live.snapshot()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.snapshot.indexes.release()

    def of(self, decoded: Decoded, started: float, threads: int, unparsed: Unparsed) -> BatchMatches:
        live = self._live
        decoded = without_bad_documents(decoded, live.index.document_paths(), live.limits)
        batch = decoded.batch
        began = perf_counter()
        results = match_shared(batch, threads, self.snapshot.indexes, live.form_of())
        seconds = {"decode": began - started, "match": perf_counter() - began}
        counts = of_batch(batch, live.readings(), len(results) > 1)
        unparsed.add(counts)
        return BatchMatches(results, decoded.refused, self._reading, seconds, counts)


def _match_one(live: LiveSet, raw: Any, started: float, unparsed: Unparsed) -> Matches:
    """Match one event, or a bare document, without what makes the results of a batch cheap to keep."""
    reading = live.numbering.begin()
    try:
        snapshot = live.snapshot()
        index, compiler = snapshot.indexes, snapshot.compiler
        try:
            is_bare = type(raw) is bytes and compiler.schema is None
            event = raw if is_bare else Event.of(raw, compiler.schema, compiler.limits, snapshot.decoded_names)
            began = perf_counter()
            form_of = live.form_of()
            is_quick = index.is_quick and not is_bare
            match = index.match_one(event, form_of) if is_quick else None
            if match is None:
                source = (raw,) if live.operating.operators else None
                batch = EventBatch.of_one(event, live.limits, snapshot.decoded_names, source)
                for path in live.index.document_paths():
                    for _, error in batch.documents(path, live.limits).errors:
                        raise error
                result = index.parts_of(batch, form_of)(0, 1) if is_quick else index.match(batch, form_of)
                match = OneMatch.of(result)
                unparsed.add(of_batch(batch, live.readings()))
            elif readings := live.readings():
                unparsed.add(of_event(event, readings))
        finally:
            index.release()
        ids = live.catalogue.ids_of(match.numbers)
        errors = [(live.catalogue.of(number).id, error) for _, number, error in match.errors] if match.errors else []
    finally:
        live.numbering.end(reading)
    seconds = {"decode": began - started, "match": perf_counter() - began}
    return Matches(ids, match.candidates, errors, seconds)


def _refuse_narrow(names: frozenset[str] | None, needed: frozenset[str] | None) -> None:
    """Raise EventError if events were decoded without an attribute that subscriptions use."""
    if names is None or (needed is not None and needed <= names):
        return
    unseen = "all of it" if needed is None else ", ".join(f"`{name}`" for name in sorted(needed - names)[:5])
    raise EventError(f"the events were decoded without {unseen}", hint="decode them with the names of `attributes()`")
