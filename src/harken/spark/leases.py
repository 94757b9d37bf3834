"""Leases: pins that keep a version of an index on disk for a reader in this process, and go when the reader is done.

A reader is a streaming query that calls `match` inside `foreachBatch`, or else the process itself. A query needs a
version until the batch is over. A process needs it until it ends: nobody can tell when a DataFrame is used last.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

_PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch of a streaming query, by Spark's own ids."""

    query: str
    batch: str


@dataclass(slots=True)
class _Turns:
    """The leases that a query took in its present batch, and in the one before."""

    batch: str
    before: set[str] = field(default_factory=set)
    now: set[str] = field(default_factory=set)


_held: dict[tuple[str, str], Callable[[], None]] = {}
"""How to release each lease of this process, by the root of its index and its name."""
_turns: dict[tuple[str, str], _Turns] = {}
"""What each query has leased of an index, by its root and the query's id."""


def lease_name(version: int, batch: Batch | None) -> str:
    """The name of the pin. It says which process made it, so that others see when that is no more."""
    reader = "" if batch is None else f"{batch.query.replace('-', '')}."
    return f"{_PROCESS}-{os.uname().nodename}-{os.getpid()}-{reader}{version}"


def take(root: str, name: str, batch: Batch | None, release: Callable[[], None]) -> None:
    """Record a lease that was pinned, and release those that its query did not take again in the last batch."""
    _held[root, name] = release
    if batch is None:
        return
    turns = _turns.setdefault((root, batch.query), _Turns(batch.batch))
    if turns.batch != batch.batch:
        over = turns.before - turns.now - {name}
        _turns[root, batch.query] = turns = _Turns(batch.batch, before=turns.now)
        for each in over:
            _held.pop((root, each))()
    turns.now.add(name)


def is_left_behind(name: str) -> bool:
    """Whether a pin is the lease of a process of this machine that does not run any more."""
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


@atexit.register
def _release_all() -> None:
    for release in _held.values():
        with suppress(Exception):  # the storage may be out of reach by now; others see that this process is gone
            release()
