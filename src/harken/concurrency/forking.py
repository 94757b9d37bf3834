"""Locks that stay usable in a child of `fork()`.

A child has only the thread that forked. A lock that another thread held would stay locked there forever, and the data
that it guards would be half changed. So the forking thread first takes every lock made here; both sides release them.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any
from weakref import WeakSet

ENGINE, KINDS, OPERATORS, PLAIN_PARTS, MATCHER, PART, COMPILER, LLVM, FINALIZER = range(9)
"""Ranks of locks, named after what they guard. A thread that holds a lock never waits for one of a lower rank.

A lock of rank FINALIZER may be taken at any time, because the garbage collector may run at any time.
"""

_locks: tuple[WeakSet[Any], ...] = tuple(WeakSet() for _ in range(9))
_making = threading.Lock()
_held: list[Any] = []


def fork_lock(rank: int) -> Any:
    """A lock of a rank."""
    return _kept(threading.Lock(), rank)


def fork_rlock(rank: int) -> Any:
    """A reentrant lock of a rank."""
    return _kept(threading.RLock(), rank)


def _kept(lock: Any, rank: int) -> Any:
    with _making:
        _locks[rank].add(lock)
    return lock


def _take_all() -> None:
    _making.acquire()
    compiler = sys.modules.get("numba.core.compiler_lock")
    if compiler is not None:  # Numba compiles under its own lock, and the compiling thread may hold one of ours
        _locks[COMPILER].add(compiler.global_compiler_lock)
    llvm = sys.modules.get("llvmlite.binding.ffi")
    if llvm is not None:  # every call of LLVM holds one, also a query for a kernel's address
        _locks[LLVM].add(llvm.lib._lock._lock)
    for lock in [lock for rank in _locks for lock in list(rank)]:
        lock.acquire()
        _held.append(lock)


def _release_all() -> None:
    while _held:
        _held.pop().release()
    _making.release()


os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_release_all)
