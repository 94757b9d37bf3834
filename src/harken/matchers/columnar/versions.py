"""Versions of the index: the layers and recent rows of a version, and how the next version is made."""

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
from harken.matchers.columnar.search import LayerDeletions, SearchableLayer
from harken.schema import Kind
from harken.schema.paths import Path


@dataclass(frozen=True, slots=True, eq=False)
class Middle:
    """A layer between the base and the recent rows, in the codes of the base. Keeps the constants of its rows."""

    flat: Flat
    searched: SearchableLayer

    def alive(self) -> Flat:
        """Its rows, without those of removed subscriptions."""
        layer = self.searched.layer
        removed = [index.ids[index.deleted_slots()] for index in (layer.plain, layer.careful)]
        return self.flat.only(~np.isin(self.flat.numbers, np.concatenate(removed)))


@dataclass(frozen=True, slots=True)
class Version:
    """The base, whose dictionaries define the codes, later layers, and recent rows."""

    columns: tuple[Column, ...]
    dictionaries: tuple[Dictionary, ...]
    base: SearchableLayer
    middles: tuple[Middle, ...]
    recents: tuple[Recent, ...]
    """New rows are appended to the last one."""
    places: dict[tuple[Path, Kind | None], int] = field(init=False, repr=False, compare=False)
    """The places of the columns that have no coded domain."""
    named: NamedColumns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "named", NamedColumns.of(self.columns))
        places = {
            (column.path, column.kind): place for place, column in enumerate(self.columns) if column.coded is None
        }
        object.__setattr__(self, "places", places)

    @property
    def layers(self) -> list[SearchableLayer]:
        return [self.base, *(layer.searched for layer in self.middles)]

    def __len__(self) -> int:
        """Number of rows, including some of removed subscriptions."""
        return len(self.base) + self.outside_base

    @property
    def outside_base(self) -> int:
        """Number of rows outside the base."""
        return sum(len(layer.searched) for layer in self.middles) + sum(map(len, self.recents))

    @property
    def is_merged(self) -> bool:
        """Whether all rows are in the base."""
        return not self.middles and not any(map(len, self.recents))

    def snapshot(self, moment: int) -> ColumnarSnapshot:
        """The present rows. `moment` is the moment of the last removal."""
        rows = [len(recent) for recent in self.recents]
        return ColumnarSnapshot(self, moment, rows, [searched.deleted() for searched in self.layers], len(self) == 0)

    def indexed(self) -> list[Flat]:
        """The rows of the base and of later layers, with their constants."""
        base = [rows_of_base(self)] if len(self.base) else []
        return [*base, *(layer.alive() for layer in self.middles)]

    def copied(self) -> Version:
        """A copy of the base. Later deletions from this version do not affect it."""
        base = SearchableLayer(self.base.layer.copied(), self.base.columns, settings=self.base.settings)
        base.dead, base.events = self.base.dead, self.base.events
        base.seen = [seen.copy() for seen in self.base.seen]
        return replace(self, base=base, middles=(), recents=())

    def with_columns(self, columns: Sequence[Column]) -> Version:
        """This version with further columns. New ones have no constants: a code says only that there is a value."""
        present = set(self.columns)
        new = [column for column in columns if column not in present]
        if not new:
            return self
        dictionaries = [dictionary_of(column, [])[0] for column in new]
        return replace(self, columns=(*self.columns, *new), dictionaries=(*self.dictionaries, *dictionaries))

    def add(self, flat: Flat) -> None:
        """Append recent rows. This version has to have their columns."""
        dictionaries = dict(zip(self.columns, self.dictionaries, strict=True))
        place = {column: i for i, column in enumerate(self.columns)}
        coded = recode(flat, dictionaries)
        places = np.array([place[each.column] for each in coded.predicates], np.int32)
        self.recents[-1].add(flat, coded, places, len(self.columns))

    def add_form(self, number: int, form: NormalForm) -> bool:
        """Append a subscription if it is one row of numbers and strings in known columns; else return False."""
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

    def with_new_part(self) -> Version:
        """This version with an empty last part for further recent rows."""
        return replace(self, recents=(*self.recents, Recent(len(self.columns))))


@dataclass(frozen=True, slots=True)
class ColumnarSnapshot:
    """A version at a moment: what a match sees from its beginning to its end."""

    version: Version
    moment: int
    rows: list[int]
    """Number of rows in each part of the recent rows."""
    deleted: list[LayerDeletions]
    """The deletions from each layer."""
    is_empty: bool

    def is_of(self, version: Version, moment: int) -> bool:
        """Whether a new snapshot would be equal, provided that nothing was deleted from a layer since."""
        return self.version is version and self.moment == moment and self.rows[-1] == len(version.recents[-1])


def merged(
    flats: Sequence[Flat],
    before: Version | None,
    sample: Sample,
    settings: ColumnarSettings,
    supplied: Statistics = NO_STATISTICS,
    small_rows: int = 0,
) -> tuple[Version, Sample]:
    """A version whose dictionaries have the constants of all these rows, and the sample in its codes.

    The given sample is in the codes of the version before. The rows become the base, unless they are at most
    `small_rows` and their chains are short: then they become recent rows, and the base is empty.
    """
    flat = joined(flats)
    coded = flat.coded()
    columns, dictionaries = tuple(coded.columns), tuple(coded.dictionaries)
    if before is None:
        translated = Sample(len(columns))
    else:
        translated = sample.translated(before.columns, before.dictionaries, columns, dictionaries, supplied)
    is_small = len(flat) <= small_rows and _tested_in_chains(coded) <= settings.most_chained
    indexed, overlapping = (coded.without_rows(), flat.overlapping[:0]) if is_small else (coded, flat.overlapping)
    layer = build_layer(indexed, overlapping, translated.codes if len(translated) else None, settings)
    base = SearchableLayer(layer, len(columns), settings=settings)
    version = Version(columns, dictionaries, base, (), (Recent(len(columns)),))
    if is_small:
        version.add(flat)
    return version, translated


def _tested_in_chains(coded: Conjunctions) -> float:
    """The number of rows that an event is expected to test in the chains of recent rows.

    A row with equalities is in the chain of one value, on the column with most constants; every event tests all others.
    """
    constants = np.zeros(len(coded), np.int64)
    for predicates in coded.predicates:
        keyed = predicates.rows[predicates.low == predicates.high]
        constants[keyed] = np.maximum(constants[keyed], len(predicates.dictionary))
    return float((1 / np.maximum(constants, 1)).sum())


def rows_of_base(version: Version) -> Flat:
    """The rows of the base with their constants."""
    count = version.base.columns
    return Flat.of_codes(*unbuild(version.base.layer, version.columns[:count], version.dictionaries[:count]))


def middle(flats: Sequence[Flat], version: Version, sample: Sample, settings: ColumnarSettings) -> Middle:
    """A layer of these rows in the codes of the version."""
    flat = joined(flats)
    coded = _in_order(recode(flat, dict(zip(version.columns, version.dictionaries, strict=True))), version)
    layer = build_layer(coded, flat.overlapping, sample.codes if len(sample) else None, settings)
    stale = np.unique(flat.numbers[coded.inexact & ~flat.inexact])
    return Middle(flat, SearchableLayer(layer, len(version.columns), stale, settings))


def _in_order(coded: Conjunctions, version: Version) -> Conjunctions:
    """The predicates column by column, for all columns of the version."""
    by_column = {part.column: part for part in coded.predicates}
    none, no_codes = np.empty(0, np.int32), np.empty(0, np.uint32)
    every = [
        by_column.get(column) or CodedPredicates(column, dictionary, none, no_codes, no_codes)
        for column, dictionary in zip(version.columns, version.dictionaries, strict=True)
    ]
    return replace(coded, predicates=tuple(every))
