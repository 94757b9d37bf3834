"""Building a sieve: the buckets of its columns, the order of its rows, its blocks and their bitmaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels import sieve as layout
from harken.kernels import sieve_building as building
from harken.kernels.pool import BLOCK, WORDS
from harken.kernels.vector import aligned
from harken.matchers.columnar.coded_rows import CodedRows
from harken.matchers.columnar.columnar_settings import ColumnarSettings
from harken.matchers.columnar.statistics import Frequencies

_UNUSED = np.empty(0, np.int64)


class CodeBuckets(NamedTuple):
    """The codes of columns divided into buckets, and the buckets of the bounds of predicates."""

    columns: NDArray[np.int32]
    """All columns that the rows test."""
    places: NDArray[np.int64]
    """By column, its place in `columns`, or -1."""
    cut_starts: NDArray[np.int64]
    cuts: NDArray[np.uint32]
    is_whole: NDArray[np.uint8]
    """As in `Sieve`."""
    whole_of: NDArray[np.bool_]
    """By place and bucket."""
    below: NDArray[np.float64]
    """By place and bucket, the share of events below the bucket; 1 behind the last."""
    first: NDArray[np.uint8]
    last: NDArray[np.uint8]
    """The buckets of the lowest and the highest code of each predicate."""


class Blocks(NamedTuple):
    """The columns with bitmaps of each block, and estimates of each block."""

    columns: NDArray[np.int32]
    ends: NDArray[np.int64]
    expected: NDArray[np.float64]
    """By block: the share of events that examine it, the number of slots left then, and the share of these in doubt."""


def buckets_of(
    rows: CodedRows, members: NDArray[np.int64], frequencies: Frequencies, settings: ColumnarSettings
) -> CodeBuckets:
    """The buckets for these rows. A column that few rows test has fewer: its bitmaps take as much memory as others."""
    width = len(rows.tops)
    code_starts = np.zeros(width + 1, np.int64)
    np.cumsum(rows.tops + 2, out=code_starts[1:])
    counts, asking = np.zeros(code_starts[-1], np.int32), np.zeros(width, np.int64)
    building.count_cuts(rows.starts, rows.columns, rows.low, rows.high, members, rows.tops, code_starts, counts, asking)
    columns = np.flatnonzero(asking).astype(np.int32)
    places = np.full(width, -1, np.int64)
    places[columns] = np.arange(len(columns))
    bucket_of = np.empty(code_starts[-1], np.uint8)
    below = np.ones((len(columns), layout.MOST_BUCKETS + 1))
    whole_of = np.ones((len(columns), layout.MOST_BUCKETS), np.bool_)
    cuts = [np.empty(0, np.uint32)] * width
    is_whole = [np.ones(1, np.uint8)] * width
    for place, column in enumerate(columns.tolist()):
        wanted = round(settings.buckets_an_asking * asking[column] / len(members))
        most = min(settings.most_buckets, max(settings.least_buckets, wanted))
        chosen, whole = np.empty(most, np.uint32), np.ones(most + 1, np.uint8)
        begin, end = code_starts[column], code_starts[column + 1] - 1
        count = building.choose_cuts(counts[begin:end], most, chosen, whole)
        cuts[column], is_whole[column] = chosen[:count], whole[: count + 1]
        building.number_buckets(cuts[column], bucket_of[begin:end])
        shares = frequencies.cumulative[frequencies.starts[column] : frequencies.starts[column + 1]]
        below[place, 0], below[place, 1] = 0, shares[1]
        below[place, 2 : count + 2] = shares[cuts[column]]
        whole_of[place, 1 : count + 2] = is_whole[column]
    first, last = np.empty(len(rows.columns), np.uint8), np.empty(len(rows.columns), np.uint8)
    building.place_bounds(rows.starts, rows.columns, rows.low, rows.high, members, code_starts, bucket_of, first, last)
    cut_starts = np.zeros(width + 1, np.int64)
    np.cumsum([len(each) for each in cuts], out=cut_starts[1:])
    return CodeBuckets(
        columns,
        places,
        cut_starts,
        np.concatenate([np.empty(0, np.uint32), *cuts]),
        np.concatenate([np.empty(0, np.uint8), *is_whole]),
        whole_of,
        below,
        first,
        last,
    )


def sorted_rows(rows: CodedRows, members: NDArray[np.int64], buckets: CodeBuckets) -> NDArray[np.int64]:
    """The rows in the order of their slots."""
    order = members.copy()
    building.sort_rows(
        rows.starts, rows.columns, rows.low, rows.high, buckets.first, buckets.last, buckets.places, buckets.below,
        order,
    )  # fmt: skip
    return order


def blocks_of(rows: CodedRows, order: NDArray[np.int64], buckets: CodeBuckets, settings: ColumnarSettings) -> Blocks:
    """The blocks of rows in this order."""
    blocks = -(-len(order) // BLOCK)
    columns, ends = np.empty(blocks * len(buckets.columns), np.int32), np.zeros(blocks, np.int64)
    expected = np.empty((blocks, 3))
    building.choose_columns(
        rows.starts, rows.columns, rows.low, rows.high, buckets.first, buckets.last, buckets.places, buckets.below,
        buckets.whole_of, order, settings.costs.sieved, settings.costs.sieve_bitmap, columns, ends, expected,
    )  # fmt: skip
    return Blocks(columns[: ends[-1]] if blocks else columns, ends, expected)


def build_sieve(
    rows: CodedRows, order: NDArray[np.int64], layout_data: tuple[CodeBuckets, Blocks] | None, first_slot: int
) -> tuple[layout.Sieve, NDArray[np.int64]]:
    """The sieve of rows in this order, and the row of every slot from `first_slot` on, -1 for unused slots.

    The sieve is empty without `layout_data`.
    """
    if layout_data is None:
        return _empty(len(rows.tops), first_slot), order
    buckets, chosen = layout_data
    blocks, words = len(chosen.ends), (np.diff(buckets.cut_starts) + 2) * WORDS
    sizes = words[chosen.columns]
    block_bitmaps = np.cumsum(sizes) - sizes
    summed = -(-blocks // BLOCK)
    summary_words = words[buckets.columns]
    summary_bitmaps = (
        np.arange(summed)[:, None] * summary_words.sum() + np.cumsum(summary_words) - summary_words
    ).astype(np.int64)
    summary_places = np.full((summed, len(rows.tops)), -1, np.int64)
    summary_places[:, buckets.columns] = summary_bitmaps
    summaries = aligned(int(summary_words.sum()) * summed, np.uint64)
    # Bits beyond the last block stay clear.
    is_block = np.arange(summed * BLOCK) < blocks
    summaries.reshape(summed, -1, WORDS)[:] = (
        np.packbits(is_block, bitorder="little").view(np.uint64).reshape(summed, 1, WORDS)
    )
    block_starts = np.concatenate([[0], chosen.ends]).astype(np.int64)
    bitmaps, in_doubt = aligned(int(sizes.sum()), np.uint64), np.zeros(blocks * WORDS, np.uint64)
    building.fill_blocks(
        rows.starts, rows.columns, rows.low, rows.high, buckets.first, buckets.last, order, buckets.cut_starts,
        block_starts, chosen.columns, block_bitmaps, summary_places, np.full(len(rows.tops), -1, np.int64), bitmaps,
        in_doubt, summaries,
    )  # fmt: skip
    slots = np.full(blocks * BLOCK, -1, np.int64)
    slots[: len(order)] = order
    row_starts = np.empty(len(slots) + 1, np.int64)
    predicates = np.empty(int(rows.lengths[order].sum()) * layout.PREDICATE, np.uint32)
    building.copy_rows(rows.starts, rows.columns, rows.low, rows.high, order, row_starts, predicates)
    block_slots = np.minimum(len(order) - np.arange(blocks) * BLOCK, BLOCK).astype(np.int32)
    built = layout.Sieve(
        first_slot, buckets.columns, buckets.cut_starts, buckets.cuts, buckets.is_whole, summary_bitmaps.ravel(),
        summaries, block_starts, chosen.columns, block_bitmaps, block_slots, bitmaps, in_doubt, row_starts, predicates,
    )  # fmt: skip
    return built, slots


def _empty(width: int, first_slot: int) -> layout.Sieve:
    words, numbers, codes = np.empty(0, np.uint64), np.empty(0, np.int32), np.empty(0, np.uint32)
    return layout.Sieve(
        first_slot, numbers, np.zeros(width + 1, np.int64), codes, np.empty(0, np.uint8), _UNUSED, words,
        np.zeros(1, np.int64), numbers, _UNUSED, numbers, words, words, np.zeros(1, np.int64), codes,
    )  # fmt: skip
