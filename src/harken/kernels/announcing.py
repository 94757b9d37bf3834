"""Announces that kernels are being compiled, which takes long enough to look like a hang.

One process announces it, once: the first that compiles with an empty cache, or one that compiles for some seconds. On a
terminal the announcement is a counter that is erased at the end, elsewhere a warning in the log.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from numba.core import event

PLAIN_KERNELS = 50
"""About the number of kernels that plain subscriptions, dicts and Arrow need."""
_PATIENCE = 2.0
"""Seconds of compilation before the announcement, if the cache was not empty."""
_NOT_REPEATED = 600.0
"""Seconds after an announcement in which no process makes another."""
_CLEAR = "\r\x1b[2K"
log = logging.getLogger("harken.kernels.compile")


class Announcer(event.Listener):
    """Counts the kernels that this process compiles, and announces the compilation."""

    def __init__(self, kept_in: Callable[[], str | None], lock: Any) -> None:
        self._kept_in = kept_in
        self._lock = lock
        self.is_silent = False
        self.watcher: Callable[[int], None] | None = None
        """Called after each compiled kernel, with the number so far."""
        self._compiled = 0
        self._depth = 0
        self._began = self._spent = 0.0
        self._was_empty = False
        self._is_announced = False
        self._is_shown = False

    def kernel_is_missing(self, is_first: bool) -> None:
        """Note that a kernel has to be compiled. `is_first` if the cache is empty."""
        self._was_empty |= is_first

    def on_start(self, started: Any) -> None:
        if not _is_ours(started):
            return
        self._depth += 1
        if self._depth > 1:
            return
        self._began = time.monotonic()
        if not self.is_silent and not self._is_announced:
            self._announce_if_it_takes_long()
        self._show()

    def on_end(self, ended: Any) -> None:
        if not _is_ours(ended):
            return
        self._compiled += 1
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._began
        if self.watcher is not None:
            self.watcher(self._compiled)
        if self._is_shown:
            self._show() if self._depth else _write(_CLEAR)

    def _announce_if_it_takes_long(self) -> None:
        folder = self._kept_in()
        is_short = not self._was_empty and self._spent < _PATIENCE
        if folder is not None and (is_short or _seconds_since(self._lock.read()) < _NOT_REPEATED):
            return
        self._is_announced = True
        self._lock.write(f"announced {time.time():.0f}\n")
        if folder is None:
            log.warning(
                "compiling kernels for this processor, each when it is first needed: some ten seconds for plain "
                "subscriptions, in every process, because there is no folder to keep them in. Set NUMBA_CACHE_DIR to "
                "one that can be written."
            )
        elif _is_terminal() and not log.hasHandlers():
            self._is_shown = True
        else:
            log.warning(
                "compiling kernels for this processor, each when it is first needed: some ten seconds for plain "
                "subscriptions, once. They are kept in %s. `harken warm-up` compiles all of them beforehand.",
                folder,
            )

    def _show(self) -> None:
        if self._is_shown:
            # The total is not known beforehand.
            total = max(PLAIN_KERNELS, (self._compiled // 10 + 1) * 10)
            _write(f"{_CLEAR}compiling kernels for this processor, once: {self._compiled} of about {total}")


def _is_ours(compiled: Any) -> bool:
    return str(compiled.data["dispatcher"].py_func.__module__).startswith(f"{__package__}.")


def _seconds_since(text: str) -> float:
    """Seconds since the announcement that the lock file records; infinite if it records none."""
    word, _, moment = text.strip().partition(" ")
    return abs(time.time() - int(moment)) if word == "announced" and moment.isdigit() else float("inf")


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _write(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
