"""What goes on in the event loop: its failures are logged and outlived, and it is woken or not."""

from __future__ import annotations

import asyncio
import logging

import pytest

from harken.errors import StoreUnavailableError
from harken.server.background import logged, woken


def test_failures_are_logged_and_outlived(caplog: pytest.LogCaptureFixture) -> None:
    for error in (StoreUnavailableError("the store is away"), ValueError("wrong")):
        with logged("housekeeping"):
            raise error
    records = [(each.levelno, each.getMessage(), each.exc_info is None) for each in caplog.records]
    assert records == [
        (logging.WARNING, "housekeeping waits: the store is away", True),
        (logging.ERROR, "housekeeping failed", False),
    ]


def test_who_is_cancelled_ends() -> None:
    with pytest.raises(asyncio.CancelledError), logged("housekeeping"):
        raise asyncio.CancelledError


def test_a_wake_up_is_used_once() -> None:
    async def wait() -> list[bool]:
        wake = asyncio.Event()
        wake.set()
        return [await woken(wake, 20), await woken(wake, 0.01), wake.is_set()]

    assert asyncio.run(wait()) == [True, False, False]
