"""The cost model: chooses a layout for every row by the expected cost of an event.

There are five layouts. A **cluster** has rows on the same attributes, looked up by key and range, perhaps behind a
filter. A **sketch** is a cluster larger than the cache, in which the upper bits of codes are compared first. A **list**
has all rows of the same key, whose predicates are tested one by one. A **pool** has rows on attributes of few values,
matched by bitmaps. A **sieve** has rows of many ranges, matched by bitmaps of buckets and an exact test of the rest.
Rows on the same attributes are planned together, and get the layout with the least expected nanoseconds per event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels import rows as kernels
from harken.kernels.vector import ROWS
from harken.matchers.columnar.coded_rows import CodedRows, attribute_sets
from harken.matchers.columnar.columnar_settings import DEFAULT_SETTINGS, ColumnarSettings
from harken.matchers.columnar.costs import BITS_A_ROW, CLUSTER, LIST, SKETCH
from harken.matchers.columnar.pool_plan import PoolPlan, plan_pools
from harken.matchers.columnar.sieve_plan import SievePlan, plan_sieve
from harken.matchers.columnar.statistics import Frequencies

_COMPARED_BYTES = 8
"""Bytes of a slot in one compared column."""
_LINE_BOUNDS, _SEARCHED_LINES = 16, 4
"""Bounds per cache line, and cache lines read by a search through many bounds."""
_LOOKED_AT = 2
"""Of intervals whose lengths have the same number of bits, about twice as many are examined as match."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Rows with the same key and range: a cluster, a sketch or a list."""

    rows: NDArray[np.int64]
    layout: int
    columns: NDArray[np.int32]
    """For a cluster or a sketch: all columns that its rows test."""
    key: int
    bound: int
    bound_class: int
    filtered: NDArray[np.int32]
    """The columns of the filter besides the key: in each of them all rows test equality. Empty without a filter."""
    candidates: float
    """Expected number of slots examined per event."""
    cost: float
    """Expected nanoseconds per event."""
    size: int

    @property
    def is_within(self) -> bool:
        """Whether the range has two ends. Then it only narrows the slots to compare."""
        return self.bound_class >= kernels.WITHIN


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The layout of every row."""

    groups: list[GroupPlan] = field(default_factory=list)
    pools: list[PoolPlan] = field(default_factory=list)
    sieves: list[SievePlan] = field(default_factory=list)
    """At most one."""

    def without_rows(self) -> IndexPlan:
        """The choices without the rows, which are not needed once the index is built."""
        none = np.empty(0, np.int64)
        return IndexPlan(
            [replace(group, rows=none) for group in self.groups],
            [replace(pool, rows=none) for pool in self.pools],
            [replace(sieve, rows=none, layout_data=None) for sieve in self.sieves],
        )

    def to_dict(self) -> dict[str, Any]:
        """The choices as plain data, without the rows."""
        return {
            "groups": [_plain(group) for group in self.groups],
            "pools": [_plain(pool) for pool in self.pools],
            "sieves": [_plain(sieve) for sieve in self.sieves],
        }

    @classmethod
    def of_dict(cls, plain: Mapping[str, Any]) -> IndexPlan:
        """The choices that `to_dict` wrote."""
        return cls(
            [GroupPlan(**_arrays(group, "columns", "filtered")) for group in plain["groups"]],
            [PoolPlan(**_arrays(pool, "columns", "directory")) for pool in plain["pools"]],
            [SievePlan(**_arrays(sieve, "columns")) for sieve in plain["sieves"]],
        )


def _plain(choice: GroupPlan | PoolPlan | SievePlan) -> dict[str, Any]:
    values = {
        each.name: getattr(choice, each.name) for each in fields(choice) if each.name not in ("rows", "layout_data")
    }
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _arrays(choice: Mapping[str, Any], *names: str) -> dict[str, Any]:
    arrays = {name: np.array(choice[name], np.int32) for name in names}
    return {**choice, **arrays, "rows": np.empty(0, np.int64)}


def plan(rows: CodedRows, frequencies: Frequencies, settings: ColumnarSettings = DEFAULT_SETTINGS) -> IndexPlan:
    """The cheapest plan. If the settings allow only pools or sieves, rows that fit into none go into lists."""
    if not len(rows):
        return IndexPlan()
    leaders, set_of, sizes = attribute_sets(rows)
    keyed = _KeyedPlanner(rows, leaders, set_of, frequencies, settings)
    pooled, pools = plan_pools(
        rows, leaders, set_of, sizes, keyed.set_costs, frequencies, settings.costs, settings.layouts
    )
    sieved, sieves = plan_sieve(rows, set_of, sizes, keyed.set_costs, ~pooled, frequencies, settings)
    return IndexPlan(keyed.groups(~pooled & ~sieved), pools, sieves)


class _Filters(NamedTuple):
    """The filter columns of all groups, concatenated: those of group i end at ends[i]. Empty without a filter."""

    ends: NDArray[np.int64]
    columns: NDArray[np.int32]
    passing: NDArray[Any]
    """The share of events that pass the filter of each group."""

    def of(self, group: int) -> NDArray[np.int32]:
        return self.columns[self.ends[group - 1] if group else 0 : self.ends[group]]


class _Estimate(NamedTuple):
    """Estimates of groups of rows, each laid out as a cluster or a sketch."""

    cost: NDArray[Any]
    """Expected nanoseconds per event."""
    candidates: NDArray[Any]
    """Expected number of slots examined per event."""
    here: NDArray[Any]
    """The same for an event that has all attributes and passes the filter."""
    sketched: NDArray[np.bool_]
    filters: _Filters


class _KeyedPlanner:
    """Plans clusters, sketches and lists: key and range of every row, and the cost of the rows that share them."""

    def __init__(
        self,
        rows: CodedRows,
        leaders: NDArray[np.int64],
        set_of: NDArray[np.int64],
        frequencies: Frequencies,
        settings: ColumnarSettings,
    ) -> None:
        self._rows = rows
        shares = _shares(rows, frequencies)
        count = len(rows)
        self._key, self._bound = np.empty(count, np.int32), np.empty(count, np.int32)
        self._bound_class = np.empty(count, np.uint8)
        kernels.choose_keys(rows.starts, rows.columns, rows.classes, shares, self._key, self._bound, self._bound_class)
        self._frequencies, self._present = frequencies, frequencies.present()
        self._shares, self._set_of, self._settings = shares, set_of, settings
        self._costs, self._layouts = settings.costs, settings.layouts
        self._group_alike()
        if self._drop_ranges():
            self._group_alike()
        self.set_costs: NDArray[Any] = np.bincount(set_of[self._leaders], weights=self._cost, minlength=len(leaders))

    def _group_alike(self) -> None:
        """Group rows with the same attributes, key and range, and choose the layout of each group."""
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
        estimate = self._clustered(lead, self._cluster_of, self._counts, key, bound, bound_class)
        self._candidates, self._here, self._filters = estimate.candidates, estimate.here, estimate.filters
        key_share = _given(self._shares[kernels.POINT], key)
        self._tested = self._counts * np.where(key >= 0, key_share, self._bound_share(bound, bound_class))
        listed = self._tested * self._costs.list_slot
        is_listed = listed < estimate.cost
        if not {CLUSTER, SKETCH} & set(self._layouts):
            is_listed[:] = True
        elif LIST not in self._layouts:
            is_listed[:] = False
        self._layout = np.where(is_listed, LIST, np.where(estimate.sketched, SKETCH, CLUSTER))
        self._cost = np.where(is_listed, listed, estimate.cost)

    def _clustered(
        self,
        lead: NDArray[np.int64],
        group_of: NDArray[np.int64],
        counts: NDArray[np.int64],
        key: NDArray[np.int32],
        bound: NDArray[np.int32],
        bound_class: NDArray[np.uint8],
    ) -> _Estimate:
        """Estimates of groups: `lead` has a row of each, `counts` their sizes, `group_of` the group of every row."""
        rows, costs = self._rows, self._costs
        chance = self._frequencies.together(rows, lead)
        # From here on, shares are conditional on the event having the attributes.
        keyed = counts * (_given(self._shares[kernels.POINT], key) / _given(self._present, key))
        here = keyed * (self._bound_share(bound, bound_class) / _given(self._present, bound))
        is_settled = (bound >= 0) & (bound_class < kernels.WITHIN)
        rest = rows.lengths[lead] - (key >= 0) - is_settled
        # Slots left by a sketch are scattered over the run, so long runs are not sketched. Nor are runs narrowed by an
        # interval with two ends: all their slots would be left.
        is_within = (bound >= 0) & (bound_class >= kernels.WITHIN)
        is_short = (here <= self._settings.most_sifted) & ~is_within
        sketched = (counts * rest * _COMPARED_BYTES > self._settings.cached_bytes) & is_short
        if CLUSTER not in self._layouts or SKETCH not in self._layouts:
            sketched[:] = SKETCH in self._layouts
        lines = rest * (here / ROWS + 1) + np.where(bound >= 0, np.minimum(keyed / _LINE_BOUNDS, _SEARCHED_LINES), 0)
        slot = np.where(sketched, costs.sketched, np.where(is_within, costs.within_slot, costs.slot))
        compared = here * rest * slot
        if is_within.any():
            compared += is_within * counts * self._passing(lead) * costs.passed
        filters = self._filters_of(lead, group_of, key, keyed)
        looked_at = filters.passing * (compared + sketched * (1 + lines) * costs.line)
        cost = costs.cluster + chance * (costs.look_up + looked_at)
        return _Estimate(cost, here * chance * filters.passing, here, sketched, filters)

    def _passing(self, lead: NDArray[np.int64]) -> NDArray[Any]:
        """The selectivity of each of these rows among the events that have its columns."""
        rows = self._rows
        lengths = rows.lengths[lead]
        at = np.repeat(rows.starts[lead] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        columns, classes = rows.columns[at], rows.classes[at]
        share = self._shares[classes, columns] / np.maximum(self._present[columns], 1e-9)
        share = np.where(classes >= kernels.WITHIN, share / _LOOKED_AT, share)
        owner = np.repeat(np.arange(len(lead)), lengths)
        return np.exp(np.bincount(owner, np.log(np.clip(share, 1e-9, 1)), minlength=len(lead)))

    def _filters_of(
        self, lead: NDArray[np.int64], group_of: NDArray[np.int64], key: NDArray[np.int32], keyed: NDArray[Any]
    ) -> _Filters:
        """The filters of groups. `keyed` is the expected number of rows with the key of an event."""
        rows = self._rows
        lengths = rows.lengths[lead]
        ends = np.cumsum(lengths)
        is_point = np.empty(int(lengths.sum()), np.bool_)
        kernels.mark_points(rows.starts, rows.classes, group_of, ends - lengths, is_point)
        owner = np.repeat(np.arange(len(lead)), lengths)
        columns = rows.columns[np.arange(len(owner)) + (rows.starts[lead] - (ends - lengths))[owner]]
        is_point &= (columns != key[owner]) & (key[owner] >= 0)
        agreeing = _given(self._shares[kernels.POINT], columns) / _given(self._present, columns)
        agreeing = keyed * np.exp(np.bincount(owner, np.where(is_point, np.log(agreeing), 0), minlength=len(lead)))
        is_point &= (agreeing < self._settings.filter_below)[owner]
        counts = np.bincount(owner[is_point], minlength=len(lead))
        # An event passes if any row agrees with it. The number of such rows is taken to be Poisson-distributed.
        passing = np.where(counts > 0, np.minimum(1 / BITS_A_ROW - np.expm1(-agreeing), 1), 1)
        return _Filters(np.cumsum(counts), columns[is_point], passing)

    def _bound_share(self, bound: NDArray[np.int32], bound_class: NDArray[np.uint8]) -> NDArray[Any]:
        return np.where(bound >= 0, np.maximum(self._shares[bound_class, bound], 1e-9), 1.0)

    def _drop_ranges(self) -> bool:
        """Drop the range of rows for which one group per key is cheaper than one per range. Their ranges are compared.

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
        group_of = together[self._cluster_of]
        cost = self._clustered(lead[first], group_of, counts, key[first], none, np.zeros(len(first), np.uint8)).cost
        apart = np.bincount(together, weights=self._cost)
        dropped = ((key[first] >= 0) & (ways > 1) & (cost < apart))[group_of]
        self._bound[dropped], self._bound_class[dropped] = -1, 0
        return bool(dropped.any())

    def groups(self, wanted: NDArray[np.bool_]) -> list[GroupPlan]:
        """The clusters, sketches and lists of the wanted rows."""
        chosen = np.flatnonzero(wanted)
        layout = self._layout[self._cluster_of]
        # A list is by key alone, or by range without a key, so several groups may become one list.
        width = len(self._rows.tops) + 1
        listed = np.where(
            self._key >= 0,
            self._key.astype(np.int64) + 1,
            ((self._bound.astype(np.int64) + 1) * kernels.CLASSES + self._bound_class) * width,
        )
        group = np.where(layout == LIST, -1 - listed, self._cluster_of)[chosen]
        order = np.argsort(group, kind="stable")
        bounds = np.flatnonzero(np.diff(group[order], prepend=group[order[0]] - 1 if len(order) else 0))
        if not len(chosen):
            return []
        return [self._group(chosen[places]) for places in np.split(order, bounds[1:])]

    def _group(self, members: NDArray[np.int64]) -> GroupPlan:
        first = int(members[0])
        cluster = self._cluster_of[first]
        layout = int(self._layout[cluster])
        filtered = np.empty(0, np.int32)
        key, bound, bound_class = int(self._key[first]), int(self._bound[first]), int(self._bound_class[first])
        if layout != LIST:
            columns, filtered = self._rows.columns_of(first), self._filters.of(cluster)
            candidates, cost = self._candidates[cluster], self._cost[cluster]
        else:
            if key >= 0:
                bound = -1
            columns = np.array([each for each in (key, bound) if each >= 0], np.int32)
            part = self._cluster_of[members]
            candidates = (self._tested[part] / self._counts[part]).sum()
            cost = (self._cost[part] / self._counts[part]).sum()
        return GroupPlan(
            members, layout, columns, key, bound, bound_class, filtered, float(candidates), float(cost), len(members)
        )


def _given(shares: NDArray[Any], columns: NDArray[np.int32]) -> NDArray[Any]:
    """The shares of these columns; 1 for column -1."""
    if not len(shares):
        return np.ones(len(columns))
    return np.where(columns >= 0, np.maximum(shares[columns], 1e-9), 1.0)


def _shares(rows: CodedRows, frequencies: Frequencies) -> NDArray[np.float32]:
    """The mean selectivity of predicates, by class and column.

    For intervals with two ends: the share of intervals of the class that are examined.
    """
    shape = kernels.CLASSES, max(1, len(rows.tops))  # at least one column, so that indexing is never out of bounds
    sums, counts = np.zeros(shape), np.zeros(shape, np.int64)
    kernels.mean_shares(
        rows.starts,
        rows.columns,
        rows.low,
        rows.high,
        rows.classes,
        frequencies.cumulative,
        frequencies.starts,
        sums,
        counts,
    )
    mean = (sums / np.maximum(counts, 1)).astype(np.float32)
    mean[kernels.WITHIN :] *= _LOOKED_AT
    return mean
