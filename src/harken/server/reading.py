"""Threads for work that changes nothing: queries to the store, and checks of texts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_THREADS = 4
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Readers:
    """A few threads for short work. Long work does not belong here: it would block other requests."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "harken-read")

    async def run(
        self, work: Callable[Arguments, Result], *values: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Call a function in one of the threads, and return its result."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: work(*values, **named))

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
