"""The engine in one process: subscribe, match, explain."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING, Any

from harken.errors import (
    CapabilityError,
    DuplicateIdError,
    EventError,
    HarkenError,
    LimitError,
    SchemaError,
    SegmentError,
    UnknownIdError,
    did_you_mean,
)
from harken.events import Decoded, Event, EventBatch, held, looked_at, validate
from harken.events.arrow_rows import at_rest, is_arrow, schema_of
from harken.explain import Explanation, explain
from harken.forking import ENGINE, fork_rlock
from harken.language.ast import attributes as paths_of
from harken.language.compiled import Compiled, Compiler
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS, Limits
from harken.live.catalogue import Catalogue
from harken.live.filling import collector_paused, filled
from harken.live.mismatch import Asking, Compared, FirstSubscriptions, Mismatches, OnMismatch, mismatches, require_word
from harken.live.numbering import Numbering
from harken.live.results import BatchMatches, Matches, Reading
from harken.live.subscriptions import NO_FIELDS, Fault, Record, Subscription, checked_id, has_predicates, records_of
from harken.matchers import Capability, Entry, FormOf, Matcher, create_matcher, required_capabilities
from harken.matchers.registry import DEFAULT_ALGORITHM, refuse_incapable
from harken.matchers.sharing import match_shared
from harken.schema import EVENT_TYPE, EventColumns, Extension, Kind, Path, Schema, format_path

if TYPE_CHECKING:
    import pyarrow as pa

    from harken.live.parts import Part
    from harken.versions.folder import Folder

_MOST_FOR_A_HINT = 10_000
_MOST_FORMS = 65_536
_MOST_LOOKED_THROUGH = 20_000
_STEP = 1_000
_FIRST = (0,)
_EVENT_TYPE = format_path(EVENT_TYPE)
_ONE_WORD = re.compile(r"[\w.:/@-]+")


@dataclass(frozen=True, slots=True)
class Report:
    """What came of subscribing many: how many were taken, what was refused, what to look at."""

    accepted: int
    faults: list[Fault]
    warnings: list[tuple[str, str]]
    """(id, warning) of subscriptions that were taken."""


class _State:
    """The subscriptions and what finds them, which belong together: whoever reads holds on to one state."""

    __slots__ = ("asked", "asking", "catalogue", "forms", "matcher", "numbering", "shrunk")

    def __init__(self, matcher: Matcher, catalogue: Catalogue, numbering: Numbering, schema: Schema | None) -> None:
        self.matcher = matcher
        self.catalogue = catalogue
        self.numbering = numbering
        self.asked = looked_at(catalogue.asked, schema)
        """The attributes of an event that are looked at, see `Engine.attributes`. It has those of a subscription before
        the matcher knows the subscription: a match that finds it the same before and after has missed nothing."""
        self.shrunk = False
        """Whether subscriptions have gone since these names were gathered."""
        self.forms: dict[int, NormalForm] = {}
        """Normal forms that were asked for again, by number. They are many times as large as their texts."""
        self.asking: Asking | None = None
        """What tells the columns that subscriptions ask for, once somebody wants to know."""

    def ask(self, names: set[str], schema: Schema | None) -> None:
        """Have the attributes of these names looked at from now on."""
        known = self.catalogue.asked
        if known is not None and not names <= known:
            self.catalogue.asked = known | names
            self.asked = looked_at(self.catalogue.asked, schema)


class Engine:
    """Subscriptions and the matcher that finds them. Threads may share an engine: matching waits for nobody."""

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
        self.options = options
        matcher = create_matcher(algorithm, limits, **options)
        self._is_limited = matcher.capabilities != frozenset(Capability)
        self._compiler = Compiler(schema, limits)
        self._state = _State(matcher, Catalogue(), Numbering(), schema)
        self._compared = Compared()
        # One at a time changes things. Matching goes on meanwhile.
        self._lock = fork_rlock(ENGINE)
        self._folder: Folder | None = None
        self._version: int | None = None
        self._versions: dict[tuple[int, int], int] = {}
        self._follows, self._rebuilds = False, True
        self._changed = False
        """Whether something changed since it was saved or loaded."""

    def __repr__(self) -> str:
        schema = "" if self.schema is None else f", schema version {self.schema.version}"
        count = "1 subscription" if len(self) == 1 else f"{len(self):,} subscriptions"
        return f"<Engine: {count}, {self.algorithm}{schema}>"

    def __reduce__(self) -> Any:
        raise TypeError("an engine is not pickled: save(path) it, and let the other process call Engine.load(path)")

    @property
    def schema(self) -> Schema | None:
        return self._compiler.schema

    def __len__(self) -> int:
        return len(self._state.catalogue)

    def __contains__(self, id: object) -> bool:
        return (str(id) if type(id) is int else id) in self._state.catalogue

    def __iter__(self) -> Iterator[Subscription]:
        """The subscriptions as they are now."""
        with self._lock:
            return iter(list(self._state.catalogue))

    def subscription(self, id: str | int) -> Subscription:
        """The subscription of this id. Raises UnknownIdError."""
        wanted = checked_id(id)
        found = self._state.catalogue.get(wanted)
        if found is None:
            near = did_you_mean(wanted, self._state.catalogue.ids()) if len(self) <= _MOST_FOR_A_HINT else None
            raise UnknownIdError(f"there is no subscription {wanted!r:.60}", hint=near)
        return found

    def field_names(self) -> list[str]:
        """The names of the fields that travel with subscriptions, such as `owner`."""
        return list(self._state.catalogue.field_counts())

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
        record = Record(0, checked_id(id), where, language, dict(fields) if fields else NO_FIELDS)
        compiler = self._compiler
        compiled = self._compile(record, compiler)
        with self._lock:
            self._refuse_taken(record.id, replace, self._state.catalogue)
            return self._install([(record, compiled)], compiler)[0]

    def subscribe_many(
        self, source: Iterable[Any], *, replace: bool = False, progress: Callable[[int], None] | None = None
    ) -> Report:
        """Take subscriptions from (id, where) pairs, mappings or an Arrow table. The faulty are reported.

        An Arrow table may have `predicates` in place of `where`: lists of attribute, operator and value, which are
        taken without parsing. `progress` is told now and then how many have been read.
        """
        if is_arrow(source):
            source = at_rest(source)
        if has_predicates(source):
            return self._subscribe_table(source, replace, progress)
        compiler = self._compiler
        compiled: list[tuple[Record, Compiled]] = []
        faults: list[Fault] = []
        with collector_paused():
            for count, record in enumerate(records_of(source), 1):
                if progress is not None and count % _STEP == 0:
                    progress(count)
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
                        self._refuse_taken(record.id, replace, self._state.catalogue, taken)
                        taken[record.id] = (record, form)
                    except HarkenError as error:
                        faults.append(record.fault(error))
                refused = self._install_fitting(list(taken.values()), compiler)
        for fault in refused:
            del taken[str(fault.id)]
        faults = sorted([*faults, *refused], key=lambda fault: fault.position)
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
            state = self._state
            # First, so that nobody judges by the new schema an event of which too little was looked at.
            state.asked = looked_at(state.catalogue.asked, extended)
            before, self._compiler = self._compiler, compiler
            try:
                self._install(renewed, compiler)
            except HarkenError:
                self._compiler = before
                state.asked = looked_at(state.catalogue.asked, before.schema)
                raise
            self._state.forms.clear()
            return extended

    # Matching

    def match(self, event: Any) -> Matches:
        """The subscriptions that are true of an event: a mapping, a dataclass, a named tuple or a pydantic model.

        Raises EventError if it is not a valid one. Attributes that no subscription asks for are not looked at.
        """
        started = perf_counter()
        while True:
            state = self._current()
            asked = state.asked
            valid = Event.of(event, self.schema, self.limits, asked)
            found = self._match_one(state, EventBatch.of((valid,), _FIRST, asked), started)
            if state.asked is asked:  # else a subscription came meanwhile that asks for more than was looked at
                return found

    def match_batch(self, events: Any, *, threads: int = 1, on_mismatch: OnMismatch = "warn") -> BatchMatches:
        """The subscriptions that are true of each event of a list, another iterable, an Arrow table or a data frame.

        Bad events are only refused. Raises SourceError for a column that no event can hold, if a subscription asks for
        it. With several threads the events are shared among them: it pays from some thousand events on.

        The columns of a table are compared with what subscriptions ask for. A name that is no column, or a value of
        another type, is warned of once, by a MismatchWarning; `on_mismatch="fail"` raises MismatchError, "ignore" says
        nothing.
        """
        require_word(on_mismatch)
        if type(threads) is not int or threads < 1:
            raise HarkenError(f"`threads` is a whole number from 1 on, not {threads!r:.20}")
        started = perf_counter()
        events = held(events)
        columns = schema_of(events) if is_arrow(events) else None
        while True:
            state = self._current()
            asked = state.asked
            if columns is not None:
                self._compared.tell(columns, self._asking(state), state.catalogue, self.schema, on_mismatch)
            found = self._match(state, validate(events, self.schema, self.limits, asked), started, threads)
            if state.asked is asked:  # as in `match`
                return found

    def match_decoded(self, decoded: Decoded, *, threads: int = 1) -> BatchMatches:
        """The same for events that were decoded before, with the schema of this engine and all names of `attributes()`.

        Raises EventError if a subscription asks for an attribute that was not looked at then.
        """
        state = self._current()
        found = self._match(state, decoded, perf_counter(), threads)
        _refuse_narrow(decoded.batch.names, state.asked)
        return found

    def learn(self, events: Any) -> None:
        """Take these events for a sample of those to come, and plan by it. Bad ones are left out.

        Matching learns too; this is for a start with what is known already.
        """
        learn = getattr(self._state.matcher, "learn", None)
        if learn is None:
            raise CapabilityError(f"the algorithm `{self.algorithm}` does not learn from events")
        learn(validate(events, self.schema, self.limits, self._state.asked).batch)
        self.merge()

    def merge(self) -> None:
        """Make one layer of the index, planned anew, now. It comes about in the background too, when it is time.

        What only subscriptions asked for that are gone is looked at no more.
        """
        merge = getattr(self._state.matcher, "merge", None)
        if merge is not None:
            merge()
        with self._lock:
            state = self._state
            names = self._names_now(state) if state.shrunk else None
            if names is not None:
                state.catalogue.asked, state.shrunk = names, False
                state.asked = looked_at(names, self.schema)

    def explain(self, subscription: str | int, event: Any) -> Explanation:
        """Why an event matches a subscription or does not, given its id or a text of more than one word."""
        text = checked_id(subscription) if isinstance(subscription, int) else subscription
        known = self._state.catalogue.get(text)
        if known is None and _ONE_WORD.fullmatch(text):
            known = self.subscription(text)  # raises: an id that was mistyped
        compiled = (
            self._compiler.compile(text) if known is None else self._compiler.compile(known.where, known.language)
        )
        expression = compiled.expression
        names = looked_at(frozenset(path[0] for path in paths_of(expression)), self.schema)
        valid = Event.of(event, self.schema, self.limits, names)
        return explain(expression, valid.attributes, self.schema, self.limits)

    def stats(self) -> dict[str, Any]:
        """Sizes and choices, as plain data."""
        shapes = self._compiler.shapes
        return {
            "algorithm": self.algorithm,
            "subscriptions": len(self),
            "schema_version": None if self.schema is None else self.schema.version,
            "shapes": {"hits": shapes.hits, "misses": shapes.misses},
            "matcher": self._state.matcher.stats(),
        }

    # On disk

    def save(self, path: str | PathLike[str]) -> int:
        """Write the engine to a folder, and return the number of the version that this makes.

        Whatever happens, the folder has the version before or this one. Others who have loaded it may go on; those who
        follow it see the new version. Raises SegmentError if somebody else has saved there since it was loaded.
        """
        from harken.versions.folder import Folder

        folder = Folder(path)
        with self._lock:
            self._version = self._write(folder, self._versions.get(folder.identity()))
            self._folder = folder
            self._know_version()
            self._changed = False
            return self._version

    def export(self, path: str | PathLike[str]) -> None:
        """Write the engine to a folder, as `save` does, and have no more to do with that folder."""
        from harken.versions.folder import Folder

        with self._lock:
            self._write(Folder(path), None)

    def _write(self, folder: Folder, seen: int | None) -> int:
        from harken.live.saved import Settings, save

        state = self._state
        settings = Settings(self.schema, self.algorithm, self.limits, self.options)
        return save(folder, seen, settings, state.matcher, state.catalogue, state.numbering)

    @classmethod
    def load(cls, path: str | PathLike[str], *, follow: bool = False, rebuild: bool = True, **options: Any) -> Engine:
        """An engine from a folder that one was saved to, mapped into memory. Raises SegmentError.

        With `follow` it takes over every version that is saved there later, before the next match. With `rebuild` an
        index that an earlier Harken saved is built anew from the texts; else it is refused. Options are those of the
        algorithm, in place of the saved ones.
        """
        from harken.versions.folder import Folder

        engine = cls.__new__(cls)
        engine._lock = fork_rlock(ENGINE)
        engine._versions = {}
        engine._compared = Compared()
        engine._folder = Folder(path)
        engine._follows, engine._rebuilds = follow, rebuild
        engine.options = options
        engine._take_over()
        return engine

    def cut(self, parts: int) -> list[Engine]:
        """Engines that have the subscriptions of this one among them: each event costs about the same in all."""
        from harken.live.parts import cut

        with self._lock:
            state = self._state
            found = cut(state.matcher, state.catalogue, state.numbering.size, parts, self.limits)
            return [self._of_part(each) for each in found]

    @classmethod
    def join(cls, engines: Sequence[Engine]) -> tuple[Engine, list[str]]:
        """One engine with the subscriptions of several that were made alike, and the ids that more than one had.

        Of those it has the first.
        """
        from harken.live.parts import join

        states = [each._state for each in engines]
        parts = [(each.matcher, each.catalogue, each.numbering.size) for each in states]
        part, twice = join(parts, engines[0].limits)
        return engines[0]._of_part(part), twice

    def attributes(self) -> frozenset[str] | None:
        """The names of the attributes, not inside others, that are looked at. None: all of them are.

        They are those that subscriptions ask for and those that the schema declares. With event types it is None: by
        them the whole event is judged. What only subscriptions asked for that are gone is looked at until `merge`.
        """
        return self._state.asked

    def asks(self) -> list[tuple[Path, Kind | None]] | None:
        """The attributes that subscriptions ask for, each with the kind of its values; None is any kind.

        There may be some that only subscriptions asked for that are gone. None if the algorithm does not tell.
        """
        matcher = self._state.matcher
        return [(each.path, each.kind) for each in matcher.columns()] if isinstance(matcher, Asking) else None

    def mismatches(self, columns: pa.Schema | EventColumns) -> Mismatches:
        """What subscriptions ask for and events with these columns do not have: print it, or look at its items.

        With an algorithm other than columnar, the first 10,000 subscriptions are compared.
        """
        events = columns if isinstance(columns, EventColumns) else EventColumns.from_arrow(columns)
        state = self._state
        return mismatches(self._asking(state), state.catalogue, events, self.schema)

    def unknown_fields(self, names: Iterable[str]) -> list[tuple[str, str | None]]:
        """Those of the names that no subscription has a field of, each with what was probably meant."""
        known = self.field_names()
        return [(name, did_you_mean(name, known, case_sensitive=False)) for name in names if name not in known]

    def favourite(self) -> str | None:
        """The attribute, not inside another, by which most subscriptions are found, if there is such a one.

        Events that share its value find their subscriptions in the same place: to match them one after the other is
        quicker.
        """
        favourite = getattr(self._state.matcher, "favourite", None)
        path = None if favourite is None else favourite()
        return None if path is None or len(path) > 1 else str(path[0])

    @property
    def version(self) -> int | None:
        """The number of the version that was last saved or loaded."""
        return self._version

    def refresh(self) -> bool:
        """Take over a later version from the folder that the engine was loaded from, if there is one.

        Raises SegmentError if that would lose changes that were not saved.
        """
        if self._folder is None or self._version is None or not self._folder.has_changed():
            return False
        with self._lock:
            if self._changed:
                hint = "save to another folder, or load the engine again"
                raise SegmentError(f"{self._folder.path} has a later version, and this engine has changes", hint=hint)
            self._take_over()
            return True

    def _take_over(self) -> None:
        """Become what the folder holds."""
        from harken.live.saved import load

        assert self._folder is not None
        saved = load(self._folder, self.options, self._rebuilds)
        settings = saved.settings
        compiler = Compiler(settings.schema, settings.limits)
        matcher = saved.matcher
        if matcher is None:
            matcher = filled(settings.algorithm, settings.options, compiler, saved.catalogue)
        self.algorithm, self.limits, self.options = settings.algorithm, settings.limits, dict(settings.options)
        self._compiler = compiler
        self._version = saved.version
        self._know_version()
        self._changed = False
        self._take(matcher, saved.catalogue, saved.numbering)

    def _know_version(self) -> None:
        """Remember which version of the folder this engine has seen, by whatever name the folder is called."""
        assert self._folder is not None
        assert self._version is not None
        self._versions[self._folder.identity()] = self._version
        self._folder.keep()

    def _take(self, matcher: Matcher, catalogue: Catalogue, numbering: Numbering) -> None:
        """Have these subscriptions."""
        self._is_limited = matcher.capabilities != frozenset(Capability)
        self._state = _State(matcher, catalogue, numbering, self.schema)
        if catalogue.asked is None:
            catalogue.asked = self._names_now(self._state)
            self._state.asked = looked_at(catalogue.asked, self.schema)

    def _of_part(self, part: Part) -> Engine:
        """An engine like this one, with other subscriptions."""
        made = Engine(self.schema, self.algorithm, self.limits, **self.options)
        matcher = part.matcher
        if matcher is None:
            matcher = filled(self.algorithm, self.options, self._compiler, part.catalogue)
        made._take(matcher, part.catalogue, part.numbering)
        made._changed = True
        return made

    # Inside

    def _asking(self, state: _State) -> Asking:
        """What tells the columns that subscriptions ask for."""
        asking = state.asking
        if asking is None:
            if isinstance(state.matcher, Asking):
                asking = state.matcher
            else:
                asking = FirstSubscriptions(state.catalogue, self._form_of(state))
            state.asking = asking
        return asking

    def _compile(self, record: Record, compiler: Compiler) -> Compiled:
        compiled = compiler.compile(record.where, record.language)
        if self._is_limited:
            refuse_incapable(self.algorithm, required_capabilities(compiled.normal_form, compiler.schema))
        return compiled

    def _refuse_taken(self, id: str, replace: bool, *holders: Container[str]) -> None:
        if not replace and any(id in holder for holder in holders):
            raise DuplicateIdError(f"the id {id!r} is taken", hint="pass replace=True to replace the subscription")

    def _install(self, compiled: Sequence[tuple[Record, Compiled]], compiler: Compiler) -> list[Subscription]:
        """Take these in place of what has their ids: all of them or, if that raises, none."""
        if compiler is not self._compiler:  # the schema was extended meanwhile
            compiled = [(record, self._compile(record, self._compiler)) for record, _ in compiled]
        state = self._state
        found = (state.catalogue.get(record.id) for record, _ in compiled) if len(state.catalogue) else ()
        replaced = [each for each in found if each is not None]
        if replaced:
            self._refuse_unless_removing()
        numbers = state.numbering.take(len(compiled))
        new = [
            Subscription(record.id, record.where, record.language, number, record.fields, form.warnings)
            for (record, form), number in zip(compiled, numbers, strict=True)
        ]
        for number in numbers:
            state.forms.pop(number, None)
        state.ask({name for _, form in compiled for name in form.normal_form.names()}, self.schema)
        state.catalogue.announce(new)
        try:
            entries = [Entry(each.number, form) for each, (_, form) in zip(new, compiled, strict=True)]
            state.matcher.add(entries, [each.number for each in replaced])
        except HarkenError:
            for number in numbers:
                state.numbering.give_back(number)
            raise
        state.catalogue.add(new)  # first: an id that is replaced is there all the time
        for subscription in replaced:
            self._forget(subscription)
        self._changed = True
        return new

    def _install_fitting(self, compiled: Sequence[tuple[Record, Compiled]], compiler: Compiler) -> list[Fault]:
        """Take as many as the matcher's limits have room for, from the first on. Returns the faults of the others."""
        try:
            self._install(compiled, compiler)
        except LimitError as error:
            half = len(compiled) // 2
            faults = self._install_fitting(compiled[:half], compiler) if half else []
            if half and not faults:
                return self._install_fitting(compiled[half:], compiler)
            return [*faults, *(record.fault(error) for record, _ in compiled[half:])]
        return []

    def _subscribe_table(self, source: Any, replace: bool, progress: Callable[[int], None] | None) -> Report:
        """Take subscriptions from a table of predicates: those that need no normalising without their texts."""
        import pyarrow

        from harken.live.bulk import TableOfSubscriptions

        table = source if isinstance(source, pyarrow.Table) else pyarrow.table(source)
        given = TableOfSubscriptions(table, self.limits)
        add_flat = None if self.schema is not None else getattr(self._state.matcher, "add_flat", None)
        if add_flat is None:
            return self.subscribe_many(given.records(), replace=replace, progress=progress)
        with self._lock:
            state = self._state
            taken = given.taken(state.catalogue)
            replaced = [self.subscription(id) for id in taken.ids] if replace else []
            quick = given.quick(() if replace else taken.rows)
            first = state.numbering.take_row(len(quick))
            state.catalogue.add_columns(first, quick.table())
            try:
                flat = quick.flat(first)
                state.ask({each.column.path[0] for each in flat.columns if len(each.rows)}, None)
                add_flat(flat, [each.number for each in replaced])
            except HarkenError as error:
                state.catalogue.drop_columns()
                for number in range(first, first + len(quick)):
                    state.numbering.give_back(number)
                if not isinstance(error, LimitError):
                    raise
                return self.subscribe_many(given.records(), replace=replace, progress=progress)
            self._changed = True
            for subscription in replaced:
                self._forget(subscription)
            if progress is not None:
                progress(len(quick))
            rest = self.subscribe_many(given.slow(quick.rows), replace=replace)
        return Report(len(quick) + rest.accepted, rest.faults, rest.warnings)

    def _refuse_unless_removing(self) -> None:
        refuse_incapable(self.algorithm, frozenset({Capability.UNSUBSCRIBE}))

    def _uninstall(self, subscription: Subscription) -> None:
        self._state.matcher.remove([subscription.number])
        self._forget(subscription)

    def _forget(self, subscription: Subscription) -> None:
        """Let go of a subscription that the matcher has let go of."""
        self._state.shrunk = True
        self._state.catalogue.remove(subscription)
        self._state.numbering.give_back(subscription.number)
        self._changed = True

    def _current(self) -> _State:
        """What to match by: where a folder is followed, what it holds now."""
        if self._follows:
            self.refresh()
        return self._state

    def _names_now(self, state: _State) -> frozenset[str] | None:
        """The names that the subscriptions ask for; None where too many texts had to be looked through."""
        paths = getattr(state.matcher, "paths", None)
        if len(state.catalogue) > _MOST_LOOKED_THROUGH and paths is None:
            return None
        found, others = (set(), [each.number for each in state.catalogue]) if paths is None else paths()
        live = set(others).difference(state.numbering.free)
        if len(live) > _MOST_LOOKED_THROUGH:
            return None
        form_of = self._form_of(state)
        return frozenset(path[0] for path in found).union(*(form_of(number).names() for number in live))

    def _match(self, state: _State, decoded: Decoded, started: float, threads: int = 1) -> BatchMatches:
        batch = decoded.batch
        began = perf_counter()
        reading = Reading(state.catalogue, state.numbering)
        results = match_shared(state.matcher, batch, self._form_of(state), threads)
        seconds = {"decode": began - started, "match": perf_counter() - began}
        return BatchMatches(results, decoded.refused, reading, seconds)

    def _match_one(self, state: _State, batch: EventBatch, started: float) -> Matches:
        """What one event matches. It needs none of what makes many answers cheap to keep and to ask for."""
        began = perf_counter()
        reading = state.numbering.begin()
        try:
            found = state.matcher.match(batch, self._form_of(state))
            ids = state.catalogue.ids_of(found.numbers.tolist())
            errors = [(state.catalogue.of(number).id, error) for _, number, error in found.errors]
        finally:
            state.numbering.end(reading)
        seconds = {"decode": began - started, "match": perf_counter() - began}
        return Matches(ids, int(found.candidates[0]), errors, seconds)

    def _form_of(self, state: _State) -> FormOf:
        """The normal form of a subscription by its number, from its text."""
        compiler = self._compiler

        def form_of(number: int) -> NormalForm:
            form = state.forms.get(number)
            if form is None:
                known = state.catalogue.of(number)
                form = compiler.compile(known.where, known.language).normal_form
                if len(state.forms) >= _MOST_FORMS:
                    state.forms.clear()
                state.forms[number] = form
            return form

        return form_of


def _refuse_narrow(names: frozenset[str] | None, asked: frozenset[str] | None) -> None:
    """Raise EventError if events in which only these names were looked at cannot tell what is asked for."""
    if names is None or (asked is not None and asked <= names):
        return
    unseen = "all of it" if asked is None else ", ".join(f"`{name}`" for name in sorted(asked - names)[:5])
    raise EventError(f"the events were decoded without {unseen}", hint="decode them with the names of `attributes()`")
