"""Children of `fork()`, which do their work and end: whatever they raise, no test goes on in them."""

from __future__ import annotations

import os
from collections.abc import Callable


def forked(work: Callable[[], object]) -> int:
    """A child that does the work, by its process id. It ends with 0, or with 1 if there is an error."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def waited(child: int) -> int:
    """What a child ended with."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
