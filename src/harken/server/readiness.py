"""Whether the store takes changes. It is written to when somebody asks, once a second at most."""

from __future__ import annotations

import asyncio
import time

from harken.errors import HarkenError
from harken.server.committing import Committer

_FRESH_SECONDS = 1.0
"""How long an answer of the store is good."""
_ANSWER_SECONDS = 0.5
"""How long to wait for one: those who ask whether a server is ready wait a second themselves."""
_PATIENCE_SECONDS = 5.0
"""How long the store may be busy with something else before it counts as away."""
_PROBE_BYTES = 65_536
"""What is written once a change did not fit: where there is no room for it there is none for a batch of events."""


class Readiness:
    """What the last write of a few bytes said of the store."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._probe: asyncio.Task[None] | None = None
        self._began = self._ended = float("-inf")
        self._failures = 0
        """How often the store was unavailable before the last probe of all bytes that succeeded."""
        self.problem: str | None = None
        """Why the store took nothing the last time; None if it did."""

    async def check(self) -> str | None:
        """Why the store takes nothing now; None if it does."""
        has_failed = self.problem is None and self._committer.failures != self._failures
        if self._probe is None and (has_failed or time.monotonic() - self._ended > _FRESH_SECONDS):
            self._began = time.monotonic()
            self._probe = asyncio.create_task(self._write())
        if self._probe is not None:
            await asyncio.wait({self._probe}, timeout=_ANSWER_SECONDS)
        if self._probe is not None and time.monotonic() - self._began > _PATIENCE_SECONDS:
            self.problem = f"the store has not answered for {_PATIENCE_SECONDS:g} s"
        return self.problem

    async def _write(self) -> None:
        failures = self._committer.failures
        size = 0 if failures == self._failures else _PROBE_BYTES
        try:
            await asyncio.wrap_future(self._committer.submit(lambda writing: writing.probe(size)))
            self.problem, self._failures = None, failures
        except HarkenError as error:
            self.problem = error.message
        finally:
            self._probe, self._ended = None, time.monotonic()
