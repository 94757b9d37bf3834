"""A thread that works in batches: what it takes together, what it does after a failure, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from harken.errors import HarkenError, LimitError, StoreUnavailableError
from harken.server.batch_thread import BatchThread

WAIT_SECONDS = 20


class Recorder:
    """What a thread is given to do. It works on its first batch until it `may_go_on`."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.failed: list[tuple[list[Any], HarkenError]] = []
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()

    def work(self, batch: list[Any]) -> None:
        self.batches.append(batch)
        self.has_begun.set()
        assert self.may_go_on.wait(WAIT_SECONDS)
        for each in batch:
            if isinstance(each, Exception):
                raise each

    def fail(self, batch: list[Any], error: HarkenError) -> None:
        self.failed.append((batch, error))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def busy(recorder: Recorder, most: int, **options: Callable[..., Any]) -> BatchThread[Any]:
    """A thread that works on a first item."""
    thread = BatchThread("harken-test", recorder.work, recorder.fail, most, **options)
    thread.put("")
    assert recorder.has_begun.wait(WAIT_SECONDS)
    return thread


def test_what_comes_meanwhile_is_one_batch(recorder: Recorder) -> None:
    thread = busy(recorder, 3)
    for item in "abcd":
        thread.put(item)
    assert thread.waiting == 4
    recorder.may_go_on.set()
    thread.close()
    assert recorder.batches == [[""], ["a", "b", "c"], ["d"]]
    assert thread.waiting == 0


def test_a_batch_is_no_larger_than_it_may_be_unless_one_item_is(recorder: Recorder) -> None:
    thread = busy(recorder, 4, size_of=len)
    for item in ("aa", "bb", "cccccc", "d", "eeee"):
        thread.put(item)
    assert thread.waiting == 15
    recorder.may_go_on.set()
    thread.close()
    assert recorder.batches == [[""], ["aa", "bb"], ["cccccc"], ["d"], ["eeee"]]


def test_what_comes_before_it_is_ready_is_part_of_the_batch(recorder: Recorder) -> None:
    recorder.may_go_on.set()
    is_waiting, is_ready = threading.Event(), threading.Event()

    def ready() -> None:
        is_waiting.set()
        assert is_ready.wait(WAIT_SECONDS)

    thread = BatchThread("harken-test", recorder.work, recorder.fail, 9, ready=ready)
    thread.put("a")
    assert is_waiting.wait(WAIT_SECONDS)
    thread.put("b")
    is_ready.set()
    thread.close()
    assert recorder.batches == [["a", "b"]]


def test_a_batch_that_fails_is_told_and_the_next_is_worked_on(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.may_go_on.set()
    thread = BatchThread("harken-test", recorder.work, recorder.fail, 1)
    faults = [ValueError("wrong"), LimitError("too many", limit="most")]
    for item in (*faults, "last"):
        thread.put(item)
    thread.close()
    assert recorder.batches == [[faults[0]], [faults[1]], ["last"]]
    assert [batch for batch, _ in recorder.failed] == [[faults[0]], [faults[1]]]
    first, second = (error for _, error in recorder.failed)
    assert first.message == "internal: wrong"
    assert second is faults[1], "an error of ours is told as it is"
    assert caplog.text.count("the thread harken-test has failed on a batch") == 2


def test_what_waits_is_done_before_it_ends_and_nothing_comes_later(recorder: Recorder) -> None:
    thread = busy(recorder, 1)
    thread.put("a")
    thread.put("b")
    closing = threading.Thread(target=thread.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    recorder.may_go_on.set()
    closing.join(WAIT_SECONDS)
    assert not closing.is_alive()
    with pytest.raises(StoreUnavailableError, match="shutting down"):
        thread.put("c")
    assert recorder.batches == [[""], ["a"], ["b"]]
    assert thread.waiting == 0


def test_one_that_has_nothing_to_do_ends_at_once(recorder: Recorder) -> None:
    BatchThread("harken-test", recorder.work, recorder.fail, 1).close()
    assert recorder.batches == []
