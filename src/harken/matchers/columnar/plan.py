"""The cost model: which rows go where, by what an event is expected to cost.

Every row can be found in one of four ways. In a **cluster** with rows that ask for the same attributes, by key and
range; in a **sketch**, a cluster that no cache holds, which is compared by the upper bits of its codes first; in a
**list** with all rows of the same key, its predicates tested one by one; in a **pool** with rows that ask for
attributes of few values, by bitmaps. Rows that ask for the same attributes are planned together, and go where the
expected nanoseconds an event are least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels import rows as kernels
from harken.kernels.pool import BLOCK, cell_numbers
from harken.kernels.vector import ROWS
from harken.matchers.columnar.rows import Rows, attribute_sets
from harken.matchers.columnar.statistics import Frequencies

CLUSTER, LIST, POOL, SKETCH = LAYOUTS = 0, 1, 2, 3
LAYOUT_NAMES = ("cluster", "list", "pool", "sketch")


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds, measured on one core of a server of 2023. Only their ratios matter."""

    cluster: float = 0.5
    """A cluster that does not apply to the event."""
    look_up: float = 16.0
    """Finding the run of a cluster that does."""
    slot: float = 0.08
    """Comparing one slot in one column."""
    sketched: float = 0.03
    """The same, in a sketch."""
    line: float = 6.0
    """Fetching a line of a cluster that no cache holds."""
    list_slot: float = 12.0
    """Testing the predicates of one slot of a list."""
    cell: float = 4.0
    """Looking up one cell of a directory."""
    block: float = 14.0
    """Looking at a block, apart from its bitmaps."""
    bitmap: float = 1.6
    """One bitmap of a block."""
    cached: float = 1 << 20
    """Bytes, not nanoseconds: what a cluster compares stays in the cache up to this size; a larger one is sketched."""


DEFAULT_COSTS = Costs()
MOST_CODES = 128
"""A column with more codes than this is not bit-sliced: its bitmaps would take more memory than they save time."""
_MOST_CELLS = 1 << 16
_MOST_DIRECTORIES = 4
"""Each is looked for among all columns, which takes time: so many for rows that share columns."""
_LEAST_DIVIDED = 16 * BLOCK
"""A pool of fewer rows is looked at in no time."""
_SAMPLED_ROWS = 20_000
_LEAST_REACH = 1e-6
_COMPARED_BYTES = 8
"""What a slot takes in one column that is compared."""
_LONGEST_SIFTED = 4_096
"""A sketch is for runs that have no more slots than this, on average."""
_LINE_BOUNDS, _SEARCHED_LINES = 16, 4
"""Bounds in a line, and the lines that a search through many looks at."""
_LOOKED_AT = 2
"""Of intervals whose lengths take the same number of bits, about twice as many are looked at as hold."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """Rows that are bit-sliced, columns with all that they ask for, and those of the directory."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    directory: NDArray[np.int32]
    reach: float
    """The share of events that have any of its columns, about: others do not come near it."""
    visited: float
    """The share of its rows that one that does is expected to look at."""
    cost: float
    size: int


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Rows that are found by the same key and range: a cluster, a sketch or a list."""

    rows: NDArray[np.int64]
    layout: int
    columns: NDArray[np.int32]
    """Of a cluster or a sketch: all columns that its rows ask for."""
    key: int
    bound: int
    bound_class: int
    candidates: float
    """Slots that an event is expected to look at."""
    cost: float
    """Nanoseconds that an event is expected to take."""
    size: int

    @property
    def is_within(self) -> bool:
        """Whether the range is one with two ends: then it only narrows down what is compared."""
        return self.bound_class >= kernels.WITHIN


@dataclass(frozen=True, slots=True)
class Plan:
    """Where every row goes."""

    groups: list[GroupPlan] = field(default_factory=list)
    pools: list[PoolPlan] = field(default_factory=list)

    def forgotten(self) -> Plan:
        """The choices without the rows: what is kept once the index is built."""
        none = np.empty(0, np.int64)
        return Plan(
            [replace(group, rows=none) for group in self.groups],
            [replace(pool, rows=none) for pool in self.pools],
        )

    def to_dict(self) -> dict[str, Any]:
        """The choices as plain data, without the rows."""
        return {"groups": [_plain(each) for each in self.groups], "pools": [_plain(each) for each in self.pools]}

    @classmethod
    def of_dict(cls, plain: Mapping[str, Any]) -> Plan:
        """The choices again."""
        return cls(
            [GroupPlan(**_arrays(each, "columns")) for each in plain["groups"]],
            [PoolPlan(**_arrays(each, "columns", "directory")) for each in plain["pools"]],
        )


def _plain(choice: GroupPlan | PoolPlan) -> dict[str, Any]:
    found = {each.name: getattr(choice, each.name) for each in fields(choice) if each.name != "rows"}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}


def _arrays(choice: Mapping[str, Any], *names: str) -> dict[str, Any]:
    found = {name: np.array(choice[name], np.int32) for name in names}
    return {**choice, **found, "rows": np.empty(0, np.int64)}


def plan(rows: Rows, known: Frequencies, costs: Costs = DEFAULT_COSTS, layouts: tuple[int, ...] = LAYOUTS) -> Plan:
    """The cheapest plan. `layouts` narrows the choice, for tests; a row that cannot be pooled is listed."""
    if not len(rows):
        return Plan()
    leaders, set_of, sizes = attribute_sets(rows)
    keyed = _Keyed(rows, leaders, set_of, known, costs, layouts)
    pooled, pools = _pools(rows, leaders, set_of, sizes, keyed.set_costs, known, costs, layouts)
    return Plan(keyed.groups(~pooled), pools)


class _Keyed:
    """Clusters, sketches and lists: key and range of every row, and what rows that share them cost."""

    def __init__(
        self,
        rows: Rows,
        leaders: NDArray[np.int64],
        set_of: NDArray[np.int64],
        known: Frequencies,
        costs: Costs,
        layouts: tuple[int, ...],
    ) -> None:
        self._rows = rows
        shares = _shares(rows, known)
        count = len(rows)
        self._key, self._bound = np.empty(count, np.int32), np.empty(count, np.int32)
        self._bound_class = np.empty(count, np.uint8)
        kernels.choose_keys(rows.starts, rows.columns, rows.classes, shares, self._key, self._bound, self._bound_class)
        self._known, self._present = known, known.present()
        self._shares, self._set_of, self._costs, self._layouts = shares, set_of, costs, layouts
        self._group_alike()
        if self._drop_ranges():
            self._group_alike()
        self.set_costs: NDArray[Any] = np.bincount(set_of[self._leaders], weights=self._cost, minlength=len(leaders))

    def _group_alike(self) -> None:
        """Group the rows that ask for the same attributes and are found by the same key and range, and choose what
        becomes of each group.
        """
        width = len(self._rows.tops) + 1
        found_by = (self._key.astype(np.int64) + 1) * width + self._bound + 1
        per_set = width * width * kernels.CLASSES
        _, self._leaders, self._cluster_of, self._counts = np.unique(
            self._set_of * per_set + found_by * kernels.CLASSES + self._bound_class,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        lead = self._leaders
        key, bound, bound_class = self._key[lead], self._bound[lead], self._bound_class[lead]
        clustered, self._candidates, sketched = self._clustered(lead, self._counts, key, bound, bound_class)
        key_share = _given(self._shares[kernels.POINT], key)
        self._tested = self._counts * np.where(key >= 0, key_share, self._bound_share(bound, bound_class))
        listed = self._tested * self._costs.list_slot
        is_listed = listed < clustered
        if not {CLUSTER, SKETCH} & set(self._layouts):
            is_listed[:] = True
        elif LIST not in self._layouts:
            is_listed[:] = False
        self._layout = np.where(is_listed, LIST, np.where(sketched, SKETCH, CLUSTER))
        self._cost = np.where(is_listed, listed, clustered)

    def _clustered(
        self,
        lead: NDArray[np.int64],
        counts: NDArray[np.int64],
        key: NDArray[np.int32],
        bound: NDArray[np.int32],
        bound_class: NDArray[np.uint8],
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Of clusters of so many rows like these: nanoseconds an event, slots looked at, and which are sketched."""
        rows, costs = self._rows, self._costs
        chance = self._known.together(rows, lead)
        # Once it is known that the event has the attributes, the shares are of such events.
        keyed = counts * (_given(self._shares[kernels.POINT], key) / _given(self._present, key))
        here = keyed * (self._bound_share(bound, bound_class) / _given(self._present, bound))
        is_settled = (bound >= 0) & (bound_class < kernels.WITHIN)
        rest = rows.lengths[lead] - (key >= 0) - is_settled
        # In a long run what is in doubt is read from all over it; and where an interval of two ends narrows the run
        # down, all of it is in doubt.
        is_short = (here <= _LONGEST_SIFTED) & ~((bound >= 0) & (bound_class >= kernels.WITHIN))
        sketched = (counts * rest * _COMPARED_BYTES > costs.cached) & is_short
        if CLUSTER not in self._layouts or SKETCH not in self._layouts:
            sketched[:] = SKETCH in self._layouts
        lines = rest * (here / ROWS + 1) + np.where(bound >= 0, np.minimum(keyed / _LINE_BOUNDS, _SEARCHED_LINES), 0)
        compared = here * rest * np.where(sketched, costs.sketched, costs.slot)
        clustered = costs.cluster + chance * (costs.look_up + compared + sketched * (1 + lines) * costs.line)
        return clustered, here * chance, sketched

    def _bound_share(self, bound: NDArray[np.int32], bound_class: NDArray[np.uint8]) -> NDArray[Any]:
        return np.where(bound >= 0, np.maximum(self._shares[bound_class, bound], 1e-9), 1.0)

    def _drop_ranges(self) -> bool:
        """Where rows of one key are cheaper to find together than range by range, leave ranges to the comparison.

        Returns whether there are such rows.
        """
        lead = self._leaders
        key = self._key[lead]
        width = len(self._rows.tops) + 1
        _, first, together, ways = np.unique(
            self._set_of[lead] * width + key + 1, return_index=True, return_inverse=True, return_counts=True
        )
        counts = np.bincount(together, weights=self._counts).astype(np.int64)
        none = np.full(len(first), -1, np.int32)
        cost, _, _ = self._clustered(lead[first], counts, key[first], none, np.zeros(len(first), np.uint8))
        apart = np.bincount(together, weights=self._cost)
        dropped = ((key[first] >= 0) & (ways > 1) & (cost < apart))[together][self._cluster_of]
        self._bound[dropped], self._bound_class[dropped] = -1, 0
        return bool(dropped.any())

    def groups(self, wanted: NDArray[np.bool_]) -> list[GroupPlan]:
        """The clusters, sketches and lists of the wanted rows."""
        chosen = np.flatnonzero(wanted)
        layout = self._layout[self._cluster_of]
        # Lists are by key alone, or, where there is no key, by range: clusters that became lists fall together.
        width = len(self._rows.tops) + 1
        listed = np.where(
            self._key >= 0,
            self._key.astype(np.int64) + 1,
            ((self._bound.astype(np.int64) + 1) * kernels.CLASSES + self._bound_class) * width,
        )
        group = np.where(layout == LIST, -1 - listed, self._cluster_of)[chosen]
        order = np.argsort(group, kind="stable")
        bounds = np.flatnonzero(np.diff(group[order], prepend=group[order[0]] - 1 if len(order) else 0))
        return [self._group(chosen[each]) for each in np.split(order, bounds[1:])] if len(chosen) else []

    def _group(self, members: NDArray[np.int64]) -> GroupPlan:
        first = int(members[0])
        cluster = self._cluster_of[first]
        layout = int(self._layout[cluster])
        key, bound, bound_class = int(self._key[first]), int(self._bound[first]), int(self._bound_class[first])
        if layout != LIST:
            columns, candidates, cost = self._rows.columns_of(first), self._candidates[cluster], self._cost[cluster]
        else:
            if key >= 0:
                bound = -1
            columns = np.array([each for each in (key, bound) if each >= 0], np.int32)
            part = self._cluster_of[members]
            candidates = (self._tested[part] / self._counts[part]).sum()
            cost = (self._cost[part] / self._counts[part]).sum()
        return GroupPlan(
            members, layout, columns, key, bound, bound_class, float(candidates), float(cost), len(members)
        )


def _given(shares: NDArray[Any], columns: NDArray[np.int32]) -> NDArray[Any]:
    """The shares of these columns, 1 where there is none."""
    if not len(shares):
        return np.ones(len(columns))
    return np.where(columns >= 0, np.maximum(shares[columns], 1e-9), 1.0)


def _shares(rows: Rows, known: Frequencies) -> NDArray[np.float32]:
    """By class and column, the share of events that a predicate lets through, on average.

    Of an interval with two ends the share is that of all intervals of its class that may be looked at.
    """
    shape = kernels.CLASSES, max(1, len(rows.tops))  # there may be no column, but an index is not out of bounds
    sums, counts = np.zeros(shape), np.zeros(shape, np.int64)
    kernels.mean_shares(
        rows.starts, rows.columns, rows.low, rows.high, rows.classes, known.cumulative, known.starts, sums, counts
    )
    mean = (sums / np.maximum(counts, 1)).astype(np.float32)
    mean[kernels.WITHIN :] *= _LOOKED_AT
    return mean


def _pools(
    rows: Rows,
    leaders: NDArray[np.int64],
    set_of: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keyed_costs: NDArray[Any],
    known: Frequencies,
    costs: Costs,
    layouts: tuple[int, ...],
) -> tuple[NDArray[np.bool_], list[PoolPlan]]:
    """Which rows are pooled, and in which pools."""
    nothing = np.zeros(len(rows), np.bool_)
    if POOL not in layouts:
        return nothing, []
    small = (rows.tops < MOST_CODES).astype(np.float32)
    eligible = np.empty(len(leaders), np.float32)
    kernels.products(rows.starts, rows.columns, leaders, small, eligible)
    candidate = (eligible > 0) & (rows.lengths[leaders] > 0)
    if not candidate.any():
        return nothing, []
    component = _components(rows, leaders[candidate])
    set_component = np.full(len(leaders), -1)
    set_component[candidate] = component[rows.columns[rows.starts[leaders[candidate]]]]
    is_pooled = np.zeros(len(leaders), np.bool_)
    pools: list[PoolPlan] = []
    only = layouts == (POOL,)
    for number in np.unique(set_component[candidate]):
        inside = set_component == number
        members = np.flatnonzero(inside[set_of])
        pool = _directory(rows, members, known, costs)
        for _ in range(2):  # the sets that leave the pool may change the directory
            per_row = pool.reach * pool.visited * (costs.block + costs.bitmap * rows.lengths[leaders]) / BLOCK
            kept = inside & (only | (sizes * per_row < keyed_costs))
            members = np.flatnonzero(kept[set_of])
            if len(members) in (0, pool.size):
                break
            pool = _directory(rows, members, known, costs)
        if len(members):
            is_pooled |= kept
            pools.extend(_divided(rows, pool, known, costs))
    return is_pooled[set_of], pools


def _components(rows: Rows, leaders: NDArray[np.int64]) -> NDArray[np.int64]:
    """By column, a number that it shares with all columns that are asked for together with it, over corners too."""
    parent = np.arange(len(rows.tops))
    kernels.join_columns(rows.starts, rows.columns, leaders, parent)
    return parent


def _divided(
    rows: Rows, whole: PoolPlan, known: Frequencies, costs: Costs, most: int = _MOST_DIRECTORIES
) -> list[PoolPlan]:
    """A pool in parts: rows that ask for no value that the directory goes by get a directory of their own."""
    if most == 1 or whole.size < _LEAST_DIVIDED:
        return [whole]
    members = whole.rows
    asked = np.where(rows.classes == kernels.POINT, rows.low, np.uint32(0))
    cells = np.empty(len(members), np.int64)
    cell_numbers(
        rows.starts, rows.columns, asked, members, whole.directory, np.ones(len(whole.directory), np.int64), cells
    )
    told = cells > 0
    if told.all() or not told.any():
        return [whole]
    others = _divided(rows, _directory(rows, members[~told], known, costs), known, costs, most - 1)
    if not len(others[0].directory):
        return [whole]
    # Every event looks at all of the others: what is left is looked at of those that the directory goes by.
    share = float(told.mean())
    looked_at = max(0.0, whole.visited - (1 - share))
    first = replace(
        whole,
        rows=members[told],
        visited=looked_at / share,
        cost=whole.cost * looked_at / whole.visited,
        size=int(told.sum()),
    )
    return [first, *others]


def _directory(rows: Rows, members: NDArray[np.int64], known: Frequencies, costs: Costs) -> PoolPlan:
    """A pool of these rows with the directory that is expected to be cheapest, found greedily on a sample of rows."""
    step = max(1, len(members) // _SAMPLED_ROWS)
    sample = members[::step]
    weight = np.ones(len(sample))
    scale = len(members) / len(sample)
    per_block = costs.block + costs.bitmap * float(rows.lengths[sample].mean())
    used = np.zeros(len(rows.tops), np.bool_)
    kernels.mark_columns(rows.starts, rows.columns, members, used)
    columns = np.flatnonzero(used).astype(np.int32)
    asked = np.where(rows.classes == kernels.POINT, rows.low, np.uint32(0))
    reach = max(float(known.present()[columns].max()), _LEAST_REACH)
    points = {int(column): _point_shares(rows, asked, sample, int(column), known, reach) for column in columns}
    telling = [column for column, shares in points.items() if (shares < 1).any()]
    directory: list[int] = []
    cells, combinations = 1, 1.0
    best = scale * len(sample) / BLOCK * per_block
    while True:
        options = []
        for column in telling:
            more = cells * (int(rows.tops[column]) // 2 + 1)
            if column in directory or more > min(_MOST_CELLS, max(16, len(members) // 64)):
                continue
            visited = scale * float((weight * points[column]).sum())
            looked = combinations * 2
            options.append((looked * (costs.cell + per_block) + visited / BLOCK * per_block, column, more))
        if not options or min(options)[0] >= best:
            break
        best, column, cells = min(options)
        directory.append(column)
        combinations *= 2
        weight = weight * points[column]
    return PoolPlan(
        members,
        columns,
        np.array(directory, np.int32),
        reach,
        float(weight.mean()),
        reach * best,
        len(members),
    )


def _point_shares(
    rows: Rows, asked: NDArray[np.uint32], sample: NDArray[np.int64], column: int, known: Frequencies, reach: float
) -> NDArray[np.float64]:
    """For each row of the sample the share, of the events within reach, that its equality on the column lets through.

    1 without one.
    """
    codes = np.empty(len(sample), np.uint32)
    kernels.code_of(rows.starts, rows.columns, asked, sample, column, codes)
    return np.where(codes > 0, np.minimum(1.0, known.of(column)[codes] / reach), 1.0)
