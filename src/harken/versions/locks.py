"""File locks between processes and threads. The operating system releases them when their holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

Busy = Callable[[str], Exception]
"""Makes the error for a lock that is taken, from the text that its holder wrote in the file."""


@contextmanager
def locked(path: Path, busy: Busy | None = None) -> Iterator[TextIO]:
    """Hold the lock of a file, which is created if it does not exist.

    Waits while another process or thread holds it or, if `busy` is given, raises the error which that returns. The
    holder may write to the file: its text is not the lock. Raises OSError if the file cannot be opened.
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
            # A child that was forked meanwhile shares the lock: closing the file would not release it while the child
            # runs, and the child must not release it while its parent holds it.
            if os.getpid() == owner:
                fcntl.flock(stream, fcntl.LOCK_UN)
