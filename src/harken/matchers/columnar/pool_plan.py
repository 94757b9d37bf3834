"""Planning pools: which rows are bit-sliced, and by which columns a directory leads to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels import rows as kernels
from harken.kernels.pool import BLOCK
from harken.kernels.pool_building import cell_numbers
from harken.matchers.columnar.coded_rows import CodedRows
from harken.matchers.columnar.costs import POOL, Costs
from harken.matchers.columnar.statistics import Frequencies

MOST_CODES = 128
"""A column with more codes than this is not bit-sliced: its bitmaps would take more memory than they save time."""
_MOST_CELLS = 1 << 16
_MOST_DIRECTORIES = 4
"""Each is looked for among all columns, which takes time: so many for rows that share columns."""
_LEAST_DIVIDED = 16 * BLOCK
"""A pool of fewer rows is looked at in no time."""
_SAMPLED_ROWS = 20_000
_LEAST_REACH = 1e-6


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


def plan_pools(
    rows: CodedRows,
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


def _components(rows: CodedRows, leaders: NDArray[np.int64]) -> NDArray[np.int64]:
    """By column, a number that it shares with all columns that are asked for together with it, over corners too."""
    parent = np.arange(len(rows.tops))
    kernels.join_columns(rows.starts, rows.columns, leaders, parent)
    return parent


def _divided(
    rows: CodedRows, whole: PoolPlan, known: Frequencies, costs: Costs, most: int = _MOST_DIRECTORIES
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


def _directory(rows: CodedRows, members: NDArray[np.int64], known: Frequencies, costs: Costs) -> PoolPlan:
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
    points = _point_shares(rows, asked, sample, columns, known, reach)
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
    rows: CodedRows,
    asked: NDArray[np.uint32],
    sample: NDArray[np.int64],
    columns: NDArray[np.int32],
    known: Frequencies,
    reach: float,
) -> dict[int, NDArray[np.float32]]:
    """By column, for each row of the sample the share, of the events within reach, that its equality lets through.

    1 without one.
    """
    place = np.zeros(len(rows.tops), np.int64)
    place[columns] = np.arange(len(columns))
    codes = np.zeros((len(columns), len(sample)), np.uint32)
    kernels.spread_codes(rows.starts, rows.columns, asked, sample, place, codes)
    found = {}
    for column, own in zip(columns.tolist(), codes, strict=True):
        shares = np.minimum(known.of(column) / reach, 1)
        shares[0] = 1
        found[column] = shares[own]
    return found
