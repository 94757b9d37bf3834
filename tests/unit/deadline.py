"""A guard against hangs, for work that has to be bounded."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SECONDS = 600
"""The slowest block takes seconds: what is interrupted hangs, however slow and busy the machine is."""


@contextmanager
def without_hanging() -> Iterator[None]:
    """Fail if the block does not come to an end. It interrupts pure Python only, which is all that it is for."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it hangs: {_SECONDS} s are over")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
