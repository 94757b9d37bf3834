"""One process of a machine compiles at a time. Others that need the same kernel wait, and then read what is kept.

The lock is a file beside the kernels that are kept, and the operating system releases it when its holder dies. It only
saves work: a process that cannot take it, or has waited too long, compiles for itself, and cache files are replaced as
a whole.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FILE = "compiling.lock"
_LOOK_EVERY = 0.02
_LONGEST_WAIT = 300.0
"""Seconds. No kernel takes this long: a holder that keeps others waiting longer is suspended."""


class CompileLock:
    """The lock of a process. Used under Numba's own lock only, so by one thread at a time."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._owner = 0

    @property
    def is_held(self) -> bool:
        self._forget_parent()
        return self._file is not None

    def take(self, folder: str) -> bool:
        """Wait for the lock of a folder. Returns whether it is newly held: others may have compiled meanwhile."""
        if self.is_held:
            return False
        file = _opened(os.path.join(folder, FILE))
        if file is None:
            return False
        try:
            is_taken = _wait(file)
        except BaseException:  # interrupted
            os.close(file)
            raise
        if not is_taken:
            os.close(file)
            return False
        self._file, self._owner = file, os.getpid()
        return True

    @contextmanager
    def released_after(self) -> Iterator[None]:
        """Release the lock at the end if it was taken in this block."""
        was_held = self.is_held
        try:
            yield
        finally:
            if not was_held:
                self._release()

    def read(self) -> str:
        """The text of the lock file. The lock does not depend on it."""
        if self._file is None:
            return ""
        with suppress(OSError):
            return os.pread(self._file, 100, 0).decode("utf-8", "replace")
        return ""

    def write(self, text: str) -> None:
        """Write to the file while the lock is held."""
        if self._file is not None:
            with suppress(OSError):  # another user's
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, text.encode(), 0)

    def _release(self) -> None:
        self._forget_parent()
        if self._file is not None:
            # A child that was forked meanwhile shares the lock: closing the file would not release it.
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = None

    def _forget_parent(self) -> None:
        """Close what a parent held when it forked, without releasing it."""
        if self._file is not None and self._owner != os.getpid():
            os.close(self._file)
            self._file = None


def _opened(path: str) -> int | None:
    """Open the lock file, or create it. None if neither is possible."""
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):  # another user's can still be locked
        with suppress(OSError):
            return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    return None


def _wait(file: int) -> bool:
    """Wait for the lock. Returns False where files cannot be locked, or after _LONGEST_WAIT."""
    until = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < until:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_EVERY)
        except OSError:
            return False
        else:
            return True
    return False
