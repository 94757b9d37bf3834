"""The one thread that writes to the store. What waits while it writes shares the next transaction and its flush."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from harken.errors import HarkenError, StoreError, StoreUnavailableError
from harken.store import BehindError, Store, Writing

log = logging.getLogger(__name__)
Result = TypeVar("Result")
_MOST_AT_ONCE = 1_000


@dataclass(slots=True)
class _Job(Generic[Result]):
    work: Callable[[Writing], Result]
    then: Callable[[Result], None] | None
    future: Future[Result] = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None


class Committer:
    """Runs changes of the store in their order. A change that fails leaves the others of its transaction alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[_Job[Any]] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self.transactions = 0
        self.jobs = 0
        self.failures = 0
        """Transactions that failed because the store was not available."""
        self._thread = threading.Thread(target=self._run, name="harken-commit", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Writing], Result], then: Callable[[Result], None] | None = None) -> Future[Result]:
        """Have a change made. `then` runs once it is on disk, before the future is done.

        The change may be run twice, in transactions of which only one is kept.
        """
        job = _Job(work, then)
        job.future.set_running_or_notify_cancel()  # who waits may go away, the change is made all the same
        with self._wake:
            if self._closing:
                raise StoreUnavailableError("the server is shutting down")
            self._waiting.append(job)
            self._wake.notify()
        return job.future

    def close(self) -> None:
        """Make what waits, and end."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._closing:
                    self._wake.wait()
                if not self._waiting:
                    return
                jobs = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_AT_ONCE))]
            self._commit(jobs)
            self._finish(jobs)

    def _commit(self, jobs: list[_Job[Any]]) -> None:
        self.transactions += 1
        self.jobs += len(jobs)
        try:
            with self._store.writing() as writing:
                for job in jobs:
                    job.error = None
                    try:
                        job.result = job.work(writing)
                    except StoreError:
                        raise
                    except (HarkenError, BehindError) as error:
                        job.error = error
        except StoreUnavailableError as error:
            self.failures += 1
            _fail(jobs, error)
        except Exception as error:
            if len(jobs) == 1:
                log.exception("a change of the store failed")
                _fail(jobs, error if isinstance(error, HarkenError) else StoreError(f"the store failed: {error}"))
                return
            for job in jobs:  # one of them is the culprit
                self._commit([job])

    def _finish(self, jobs: list[_Job[Any]]) -> None:
        for job in jobs:
            if job.error is None and job.then is not None:
                try:
                    job.then(job.result)
                except Exception as error:
                    log.exception("what follows a change of the store failed")
                    job.error = error if isinstance(error, HarkenError) else HarkenError(f"internal: {error}")
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)


def _fail(jobs: list[_Job[Any]], error: BaseException) -> None:
    for job in jobs:
        job.error = error
