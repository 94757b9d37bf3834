"""The counting kernel against looking at every row, through the index that feeds it."""

from __future__ import annotations

import numpy as np
import pytest

from harken.matchers.counting_lists import CountingIndex
from harken.schema import Kind
from harken.segments.columns import Column
from harken.segments.conjunctions import CodedPredicates, Conjunctions
from harken.segments.dictionary import dictionary_of
from harken.segments.encode import EncodedBatch

CONSTANTS = 6
TOP = 2 * CONSTANTS + 1


def conjunctions(rng: np.random.Generator, rows: int, columns: int, share: float = 0.5) -> Conjunctions:
    """Rows with intervals of all sorts: points, one end, two ends, wrapped, any value."""
    predicates = []
    for column in range(columns):
        held = np.flatnonzero(rng.random(rows) < share).astype(np.int32)
        ends = rng.integers(1, TOP + 1, (2, len(held))).astype(np.uint32)
        sort = rng.integers(0, 6, len(held))
        low, high = np.sort(ends, axis=0)
        low = np.where(sort == 0, high, low)
        low, high = np.where(sort == 1, 1, low), np.where(sort == 2, TOP, high)
        constant = 2 * rng.integers(0, CONSTANTS, len(held)) + 2
        low, high = np.where(sort == 3, constant + 1, low), np.where(sort == 3, constant - 1, high)
        swapped = (sort == 4) & (low < high)
        low, high = np.where(swapped, high, low), np.where(swapped, low, high)
        at = Column((f"a{column}",), Kind.NUMBER)
        dictionary, _ = dictionary_of(at, np.arange(CONSTANTS))
        predicates.append(CodedPredicates(at, dictionary, held, low.astype(np.uint32), high.astype(np.uint32)))
    return Conjunctions(rng.permutation(rows).astype(np.int32), tuple(predicates), np.zeros(rows, np.bool_))


def admitted(rows: Conjunctions, codes_of: list[np.ndarray]) -> np.ndarray:
    """The rows each of whose predicates admits some code of the event, by looking at all."""
    true = np.ones(len(rows), np.bool_)
    for predicates, codes in zip(rows.predicates, codes_of, strict=True):
        hit = np.zeros(len(predicates.rows), np.bool_)
        for value in codes[codes > 0]:
            above, below = predicates.low <= value, value <= predicates.high
            hit |= np.where(predicates.low <= predicates.high, above & below, above | below)
        true[predicates.rows[~hit]] = False
    return true


@pytest.mark.parametrize("block", [64, 128, 65_536, 131_072])
@pytest.mark.parametrize(
    ("rows", "columns", "share"), [(0, 2, 0.5), (1, 1, 1.0), (300, 4, 0.5), (300, 12, 0.1), (64, 3, 0.9)]
)
def test_single_codes(rows: int, columns: int, share: float, block: int) -> None:
    rng = np.random.default_rng(rows)
    table = conjunctions(rng, rows, columns, share)
    codes = (rng.integers(0, TOP + 1, (columns, 40)) * (rng.random((columns, 40)) < 0.8)).astype(np.uint32)
    index = CountingIndex(table, block)
    out, offsets = np.empty(40 * rows + block, np.int32), np.zeros(41, np.int64)
    assert index.match_codes(codes, out, offsets) == 40
    for event in range(40):
        expected = table.numbers[admitted(table, [codes[column, event : event + 1] for column in range(columns)])]
        assert sorted(out[offsets[event] : offsets[event + 1]].tolist()) == sorted(expected.tolist())


def test_where_there_is_no_room_it_stops_and_goes_on() -> None:
    rng = np.random.default_rng(5)
    table = conjunctions(rng, 100, 3)
    codes = rng.integers(1, TOP + 1, (3, 20)).astype(np.uint32)
    index = CountingIndex(table, 64)
    out, offsets = np.empty(20 * 100 + 64, np.int32), np.zeros(21, np.int64)
    assert index.match_codes(codes, out, offsets) == 20
    little, ends = np.empty(200, np.int32), np.zeros(21, np.int64)
    done = index.match_codes(codes, little, ends)
    assert 0 < done < 20
    assert little[: ends[done]].tolist() == out[: offsets[done]].tolist()
    more = np.concatenate([little, np.empty(2_000, np.int32)])
    assert index.match_codes(codes, more, ends, done) == 20
    assert ends.tolist() == offsets.tolist()
    assert more[: ends[-1]].tolist() == out[: offsets[-1]].tolist()


@pytest.mark.parametrize("block", [64, 65_536])
def test_several_codes_give_all_that_can_be(block: int) -> None:
    rng = np.random.default_rng(7)
    table = conjunctions(rng, 200, 4)
    several = np.arange(0, 30, 3, dtype=np.int32)
    lists = [[np.unique(rng.integers(1, TOP + 1, rng.integers(0, 4))) for _ in range(4)] for _ in several]
    flat = [codes for event in lists for codes in event]
    codes = rng.integers(0, TOP + 1, (4, 30)).astype(np.uint32)
    codes[:, several] = 0
    starts = np.cumsum([0, *map(len, flat)]).astype(np.int64)
    encoded = EncodedBatch(codes, several, starts, np.concatenate(flat).astype(np.uint32))
    found = CountingIndex(table, block).candidates(encoded)
    assert found.doubtful is not None
    for event in range(30):
        pairs = slice(found.offsets[event], found.offsets[event + 1])
        is_several = event in several
        given = lists[event // 3] if is_several else [codes[column, event : event + 1] for column in range(4)]
        expected = set(table.numbers[admitted(table, given)].tolist())
        numbers = found.numbers[pairs].tolist()
        assert len(numbers) == len(set(numbers))
        assert set(numbers) >= expected if is_several else set(numbers) == expected
        assert found.doubtful[pairs].all() == is_several or not numbers


@pytest.mark.parametrize(("columns", "counter"), [(200, np.uint8), (300, np.uint16)])
def test_counters_are_wide_enough(columns: int, counter: type) -> None:
    dictionary, _ = dictionary_of(Column(("a",), Kind.NUMBER), np.arange(CONSTANTS))
    both = np.arange(2, dtype=np.int32)
    predicates = tuple(
        CodedPredicates(
            Column((f"a{column}",), Kind.NUMBER), dictionary, both, np.full(2, 2, np.uint32), np.full(2, 2, np.uint32)
        )
        for column in range(columns)
    )
    index = CountingIndex(Conjunctions(np.array([7, 8], np.int32), predicates, np.zeros(2, np.bool_)))
    assert index._lists.needed.dtype == counter
    codes = np.full((columns, 2), 2, np.uint32)
    codes[columns // 2, 1] = 4
    out, offsets = np.empty(100_000, np.int32), np.zeros(3, np.int64)
    assert index.match_codes(codes, out, offsets) == 2
    assert (offsets.tolist(), out[:2].tolist()) == ([0, 2, 2], [7, 8])
