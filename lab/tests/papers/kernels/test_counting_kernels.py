"""The counting kernels against looking at every row, and against themselves after changes."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from harken.codes.columns import Column
from harken.codes.conjunctions import CodedPredicates, Conjunctions
from harken.codes.dictionary import dictionary_of
from harken.schema import Kind
from harken_lab.papers.counting import CountedLists
from harken_lab.papers.growing import LAST_LABEL
from harken_lab.papers.kernels.counting_kernels import count_by_lists
from harken_lab.papers.kernels.row_table import RowTable

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


def row_table(conjunctions: Conjunctions) -> RowTable:
    """Rows of codes one behind another, with the open end that labels have in place of the greatest code."""
    sizes = np.zeros(len(conjunctions), np.int32)
    for each in conjunctions.predicates:
        sizes[each.rows] += 1
    starts = np.cumsum(sizes, dtype=np.int64) - sizes
    count = int(sizes.sum())
    table = RowTable(starts, sizes, np.empty(count, np.int32), np.empty(count, np.uint32), np.empty(count, np.uint32))
    at = starts.copy()
    for column, each in enumerate(conjunctions.predicates):
        places = at[each.rows]
        table.columns[places], table.low[places] = column, each.low
        table.high[places] = np.where((each.high == each.top) & (each.low <= each.high), LAST_LABEL, each.high)
        at[each.rows] += 1
    return table


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


@pytest.mark.parametrize(
    ("rows", "columns", "share"), [(0, 2, 0.5), (1, 1, 1.0), (300, 4, 0.5), (300, 12, 0.1), (64, 3, 0.9)]
)
def test_single_codes(rows: int, columns: int, share: float) -> None:
    rng = np.random.default_rng(rows)
    table = conjunctions(rng, rows, columns, share)
    codes = (rng.integers(0, TOP + 1, (columns, 40)) * (rng.random((columns, 40)) < 0.8)).astype(np.uint32)
    lists = CountedLists("lists")
    lists.insert(np.arange(rows, dtype=np.int32), row_table(table), [0] * columns)
    offsets, found = np.zeros(41, np.int64), np.empty(40 * rows + 64, np.int32)
    assert count_by_lists(lists.counted, rows, codes, 0, lists.scratch(), found, offsets, np.zeros(40, np.int64)) == 40
    for event in range(40):
        expected = table.numbers[admitted(table, [codes[column, event : event + 1] for column in range(columns)])]
        assert sorted(table.numbers[found[offsets[event] : offsets[event + 1]]].tolist()) == sorted(expected.tolist())


def test_where_there_is_no_room_it_stops_and_goes_on() -> None:
    rng = np.random.default_rng(5)
    table = row_table(conjunctions(rng, 100, 3))
    codes = rng.integers(1, TOP + 1, (3, 20)).astype(np.uint32)
    lists = CountedLists("lists")
    lists.insert(np.arange(100, dtype=np.int32), table, [0, 0, 0])

    def match(out: np.ndarray, offsets: np.ndarray, first: int = 0) -> int:
        examined = np.zeros(20, np.int64)
        return count_by_lists(lists.counted, 100, codes, first, lists.scratch(), out, offsets, examined)

    out, offsets = np.empty(20 * 100 + 64, np.int32), np.zeros(21, np.int64)
    assert match(out, offsets) == 20
    little, ends = np.empty(200, np.int32), np.zeros(21, np.int64)
    done = match(little, ends)
    assert 0 < done < 20
    assert little[: ends[done]].tolist() == out[: offsets[done]].tolist()
    more = np.concatenate([little, np.empty(2_000, np.int32)])
    assert match(more, ends, done) == 20
    assert ends.tolist() == offsets.tolist()
    assert more[: ends[-1]].tolist() == out[: offsets[-1]].tolist()


@pytest.mark.parametrize(("columns", "counter"), [(200, np.uint8), (300, np.uint16)])
def test_counters_are_wide_enough(columns: int, counter: type) -> None:
    every = np.arange(2, dtype=np.int32)
    twos = np.full(2 * columns, 2, np.uint32)
    table = RowTable(
        np.array([0, columns]),
        np.full(2, columns, np.int32),
        np.tile(np.arange(columns, dtype=np.int32), 2),
        twos,
        twos,
    )
    lists = CountedLists("lists")
    lists.insert(every, table, [0] * columns)
    assert lists.counters.needed.dtype == counter
    codes = np.full((columns, 2), 2, np.uint32)
    codes[columns // 2, 1] = 4
    out, offsets = np.empty(100, np.int32), np.zeros(3, np.int64)
    assert count_by_lists(lists.counted, 2, codes, 0, lists.scratch(), out, offsets, np.zeros(2, np.int64)) == 2
    assert (offsets.tolist(), out[:2].tolist()) == ([0, 2, 2], [0, 1])


def intervals(rng: np.random.Generator, rows: int, columns: int) -> RowTable:
    return row_table(conjunctions(rng, rows, columns))


@pytest.mark.parametrize("index", ["lists", "table"])
def test_rows_that_come_and_go_one_by_one_are_as_if_built_at_once(index: str) -> None:
    rng = np.random.default_rng(9)
    table = intervals(rng, 200, 5)
    # Tables have no place for the open end: there it is the greatest code.
    spans = [TOP + 1] * 5 if index == "table" else [0] * 5
    codes = rng.integers(0, TOP + 1, (5, 50)).astype(np.uint32)
    changing = CountedLists(index)
    there: set[int] = set()
    for _ in range(60):
        coming = [row for row in rng.permutation(200)[:12].tolist() if row not in there]
        changing.insert(np.array(coming, np.int32), table, spans)
        there.update(coming)
        going = [row for row in sorted(there) if rng.random() < 0.05]
        changing.delete(np.array(going, np.int32), table)
        there.difference_update(going)
    built = CountedLists(index)
    built.insert(np.array(sorted(there), np.int32), table, spans)
    assert found_by(changing, codes) == found_by(built, codes)
    assert len(changing.predicates) == len(built.predicates)
    assert changing.predicates.size < 2 * len(built.predicates), "numbers are recycled"
    changing.delete(np.array(sorted(there), np.int32), table)
    assert len(changing.predicates) == len(changing) == int(changing.lists.table.sizes.sum()) == 0


def found_by(lists: CountedLists, codes: np.ndarray) -> list[list[int]]:
    out, offsets = np.empty(20_000, np.int32), np.zeros(codes.shape[1] + 1, np.int64)
    examined = np.zeros(codes.shape[1], np.int64)
    assert count_by_lists(lists.counted, 300, codes, 0, lists.scratch(), out, offsets, examined) == codes.shape[1]
    return [sorted(out[begin:end].tolist()) for begin, end in pairwise(offsets.tolist())]


@pytest.mark.seconds
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="it is these tests that are run")
def test_the_same_without_compilation() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
