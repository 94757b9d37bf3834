"""Properties that are computed once, under several threads and after fork(): no thread waits for another."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

import harken
from harken.concurrency.caching import cached_property
from harken.live import results
from unit.deadline import without_hanging


class Counted:
    """A property that counts how often it is computed."""

    def __init__(self) -> None:
        self.computed = 0

    @cached_property
    def value(self) -> object:
        """A new object."""
        self.computed += 1
        return object()


@dataclass(frozen=True)
class Frozen:
    size: int

    @cached_property
    def twice(self) -> int:
        return 2 * self.size


def test_a_value_is_computed_once_for_each_instance() -> None:
    one, other = Counted(), Counted()
    assert one.value is one.value
    assert one.value is not other.value
    assert one.computed == other.computed == 1
    assert Counted.value.__doc__ == "A new object."


def test_a_value_is_computed_anew_after_it_was_deleted() -> None:
    one = Counted()
    first = one.value
    del one.value
    assert one.value is not first
    assert one.computed == 2


def test_a_failure_is_not_remembered() -> None:
    class Failing:
        fails = True

        @cached_property
        def value(self) -> int:
            if self.fails:
                raise ValueError("not yet")
            return 1

    failing = Failing()
    with pytest.raises(ValueError, match="not yet"):
        failing.value  # noqa: B018
    failing.fails = False
    assert failing.value == 1


def test_instances_that_reject_attributes_have_cached_properties_too() -> None:
    frozen = Frozen(3)
    assert (frozen.twice, frozen.twice) == (6, 6)
    assert frozen == Frozen(3)


class Meeting:
    """A property that calls a function while it is computed."""

    def __init__(self, inside: Callable[[], Any]) -> None:
        self._inside = inside

    @cached_property
    def value(self) -> object:
        self._inside()
        return object()


@pytest.mark.parametrize("count", [1, 2])
def test_threads_that_compute_a_property_do_not_wait_for_each_other(count: int) -> None:
    """Two threads are inside at once, of one instance or of two. Where one of them waits, the barrier breaks."""
    barrier = threading.Barrier(2, timeout=30)
    instances = [Meeting(barrier.wait) for _ in range(count)]
    pair = instances[0], instances[-1]
    with ThreadPoolExecutor(2) as pool:
        values = list(pool.map(lambda each: each.value, pair))
    assert len(set(map(id, values))) == count  # threads that compute it together all get the one that is kept
    assert [each.value for each in pair] == values


def answered(engine: harken.Engine) -> harken.BatchMatches:
    return engine.match_batch([{"a": 1}])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_fork_reads_ids_while_a_thread_of_the_parent_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = harken.Engine()
    engine.subscribe("s", "a = 1")
    mine, theirs = answered(engine), answered(engine)
    inside, leave = threading.Event(), threading.Event()
    pairwise = results.pairwise

    def slowly(*arguments: Any) -> Any:
        if threading.current_thread() is thread:
            inside.set()
            assert leave.wait(60)
        return pairwise(*arguments)

    monkeypatch.setattr(results, "pairwise", slowly)
    thread = threading.Thread(target=lambda: theirs.ids)
    thread.start()
    try:
        assert inside.wait(60)
        child = os.fork()
        if child == 0:
            os._exit(0 if ids_in_time(mine) == [["s"]] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert mine.ids == [["s"]]  # nor does a thread of the parent wait
    finally:
        leave.set()
        thread.join()


def ids_in_time(matches: harken.BatchMatches) -> list[list[str]] | None:
    """The ids, or None if they do not come within minutes."""
    try:
        with without_hanging():
            return matches.ids
    except BaseException:
        return None
