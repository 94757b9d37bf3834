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
from harken.live.home import Home
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
    matching waits for nobody, and a match that begins after `subscribe` or `unsubscribe` has returned knows of it.
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

        `algorithm` finds subscriptions over attributes (`harken algorithms` lists them, and `options` are its own),
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
        self._home = Home()
        self._compared = Compared()
        self._sampled = Sampled()
        self._unparsed = Unparsed()
        # One at a time changes things. Matching goes on meanwhile.
        self._lock = fork_rlock(ENGINE)

    def __repr__(self) -> str:
        schema = "" if self.schema is None else f", schema version {self.schema.version}"
        count = "1 subscription" if len(self) == 1 else f"{len(self):,} subscriptions"
        return f"<Engine: {count}, {self.algorithm}{schema}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self).strip("<>"), [], _summary(self.stats()))

    def __reduce__(self) -> Any:
        raise TypeError("an engine is not pickled: save(path) it, and let the other process call Engine.load(path)")

    @property
    def schema(self) -> Schema | None:
        """What subscriptions and events have to fit, if there is one."""
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
        """What subscriptions may call, by name."""
        return self._live.operating.operators

    @property
    def order(self) -> str:
        """The order in which predicates of operators are evaluated."""
        return self._live.operating.order

    @property
    def version(self) -> int | None:
        """The number of the version that was last saved or loaded."""
        return self._home.version

    @property
    def sequence(self) -> int | None:
        """The last change that was applied, also before it was saved. A log is followed from here on."""
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
        found = self._live.catalogue.get(wanted)
        if found is None:
            near = did_you_mean(wanted, self._live.catalogue.ids()) if len(self) <= _MOST_FOR_A_HINT else None
            raise UnknownIdError(f"there is no subscription {wanted!r:.60}", hint=near)
        return found

    def field_names(self) -> list[str]:
        """The names of the fields that travel with subscriptions, such as `owner`."""
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
        subscription, such as its owner. `warnings` of the result say what is probably not meant. Raises LanguageError,
        with the place of the fault, or LimitError.
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

        An Arrow table may have `predicates` in place of `where`: lists of attribute, operator and value, which are
        taken without parsing. `progress` is told now and then how many have been read.
        """
        if is_arrow(source):
            source = at_rest(source)
        if not has_predicates(source):
            return subscribe_records(self._live, self._changing, source, replace, progress)
        return subscribe_table(self._changing, self._predicates(source), replace, progress)

    def replace_all(self, source: Iterable[Any], *, progress: Callable[[int], None] | None = None) -> Replacement:
        """Have the subscriptions of a source, and no others. It comes as for `subscribe_many`.

        A match sees all of the change or nothing of it. What says the same as before stays where it is. A faulty one is
        reported, and what its id stood for before is kept. If the algorithm has no room for all of them, or cannot
        remove any, LimitError or CapabilityError is raised and nothing changes.
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

        Changes up to `sequence` were made before, and are passed over. A record that is rejected is reported, and what
        its id stood for before is gone: by the log it is something else now. `checked` has, by id, what `check` gave
        for the texts of records: these need not be understood again.
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
            # A new event type is a new value of `event_type`: what may speak of that is compiled again.
            touched = [each.record() for each in self if _EVENT_TYPE in each.where]
            self._live.use(compiler, [(record, self._live.compile(record, compiler)) for record in touched])
            return extended

    # Matching

    def match(self, event: Any) -> Matches:
        """Find the subscriptions that are true of an event: a mapping, dataclass, named tuple, pydantic model or bytes.

        Bytes are an XML document, which is the attribute `document` of an event that has no other.

        Raises EventError if it is not a valid one. Attributes that no subscription asks for are not looked at.
        """
        return _match_one(self._current(), event, perf_counter(), self._unparsed)

    def match_batch(self, events: Any, *, threads: int = 1, on_mismatch: OnMismatch = "warn") -> BatchMatches:
        """Find the subscriptions that are true of each event of a list, another iterable, an Arrow table or data frame.

        Bad events are only refused. Raises SourceError for a column that no event can hold, if a subscription asks for
        it. With several threads the events are shared among them: it pays from some thousand events on.

        The columns of a table are compared with what subscriptions ask for. A name that is no column, or a value of
        another type, is warned of once, by a MismatchWarning; `on_mismatch="fail"` raises MismatchError, "ignore" says
        nothing. Where events come without types of columns, the first 1,000 tell: an attribute that is compared with
        one type and always had another is warned of.
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
            compiler = match.seen.compiler
            decoded = validate(events, compiler.schema, compiler.limits, match.seen.asked)
            self._sampled.look(decoded.batch, live, on_mismatch, has_types=columns is not None)
            if live.operating.operators:
                decoded = decoded.with_source(events)
            return match.of(decoded, started, threads, self._unparsed)

    def match_decoded(self, decoded: Decoded, *, threads: int = 1) -> BatchMatches:
        """Match events that were decoded before, with the schema of this engine and all names of `attributes()`.

        Raises EventError if a subscription asks for an attribute that was not looked at then.
        """
        live = self._current()
        with _BatchMatch(live) as match:
            found = match.of(decoded, perf_counter(), threads, self._unparsed)
        _refuse_narrow(decoded.batch.names, live.asked_of_decoders())
        return found

    def learn(self, events: Any) -> None:
        """Plan the index for events like these. Bad ones are left out.

        Matching learns as well: this gives a new engine a head start.
        """
        live = self._live
        if not isinstance(live.matcher, Plans):
            raise CapabilityError(f"the algorithm `{self.algorithm}` does not learn from events")
        decoded = validate(events, self.schema, self.limits, live.asked)
        batch = without_bad_documents(decoded, live.index.document_paths(), self.limits).batch
        for matcher in live.index.matchers().values():
            if isinstance(matcher, Plans):
                matcher.learn(batch)
        self.merge()

    def merge(self) -> None:
        """Merge all layers of the index into one, planned anew, now. The engine also does it in the background.

        Attributes that only removed subscriptions asked for are no longer looked at.
        """
        live = self._live
        for matcher in live.index.matchers().values():
            if isinstance(matcher, Plans):
                matcher.merge()
        with self._lock:
            live.stop_looking()

    def explain(self, subscription: str | int, event: Any, language: str | None = None) -> Explanation:
        """Tell why an event matches a subscription or does not: print the result, or take `matched` and `tree`.

        `subscription` is the id of one, or a text of more than one word. With a `language` it is always a text.
        """
        text = subscription if isinstance(subscription, str) else checked_id(subscription)
        known = self._live.catalogue.get(text) if language is None else None
        if known is None and language is None and _ONE_WORD.fullmatch(text):
            known = self.subscription(text)  # raises: an id that was mistyped
        compiler = self._live.compiler

        def find_event(names: frozenset[str]) -> Mapping[str, Any]:
            return Event.of(event, compiler.schema, compiler.limits, looked_at(names, compiler.schema)).attributes

        where, language = (text, language or DEFAULT_LANGUAGE) if known is None else (known.where, known.language)
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

        `unparsed` counts strings that were compared with timestamps or dates, and are none, by attribute and kind.
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
        """Return what is known of each predicate of operators, as plain data, the most useful first.

        `conjunctions` need it, it holds with the chance `holding`, which was learnt from `tried` outcomes or is still a
        guess, and one evaluation is expected to settle `worth` conjunctions for each millisecond.
        """
        matcher = self._live.index.others().get(OPERATORS)
        return matcher.plan() if isinstance(matcher, CallsOperators) else []

    # What subscriptions ask for

    def attributes(self) -> frozenset[str] | None:
        """Return the names of the top-level attributes that matching looks at; None: all of them.

        They are those that subscriptions ask for and those that the schema declares. With event types it is None: by
        them the whole event is judged. What only subscriptions asked for that are gone is looked at until `merge`.
        """
        return self._live.asked_of_decoders()

    def validated(self) -> frozenset[str] | None:
        """Return those of `attributes()` that have to be valid. Others are for operators, and may hold anything."""
        return self._live.asked

    def asks(self) -> list[tuple[Path, Kind | None]] | None:
        """Return the attributes that subscriptions ask for, each with the kind of its values; None is any kind.

        Some may belong to removed subscriptions only. Returns None if the algorithm does not tell.
        """
        asking = self._live.index.asking()
        if asking is None:
            return None
        return list(dict.fromkeys(need for each in asking.columns() for need in needed(each.path, each.kind)))

    def documents(self) -> tuple[Path, ...]:
        """The attributes that subscriptions read as XML documents."""
        return self._live.index.document_paths()

    def mismatches(self, columns: pa.Schema | EventColumns) -> Mismatches:
        """What subscriptions ask for and events with these columns do not have: print it, or look at its items.

        With an algorithm other than columnar, the first 10,000 subscriptions are compared.
        """
        events = columns if isinstance(columns, EventColumns) else EventColumns.from_arrow(columns)
        return mismatches(self._live.asking(), self._live.catalogue, events, self.schema)

    def unknown_fields(self, names: Iterable[str]) -> list[tuple[str, str | None]]:
        """Those of the names that no subscription has a field of, each with what was probably meant."""
        known = self.field_names()
        return [(name, did_you_mean(name, known, case_sensitive=False)) for name in names if name not in known]

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

        Whatever happens, the folder has the version before or this one. Others who have loaded it may go on; those who
        follow it see the new version. Raises SegmentError if somebody else has saved there since it was loaded.
        """
        with self._lock:
            return self._home.save(path, self._live)

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

        With `follow` it takes over every version that is saved there later, before the next match. With `rebuild` an
        index that an earlier Harken saved is built anew from the texts; else it is refused. The operators that
        subscriptions call are given again: they are code. Options are those of the algorithm, in place of the saved
        ones.
        """
        home = Home.at(path, follow=follow, rebuild=rebuild)
        if order not in ORDERS:  # then it is one of the algorithm's
            order, options = ORDERS[0], {**options, "order": order}
        try:
            live = home.load(options, Operating.of(operators, order))
        except SegmentError as error:
            if isinstance(path, str) and reads_like_condition(path):
                error.hint = "it reads like a condition: Engine().subscribe(id, where) takes one"
            raise
        engine = cls(live.schema, live.algorithm, live.limits, **live.options)
        engine._live, engine._home = live, home
        return engine

    def refresh(self) -> bool:
        """Take over a later version from the folder that the engine was loaded from, if there is one.

        Raises SegmentError if that would lose changes that were not saved.
        """
        if not self._home.is_behind():
            return False
        with self._lock:
            found = self._home.newer(self._live)
            self._live = found or self._live
            return found is not None

    def cut(self, parts: int) -> list[Engine]:
        """Share the subscriptions out among so many new engines. An event costs about the same in each."""
        from harken.live.parts import cut

        with self._changing() as live:
            found = cut(live.index, live.catalogue, live.numbering.size, parts)
            return [self._of_part(each, live.sequence) for each in found]

    @classmethod
    def join(cls, engines: Sequence[Engine]) -> tuple[Engine, list[str]]:
        """One engine with the subscriptions of several that were made alike, and the ids that more than one had.

        Of those it has the first.
        """
        from harken.live.parts import join

        sets = [each._live for each in engines]
        part, twice = join([(each.index, each.catalogue, each.numbering.size) for each in sets])
        known = [each.sequence for each in sets]
        sequence = None if None in known else min(each for each in known if each is not None)
        return engines[0]._of_part(part, sequence), twice

    # Inside

    def _predicates(self, source: Any) -> TableOfSubscriptions:
        """A table of predicates in place of texts."""
        import pyarrow

        from harken.live.bulk import TableOfSubscriptions

        return TableOfSubscriptions(source if isinstance(source, pyarrow.Table) else pyarrow.table(source), self.limits)

    @contextmanager
    def _changing(self) -> Iterator[LiveSet]:
        """One at a time: the live set, as it is once nobody else changes it."""
        with self._lock:
            yield self._live

    def _of_part(self, part: Shard, sequence: int | None) -> Engine:
        """An engine like this one, with other subscriptions, that knows a log up to a change."""
        engine = Engine(self.schema, self.algorithm, self.limits, **self.options)
        parts = part.index, part.catalogue, part.numbering
        live = self._live
        engine._live = LiveSet(live.compiler, self.algorithm, self.options, *parts, live.operating, live.documents)
        engine._live.is_changed = True
        engine._live.sequence = sequence
        return engine

    def _current(self) -> LiveSet:
        """What to match by: where a folder is followed, what it holds now."""
        if self._home.follows:
            self.refresh()
        return self._live


def _summary(stats: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """What is a single value among statistics, and what is one of a matcher's own."""
    for name, value in stats.items():
        if isinstance(value, int | float | str):
            yield name.replace("_", " "), value
        elif isinstance(value, Mapping):
            own = {key: each for key, each in value.items() if isinstance(each, int | float)}
            yield from ((f"{name}: {key.replace('_', ' ')}", each) for key, each in own.items())


class _BatchMatch:
    """A batch that is matched with what there is when it begins."""

    def __init__(self, live: LiveSet) -> None:
        self._live = live
        self._reading = Reading(live.catalogue, live.numbering)  # first: numbers of the snapshot keep their meaning
        self.seen = live.snapshot()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.seen.indexes.release()

    def of(self, decoded: Decoded, started: float, threads: int, unparsed: Unparsed) -> BatchMatches:
        live = self._live
        decoded = without_bad_documents(decoded, live.index.document_paths(), live.limits)
        batch = decoded.batch
        began = perf_counter()
        results = match_shared(batch, threads, self.seen.indexes, live.form_of())
        seconds = {"decode": began - started, "match": perf_counter() - began}
        counts = of_batch(batch, live.readings(), len(results) > 1)
        unparsed.add(counts)
        return BatchMatches(results, decoded.refused, self._reading, seconds, counts)


def _match_one(live: LiveSet, raw: Any, started: float, unparsed: Unparsed) -> Matches:
    """What one event, or a bare document, matches.

    It needs none of what makes many answers cheap to keep and to ask for.
    """
    reading = live.numbering.begin()
    try:
        seen = live.snapshot()
        index, compiler = seen.indexes, seen.compiler
        try:
            is_bare = type(raw) is bytes and compiler.schema is None
            event = raw if is_bare else Event.of(raw, compiler.schema, compiler.limits, seen.asked)
            began = perf_counter()
            form_of = live.form_of()
            is_quick = index.is_quick and not is_bare
            found = index.match_one(event, form_of) if is_quick else None
            if found is None:
                batch = EventBatch.of_one(event, live.limits, seen.asked, (raw,) if live.operating.operators else None)
                for path in live.index.document_paths():
                    for _, error in batch.documents(path, live.limits).errors:
                        raise error
                result = index.parts_of(batch, form_of)(0, 1) if is_quick else index.match(batch, form_of)
                found = OneMatch.of(result)
                unparsed.add(of_batch(batch, live.readings()))
            elif readings := live.readings():
                unparsed.add(of_event(event, readings))
        finally:
            index.release()
        ids = live.catalogue.ids_of(found.numbers)
        errors = [(live.catalogue.of(number).id, error) for _, number, error in found.errors] if found.errors else []
    finally:
        live.numbering.end(reading)
    seconds = {"decode": began - started, "match": perf_counter() - began}
    return Matches(ids, found.candidates, errors, seconds)


def _refuse_narrow(names: frozenset[str] | None, asked: frozenset[str] | None) -> None:
    """Raise EventError if events in which only these names were looked at cannot tell what is asked for."""
    if names is None or (asked is not None and asked <= names):
        return
    unseen = "all of it" if asked is None else ", ".join(f"`{name}`" for name in sorted(asked - names)[:5])
    raise EventError(f"the events were decoded without {unseen}", hint="decode them with the names of `attributes()`")
