"""How a pipeline ends when it is told to: its own work first, then Spark, then the process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_JOB_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_POLL_SECONDS = 0.2
_TASK_SECONDS = 10.0
"""How long cancelled tasks are waited for."""
_TIDY_SECONDS = 1.0


class Stop(threading.Event):
    """Set when a pipeline is to end; `signal` is the signal that said so, if one did."""

    def __init__(self) -> None:
        super().__init__()
        self.signal: int | None = None


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` at the first signal, if this thread may handle signals. A second one has its usual effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        if stop.is_set():  # it was set inside another of these blocks
            signal.raise_signal(number)
        if isinstance(stop, Stop):
            stop.signal = number
        stop.set()

    before: dict[int, Any] = {each: signal.getsignal(each) for each in _SIGNALS}
    for each in before:
        signal.signal(each, handle)
    try:
        yield
    finally:
        restore()


@contextmanager
def cancelled_by(stop: threading.Event, spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs of Spark that this block starts once `stop` is set: the block then raises what Spark raises.

    A call of Java must not be interrupted in the middle: the next call would read its answer.
    """
    context = spark.sparkContext
    group = f"harken-{os.getpid()}-{id(stop)}"
    is_over = threading.Event()

    def cancel() -> None:
        while not is_over.wait(_POLL_SECONDS):
            if stop.is_set():  # again and again: the next job may just be about to start
                with suppress(Exception):
                    context.cancelJobGroup(group)

    before = {name: context.getLocalProperty(name) for name in _JOB_GROUP}
    context.setJobGroup(group, "harken", interruptOnCancel=True)
    watcher = threading.Thread(target=cancel, name="harken-cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
        if stop.is_set():
            _wait_for_tasks(context)
        with suppress(Exception):  # Spark may be gone
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]


def _wait_for_tasks(context: SparkContext) -> None:
    """Wait until cancelled tasks are gone, for a while, and what Spark tidies up behind them in threads of its own.

    Spark that is stopped before that prints Java's stack traces.
    """
    end = time.monotonic() + _TASK_SECONDS
    with suppress(Exception):
        tracker: Any = context._jsc.sc().statusTracker()  # PySpark's own has no executors
        while time.monotonic() < end and any(each.numRunningTasks() for each in tracker.getExecutorInfos()):
            time.sleep(_POLL_SECONDS)
    time.sleep(_TIDY_SECONDS)


_ignores = threading.local()


@contextmanager
def children_ignore_sigterm() -> Iterator[None]:
    """Let processes that this thread starts, by fork, ignore SIGTERM.

    It may be sent to the whole process group. Java would end at once, and whoever talks to it could not end what is
    under way. Java ends when the process does that started it.
    """
    _ignores.sigterm = True
    try:
        yield
    finally:
        _ignores.sigterm = False


def _in_child() -> None:
    if getattr(_ignores, "sigterm", False):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
