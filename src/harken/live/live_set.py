"""The live set: the subscriptions of an engine, the index that finds them, and all ways to change them."""

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
from harken.matchers.algorithm_registry import create_matcher, create_other, reject_incapable, reject_unless_removing
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
"""At most this many forms are kept when subscriptions are added: a small index verifies many of its subscriptions."""
_MOST_REPARSED = 20_000
"""At most this many texts are parsed again to learn which attributes subscriptions use."""

_COMPARATOR = re.compile("[<>=]")
Prepared = tuple[Record, Compiled]


def new_index(
    flat: Matcher,
    limits: Limits,
    operating: Operating,
    documents: DocumentMatching = DEFAULT_MATCHING,
    others: Mapping[str, tuple[Matcher, Iterable[int]]] | None = None,
) -> Indexes:
    """The matchers of a live set: `flat`, the existing `others`, and further kinds, made when they are needed."""

    def make(kind: str) -> Matcher:
        if kind == DOCUMENTS:
            return documents.create(limits)
        if kind != OPERATORS:
            return create_other(kind, limits)
        from harken.matchers.operators import new_matcher

        return new_matcher(limits, operating)

    return Indexes(flat, make, others)


class LiveSnapshot(NamedTuple):
    """What a match uses from beginning to end, whatever changes meanwhile."""

    indexes: Snapshot
    compiler: Compiler
    decoded_names: frozenset[str] | None
    """Names of the event attributes to decode: all that the index uses, and perhaps more. None: all."""


class LiveSet:
    """Subscriptions and the index that finds them. A match uses one live set throughout.

    One thread at a time may change it while others match.
    """

    __slots__ = (
        *(
            "_asking",
            "_forms",
            "_is_limited",
            "_readings",
            "_shrunk",
            "algorithm",
            "decoded_names",
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
        """With a catalogue and no index, the index is built from the texts of the catalogue."""
        self.compiler = compiler
        self.algorithm = algorithm
        self.options = dict(options)
        self.operating = operating
        self.documents = documents
        self.catalogue = Catalogue() if catalogue is None else catalogue
        self.numbering = Numbering() if numbering is None else numbering
        if index is None:
            flat = create_matcher(algorithm, compiler.limits, **options)
            if documents.options:
                documents.create(compiler.limits)  # now, and not with the first subscription, raise what it raises
            index = new_index(flat, compiler.limits, operating, documents)
            if len(self.catalogue):
                from harken.live.loading import restore

                restore(index, compiler, self.catalogue)
        self.index = index
        self._is_limited = index.flat.capabilities != frozenset(Capability)
        self._forms: dict[int, Form] = {}
        """Cached forms, by number. A form is many times as large as its text."""
        self._asking: Asking | None = None
        self._readings: tuple[int, tuple[Column, ...], tuple[TimeReading, ...]] = (-1, (), ())
        """Cache of `readings()`: the catalogue's number of changes, the columns, and the readings of these columns."""
        self._shrunk = False
        """Whether subscriptions were removed since the names in `decoded_names` were collected."""
        self.is_changed = False
        """Whether anything changed since the live set was saved or loaded."""
        self.sequence: int | None = None
        """Sequence number of the last change of a log that was applied."""
        if self.catalogue.used_names is None:
            self.catalogue.used_names = self._used_names()
        self.decoded_names = looked_at(self.catalogue.used_names, compiler.schema)
        """Names of the event attributes to decode; None: all. They are added before the subscriptions that use them
        enter the index, so a reader takes the index's snapshot first."""

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
        """The current state, for one match. The caller has to release its `indexes`."""
        before = self.decoded_names
        index = self.index.snapshot()
        compiler, decoded_names = self.compiler, self.decoded_names  # `use` changes them in the opposite order
        if before is not decoded_names:  # `drop_unused_names` may have dropped names that this snapshot needs
            decoded_names = None if before is None or decoded_names is None else before | decoded_names
        return LiveSnapshot(index, compiler, decoded_names)

    def form_of(self) -> FormOf:
        """A function from a number to the form of its subscription, compiled from the text unless cached."""
        compiler, forms, catalogue = self.compiler, self._forms, self.catalogue

        def form_of(number: int) -> Form:
            form = forms.get(number)
            if form is None:
                subscription = catalogue.of(number)
                form = compiler.compile(subscription.where, subscription.language).form
                if len(forms) >= _MOST_FORMS:
                    forms.clear()
                forms[number] = form
            return form

        return form_of

    def asking(self) -> Asking:
        """The source of the columns that subscriptions use."""
        if self._asking is None:
            self._asking = FirstSubscriptions(self.catalogue, self._normal_form)
        return self.index.asking() or self._asking

    def readings(self) -> tuple[TimeReading, ...]:
        """The attributes whose strings are read as timestamps or dates, as subscriptions compare them with such."""
        changes, cached_columns, readings = self._readings
        if changes == self.catalogue.changes:
            return readings
        changes, asking = self.catalogue.changes, self.index.asking()
        columns = () if asking is None else asking.columns()
        if columns is not cached_columns:
            readings = tuple(dict.fromkeys(each for column in columns if (each := reading(column.path)) is not None))
        self._readings = changes, columns, readings
        return readings

    def _normal_form(self, number: int) -> NormalForm | None:
        """The normal form of a subscription; None if it is too large, or its kind has none."""
        subscription = self.catalogue.of(number)
        compiled = self.compiler.compile(subscription.where, subscription.language)
        if compiled.plan.kind not in (FLAT, PROGRAMS):
            return None
        try:
            return compiled.normal_form
        except LimitError:
            return None

    # Changing

    def compile(self, record: Record, compiler: Compiler | None = None) -> Compiled:
        """Compile a record. Raises LanguageError, LimitError, or CapabilityError if the algorithm cannot match it."""
        compiler = compiler or self.compiler
        try:
            compiled = compiler.compile(record.where, record.language)
        except LanguageError as error:
            error.hint = _swapped(record) or error.hint
            raise
        if " " not in record.where and (warning := _swapped(record)):
            compiled = compiled._replace(warnings=(*compiled.warnings, warning))
        if compiled.plan.kind == PROGRAMS and not self.index.leaves_patterns:
            with suppress(LimitError):  # too large: it goes to the index of programs
                _ = compiled.normal_form  # raises for a contradiction that only the normal form shows
        if self._is_limited:
            reject_incapable(self.algorithm, compiled.capabilities)
        self.documents.reject_incapable(compiled.plan, compiler.limits)
        return compiled

    def reject_taken(self, id: str, also: Container[str] = ()) -> None:
        """Raise DuplicateIdError if the id is in use."""
        if id in self.catalogue or id in also:
            raise DuplicateIdError(f"the id {id!r} is taken", hint="pass replace=True to replace the subscription")

    def put(
        self, prepared: Sequence[Prepared], compiler: Compiler, gone: Iterable[Subscription] = ()
    ) -> list[Subscription]:
        """Add subscriptions, replacing those with the same ids, and remove `gone`. On an error nothing changes.

        `compiler` compiled them. If the schema was extended meanwhile, they are compiled again.
        """
        if compiler is not self.compiler:
            prepared = [(record, self.compile(record)) for record, _ in prepared]
        current = (self.catalogue.get(record.id) for record, _ in prepared) if len(self.catalogue) else ()
        leaving = [*(each for each in current if each is not None), *gone]
        if leaving:
            reject_unless_removing(self.algorithm)
        numbers = self.numbering.take(len(prepared))
        new = [
            Subscription(record.id, record.where, record.language, number, record.fields, form.warnings)
            for (record, form), number in zip(prepared, numbers, strict=True)
        ]
        is_small = len(self._forms) + len(new) <= _KEPT_FORMS
        for number, (_, form) in zip(numbers, prepared, strict=True):
            if is_small and form.plan.kind in (FLAT, PROGRAMS):
                self._forms[number] = form.form
            else:
                self._forms.pop(number, None)
        self.decode_also({name for _, form in prepared for name in form.plan.names()})
        self.catalogue.announce(new)
        try:
            entries = [Entry(each.number, form) for each, (_, form) in zip(new, prepared, strict=True)]
            self.index.add(entries, [each.number for each in leaving])
        except HarkenError:
            for number in numbers:
                self.numbering.give_back(number)
            raise
        self.catalogue.add(new)  # before `forget`, so that a replaced id is never missing
        self.forget(leaving)
        if new:
            self.is_changed = True
        return new

    def put_fitting(
        self, prepared: Sequence[Prepared], compiler: Compiler, gone: Iterable[Subscription] = ()
    ) -> list[Fault]:
        """As `put`, for as many as the matcher's limits allow, from the first on. Returns faults of the rest."""
        try:
            self.put(prepared, compiler, gone)
        except LimitError as error:
            if not prepared:
                raise
            half = len(prepared) // 2
            # `gone` is removed even if none of `prepared` fits.
            faults = self.put_fitting(prepared[:half], compiler, gone)
            if half and not faults:
                return self.put_fitting(prepared[half:], compiler)
            return [*faults, *(record.fault(error) for record, _ in prepared[half:])]
        return []

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription. Raises CapabilityError if the algorithm cannot remove any."""
        reject_unless_removing(self.algorithm)
        self.index.remove([subscription.number])
        self.forget([subscription])

    def forget(self, subscriptions: Collection[Subscription]) -> None:
        """Remove subscriptions that the index has removed already."""
        for subscription in subscriptions:
            self.catalogue.remove(subscription)
            self.numbering.give_back(subscription.number)
        if subscriptions:
            self._shrunk = self.is_changed = True

    def use(self, compiler: Compiler, renewed: Sequence[Prepared]) -> None:
        """Switch to a compiler with an extended schema, and replace the subscriptions that it compiled again."""
        before = self.compiler
        # First, so that no event is checked against the new schema without some of its attributes.
        self.decoded_names = looked_at(self.catalogue.used_names, compiler.schema)
        self.compiler = compiler
        try:
            self.put(renewed, compiler)
        except HarkenError:
            self.compiler = before
            self.decoded_names = looked_at(self.catalogue.used_names, before.schema)
            raise
        self._forms.clear()
        self.is_changed = True

    def decode_also(self, names: set[str]) -> None:
        """Decode the attributes of these names from now on."""
        used = self.catalogue.used_names
        if used is not None and not names <= used:
            self.catalogue.used_names = used | names
            self.decoded_names = looked_at(self.catalogue.used_names, self.schema)

    def names_to_decode(self) -> frozenset[str] | None:
        """Names of the attributes that decoded events need, with those that operators read; None: all."""
        return self.with_names_read(self.decoded_names)

    def with_names_read(self, names: frozenset[str] | None) -> frozenset[str] | None:
        """These names, and those of the attributes that operators read; None: all."""
        matcher = self.index.others().get(OPERATORS)
        if names is None or not isinstance(matcher, CallsOperators):
            return names
        reads = matcher.reads()
        return None if reads is None else names | reads

    def drop_unused_names(self) -> None:
        """Stop decoding attributes that only removed subscriptions used."""
        names = self._used_names() if self._shrunk else None
        if names is not None:
            self.catalogue.used_names, self._shrunk = names, False
            self.decoded_names = looked_at(names, self.schema)

    def _used_names(self) -> frozenset[str] | None:
        """Names of the attributes that subscriptions use; None if too many texts would have to be parsed."""
        asking = self.index.asking()
        if asking is not None:
            paths, others = asking.paths()
            verified = set(others).difference(self.numbering.free)
        elif len(self.catalogue) > _MOST_REPARSED:
            return None
        else:
            paths, verified = set(), {each.number for each in self.catalogue}
        if len(verified) > _MOST_REPARSED:
            return None
        subscriptions = map(self.catalogue.of, verified)
        names = (self.compiler.compile(each.where, each.language).plan.names() for each in subscriptions)
        return frozenset(path[0] for path in paths).union(*names)


def _swapped(record: Record) -> str | None:
    """A hint that id and text are swapped, if the id reads like a condition and the text has no comparison."""
    where = record.where
    if not isinstance(where, str) or where == record.id or _COMPARATOR.search(where) is not None:
        return None
    if record.language != DEFAULT_LANGUAGE or not reads_like_condition(record.id):
        return None
    return f"are they swapped? the id {record.id!r:.60} reads like a condition: subscribe(id, where)"
