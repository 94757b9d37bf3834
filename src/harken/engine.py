"""The engine in one process: subscribe, match, explain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING, Any

from harken.concurrency.forking import ENGINE, fork_rlock
from harken.errors import (
    CapabilityError,
    HarkenError,
    SchemaError,
    SegmentError,
    UnknownIdError,
    did_you_mean,
)
from harken.events import Decoded, Event, held, looked_at, validate, without_bad_documents
from harken.events.arrow_rows import at_rest, is_arrow, schema_of
from harken.events.raw import RawEvent, content
from harken.internals import EngineInternals
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
from harken.live.match_call import BatchCall, match_decoded, match_one
from harken.live.mismatch import Compared, Mismatches, OnMismatch, mismatches, require_word
from harken.live.notebook import html_table
from harken.live.results import BatchMatches, Matches
from harken.live.sampled import Sampled
from harken.live.subscriptions import NO_FIELDS, Record, Subscription, checked_id, has_predicates
from harken.live.unparsed import Unparsed
from harken.matchers.algorithm_registry import DEFAULT_ALGORITHM
from harken.matchers.document_algorithms import DEFAULT_DOCUMENTS, DocumentMatching
from harken.matchers.kinds import OPERATORS
from harken.matchers.roles import Plans
from harken.operators import ORDERS, Operating, Operator
from harken.schema import EVENT_TYPE, EventColumns, Extension, Schema, format_path

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
        `order` is the order in which their predicates are evaluated.
        """
        if schema is not None and not isinstance(schema, Schema):
            hint = "harken.load_schema(path) reads one from a file"
            raise SchemaError(f"a schema is a harken.Schema, not a {type(schema).__name__}", hint=hint)
        matching, options = DocumentMatching.chosen(documents, options, algorithm)
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
    def internals(self) -> EngineInternals:
        """What Harken's own rooms need of an engine. It may change in any release."""
        return EngineInternals(self)

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
                self._live.reject_taken(record.id)
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
        and the subscription that had its id is kept. Nothing changes when an error is raised: SubscriptionError if all
        are faulty, LimitError or CapabilityError if the algorithm lacks room for all, or cannot remove any.
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
            compiler = Compiler(extended, self._live.limits, self._live.compiler.signatures)
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
        return match_one(self._current(), event, perf_counter(), self._unparsed)

    def match_batch(self, events: Any, *, threads: int = 1, on_mismatch: OnMismatch = "warn") -> BatchMatches:
        """Find the subscriptions that are true of each event of a list, another iterable, an Arrow table or data frame.

        Invalid events are rejected, and the others matched. Raises SourceError for a column that no event can hold, if
        a subscription uses it. Several `threads` share the events, which pays from some thousand events on. Events that
        `harken.events.read_events` decoded have to have all names of `attributes()`; else EventError is raised.

        The columns of a table are compared with those that subscriptions use. If one is missing, or of another type,
        there is a MismatchWarning, once; `on_mismatch="fail"` raises MismatchError, "ignore" does nothing. If events
        have no column types, the first 1,000 are compared: an attribute that always had another type is warned of.
        """
        require_word(on_mismatch)
        if type(threads) is not int or threads < 1:
            raise HarkenError(f"`threads` is a whole number from 1 on, not {threads!r:.20}")
        started = perf_counter()
        live = self._current()
        if isinstance(events, Decoded):
            return match_decoded(live, events, started, threads, self._unparsed)
        events = held(events)
        columns = schema_of(events) if is_arrow(events) else None
        if columns is not None:
            self._compared.tell(columns, live.asking(), live.catalogue, live.schema, on_mismatch)
        with BatchCall(live) as call:
            compiler = call.snapshot.compiler
            decoded = validate(events, compiler.schema, compiler.limits, call.snapshot.decoded_names)
            self._sampled.look(decoded.batch, live, on_mismatch, has_types=columns is not None)
            if live.operating.operators:
                decoded = decoded.with_source(events)
            return call.match(decoded, started, threads, self._unparsed)

    def learn(self, events: Any) -> None:
        """Plan the index for events like these. Invalid ones are left out.

        Matching learns as well: this gives a new engine a head start.
        """
        live = self._live
        if not isinstance(live.matcher, Plans):
            raise CapabilityError(f"the algorithm `{self.algorithm}` does not learn from events")
        decoded = validate(events, self.schema, self._live.limits, live.decoded_names)
        batch = without_bad_documents(decoded, live.index.document_paths(), self._live.limits).batch
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

    def explain(
        self,
        id: str | int | None = None,
        event: Any = None,
        *,
        text: str | None = None,
        language: str = DEFAULT_LANGUAGE,
    ) -> Explanation:
        """Explain why an event matches a subscription or does not: print the result, or use `matched` and `tree`.

        `explain("alice", event)` is about a subscription of this engine, `explain(text="price < 5", event=event)` about
        any text, in its `language`.
        """
        if (id is None) == (text is None) or event is None:
            hint = 'write explain("alice", event), or explain(text="price < 5", event=event)'
            raise HarkenError("`explain` takes an event, and either an id or a text", hint=hint)
        if text is None:
            subscription = self._explained(id)
            text, language = subscription.where, subscription.language
        compiler, condition = self._live.compiler, text

        def find_event(names: frozenset[str]) -> Mapping[str, Any]:
            return Event.of(event, compiler.schema, compiler.limits, looked_at(names, compiler.schema)).attributes

        plan = compiler.compile(condition, language).plan
        if plan.kind != OPERATORS:
            return compiler.explain(condition, find_event, language)
        from harken.explain.operators import explain_calling

        return explain_calling(
            *(parse(condition, compiler.limits), find_event(frozenset(plan.names())), RawEvent(content(event))),
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

    # What subscriptions use

    def attributes(self) -> frozenset[str] | None:
        """Return the names of the top-level attributes that matching looks at; None: all of them.

        They are those that subscriptions use and those that the schema declares. With event types it is None, because
        the whole event is checked. Attributes that only removed subscriptions used are included until `merge`.
        """
        return self._live.names_to_decode()

    def mismatches(self, columns: pa.Schema | EventColumns) -> Mismatches:
        """The mismatches between subscriptions and events with these columns: print the result, or iterate over it.

        With an algorithm other than columnar, the first 10,000 subscriptions are compared.
        """
        events = columns if isinstance(columns, EventColumns) else EventColumns.from_arrow(columns)
        return mismatches(self._live.asking(), self._live.catalogue, events, self.schema)

    # On disk

    def save(self, path: str | PathLike[str]) -> int:
        """Write the engine to a folder, and return the number of the version that this makes.

        Saving is atomic: a crash leaves the version before. Engines that have loaded the folder may go on; those that
        follow it see the new version. Raises SegmentError if another engine was saved there since this one was loaded.
        """
        with self._lock:
            return self._location.save(path, self._live)

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
        that an earlier Harken saved is built again from the texts; else it is rejected. The operators that
        subscriptions call have to be given: they are code and are not saved. `options` override the saved options of
        the algorithm.
        """
        location = SavedLocation.at(path, follow=follow, rebuild=rebuild)
        try:
            live = location.load(options, Operating.of(operators, order))
        except SegmentError as error:
            if isinstance(path, str) and reads_like_condition(path):
                error.hint = "it reads like a condition: Engine().subscribe(id, where) takes one"
            raise
        engine = cls(live.schema, limits=live.limits)
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

    # Inside

    def _explained(self, id: str | int | None) -> Subscription:
        """The subscription of this id. If there is none, and the id reads like a condition, the hint says `text=`."""
        wanted = checked_id(id)
        try:
            return self.subscription(wanted)
        except UnknownIdError as error:
            if not _ONE_WORD.fullmatch(wanted):
                error.hint = "a condition goes as text=: explain(text=…, event=…)"
            raise

    def _predicates(self, source: Any) -> TableOfSubscriptions:
        """The source as a table of predicates."""
        import pyarrow

        from harken.live.bulk import TableOfSubscriptions

        return TableOfSubscriptions(
            source if isinstance(source, pyarrow.Table) else pyarrow.table(source), self._live.limits
        )

    @contextmanager
    def _changing(self) -> Iterator[LiveSet]:
        """Hold the write lock and yield the live set."""
        with self._lock:
            yield self._live

    def _of_part(self, part: Shard, sequence: int | None) -> Engine:
        """An engine with the settings of this one, other subscriptions, and the changes of a log up to `sequence`."""
        engine = Engine(self.schema, limits=self._live.limits)
        parts = part.index, part.catalogue, part.numbering
        live = self._live
        engine._live = LiveSet(live.compiler, self.algorithm, live.options, *parts, live.operating, live.documents)
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
