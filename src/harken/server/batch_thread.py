"""A thread that works in batches: items that arrive while it works on one batch make up the next."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from harken.errors import HarkenError, StoreUnavailableError

log = logging.getLogger(__name__)
Item = TypeVar("Item")


class BatchThread(Generic[Item]):
    """Works on items in their order. A failed batch does not affect later ones."""

    def __init__(
        self,
        name: str,
        work: Callable[[list[Item]], None],
        failed: Callable[[list[Item], HarkenError], None],
        most: int,
        *,
        size_of: Callable[[Item], int] = lambda item: 1,
        ready: Callable[[], object] = lambda: None,
    ) -> None:
        """The thread calls `work` with each batch, and `failed` with a batch for which `work` raised.

        A batch has at most the size `most`, unless its only item is larger. `ready` is called before a batch is taken,
        and may block: items that arrive meanwhile are part of the batch.
        """
        self.waiting = 0
        """The total size of the items that wait."""
        self._work = work
        self._failed = failed
        self._most = most
        self._size_of = size_of
        self._ready = ready
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: Item) -> None:
        """Queue an item. Raises StoreUnavailableError once the thread is closed."""
        with self._changed:
            if self._is_closing:
                raise StoreUnavailableError("the server is shutting down")
            self._items.append(item)
            self.waiting += self._size_of(item)
            self._changed.notify()

    def close(self) -> None:
        """Work on the items that wait, and end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while self._wait():
            self._ready()
            batch = self._take()
            try:
                self._work(batch)
            except Exception as error:
                log.exception("the thread %s has failed on a batch", self._thread.name)
                self._failed(batch, internal_error(error))

    def _wait(self) -> bool:
        """Wait for items. Returns False if the thread is closed and none are left."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._is_closing)
            return bool(self._items)

    def _take(self) -> list[Item]:
        """Take the items of the next batch, at least one."""
        with self._changed:
            batch = [self._items.popleft()]
            size = self._size_of(batch[0])
            while self._items and size + self._size_of(self._items[0]) <= self._most:
                batch.append(self._items.popleft())
                size += self._size_of(batch[-1])
            self.waiting -= size
            return batch


def internal_error(error: Exception) -> HarkenError:
    """The error, wrapped in a HarkenError if it is none."""
    return error if isinstance(error, HarkenError) else HarkenError(f"internal: {error}")
