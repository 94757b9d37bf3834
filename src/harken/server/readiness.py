"""Whether the store accepts changes, tested by a write when a client asks, at most once a second."""

from __future__ import annotations

import asyncio
import time

from harken.errors import HarkenError
from harken.server.committing import Committer

_FRESH_SECONDS = 1.0
"""How long the result of a probe is used."""
_ANSWER_SECONDS = 0.5
"""How long to wait for a probe. Clients that check whether a server is ready often wait a second only."""
_PATIENCE_SECONDS = 5.0
"""How long a probe may take before the store counts as unavailable."""
_PROBE_BYTES = 65_536
"""Size of a probe after a write failed: if the disk is full, a few bytes may fit although a batch does not."""


class Readiness:
    """The result of the last probe, which writes a few bytes to the store."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._probe: asyncio.Task[None] | None = None
        self._began = self._ended = float("-inf")
        self._failures = 0
        """The committer's count of failures at the last probe that succeeded."""
        self.problem: str | None = None
        """Why the last probe failed; None if it succeeded."""

    async def check(self) -> str | None:
        """Why the store does not accept changes now; None if it does."""
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
