"""Building pools: sort the rows into cells, cut them into blocks, and slice each block into bitmaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels import pool as layout
from harken.kernels import pool_building as building
from harken.kernels import rows as kernels
from harken.kernels.vector import aligned
from harken.matchers.columnar.coded_rows import CodedRows
from harken.matchers.columnar.pool_plan import MOST_CODES, PoolPlan


class _PoolLayout(NamedTuple):
    """The layout of one pool. Slots and ends count from its start."""

    order: NDArray[np.int64]
    plan: PoolPlan
    radix: NDArray[np.int64]
    cell_starts: NDArray[np.int64]
    block_columns: NDArray[np.int32]
    block_ends: NDArray[np.int64]


class CodeClasses(NamedTuple):
    """By column, classes of codes: all pooled rows treat the codes of a class alike."""

    class_starts: NDArray[np.int64]
    classes: NDArray[np.uint8]
    counts: NDArray[np.int64]
    code_starts: NDArray[np.int64]
    codes: NDArray[np.uint32]
    """One code of each class of a column."""


def build_pools(rows: CodedRows, plans: list[PoolPlan], first_slot: int) -> tuple[layout.Pools, NDArray[np.int64]]:
    """The pools, and the row of every slot from `first_slot` on, -1 for unused slots."""
    pool_layouts = [_lay_out(rows, plan) for plan in plans]
    classes = _code_classes(rows, pool_layouts)
    blocks = [len(pool.block_ends) for pool in pool_layouts]
    order = np.full(sum(blocks) * layout.BLOCK, -1, np.int64)
    headers: list[tuple[int, ...]] = []
    directory: list[NDArray[np.int32]] = []
    columns: list[NDArray[np.int32]] = []
    radix: list[NDArray[np.int64]] = []
    cell_starts: list[NDArray[np.int64]] = []
    block = cell = 0
    for pool, count in zip(pool_layouts, blocks, strict=True):
        begin = block * layout.BLOCK
        order[begin : begin + len(pool.order)] = pool.order
        headers.append(
            (
                block,
                block + count,
                cell,
                len(pool.cell_starts) - 1,
                sum(map(len, directory)),
                len(pool.plan.directory),
                sum(map(len, columns)),
                len(pool.plan.columns),
            )
        )
        directory.append(pool.plan.directory)
        radix.append(pool.radix)
        columns.append(pool.plan.columns)
        cell_starts.append(pool.cell_starts + begin)
        block, cell = block + count, cell + len(pool.cell_starts)
    block_columns = _joined([pool.block_columns for pool in pool_layouts], np.int32)
    sizes = classes.counts[block_columns] * layout.WORDS
    block_bitmaps = np.cumsum(sizes) - sizes
    bitmaps = aligned(int(sizes.sum()), np.uint64)
    block_slots = (order.reshape(-1, layout.BLOCK) >= 0).sum(axis=1).astype(np.int32)
    pools = layout.Pools(
        np.array(headers, np.int64).reshape(-1, layout.POOL_FIELDS),
        first_slot,
        classes.class_starts,
        classes.classes,
        _joined_ends([pool.block_ends for pool in pool_layouts]),
        block_columns,
        block_bitmaps,
        block_slots,
        bitmaps,
        _joined(columns, np.int32),
        _joined(directory, np.int32),
        _joined(radix, np.int64),
        _joined(cell_starts, np.int64),
    )
    _fill(rows, pools, classes, order)
    return pools, order


def _lay_out(rows: CodedRows, plan: PoolPlan) -> _PoolLayout:
    bases = rows.tops[plan.directory] // 2 + 1
    radix = np.append(np.cumprod(bases[::-1])[-2::-1], 1).astype(np.int64)[: len(bases)]
    members = plan.rows
    cells = np.zeros(len(members), np.int64)
    points = np.where(rows.classes == kernels.POINT, rows.low, np.uint32(0))
    building.cell_numbers(rows.starts, rows.columns, points, members, plan.directory, radix, cells)
    leading = np.empty(len(members), np.uint64)
    is_led = np.zeros(len(rows.tops), np.bool_)
    is_led[plan.directory] = True
    building.leading_codes(rows.starts, rows.columns, rows.low, rows.high, points, rows.tops, members, is_led, leading)
    order = np.lexsort((leading, _by_rarest_column(rows, members, plan), cells))
    members, cells = members[order], cells[order]
    count = int(np.prod(bases))
    cell_starts = np.searchsorted(cells, np.arange(count + 1))
    blocks = -(-len(members) // layout.BLOCK)
    room = blocks * len(plan.columns)
    block_columns, block_ends = np.empty(room, np.int32), np.empty(blocks, np.int64)
    building.choose_block_columns(
        rows.starts, rows.columns, members, cells, plan.directory, radix, bases, np.empty(len(rows.tops), np.int64),
        block_columns, block_ends,
    )  # fmt: skip
    return _PoolLayout(members, plan, radix, cell_starts, block_columns[: block_ends[-1]], block_ends)


def _by_rarest_column(rows: CodedRows, members: NDArray[np.int64], plan: PoolPlan) -> NDArray[np.uint64]:
    """A sort key that moves rows with rare columns to the end, so that most blocks need few bitmaps."""
    popularity = np.zeros(len(rows.tops), np.int64)
    kernels.count_columns(rows.starts, rows.columns, members, popularity)
    popularity[plan.directory] = np.iinfo(np.int64).max
    rank = np.empty(len(popularity), np.int64)
    rank[np.argsort(-popularity, kind="stable")] = np.arange(len(popularity))
    result = np.empty(len(members), np.uint64)
    kernels.column_bits(rows.starts, rows.columns, members, np.minimum(rank, 63), result)
    return result


def _code_classes(rows: CodedRows, pool_layouts: list[_PoolLayout]) -> CodeClasses:
    width = len(rows.tops)
    starts, code_starts, counts = np.zeros(width, np.int64), np.zeros(width, np.int64), np.zeros(width, np.int64)
    classes: list[NDArray[np.uint8]] = []
    codes: list[NDArray[np.uint32]] = []
    columns = np.unique(_joined([pool.plan.columns for pool in pool_layouts], np.int32))
    place = np.zeros(width, np.int64)
    place[columns] = np.arange(len(columns))
    is_tested = np.zeros((len(columns), MOST_CODES, MOST_CODES), np.bool_)
    for pool in pool_layouts:
        kernels.mark_asked(rows.starts, rows.columns, rows.low, rows.high, pool.order, place, is_tested)
    for column in columns:
        every = int(rows.tops[column]) + 1
        class_of, firsts = np.empty(every, np.uint8), np.empty(every, np.int64)
        count = kernels.classify_codes(is_tested[place[column]], class_of, firsts)
        starts[column], code_starts[column] = sum(map(len, classes)), sum(map(len, codes))
        counts[column] = count
        classes.append(class_of)
        codes.append(firsts[:count].astype(np.uint32))
    return CodeClasses(starts, _joined(classes, np.uint8), counts, code_starts, _joined(codes, np.uint32))


def _fill(rows: CodedRows, pools: layout.Pools, classes: CodeClasses, order: NDArray[np.int64]) -> None:
    for header in pools.pools:
        first, last = header[layout.BLOCK_START], header[layout.BLOCK_END]
        taken = order[first * layout.BLOCK : last * layout.BLOCK]
        building.fill_bitmaps(
            rows.starts, rows.columns, rows.low, rows.high, taken[taken >= 0],
            pools.block_starts[first : last + 1], pools.block_columns, pools.block_bitmaps, classes.counts,
            classes.code_starts, classes.codes, np.empty(len(rows.tops), np.int64), pools.bitmaps,
        )  # fmt: skip


def _joined(parts: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts).astype(kind) if parts else np.empty(0, kind)


def _joined_ends(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Turn ends that count from the start of each part into starts that count from the first part."""
    lengths = [0, *(int(part[-1]) for part in parts)]
    before = np.cumsum(lengths)
    return np.concatenate([[0], *(part + start for part, start in zip(parts, before[:-1], strict=True))]).astype(
        np.int64
    )
