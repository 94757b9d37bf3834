"""A pool of connections that threads share. Idle connections are reused, and replaced if they were cut meanwhile."""

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
    """Open connections. A child of `fork()` opens connections of its own, and does not touch its parent's."""

    def __init__(self, make: Callable[[], Pooled], most_idle: float = inf) -> None:
        self._make = make
        self._most_idle = most_idle
        """Most idle connections that stay open."""
        self._idle: dict[int, list[Pooled]] = {}
        """Idle connections by the id of the process that opened them."""
        self._lock = fork_lock(PART)
        self._is_closed = False
        finalize(self, _close, self._idle)

    def run(self, statement: Callable[[Pooled], Answer]) -> Answer:
        """Run a statement on a connection, and return its result."""
        connection, answer = self.take(statement)
        self.give_back(connection)
        return answer

    def take(self, first: Callable[[Pooled], Answer]) -> tuple[Pooled, Answer]:
        """A connection for one thread, and the result of a first statement on it.

        If that fails because an idle connection was cut, it is run on another one.
        """
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
        """Return a connection to the pool, which closes it if it is not usable or there are enough idle ones."""
        with self._lock:
            idle = self._idle.setdefault(os.getpid(), [])
            if connection.is_usable and not self._is_closed and len(idle) < self._most_idle:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections now, and the others when they are given back."""
        self._is_closed = True
        with self._lock:
            idle = self._idle.pop(os.getpid(), [])
        for each in idle:
            each.close()


def _close(idle: Mapping[int, list[Any]]) -> None:
    for each in idle.get(os.getpid(), ()):
        each.close()
