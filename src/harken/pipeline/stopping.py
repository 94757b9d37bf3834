"""Stops a pipeline in order: first its own work, then Spark, then the process."""

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
"""Longest wait for cancelled tasks to end."""
_CLEANUP_SECONDS = 1.0
"""Wait for Spark's threads to clean up after cancelled tasks."""


class Stop(threading.Event):
    """Set to stop a pipeline. `signal` is the signal that stopped it; None if none did."""

    def __init__(self) -> None:
        super().__init__()
        self.signal: int | None = None


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """In this block, SIGTERM and SIGINT set `stop`. A second signal has its usual effect.

    Only the main thread may handle signals; in any other thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        if stop.is_set():  # a block inside this one handled the first signal
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
    """Cancel the Spark jobs of this block once `stop` is set. The block then raises Spark's error.

    A signal must not interrupt a call to Java: the next call would read the answer of the interrupted one.
    """
    context = spark.sparkContext
    group = f"harken-{os.getpid()}-{id(stop)}"
    is_over = threading.Event()

    def cancel() -> None:
        while not is_over.wait(_POLL_SECONDS):
            if stop.is_set():  # at every poll: the next job may be about to start
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
        with suppress(Exception):  # Spark may have ended
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]


def _wait_for_tasks(context: SparkContext) -> None:
    """Wait until cancelled tasks have ended and Spark has cleaned up after them, at most some seconds.

    If it were stopped earlier, Spark would print Java's stack traces.
    """
    end = time.monotonic() + _TASK_SECONDS
    with suppress(Exception):
        tracker: Any = context._jsc.sc().statusTracker()  # PySpark's status tracker has no executors
        while time.monotonic() < end and any(each.numRunningTasks() for each in tracker.getExecutorInfos()):
            time.sleep(_POLL_SECONDS)
    time.sleep(_CLEANUP_SECONDS)


_thread = threading.local()


@contextmanager
def children_ignore_sigterm() -> Iterator[None]:
    """In this block, let processes that this thread forks ignore SIGTERM.

    SIGTERM may be sent to the whole process group. Java would end at once, and this process could not finish its work.
    Java ends when the process that started it does.
    """
    _thread.ignores_sigterm = True
    try:
        yield
    finally:
        _thread.ignores_sigterm = False


def _in_child() -> None:
    if getattr(_thread, "ignores_sigterm", False):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
