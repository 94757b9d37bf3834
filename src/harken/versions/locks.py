"""File locks between processes and threads. The operating system releases them when their holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

Busy = Callable[[str], Exception]
"""Makes the error for a lock that is held, from the text that the holder wrote to the file."""


@contextmanager
def locked(path: Path, busy: Busy | None = None) -> Iterator[TextIO]:
    """Hold the lock of a file, which is created if it does not exist.

    While another process or thread holds it, waits or, if `busy` is given, raises the error that it returns. The holder
    may write to the file, which does not affect the lock. Raises OSError if the file cannot be opened.
    """
    owner = os.getpid()
    with path.open("a+", encoding="utf-8", errors="replace") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX if busy is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            assert busy is not None
            stream.seek(0)
            raise busy(stream.read().strip()) from error
        try:
            yield stream
        finally:
            # A child forked meanwhile shares the lock: closing the file would not release it while the child runs, and
            # the child must not release the lock of its parent.
            if os.getpid() == owner:
                fcntl.flock(stream, fcntl.LOCK_UN)
