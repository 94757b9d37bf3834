"""A layer: the rows of some subscriptions in the codes of given dictionaries, indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.conjunctions import CodedPredicates, Conjunctions
from harken.codes.dictionary import Dictionary
from harken.kernels.unbuild import cluster_rows, pool_rows, sieve_rows
from harken.matchers.columnar.coded_rows import rows_of
from harken.matchers.columnar.columnar_settings import DEFAULT_SETTINGS, ColumnarSettings
from harken.matchers.columnar.index import ColumnarIndex, build
from harken.matchers.columnar.plan import IndexPlan, plan
from harken.matchers.columnar.statistics import frequencies


@dataclass(frozen=True, slots=True)
class Layer:
    """Plain rows, whose matches are final, and careful rows, whose candidates are verified or made unique."""

    plain: ColumnarIndex
    careful: ColumnarIndex
    doubtful: NDArray[np.int32]
    """The subscriptions in `careful` that must be verified, ascending; the others must be made unique."""
    plans: tuple[IndexPlan, IndexPlan]

    def __len__(self) -> int:
        return len(self.plain) + len(self.careful)

    @property
    def nbytes(self) -> int:
        return self.plain.nbytes + self.careful.nbytes + self.doubtful.nbytes

    def copied(self) -> Layer:
        """A copy with deletions of its own."""
        plain, careful = (replace(index, dead=index.dead.copy()) for index in (self.plain, self.careful))
        return replace(self, plain=plain, careful=careful)

    def delete(self, numbers: NDArray[np.int32]) -> int:
        """Mark all rows of these subscriptions as deleted. Returns the number of these rows."""
        return self.plain.delete(numbers) + self.careful.delete(numbers)


def build_layer(
    coded: Conjunctions,
    overlapping: NDArray[np.bool_],
    sample: NDArray[np.uint32] | None = None,
    settings: ColumnarSettings = DEFAULT_SETTINGS,
) -> Layer:
    """Index rows. `sample` has the codes of sampled events, columns by events."""
    doubtful = np.unique(coded.numbers[coded.inexact])
    # If one row of a subscription is inexact, all its rows are careful: a candidate is verified as a whole.
    careful = overlapping | np.isin(coded.numbers, doubtful)
    indexes, plans = [], []
    for chosen in (~careful, careful):
        part = _only(coded, chosen)
        rows = rows_of(part)
        # Without rows, skip the frequencies: dictionaries may be long.
        planned = plan(rows, frequencies(rows.tops, sample), settings) if len(rows) else IndexPlan()
        indexes.append(build(rows, part.numbers, planned, settings.most_places))
        plans.append(planned.without_rows())
    return Layer(indexes[0], indexes[1], doubtful, (plans[0], plans[1]))


def unbuild(
    layer: Layer, columns: Sequence[Column], dictionaries: Sequence[Dictionary]
) -> tuple[Conjunctions, NDArray[np.bool_]]:
    """The rows of a layer that are not deleted, and which of them overlap other rows of their subscription."""
    parts = [_unbuilt(index, dictionaries) for index in (layer.plain, layer.careful)]
    first, second = parts[0].numbers, parts[1].numbers
    numbers = np.concatenate([first, second])
    is_careful = np.arange(len(numbers)) >= len(first)
    inexact = is_careful & np.isin(numbers, layer.doubtful)
    coded = []
    for place, (column, dictionary) in enumerate(zip(columns, dictionaries, strict=True)):
        here, there = parts[0].predicates[place], parts[1].predicates[place]
        coded.append(
            CodedPredicates(
                column,
                dictionary,
                np.concatenate([here.rows, there.rows + np.int32(len(first))]),
                np.concatenate([here.low, there.low]),
                np.concatenate([here.high, there.high]),
            )
        )
    return Conjunctions(numbers, tuple(coded), inexact), is_careful


def weights(layer: Layer) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The subscription and the weight of each row that is not deleted, by slot.

    Half of the weight is the row's share of the expected cost of an event, half its share of the rows.
    """
    numbers, costs = [np.empty(0, np.int32)], [np.empty(0, np.float64)]
    for index, planned in zip((layer.plain, layer.careful), layer.plans, strict=True):
        taken = index.occupied_slots()
        parts = [(group.cost, group.size) for group in planned.groups]
        parts += [(pool.cost, pool.size) for pool in planned.pools]
        parts += [(sieve.cost, sieve.size) for sieve in planned.sieves]
        alive = ~np.isin(taken, index.deleted_slots(), assume_unique=True)
        numbers.append(index.ids[taken][alive])
        costs.append(np.repeat([cost / max(size, 1) for cost, size in parts], [size for _, size in parts])[alive])
    every = np.concatenate(costs)
    return np.concatenate(numbers), every / max(every.sum(), 1e-9) + 1 / max(len(every), 1)


@dataclass(frozen=True, slots=True)
class _Predicates:
    rows: NDArray[np.int32]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class _Unbuilt:
    numbers: NDArray[np.int32]
    predicates: list[_Predicates]


def _unbuilt(index: ColumnarIndex, dictionaries: Sequence[Dictionary]) -> _Unbuilt:
    tops = np.array([2 * len(dictionary) + 1 for dictionary in dictionaries], np.int64)
    room = index.max_predicates()
    slots, columns = np.empty(room, np.int64), np.empty(room, np.int32)
    low, high = np.empty(room, np.uint32), np.empty(room, np.uint32)
    keys = np.empty(len(index.ids), np.uint32)
    dead = index.dead.copy()  # other threads may delete meanwhile
    count = cluster_rows(index.clusters, dead, tops, keys, slots, columns, low, high)
    count = pool_rows(index.pools, dead, tops, slots, columns, low, high, count)
    count = sieve_rows(index.sieve, dead, slots, columns, low, high, count)
    alive = np.setdiff1d(index.occupied_slots(), index.deleted_slots(dead), assume_unique=True)
    rows = np.searchsorted(alive, slots[:count]).astype(np.int32)
    order = np.lexsort((rows, columns[:count]))
    bounds = np.searchsorted(columns[:count][order], np.arange(len(tops) + 1))
    predicates = []
    for column in range(len(tops)):
        chosen = order[bounds[column] : bounds[column + 1]]
        predicates.append(_Predicates(rows[chosen], low[chosen], high[chosen]))
    return _Unbuilt(index.ids[alive], predicates)


def _only(coded: Conjunctions, wanted: NDArray[np.bool_]) -> Conjunctions:
    if wanted.all():
        return coded
    places = (np.cumsum(wanted) - 1).astype(np.int32)
    kept = []
    for part in coded.predicates:
        chosen = wanted[part.rows]
        rows = places[part.rows[chosen]]
        kept.append(CodedPredicates(part.column, part.dictionary, rows, part.low[chosen], part.high[chosen]))
    return Conjunctions(coded.numbers[wanted], tuple(kept), coded.inexact[wanted])
