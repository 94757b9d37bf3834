"""The one thread that writes to the store. Changes that wait while it writes share the next transaction and flush."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from harken.errors import HarkenError, StoreError, StoreUnavailableError
from harken.server.batch_thread import BatchThread, internal_error
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
    """Runs changes of the store in their order. A failed change does not affect the others of its transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.transactions = 0
        self.jobs = 0
        self.failures = 0
        """Transactions that failed because the store was not available."""
        self._thread: BatchThread[_Job[Any]] = BatchThread("harken-commit", self._run, _answer_failed, _MOST_AT_ONCE)

    def submit(self, work: Callable[[Writing], Result], then: Callable[[Result], None] | None = None) -> Future[Result]:
        """Queue a change of the store. `then` runs once it is on disk, before the future is done.

        `work` may run twice, in two transactions of which one is rolled back.
        """
        job = _Job(work, then)
        job.future.set_running_or_notify_cancel()  # cancelling the future does not cancel the change
        self._thread.put(job)
        return job.future

    def close(self) -> None:
        """Make the changes that wait, and end the thread."""
        self._thread.close()

    def _run(self, jobs: list[_Job[Any]]) -> None:
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
            for job in jobs:  # separately, so that only the faulty one fails
                self._commit([job])

    def _finish(self, jobs: list[_Job[Any]]) -> None:
        for job in jobs:
            if job.error is None and job.then is not None:
                try:
                    job.then(job.result)
                except Exception as error:
                    log.exception("the follow-up of a change of the store failed")
                    job.error = internal_error(error)
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)


def _fail(jobs: list[_Job[Any]], error: BaseException) -> None:
    for job in jobs:
        job.error = error


def _answer_failed(jobs: list[_Job[Any]], error: HarkenError) -> None:
    for job in jobs:
        if not job.future.done():
            job.future.set_exception(error)
