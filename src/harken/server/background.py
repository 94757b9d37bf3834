"""Helpers for background tasks in the event loop: wait until woken, and go on after a failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from harken.errors import HarkenError

log = logging.getLogger(__name__)


@contextmanager
def logged(task: str) -> Iterator[None]:
    """Log and swallow a failure of a task that is tried again later. `task` is its name in the log."""
    try:
        yield
    except HarkenError as error:
        log.warning("%s waits: %s", task, error.message)
    except Exception:
        log.exception("%s failed", task)


async def woken(wake: asyncio.Event, seconds: float) -> bool:
    """Wait until the event is set, and clear it. Returns False if it is not set within the time."""
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return False
    wake.clear()
    return True
