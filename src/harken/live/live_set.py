"""The live set: the subscriptions of an engine, the matcher that finds them, and every way in which they change."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from harken.errors import DuplicateIdError, HarkenError, LanguageError, LimitError
from harken.events import looked_at
from harken.language.compiled import Compiled, Compiler, Form
from harken.language.normal_form import NormalForm
from harken.language.registry import DEFAULT_LANGUAGE
from harken.language.sql.parser import reads_like_condition
from harken.limits import Limits
from harken.live.catalogue import Catalogue
from harken.live.mismatch import Asking, FirstSubscriptions
from harken.live.numbering import Numbering
from harken.live.subscriptions import Fault, Record, Subscription
from harken.matchers import Capability, Entry, FormOf, Matcher
from harken.matchers.algorithm_registry import create_matcher, create_other, refuse_incapable, refuse_unless_removing
from harken.matchers.base import Snapshot
from harken.matchers.document_algorithms import DEFAULT_MATCHING, DocumentMatching
from harken.matchers.kinds import DOCUMENTS, FLAT, OPERATORS, PROGRAMS, Indexes
from harken.matchers.roles import CallsOperators
from harken.operators.operating import NOTHING_TO_OPERATE, Operating
from harken.schema import Schema
from harken.schema.derived import TimeReading, reading

if TYPE_CHECKING:
    from harken.codes.columns import Column

_MOST_FORMS = 65_536
_KEPT_FORMS = 4_096
"""So many forms are kept as they come: an index of few subscriptions verifies many of them."""
_MOST_LOOKED_THROUGH = 20_000
"""Texts that are parsed again, at most, to learn which attributes are asked for."""

_COMPARATOR = re.compile("[<>=]")
Prepared = tuple[Record, Compiled]


def new_index(
    flat: Matcher,
    limits: Limits,
    operating: Operating,
    documents: DocumentMatching = DEFAULT_MATCHING,
    others: Mapping[str, tuple[Matcher, Iterable[int]]] | None = None,
) -> Indexes:
    """The matchers of a live set: the flat one, those that are there already, and others once they are needed."""

    def make(kind: str) -> Matcher:
        if kind == DOCUMENTS:
            return documents.create(limits)
        if kind != OPERATORS:
            return create_other(kind, limits)
        from harken.matchers.operators import new_matcher

        return new_matcher(limits, operating)

    return Indexes(flat, make, others)


class LiveSnapshot(NamedTuple):
    """What a match goes by from its beginning to its end."""

    indexes: Snapshot
    compiler: Compiler
    asked: frozenset[str] | None
    """The attributes of an event to look at: all that the index asks for, and perhaps more. None: all."""


class LiveSet:
    """Subscriptions and what finds them, which belong together: whoever matches holds on to one live set.

    One thread at a time changes it, others match meanwhile.
    """

    __slots__ = (
        *(
            "_asking",
            "_forms",
            "_is_limited",
            "_readings",
            "_shrunk",
            "algorithm",
            "asked",
            "catalogue",
            "compiler",
            "is_changed",
        ),
        *("documents", "index", "numbering", "operating", "options", "sequence"),
    )

    def __init__(
        self,
        compiler: Compiler,
        algorithm: str,
        options: Mapping[str, Any],
        index: Indexes | None = None,
        catalogue: Catalogue | None = None,
        numbering: Numbering | None = None,
        operating: Operating = NOTHING_TO_OPERATE,
        documents: DocumentMatching = DEFAULT_MATCHING,
    ) -> None:
        """With a catalogue and no index, a new index takes its subscriptions from their texts."""
        self.compiler = compiler
        self.algorithm = algorithm
        self.options = dict(options)
        self.operating = operating
        self.documents = documents
        self.catalogue = Catalogue() if catalogue is None else catalogue
        self.numbering = Numbering() if numbering is None else numbering
        if index is None:
            flat = create_matcher(algorithm, compiler.limits, **options)
            index = new_index(flat, compiler.limits, operating, documents)
            if len(self.catalogue):
                from harken.live.loading import restore

                restore(index, compiler, self.catalogue)
        self.index = index
        self._is_limited = index.flat.capabilities != frozenset(Capability)
        self._forms: dict[int, Form] = {}
        """Forms that were asked for again, by number. They are many times as large as their texts."""
        self._asking: Asking | None = None
        self._readings: tuple[int, tuple[Column, ...], tuple[TimeReading, ...]] = (-1, (), ())
        """The attributes that are read as timestamps or dates, with the changes and the columns that they are of."""
        self._shrunk = False
        """Whether subscriptions have left since the names in `asked` were gathered."""
        self.is_changed = False
        """Whether something changed since it was saved or loaded."""
        self.sequence: int | None = None
        """The last change of a log that it knows."""
        if self.catalogue.asked is None:
            self.catalogue.asked = self._names()
        self.asked = looked_at(self.catalogue.asked, compiler.schema)
        """The attributes of an event that are looked at; None: all. It has those of a subscription before the matcher
        knows the subscription, and is read after the matcher is."""

    @property
    def schema(self) -> Schema | None:
        return self.compiler.schema

    @property
    def limits(self) -> Limits:
        return self.compiler.limits

    @property
    def matcher(self) -> Matcher:
        """The matcher of flat plans, which `algorithm` names."""
        return self.index.flat

    def snapshot(self) -> LiveSnapshot:
        """What there is now. Its index has to be released."""
        before = self.asked
        index = self.index.snapshot()
        compiler, asked = self.compiler, self.asked  # in this order: `use` changes them in the other
        if before is not asked:  # names are dropped, too, once the index needs them no more
            asked = None if before is None or asked is None else before | asked
        return LiveSnapshot(index, compiler, asked)

    def form_of(self) -> FormOf:
        """What verifies a subscription, by its number, from its text."""
        compiler, forms, catalogue = self.compiler, self._forms, self.catalogue

        def form_of(number: int) -> Form:
            form = forms.get(number)
            if form is None:
                known = catalogue.of(number)
                form = compiler.compile(known.where, known.language).form
                if len(forms) >= _MOST_FORMS:
                    forms.clear()
                forms[number] = form
            return form

        return form_of

    def asking(self) -> Asking:
        """What tells the columns that subscriptions ask for."""
        if self._asking is None:
            self._asking = FirstSubscriptions(self.catalogue, self._normal_form)
        return self.index.asking() or self._asking

    def readings(self) -> tuple[TimeReading, ...]:
        """The attributes that columns ask for as timestamps or dates, which strings are read as."""
        changes, known, found = self._readings
        if changes == self.catalogue.changes:
            return found
        changes, asking = self.catalogue.changes, self.index.asking()
        columns = () if asking is None else asking.columns()
        if columns is not known:
            found = tuple(dict.fromkeys(each for column in columns if (each := reading(column.path)) is not None))
        self._readings = changes, columns, found
        return found

    def _normal_form(self, number: int) -> NormalForm | None:
        """The normal form of a subscription; None if it is too large, or there is none."""
        known = self.catalogue.of(number)
        compiled = self.compiler.compile(known.where, known.language)
        if compiled.plan.kind not in (FLAT, PROGRAMS):
            return None
        try:
            return compiled.normal_form
        except LimitError:
            return None

    # Changing

    def compile(self, record: Record, compiler: Compiler | None = None) -> Compiled:
        """Understand a record. Raises LanguageError, LimitError, or CapabilityError if the algorithm cannot do it."""
        compiler = compiler or self.compiler
        try:
            compiled = compiler.compile(record.where, record.language)
        except LanguageError as error:
            error.hint = _swapped(record) or error.hint
            raise
        if " " not in record.where and (doubt := _swapped(record)):
            compiled = compiled._replace(warnings=(*compiled.warnings, doubt))
        if compiled.plan.kind == PROGRAMS and not self.index.leaves_patterns:
            with suppress(LimitError):  # then it goes to the index of programs
                _ = compiled.normal_form  # a contradiction that only this sees is the record's fault
        if self._is_limited:
            refuse_incapable(self.algorithm, compiled.capabilities)
        self.documents.refuse_incapable(compiled.plan, compiler.limits)
        return compiled

    def refuse_taken(self, id: str, also: Container[str] = ()) -> None:
        """Raise DuplicateIdError if somebody has this id."""
        if id in self.catalogue or id in also:
            raise DuplicateIdError(f"the id {id!r} is taken", hint="pass replace=True to replace the subscription")

    def put(
        self, prepared: Sequence[Prepared], compiler: Compiler, gone: Iterable[Subscription] = ()
    ) -> list[Subscription]:
        """Take these in place of what has their ids, and let go of others: all of it or, if that raises, nothing.

        `compiler` is what compiled them: where the schema was extended meanwhile, they are compiled again.
        """
        if compiler is not self.compiler:
            prepared = [(record, self.compile(record)) for record, _ in prepared]
        found = (self.catalogue.get(record.id) for record, _ in prepared) if len(self.catalogue) else ()
        leaving = [*(each for each in found if each is not None), *gone]
        if leaving:
            refuse_unless_removing(self.algorithm)
        numbers = self.numbering.take(len(prepared))
        new = [
            Subscription(record.id, record.where, record.language, number, record.fields, form.warnings)
            for (record, form), number in zip(prepared, numbers, strict=True)
        ]
        is_small = len(self._forms) + len(new) <= _KEPT_FORMS  # then none has to be made again from its text
        for number, (_, form) in zip(numbers, prepared, strict=True):
            if is_small and form.plan.kind in (FLAT, PROGRAMS):
                self._forms[number] = form.form
            else:
                self._forms.pop(number, None)
        self.look_at({name for _, form in prepared for name in form.plan.names()})
        self.catalogue.announce(new)
        try:
            entries = [Entry(each.number, form) for each, (_, form) in zip(new, prepared, strict=True)]
            self.index.add(entries, [each.number for each in leaving])
        except HarkenError:
            for number in numbers:
                self.numbering.give_back(number)
            raise
        self.catalogue.add(new)  # first: an id that is replaced is there all the time
        self.forget(leaving)
        if new:
            self.is_changed = True
        return new

    def put_fitting(
        self, prepared: Sequence[Prepared], compiler: Compiler, gone: Iterable[Subscription] = ()
    ) -> list[Fault]:
        """As `put`, for as many as the matcher's limits have room for, from the first on. Returns faults of others."""
        try:
            self.put(prepared, compiler, gone)
        except LimitError as error:
            if not prepared:
                raise
            half = len(prepared) // 2
            # Without any of them what is gone leaves all the same.
            faults = self.put_fitting(prepared[:half], compiler, gone)
            if half and not faults:
                return self.put_fitting(prepared[half:], compiler)
            return [*faults, *(record.fault(error) for record, _ in prepared[half:])]
        return []

    def remove(self, subscription: Subscription) -> None:
        """Let go of a subscription. Raises CapabilityError if the algorithm only ever adds."""
        refuse_unless_removing(self.algorithm)
        self.index.remove([subscription.number])
        self.forget([subscription])

    def forget(self, subscriptions: Collection[Subscription]) -> None:
        """Let go of subscriptions that the matcher has let go of."""
        for subscription in subscriptions:
            self.catalogue.remove(subscription)
            self.numbering.give_back(subscription.number)
        if subscriptions:
            self._shrunk = self.is_changed = True

    def use(self, compiler: Compiler, renewed: Sequence[Prepared]) -> None:
        """Go by another compiler, whose schema extends that of the one before, and take what it compiled anew."""
        before = self.compiler
        # First, so that nobody judges by the new schema an event of which too little was looked at.
        self.asked = looked_at(self.catalogue.asked, compiler.schema)
        self.compiler = compiler
        try:
            self.put(renewed, compiler)
        except HarkenError:
            self.compiler = before
            self.asked = looked_at(self.catalogue.asked, before.schema)
            raise
        self._forms.clear()
        self.is_changed = True

    def look_at(self, names: set[str]) -> None:
        """Have the attributes of these names looked at from now on."""
        known = self.catalogue.asked
        if known is not None and not names <= known:
            self.catalogue.asked = known | names
            self.asked = looked_at(self.catalogue.asked, self.schema)

    def asked_of_decoders(self) -> frozenset[str] | None:
        """The attributes that events have to have once nobody knows any more how they came; None: all."""
        matcher = self.index.others().get(OPERATORS)
        if self.asked is None or not isinstance(matcher, CallsOperators):
            return self.asked
        reads = matcher.reads()
        return None if reads is None else self.asked | reads

    def stop_looking(self) -> None:
        """Look no more at what only subscriptions asked for that are gone."""
        names = self._names() if self._shrunk else None
        if names is not None:
            self.catalogue.asked, self._shrunk = names, False
            self.asked = looked_at(names, self.schema)

    def _names(self) -> frozenset[str] | None:
        """The names that subscriptions ask for; None where too many texts had to be looked through."""
        asking = self.index.asking()
        if asking is not None:
            paths, others = asking.paths()
            verified = set(others).difference(self.numbering.free)
        elif len(self.catalogue) > _MOST_LOOKED_THROUGH:
            return None
        else:
            paths, verified = set(), {each.number for each in self.catalogue}
        if len(verified) > _MOST_LOOKED_THROUGH:
            return None
        compiled = ((known.where, known.language) for known in map(self.catalogue.of, verified))
        names = (self.compiler.compile(*each).plan.names() for each in compiled)
        return frozenset(path[0] for path in paths).union(*names)


def _swapped(record: Record) -> str | None:
    """What to ask if the id is a condition, and the text has no sign of one."""
    where = record.where
    if not isinstance(where, str) or where == record.id or _COMPARATOR.search(where) is not None:
        return None
    if record.language != DEFAULT_LANGUAGE or not reads_like_condition(record.id):
        return None
    return f"are they swapped? the id {record.id!r:.60} reads like a condition: subscribe(id, where)"
