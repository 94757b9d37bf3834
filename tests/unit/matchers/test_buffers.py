"""Memory for answers: nobody gets what another looks at, and what nobody looks at is used again."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from harken.matchers.columnar import buffers as module
from harken.matchers.columnar.buffers import Buffers


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
    buffers.take(10_000_000)
    assert len(buffers.take(100)) < 100_000


def test_one_large_answer_does_not_hold_its_memory_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TURNS", 5)
    buffers = Buffers()
    where = place(buffers.take(1_000_000))
    for _ in range(4):
        buffers.take(10)
    assert where in map(place, (each.elements for each in buffers._kept))
    buffers.take(10)
    assert [len(each.elements) for each in buffers._kept] == [module._LEAST]


def test_so_much_is_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 300_000)
    buffers = Buffers()
    answers = [buffers.take(80_000) for _ in range(6)]
    assert sum(len(each.elements) for each in buffers._kept) <= 300_000
    for number, answer in enumerate(answers):
        answer[:] = number
    again = buffers.take(80_000)
    again[:] = 99
    assert [int(answer[0]) for answer in answers] == list(range(6)), "what is given up is still theirs who look at it"
    del answers, answer
    assert len(buffers.take(2_000_000)) >= 2_000_000, "more than is kept"
    assert len(buffers._kept) == 1


def test_threads_never_share_one() -> None:
    buffers, failures = Buffers(), []

    def work(number: int) -> None:
        for turn in range(2_000):
            mine = buffers.take(5_000)
            mine[:8] = number * 10_000 + turn
            if np.any(mine[:8] != number * 10_000 + turn):
                failures.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(buffers._kept) <= 4
