"""Versions of the index: what is searched together, and how one version follows another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from harken.codes.columns import Column, NamedColumns
from harken.codes.conjunctions import CodedPredicates, Conjunctions
from harken.codes.dictionary import Dictionary, Strings, code_of, dictionary_of
from harken.codes.flat import Flat, joined
from harken.codes.flatten import plain_predicates
from harken.codes.recode import recode
from harken.kernels.recoding import admitted
from harken.language.normal_form import NormalForm
from harken.matchers.columnar.columnar_settings import ColumnarSettings
from harken.matchers.columnar.layer import build_layer, unbuild
from harken.matchers.columnar.recent import CodedPredicate, Recent
from harken.matchers.columnar.sample import NO_STATISTICS, Sample, Statistics
from harken.matchers.columnar.search import LayerDeletions, Searched
from harken.schema import Kind
from harken.schema.paths import Path


@dataclass(frozen=True, slots=True, eq=False)
class Middle:
    """A layer between the base and what is recent: in the codes of the base, its constants kept."""

    flat: Flat
    searched: Searched

    def alive(self) -> Flat:
        """Its rows, without those of subscriptions that left."""
        layer = self.searched.layer
        gone = [index.ids[index.buried()] for index in (layer.plain, layer.careful)]
        return self.flat.only(~np.isin(self.flat.numbers, np.concatenate(gone)))


@dataclass(frozen=True, slots=True)
class Version:
    """What is searched: the base, which the codes belong to, layers that came later, and what is recent."""

    columns: tuple[Column, ...]
    dictionaries: tuple[Dictionary, ...]
    base: Searched
    middles: tuple[Middle, ...]
    recents: tuple[Recent, ...]
    """The last of them is still appended to."""
    places: dict[tuple[Path, Kind | None], int] = field(init=False, repr=False, compare=False)
    """Where the columns are that have no coded domain."""
    named: NamedColumns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "named", NamedColumns.of(self.columns))
        places = {(each.path, each.kind): place for place, each in enumerate(self.columns) if each.coded is None}
        object.__setattr__(self, "places", places)

    @property
    def layers(self) -> list[Searched]:
        return [self.base, *(each.searched for each in self.middles)]

    def __len__(self) -> int:
        """All rows, also some that have left."""
        return len(self.base) + self.behind

    @property
    def behind(self) -> int:
        """The rows that are not in the base."""
        return sum(len(each.searched) for each in self.middles) + sum(map(len, self.recents))

    @property
    def is_one(self) -> bool:
        """Whether all of its rows are in the base."""
        return not self.middles and not any(map(len, self.recents))

    def snapshot(self, moment: int) -> ColumnarSnapshot:
        """What is there at this moment, which is the last at which anything left."""
        rows = [len(each) for each in self.recents]
        return ColumnarSnapshot(self, moment, rows, [each.deleted() for each in self.layers], len(self) == 0)

    def indexed(self) -> list[Flat]:
        """The rows of the base and of later layers, with their constants."""
        base = [rows_of_base(self)] if len(self.base) else []
        return [*base, *(each.alive() for each in self.middles)]

    def copied(self) -> Version:
        """The base as it is now: what is deleted from this version later is not deleted from the copy."""
        base = Searched(self.base.layer.copied(), self.base.columns, settings=self.base.settings)
        base.dead, base.events = self.base.dead, self.base.events
        base.seen = [seen.copy() for seen in self.base.seen]
        return replace(self, base=base, middles=(), recents=())

    def knowing(self, columns: Sequence[Column]) -> Version:
        """The same with these columns too. A new one has no constants: its codes tell only that there is a value."""
        known = set(self.columns)
        new = [column for column in columns if column not in known]
        if not new:
            return self
        dictionaries = [dictionary_of(column, [])[0] for column in new]
        return replace(self, columns=(*self.columns, *new), dictionaries=(*self.dictionaries, *dictionaries))

    def add(self, flat: Flat) -> None:
        """Append rows, whose columns are known, to what is recent."""
        known = dict(zip(self.columns, self.dictionaries, strict=True))
        place = {column: i for i, column in enumerate(self.columns)}
        coded = recode(flat, known)
        places = np.array([place[each.column] for each in coded.predicates], np.int32)
        self.recents[-1].add(flat, coded, places, len(self.columns))

    def add_form(self, number: int, form: NormalForm) -> bool:
        """Append a subscription that is one row of numbers and strings in columns that are known; False for others."""
        predicates = plain_predicates(form)
        if predicates is None:
            return False
        coded: list[CodedPredicate] = []
        exact = True
        for path, kind, low, high in predicates:
            place = self.places.get((path, kind))
            if place is None:
                return False
            dictionary = self.dictionaries[place]
            first = -1 if low is None else code_of(dictionary, kind, low[0])
            is_same = low is not None and high is not None and low[0] == high[0]
            last = first if is_same else -1 if high is None else code_of(dictionary, kind, high[0])
            sides = 0 if low is None else low[1], 0 if high is None else high[1]
            ordered = not isinstance(dictionary, Strings) or dictionary.ordered
            top = 2 * len(dictionary) + 1
            lowest, highest, is_exact = admitted(first, last, *sides, is_same, top, ordered)
            coded.append((place, lowest, highest, top))
            exact = exact and is_exact
        self.recents[-1].add_form(number, form, coded, exact, len(self.columns))
        return True

    def opened(self) -> Version:
        """The same with a fresh place for what comes next."""
        return replace(self, recents=(*self.recents, Recent(len(self.columns))))


@dataclass(frozen=True, slots=True)
class ColumnarSnapshot:
    """A version as it was at a moment: what a match sees from its beginning to its end."""

    version: Version
    moment: int
    rows: list[int]
    """How many rows each recent part had."""
    deleted: list[LayerDeletions]
    """What was deleted from each layer."""
    is_empty: bool

    def is_of(self, version: Version, moment: int) -> bool:
        """Whether it is still what a snapshot would show, if nothing was deleted from a layer since."""
        return self.version is version and self.moment == moment and self.rows[-1] == len(version.recents[-1])


def merged(
    flats: Sequence[Flat],
    before: Version | None,
    sample: Sample,
    settings: ColumnarSettings,
    given: Statistics = NO_STATISTICS,
    small_rows: int = 0,
) -> tuple[Version, Sample]:
    """A version that knows the constants of all these rows, and the sample in its codes.

    The sample is in the codes of the version before. The rows make up the base, unless they are no more than
    `small_rows` and their chains are short: then these are quick enough, and there is no base.
    """
    flat = joined(flats)
    coded = flat.coded()
    columns, dictionaries = tuple(coded.columns), tuple(coded.dictionaries)
    if before is None:
        known = Sample(len(columns))
    else:
        known = sample.translated(before.columns, before.dictionaries, columns, dictionaries, given)
    is_small = len(flat) <= small_rows and _passed_in_chains(coded) <= settings.most_chained
    based, overlapping = (coded.without_rows(), flat.overlapping[:0]) if is_small else (coded, flat.overlapping)
    layer = build_layer(based, overlapping, known.codes if len(known) else None, settings)
    base = Searched(layer, len(columns), settings=settings)
    version = Version(columns, dictionaries, base, (), (Recent(len(columns)),))
    if is_small:
        version.add(flat)
    return version, known


def _passed_in_chains(coded: Conjunctions) -> float:
    """The rows that an event is expected to pass in the chains of recent rows.

    A row with an equality is in the chain of its value, of the column with most constants; others are passed always.
    """
    constants = np.zeros(len(coded), np.int64)
    for each in coded.predicates:
        keyed = each.rows[each.low == each.high]
        constants[keyed] = np.maximum(constants[keyed], len(each.dictionary))
    return float((1 / np.maximum(constants, 1)).sum())


def rows_of_base(version: Version) -> Flat:
    """The rows of the base with their constants."""
    known = version.base.columns
    return Flat.of_codes(*unbuild(version.base.layer, version.columns[:known], version.dictionaries[:known]))


def middle(flats: Sequence[Flat], version: Version, sample: Sample, settings: ColumnarSettings) -> Middle:
    """A layer of these rows in the codes of the version."""
    flat = joined(flats)
    coded = _in_order(recode(flat, dict(zip(version.columns, version.dictionaries, strict=True))), version)
    layer = build_layer(coded, flat.overlapping, sample.codes if len(sample) else None, settings)
    stale = np.unique(flat.numbers[coded.inexact & ~flat.inexact])
    return Middle(flat, Searched(layer, len(version.columns), stale, settings))


def _in_order(coded: Conjunctions, version: Version) -> Conjunctions:
    """The predicates column by column, for all columns of the version."""
    found = {each.column: each for each in coded.predicates}
    none, no_codes = np.empty(0, np.int32), np.empty(0, np.uint32)
    every = [
        found.get(column) or CodedPredicates(column, dictionary, none, no_codes, no_codes)
        for column, dictionary in zip(version.columns, version.dictionaries, strict=True)
    ]
    return replace(coded, predicates=tuple(every))
