"""Many lists in one array: they grow, shrink, move, and leave no gaps for long."""

from __future__ import annotations

from random import Random

import numpy as np

from harken_lab.papers.growing_lists import GrowingLists
from harken_lab.papers.kernels.lists import TOP, WASTED, append_to, has_room, needed, release, remove_from


def append(lists: GrowingLists, which: int, *values: int) -> None:
    for value in values:
        while not has_room(lists.table, needed(lists.table, which)):
            lists.grow()
        append_to(lists.table, which, value)


def content(lists: GrowingLists, which: int) -> list[int]:
    table = lists.table
    start = table.starts[which]
    found: list[int] = table.cells[start : start + table.sizes[which]].tolist()
    return found


def test_lists_are_empty_until_they_are_not() -> None:
    lists = GrowingLists()
    lists.ensure(3)
    assert [content(lists, which) for which in range(3)] == [[], [], []]
    append(lists, 1, 7, 8, 9)
    append(lists, 0, 5)
    assert [content(lists, which) for which in range(3)] == [[5], [7, 8, 9], []]
    assert lists.nbytes >= 4 * 4


def test_more_lists_leave_the_others() -> None:
    lists = GrowingLists()
    lists.ensure(1)
    append(lists, 0, 1, 2)
    lists.ensure(1_000)
    assert content(lists, 0) == [1, 2]
    assert content(lists, 999) == []


def test_a_list_that_is_full_moves_to_twice_the_room() -> None:
    lists = GrowingLists()
    lists.ensure(1)
    append(lists, 0, *range(5))
    table = lists.table
    assert content(lists, 0) == list(range(5))
    assert table.rooms[0] == 8
    assert table.state[TOP] == 2 + 4 + 8
    assert table.state[WASTED] == 2 + 4


def test_the_last_takes_the_place_of_what_is_removed() -> None:
    lists = GrowingLists()
    lists.ensure(1)
    append(lists, 0, 1, 2, 3, 4)
    remove_from(lists.table, 0, 2)
    assert content(lists, 0) == [1, 4, 3]
    remove_from(lists.table, 0, 3)
    remove_from(lists.table, 0, 1)
    remove_from(lists.table, 0, 4)
    assert content(lists, 0) == []


def test_filled_lists_stand_without_gaps_in_the_order_given() -> None:
    lists = GrowingLists()
    lists.ensure(9)
    append(lists, 8, 1, 2, 3)
    lists.fill(4, np.array([2, 0, 2, 3]), np.array([5, 6, 7, 8], np.int32))
    assert [content(lists, which) for which in range(4)] == [[6], [], [5, 7], [8]]
    assert lists.table.cells.tolist() == [6, 5, 7, 8]
    append(lists, 1, 9)
    append(lists, 2, 9)
    assert [content(lists, which) for which in range(4)] == [[6], [9], [5, 7, 9], [8]]


def test_gaps_are_closed_before_more_cells_are_taken() -> None:
    lists = GrowingLists()
    lists.ensure(64)
    for which in range(32):
        append(lists, which, which)
    cells = len(lists.table.cells)
    for which in range(32):
        remove_from(lists.table, which, which)
        release(lists.table, which)
    for which in range(32, 64):
        append(lists, which, which)
    assert len(lists.table.cells) == cells
    assert [content(lists, which) for which in range(64)] == [[]] * 32 + [[which] for which in range(32, 64)]


def test_one_list_may_be_all_there_is() -> None:
    lists = GrowingLists()
    lists.ensure(2)
    append(lists, 1, *range(10_000))
    assert content(lists, 1) == list(range(10_000))
    assert len(lists.table.cells) <= 4 * 16_384


def test_churn() -> None:
    rng = Random(5)
    lists = GrowingLists()
    expected: list[list[int]] = []
    for value in range(5_000):
        if len(expected) < 40 and rng.random() < 0.05:
            expected.append([])
            lists.ensure(len(expected))
        if not expected:
            continue
        which = rng.randrange(len(expected))
        if expected[which] and rng.random() < 0.45:
            gone = rng.choice(expected[which])
            expected[which].remove(gone)
            remove_from(lists.table, which, gone)
            if not expected[which]:
                release(lists.table, which)
        else:
            expected[which].append(value)
            append(lists, which, value)
        assert sorted(content(lists, which)) == expected[which]
    assert [sorted(content(lists, which)) for which in range(len(expected))] == expected
    assert len(lists.table.cells) < 16 * sum(map(len, expected))


def test_room_is_made_as_long_as_it_is_asked_for() -> None:
    lists = GrowingLists()
    lists.ensure(2)
    lists.reserve(200)
    append(lists, 0, 1)
    before = len(lists.table.cells)
    lists.grow()
    assert len(lists.table.cells) == before, "there is room for each list to move"
    while not has_room(lists.table, 10_000):
        lists.grow()
    assert content(lists, 0) == [1]


def test_room_can_be_reserved() -> None:
    lists = GrowingLists()
    lists.ensure(2)
    lists.reserve(500)
    assert has_room(lists.table, 500)
    cells = lists.table.cells
    lists.reserve(500)
    assert lists.table.cells is cells
    append(lists, 1, 3)
    lists.clear()
    assert (len(lists.table.starts), lists.table.state[TOP]) == (0, 0)
