"""Progress of the demo: a line for every finished step and, on a terminal, one for the running step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harken.cli.screen import Screen

_UPDATE_EVERY = 0.3
"""Seconds between updates of Spark's progress."""


class RunningStep:
    """A step of the demo that is running: its message, its time and, on a terminal, its status line."""

    def __init__(self, what: str, status: Any = None) -> None:
        self._what = what
        self._status = status
        self._began = time.monotonic()
        self.result = what

    @property
    def is_shown(self) -> bool:
        return self._status is not None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def show(self, more: str = "") -> None:
        """Show the time of the step, and further progress, in the status line."""
        if self._status is not None:
            self._status.update(f"{self._what}, {self.seconds:.0f} s{more}")

    def done(self, result: str) -> None:
        """Set the message of the finished step."""
        self.result = result


@contextmanager
def step(screen: Screen, what: str) -> Iterator[RunningStep]:
    """Run a step, and show it with its time when it is finished."""
    if screen.json or not screen.err.is_terminal:
        running = RunningStep(what)
        yield running
    else:
        with screen.err.status(what) as status:
            running = RunningStep(what, status)
            yield running
    text = f"{running.seconds:6.1f} s  {running.result}"
    screen.aside({"kind": "step", "step": running.result, "seconds": round(running.seconds, 3)}, text)


@contextmanager
def watched(spark: Any, running: RunningStep) -> Iterator[None]:
    """On a terminal, show how many tasks Spark has finished while the body runs."""
    if not running.is_shown:
        yield
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, running, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(spark: Any, running: RunningStep, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(_UPDATE_EVERY):
        stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        active = [each for each in stages if each is not None]
        tasks, done = sum(each.numTasks for each in active), sum(each.numCompletedTasks for each in active)
        running.show(f": stage {max(each.stageId for each in active)}, {done} of {tasks} tasks done" if active else "")
