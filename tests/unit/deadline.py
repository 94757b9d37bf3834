"""A guard against hangs, for work that has to be bounded."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SECONDS = 120
"""Processor time. The slowest block takes a few seconds: what is interrupted hangs, however slow the machine is."""


@contextmanager
def without_hanging() -> Iterator[None]:
    """Fail if the block does not come to an end. It interrupts pure Python only, which is all that it is for."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it hangs: {_SECONDS} s of processor time are over")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
