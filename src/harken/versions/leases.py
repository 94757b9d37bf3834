"""Leases: pins that keep a version for a reader in this process, and are released when the reader is done.

A lease ends when its reader is closed or garbage-collected, or its process exits. A killed process releases nothing,
but a lease's name contains its machine and process id, so that others on the machine can remove dead leases.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from harken.versions.root import Root

_PROCESS = "process"
_Leases = dict[tuple[str, str], Callable[[], object]]
"""Functions that release leases, by root and name."""


class Reader:
    """Holds a lease of each version that it reads, until it is closed.

    A reader that works in turns holds the versions used in this turn and in the last one. The name distinguishes the
    readers of one process.
    """

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._turn: str | None = None
        self._before: _Leases = {}
        self._now: _Leases = {}

    def hold(self, root: Root[Any], version: int, turn: str | None = None) -> None:
        """Keep a version on disk. The first call of a new turn releases the leases that the last turn did not use.

        Raises HarkenError or OSError if the root cannot be written to.
        """
        name = f"{_PROCESS}-{os.uname().nodename}-{os.getpid()}-{self._name and self._name + '.'}{version}"
        root.pin(name, version)
        lease = root.root, name
        release = self._now.get(lease) or self._before.get(lease)
        if release is None:
            release = weakref.finalize(self, _release, os.getpid(), root, name)
        expired: _Leases = {}
        if turn != self._turn:
            expired = {each: ends for each, ends in self._before.items() if each not in self._now and each != lease}
            self._turn, self._before, self._now = turn, self._now, {}
        self._now[lease] = release
        _call_all(expired)

    def close(self) -> None:
        """Release all leases."""
        leases = self._before | self._now
        self._before, self._now = {}, {}
        _call_all(leases)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def is_left_behind(name: str) -> bool:
    """Whether a pin is the lease of a process of this machine that no longer runs."""
    kind, _, rest = name.partition("-")
    machine, process, _ = rest.rsplit("-", 2) if rest.count("-") >= 2 else ("", "", "")
    if kind != _PROCESS or machine != os.uname().nodename or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _call_all(leases: _Leases) -> None:
    for release in leases.values():
        release()


def _release(process: int, root: Root[Any], name: str) -> None:
    """Unpin, unless this is a forked child: its parent still reads."""
    if os.getpid() == process:
        with suppress(Exception):  # the storage may be unreachable; others remove the lease after this process ends
            root.unpin(name)
