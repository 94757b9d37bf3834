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
"""Maximum number of directories for rows that share columns. Each is chosen among all columns, which takes time."""
_LEAST_DIVIDED = 16 * BLOCK
"""A pool of fewer rows is not divided: searching it is quick."""
_SAMPLED_ROWS = 20_000
_LEAST_REACH = 1e-6


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The bit-sliced rows of a pool, all columns that they test, and the columns of the directory."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    directory: NDArray[np.int32]
    reach: float
    """The approximate share of events that have a column of the pool. Others skip the pool."""
    visited: float
    """The expected share of rows that such an event examines."""
    cost: float
    size: int


def plan_pools(
    rows: CodedRows,
    leaders: NDArray[np.int64],
    set_of: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keyed_costs: NDArray[Any],
    frequencies: Frequencies,
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
        pool = _directory(rows, members, frequencies, costs)
        for _ in range(2):  # the sets that leave the pool may change the directory
            per_row = pool.reach * pool.visited * (costs.block + costs.bitmap * rows.lengths[leaders]) / BLOCK
            kept = inside & (only | (sizes * per_row < keyed_costs))
            members = np.flatnonzero(kept[set_of])
            if len(members) in (0, pool.size):
                break
            pool = _directory(rows, members, frequencies, costs)
        if len(members):
            is_pooled |= kept
            pools.extend(_divided(rows, pool, frequencies, costs))
    return is_pooled[set_of], pools


def _components(rows: CodedRows, leaders: NDArray[np.int64]) -> NDArray[np.int64]:
    """The component of each column. Columns tested by one row, directly or through others, share a component."""
    parent = np.arange(len(rows.tops))
    kernels.join_columns(rows.starts, rows.columns, leaders, parent)
    return parent


def _divided(
    rows: CodedRows, whole: PoolPlan, frequencies: Frequencies, costs: Costs, most: int = _MOST_DIRECTORIES
) -> list[PoolPlan]:
    """Divide a pool: rows without an equality on the columns of the directory get a directory of their own."""
    if most == 1 or whole.size < _LEAST_DIVIDED:
        return [whole]
    members = whole.rows
    points = np.where(rows.classes == kernels.POINT, rows.low, np.uint32(0))
    cells = np.empty(len(members), np.int64)
    cell_numbers(
        rows.starts, rows.columns, points, members, whole.directory, np.ones(len(whole.directory), np.int64), cells
    )
    is_listed = cells > 0
    if is_listed.all() or not is_listed.any():
        return [whole]
    others = _divided(rows, _directory(rows, members[~is_listed], frequencies, costs), frequencies, costs, most - 1)
    if not len(others[0].directory):
        return [whole]
    # In the undivided pool every event examines all rows without such an equality.
    share = float(is_listed.mean())
    examined = max(0.0, whole.visited - (1 - share))
    first = replace(
        whole,
        rows=members[is_listed],
        visited=examined / share,
        cost=whole.cost * examined / whole.visited,
        size=int(is_listed.sum()),
    )
    return [first, *others]


def _directory(rows: CodedRows, members: NDArray[np.int64], frequencies: Frequencies, costs: Costs) -> PoolPlan:
    """A pool of these rows with the directory of least expected cost, chosen greedily on a sample of rows."""
    step = max(1, len(members) // _SAMPLED_ROWS)
    sample = members[::step]
    weight = np.ones(len(sample))
    scale = len(members) / len(sample)
    per_block = costs.block + costs.bitmap * float(rows.lengths[sample].mean())
    used = np.zeros(len(rows.tops), np.bool_)
    kernels.mark_columns(rows.starts, rows.columns, members, used)
    columns = np.flatnonzero(used).astype(np.int32)
    points = np.where(rows.classes == kernels.POINT, rows.low, np.uint32(0))
    reach = max(float(frequencies.present()[columns].max()), _LEAST_REACH)
    shares_of = _point_shares(rows, points, sample, columns, frequencies, reach)
    selective = [column for column, shares in shares_of.items() if (shares < 1).any()]
    directory: list[int] = []
    cells, combinations = 1, 1.0
    best = scale * len(sample) / BLOCK * per_block
    while True:
        options = []
        for column in selective:
            more = cells * (int(rows.tops[column]) // 2 + 1)
            if column in directory or more > min(_MOST_CELLS, max(16, len(members) // 64)):
                continue
            visited = scale * float((weight * shares_of[column]).sum())
            looked_up = combinations * 2
            options.append((looked_up * (costs.cell + per_block) + visited / BLOCK * per_block, column, more))
        if not options or min(options)[0] >= best:
            break
        best, column, cells = min(options)
        directory.append(column)
        combinations *= 2
        weight = weight * shares_of[column]
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
    points: NDArray[np.uint32],
    sample: NDArray[np.int64],
    columns: NDArray[np.int32],
    frequencies: Frequencies,
    reach: float,
) -> dict[int, NDArray[np.float32]]:
    """By column, the selectivity of the equality of each sampled row, among the events within reach; 1 without one."""
    place = np.zeros(len(rows.tops), np.int64)
    place[columns] = np.arange(len(columns))
    codes = np.zeros((len(columns), len(sample)), np.uint32)
    kernels.spread_codes(rows.starts, rows.columns, points, sample, place, codes)
    shares_of = {}
    for column, row_codes in zip(columns.tolist(), codes, strict=True):
        shares = np.minimum(frequencies.of(column) / reach, 1)
        shares[0] = 1
        shares_of[column] = shares[row_codes]
    return shares_of
