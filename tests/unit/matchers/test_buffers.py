"""Memory for answers: nobody gets what another looks at, and what nobody looks at is used again."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from harken.matchers.columnar.buffers import Buffers
from harken.matchers.columnar.columnar_settings import DEFAULT_SETTINGS, ColumnarSettings


def place(buffer: np.ndarray[tuple[int], np.dtype[np.int32]]) -> int:
    return int(buffer.ctypes.data)


def test_used_again_when_nobody_looks() -> None:
    buffers = Buffers()
    first = buffers.take(10_000)
    assert len(first) >= 10_000
    where, view = place(first), first[100:200]
    del first
    other = buffers.take(10_000)
    assert place(other) != where, "a view is looked at"
    del view
    assert place(buffers.take(10_000)) == where
    assert place(buffers.take(9_000)) == where, "what is a little smaller fits too"


def test_two_are_enough_where_the_last_answer_lives_until_the_next_is_there() -> None:
    buffers, places, answer = Buffers(), set(), None
    for size in range(50_000, 50_050):
        answer = buffers.take(size)
        places.add(place(answer))
    assert len(places) == 2


def test_the_smallest_that_fits() -> None:
    buffers = Buffers()
    taken = [buffers.take(size) for size in (40_000, 20_000, 60_000)]
    wanted = place(taken[1])
    taken.clear()
    assert place(buffers.take(15_000)) == wanted


def test_one_small_answer_does_not_hold_much_memory() -> None:
    buffers = Buffers()
    large = buffers.take(10_000_000)
    assert buffers.answer(large, 9_000_000).base is large
    assert buffers.answer(large, 100).base is None
    assert buffers.answer(large, 100).tolist() == large[:100].tolist()
    del large
    assert len(buffers.take(100)) < 100_000


def test_what_is_hoped_for_is_taken_if_it_is_there_and_not_made() -> None:
    buffers = Buffers()
    assert len(buffers.take(100, 10**15)) < 100_000
    where = place(buffers.take(1_000_000))
    assert place(buffers.take(100, 1_000_000)) == where


def test_one_large_answer_does_not_hold_its_memory_for_ever() -> None:
    buffers = Buffers(ColumnarSettings(kept_turns=5))
    where = place(buffers.take(1_000_000))
    for _ in range(4):
        buffers.take(10)
    assert where in map(place, (each.elements for each in buffers._kept))
    buffers.take(10)
    assert [len(each.elements) for each in buffers._kept] == [DEFAULT_SETTINGS.least_buffer]


def test_what_was_too_small_is_given_up() -> None:
    buffers = Buffers()
    small = buffers.take(20_000)
    small[:5] = range(5)
    larger = buffers.enlarge(small, 5, 80_000, 90_000)
    assert larger[:5].tolist() == list(range(5))
    assert [each.elements is larger for each in buffers._kept] == [True]
    first = buffers.take(5_000)
    buffers.enlarge(first, 0, 30_000, 30_000)
    assert len(buffers._kept) == 3, "but not one with which all begin, before anything is written"


def test_so_much_is_kept_and_no_more() -> None:
    buffers = Buffers(ColumnarSettings(most_kept_ids=300_000))
    answers = [buffers.take(80_000) for _ in range(6)]
    assert sum(len(each.elements) for each in buffers._kept) <= 300_000
    for number, each in enumerate(answers):
        each[:] = number
    again = buffers.take(80_000)
    again[:] = 99
    assert [int(each[0]) for each in answers] == list(range(6)), "what is given up is still theirs who look at it"
    del answers, each
    assert len(buffers.take(2_000_000)) >= 2_000_000
    assert sum(len(each.elements) for each in buffers._kept) - 2_500_000 <= 300_000


def test_one_that_is_larger_than_all_that_is_kept_is_there_again() -> None:
    """A match takes a small one first, and a larger one when it knows how much there is."""
    buffers = Buffers(ColumnarSettings(most_kept_ids=300_000))
    taken = set()
    for _ in range(3):
        small = buffers.take(1_000)
        large = buffers.enlarge(small, 0, 1_000_000, 1_000_000)
        taken.add(large.ctypes.data)
        del small, large
    assert len(taken) == 1
    held = [buffers.take(1_000_000) for _ in range(3)]
    assert sum(len(each.elements) > 300_000 for each in buffers._kept) == 1
    for _ in range(DEFAULT_SETTINGS.kept_turns + 1):
        buffers.take(1_000)
    assert len(held) == 3
    assert sum(len(each.elements) for each in buffers._kept) <= 300_000, "nobody wanted it for long"


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_threads_never_share_one() -> None:
    buffers, failures, threads = Buffers(), [], 4
    together = threading.Barrier(threads, timeout=30)

    def work(number: int) -> None:
        for turn in range(150):
            together.wait()
            mine = [buffers.take(5_000) for _ in range(3)]
            for place, each in enumerate(mine):
                each[0] = number * 10 + place
            together.wait()
            if [int(each[0]) for each in mine] != [number * 10 + place for place in range(3)]:
                failures.append((number, turn))

    everyone = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in everyone:
        thread.start()
    for thread in everyone:
        thread.join()
    assert failures == []
    assert len(buffers._kept) <= 6 * threads, "what they hold, and what they held before"
