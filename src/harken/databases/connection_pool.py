"""Connections that threads share: one that nobody uses is taken again, and one that was cut meanwhile is replaced."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Generic, TypeVar
from weakref import finalize

from harken.concurrency.forking import PART, fork_lock
from harken.databases.connection import Connection

Pooled = TypeVar("Pooled", bound=Connection)
Answer = TypeVar("Answer")


class Pool(Generic[Pooled]):
    """Open connections. A child of `fork()` has connections of its own, and leaves those of its parent alone."""

    def __init__(self, make: Callable[[], Pooled], most_idle: float = inf) -> None:
        self._make = make
        self._most_idle = most_idle
        """Connections that stay open when nobody uses them."""
        self._idle: dict[int, list[Pooled]] = {}
        """By the process that has them open."""
        self._lock = fork_lock(PART)
        self._is_closed = False
        finalize(self, _close, self._idle)

    def ask(self, first: Callable[[Pooled], Answer]) -> Answer:
        """What a statement returns."""
        connection, answer = self.take(first)
        self.give_back(connection)
        return answer

    def take(self, first: Callable[[Pooled], Answer]) -> tuple[Pooled, Answer]:
        """A connection for one thread, and what a first statement on it returns."""
        while True:
            with self._lock:
                idle = self._idle.get(os.getpid())
                kept = idle.pop() if idle else None
            connection = kept or self._make()
            if kept is None:
                connection.connect()
            try:
                return connection, first(connection)
            except BaseException as error:
                if not connection.is_lost(error):
                    self.give_back(connection)
                    raise
                connection.close()
                if kept is None:
                    raise

    def give_back(self, connection: Pooled) -> None:
        """Keep a connection that was taken for whoever comes next, unless it is of no use."""
        with self._lock:
            idle = self._idle.setdefault(os.getpid(), [])
            if connection.is_usable and not self._is_closed and len(idle) < self._most_idle:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close those that nobody uses, and the others once they are given back."""
        self._is_closed = True
        with self._lock:
            idle = self._idle.pop(os.getpid(), [])
        for each in idle:
            each.close()


def _close(idle: Mapping[int, list[Any]]) -> None:
    for each in idle.get(os.getpid(), ()):
        each.close()
