"""Progress of the demo: a line for every finished step and, on a terminal, one for the running step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harken.cli.screen import Screen

_LOOK_EVERY = 0.3
"""Seconds between updates of Spark's progress."""


class Doing:
    """A running step."""

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

    def tell(self, more: str = "") -> None:
        """Show how far it is."""
        if self._status is not None:
            self._status.update(f"{self._what}, {self.seconds:.0f} s{more}")

    def done(self, result: str) -> None:
        """Set the message for when it is finished."""
        self.result = result


@contextmanager
def step(screen: Screen, what: str) -> Iterator[Doing]:
    """A step, reported with its time when it is finished."""
    if screen.json or not screen.err.is_terminal:
        doing = Doing(what)
        yield doing
    else:
        with screen.err.status(what) as status:
            doing = Doing(what, status)
            yield doing
    text = f"{doing.seconds:6.1f} s  {doing.result}"
    screen.aside({"kind": "step", "step": doing.result, "seconds": round(doing.seconds, 3)}, text)


@contextmanager
def watched(spark: Any, doing: Doing) -> Iterator[None]:
    """Show meanwhile how many tasks Spark has finished, on a terminal."""
    if not doing.is_shown:
        yield
        return
    over = threading.Event()
    looker = threading.Thread(target=_look, args=(spark, doing, over), daemon=True)
    looker.start()
    try:
        yield
    finally:
        over.set()
        looker.join()


def _look(spark: Any, doing: Doing, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(_LOOK_EVERY):
        stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        known = [each for each in stages if each is not None]
        tasks, done = sum(each.numTasks for each in known), sum(each.numCompletedTasks for each in known)
        doing.tell(f": stage {max(each.stageId for each in known)}, {done} of {tasks} tasks done" if known else "")
