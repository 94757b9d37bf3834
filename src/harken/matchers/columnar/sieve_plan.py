"""Planning a sieve: which rows are matched by coarse bitmaps and an exact test of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels.pool import BLOCK
from harken.kernels.sieve import FEW
from harken.matchers.columnar.coded_rows import CodedRows
from harken.matchers.columnar.columnar_settings import ColumnarSettings
from harken.matchers.columnar.costs import SIEVE, Costs
from harken.matchers.columnar.sieves import Blocks, CodeBuckets, blocks_of, buckets_of, sorted_rows
from harken.matchers.columnar.statistics import Frequencies

_ROUNDS = 2
"""Number of planning rounds. Rows that leave the sieve change the cost of the others."""


@dataclass(frozen=True, slots=True)
class SievePlan:
    """The rows of a sieve, in the order of their slots, and all columns that they test."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    live: float
    """The expected share of its blocks that an event examines."""
    tested: float
    """Expected number of slots tested per event."""
    cost: float
    size: int
    layout_data: tuple[CodeBuckets, Blocks] | None = None
    """What it is built from. Dropped after building."""


def plan_sieve(
    rows: CodedRows,
    set_of: NDArray[np.int64],
    sizes: NDArray[np.int64],
    keyed_costs: NDArray[Any],
    left: NDArray[np.bool_],
    frequencies: Frequencies,
    settings: ColumnarSettings,
) -> tuple[NDArray[np.bool_], list[SievePlan]]:
    """Which of the rows in `left` go into a sieve, and its plan if any do.

    Rows on the same columns form a set and stay together. `sizes` and `keyed_costs` are those of sets in other layouts.
    """
    nothing = np.zeros(len(rows), np.bool_)
    if SIEVE not in settings.layouts:
        return nothing, []
    is_only = settings.layouts == (SIEVE,)
    costs = settings.costs
    elsewhere = keyed_costs / np.maximum(sizes, 1)
    chosen = left & (rows.lengths > 0)
    if not is_only:
        chosen &= (elsewhere > costs.least_sieved)[set_of]
    best, best_cost = None, float(keyed_costs.sum())
    for _ in range(_ROUNDS):
        members = np.flatnonzero(chosen)
        if not len(members):
            break
        buckets = buckets_of(rows, members, frequencies, settings)
        order = sorted_rows(rows, members, buckets)
        blocks = blocks_of(rows, order, buckets, settings)
        fixed, per_block, tested = _expected(buckets, blocks, costs)
        cost = fixed + float(per_block.sum())
        taken = np.bincount(set_of[members], minlength=len(sizes)) > 0
        whole = cost + float(keyed_costs[~taken].sum())
        if is_only or whole < best_cost:
            live = float(blocks.expected[:, 0].mean())
            layout_data = buckets, blocks
            best_cost = whole
            best = SievePlan(order, buckets.columns, live, float(tested.sum()), cost, len(order), layout_data)
        per_row = np.zeros(len(rows))
        per_row[order] = np.repeat(per_block / BLOCK, BLOCK)[: len(order)]
        here = np.bincount(set_of, weights=per_row, minlength=len(sizes))
        kept = chosen & (here < keyed_costs)[set_of]
        if is_only or kept.sum() == len(members):
            break
        chosen = kept
    if best is None:
        return nothing, []
    is_sieved = nothing.copy()
    is_sieved[best.rows] = True
    return is_sieved, [best]


def _expected(buckets: CodeBuckets, blocks: Blocks, costs: Costs) -> tuple[float, NDArray[Any], NDArray[Any]]:
    """Expected nanoseconds per event for the whole sieve and for each block, and the slots tested in each block."""
    live, left, doubt = blocks.expected.T
    bitmaps = np.diff(blocks.ends, prepend=0)
    is_dense = left > FEW
    tested = live * np.where(is_dense, left * doubt, left)
    per_block = live * (costs.sieve_block + bitmaps * (1 + 2 * is_dense) * costs.sieve_bitmap) + tested * costs.sieved
    summaries = -(-len(blocks.ends) // BLOCK)
    return len(buckets.columns) * (costs.bucket + summaries * costs.bitmap), per_block, tested
