"""Calls of one operator: in batches or one by one, with a timeout, retries, counts, and a pause after failures."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from time import monotonic, perf_counter, sleep
from typing import Any, NamedTuple

from harken.concurrency.forking import PART, fork_lock
from harken.errors import HarkenError, LimitError, OperatorError
from harken.language.ast import Constant
from harken.limits import Limits
from harken.operators.operator import FREE, Operator
from harken.schema.values import KINDS, Value, utc

Binding = tuple[Value, ...]
Outcome = bool | tuple[Binding, ...] | HarkenError
"""Truth or, where arguments are variables, all their bindings; or the error that makes the predicate unknown."""
_THREADS = 8
_MOST_ABANDONED = 16
"""Calls past their timeout that may still run before the operator is paused."""
_COMPARABLE = {*KINDS, type(None), bytes, type(FREE)}
"""Types whose equal values are the same value. Arrays are not: [1] equals [True]."""
_FIRST_WAIT = 0.05
"""Seconds before the first retry. Each further wait is twice as long."""


class Evaluation(NamedTuple):
    """One evaluation: the attributes of an event that the operator reads, and the arguments of the predicate."""

    event: Mapping[str, Any]
    arguments: tuple[Any, ...]


@dataclass(slots=True)
class CallCounts:
    """Counts of an operator's calls since it was made."""

    calls: int = 0
    evaluations: int = 0
    """Predicates evaluated on an event: a call of a batched operator makes several."""
    failures: int = 0
    timeouts: int = 0
    retries: int = 0
    rejected: int = 0
    """Evaluations that were not made because the operator was paused."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["mean_call_size"] = round(self.evaluations / self.calls, 2) if self.calls else 0.0
        return plain


class Caller:
    """Calls an operator for an engine. Threads may share one."""

    def __init__(self, operator: Operator, limits: Limits) -> None:
        self.operator = operator
        self.counts = CallCounts()
        self._limits = limits
        self._lock = fork_lock(PART)
        self._turns: dict[int, threading.RLock] = {}
        """By process id: a child of `fork()` does not wait for a call that its parent was making."""
        self._failures_in_a_row = 0
        self._paused_until = 0.0
        self._abandoned: list[Future[Any]] = []

    def __call__(self, rows: Sequence[Evaluation]) -> list[Outcome]:
        """The outcome of each row. Rows for a batched operator must have variables at the same places."""
        operator = self.operator
        if operator.is_deterministic and operator.signature.reads is not None and len(rows) > 1:
            places = _equal_rows(rows)
            if places is not None and len(set(places)) < len(rows):
                distinct = list(dict.fromkeys(places))
                outcomes = dict(zip(distinct, self._called([rows[place] for place in distinct]), strict=True))
                return [outcomes[place] for place in places]
        return self._called(rows)

    def stats(self) -> dict[str, Any]:
        """The counts, and whether the operator is paused."""
        return {**self.counts.to_dict(), "is_paused": monotonic() < self._paused_until}

    @property
    def cost(self) -> float:
        """Milliseconds of an evaluation: as stated, else as measured, else 1."""
        if self.operator.cost is not None:
            return self.operator.cost
        counts = self.counts
        return max(1e-3, 1e3 * counts.seconds / counts.evaluations) if counts.evaluations else 1.0

    # Calls

    def _called(self, rows: Sequence[Evaluation]) -> list[Outcome]:
        operator = self.operator
        if operator.batched:
            return self._batch(rows)
        if operator.is_async:
            return self._count_each(rows, lambda: _on_loop(self._gathered(rows)))
        if operator.is_thread_safe and len(rows) > 1:
            return self._count_each(rows, lambda: list(_threads().map(self._one, rows)))
        return self._count_each(rows, lambda: [self._one(row) for row in rows])

    def _count_each(self, rows: Sequence[Evaluation], work: Callable[[], list[Outcome]]) -> list[Outcome]:
        paused = self._pause()
        if paused is not None:
            return self._reject(paused, len(rows))
        started, rejected = perf_counter(), self.counts.rejected
        outcomes = work()
        with self._lock:
            made = len(rows) - (self.counts.rejected - rejected)  # the operator may have been paused on the way
            self.counts.calls += made
            self.counts.evaluations += made
            self.counts.seconds += perf_counter() - started
        return outcomes

    def _one(self, row: Evaluation) -> Outcome:
        """The outcome of one row, with retries."""
        free = _free_count(row)
        outcome: Outcome = self._tried(lambda: self._read(self.operator.function(row.event, *row.arguments), free))
        return outcome

    def _tried(self, work: Callable[[], Any]) -> Any:
        wait = _FIRST_WAIT
        for turn in range(self.operator.retries + 1):
            paused = self._pause()
            if paused is not None:
                return self._reject(paused, 1)[0]
            try:
                with self._turn():
                    result = self._timed(work)
            except BaseException as problem:
                error = self._failed(problem)
            else:
                self._failures_in_a_row = 0
                return result
            if turn < self.operator.retries:
                with self._lock:
                    self.counts.retries += 1
                sleep(wait)
                wait *= 2
        return error

    def _turn(self) -> AbstractContextManager[Any]:
        """The lock to hold during a call, because several threads may match: none if the operator is thread-safe."""
        if self.operator.is_thread_safe or self.operator.is_async:
            return nullcontext()
        return self._turns.setdefault(os.getpid(), threading.RLock())

    def _timed(self, work: Callable[[], Any]) -> Any:
        """The result of the work. Work that takes longer than the timeout is abandoned, and TimeoutError raised."""
        limit = self.operator.timeout
        if limit is None:
            return work()
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as problem:
                future.set_exception(problem)

        # A new thread: one that never returns would be lost to a pool.
        threading.Thread(target=run, name=f"operator {self.operator.name}", daemon=True).start()
        try:
            return future.result(limit)
        except FutureTimeoutError:
            if future.done():
                return future.result()
            self._abandoned = [each for each in self._abandoned if not each.done()] + [future]
            raise

    async def _gathered(self, rows: Sequence[Evaluation]) -> list[Outcome]:
        return list(await asyncio.gather(*map(self._awaited, rows)))

    async def _awaited(self, row: Evaluation) -> Outcome:
        wait = _FIRST_WAIT
        operator = self.operator
        error: HarkenError | None = None
        for turn in range(operator.retries + 1):
            paused = self._pause()
            if paused is not None:
                return self._reject(paused, 1)[0]
            try:
                answer = await asyncio.wait_for(operator.function(row.event, *row.arguments), operator.timeout)
                outcome = self._read(answer, _free_count(row))
            except BaseException as problem:
                error = self._failed(problem)
            else:
                self._failures_in_a_row = 0
                return outcome
            if turn < operator.retries:
                self.counts.retries += 1
                await asyncio.sleep(wait)
                wait *= 2
        assert error is not None
        return error

    def _batch(self, rows: Sequence[Evaluation]) -> list[Outcome]:
        paused = self._pause()
        if paused is not None:
            return self._reject(paused, len(rows))
        started = perf_counter()
        free = _free_count(rows[0])
        function = self.operator.function
        groups = [rows] if self.operator.batched == "lists" else _grouped_by_types(rows)
        if len(groups) > 1:
            outcomes = {id(row): each for group in groups for row, each in zip(group, self._batch(group), strict=True)}
            return [outcomes[id(row)] for row in rows]
        columns = _lists if self.operator.batched == "lists" else _arrow

        def call() -> list[Any]:
            events, arguments = columns(rows)
            result = function(events, *arguments)
            if self.operator.is_async:
                result = _on_loop(_wait(result))
            answers = result.to_pylist() if hasattr(result, "to_pylist") else list(result)
            if len(answers) != len(rows):
                raise OperatorError(f"it returned {len(answers)} answers for {len(rows)} events")
            return answers

        answers = self._tried(call)
        with self._lock:
            self.counts.calls += 1
            self.counts.evaluations += len(rows)
            self.counts.seconds += perf_counter() - started
        if isinstance(answers, HarkenError):
            return [answers] * len(rows)
        return [self._read_one(each, free) for each in answers]

    def _read_one(self, answer: Any, free: int) -> Outcome:
        try:
            return self._read(answer, free)
        except Exception as problem:  # an answer may be an iterator that raises
            return self._failed(problem)

    # Failures

    def _pause(self) -> OperatorError | None:
        """The error of calls while the operator is paused; None if it is not."""
        if monotonic() < self._paused_until:
            message = f"the operator `{self.operator.name}` failed {self.operator.most_failures} times in a row"
            return OperatorError(message, hint=f"it is not called for {self.operator.pause:g} seconds")
        return None

    def _reject(self, error: OperatorError, count: int) -> list[Outcome]:
        with self._lock:
            self.counts.rejected += count
        return [error] * count

    def _failed(self, problem: BaseException) -> HarkenError:
        """Count a failure, and turn it into an error. KeyboardInterrupt is raised again."""
        if isinstance(problem, KeyboardInterrupt):
            raise problem
        is_late = isinstance(problem, FutureTimeoutError | TimeoutError | asyncio.TimeoutError)
        with self._lock:
            self.counts.failures += 1
            self.counts.timeouts += is_late
            self._failures_in_a_row += 1
            is_stuck = sum(not each.done() for each in self._abandoned) > _MOST_ABANDONED
            if self._failures_in_a_row >= self.operator.most_failures or is_stuck:
                self._paused_until = monotonic() + self.operator.pause
                # After the pause one call is tried; another failure pauses the operator again.
                self._failures_in_a_row = self.operator.most_failures - 1
        name = self.operator.name
        if isinstance(problem, LimitError):
            return problem
        if is_late and self.operator.timeout is not None:
            return OperatorError(f"the operator `{name}` took longer than {self.operator.timeout:g} seconds")
        if isinstance(problem, HarkenError):
            return OperatorError(f"the operator `{name}` failed: {problem.message:.300}", hint=problem.hint)
        return OperatorError(f"the operator `{name}` failed: {type(problem).__name__}: {problem!s:.300}")

    # Answers

    def _read(self, answer: Any, free: int) -> bool | tuple[Binding, ...]:
        """An answer as truth or bindings. Raises OperatorError or LimitError."""
        if free:
            return self._bindings(answer, free)
        if isinstance(answer, bool):
            return answer
        if type(answer).__name__ == "bool_" or type(answer).__name__ == "bool":  # of numpy
            return bool(answer)
        if answer is None:
            raise OperatorError("it returned None, which is neither true nor false")
        if isinstance(answer, Iterable) and not isinstance(answer, str | bytes | Mapping):
            return bool(self._bindings(answer, 0))
        raise OperatorError(f"it returned a {type(answer).__name__}, not truth")

    def _bindings(self, answer: Any, free: int) -> tuple[Binding, ...]:
        if answer is False:
            return ()
        if answer is None:
            raise OperatorError("it returned None, not bindings", hint="return an empty list if there are none")
        if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
            hint = "yield each binding, or return a list of them"
            raise OperatorError(f"it returned a {type(answer).__name__}, not bindings", hint=hint)
        bindings: dict[Any, Binding] = {}
        most = self._limits.max_operator_bindings
        for count, each in enumerate(answer, 1):
            if count > most:
                message = f"the operator `{self.operator.name}` returned more than {most:,} bindings"
                raise LimitError(message, limit="max_operator_bindings")
            several = (each,) if free == 1 and not isinstance(each, tuple) else each
            if not isinstance(several, tuple | list) or len(several) != free:
                if not free:
                    message = f"it returned bindings, such as {each!r:.40}, but there is no variable to bind"
                    raise OperatorError(message, hint="return True or False where no argument is harken.FREE")
                raise OperatorError(f"a binding is a tuple of {free}, not {each!r:.40}")
            values = tuple(_value(one) for one in several)
            if None not in values:
                # Keyed by types too: 1 and True are equal in Python, but different values.
                bindings[tuple(map(type, values)), values] = values  # type: ignore[assignment]
        return tuple(bindings.values())


def _value(given: Any) -> Value | None:
    """A binding as a value of the language; None for None and NaN. Raises OperatorError."""
    if hasattr(given, "item") and type(given).__module__ == "numpy":
        given = given.item()
    kind = type(given)
    if given is None or (kind is float and given != given):
        return None
    try:
        if kind is int or kind is float:
            Constant(given)  # raises for integers beyond 64 bits and for infinite floats
        elif kind is str and not given.isascii():
            given.encode()
        elif hasattr(given, "utcoffset"):
            given = utc(given)
    except ValueError as problem:
        raise OperatorError(f"a variable cannot hold {given!r:.40}: {problem}") from problem
    if kind not in KINDS:
        raise OperatorError(f"{given!r:.40} is no value that a variable can hold")
    value: Value = given
    return value


def _free_count(row: Evaluation) -> int:
    """How many arguments are variables to bind."""
    return sum(each is FREE for each in row.arguments)


def _equal_rows(rows: Sequence[Evaluation]) -> list[int] | None:
    """For each row the place of the first row with the same values; None if some values cannot be compared."""
    first: dict[Any, int] = {}
    places: list[int] = []
    for place, row in enumerate(rows):
        values = (*row.event.values(), *row.arguments)
        if any(type(each) not in _COMPARABLE for each in values):
            return None
        places.append(first.setdefault((tuple(row.event), tuple(map(type, values)), values), place))
    return places


def _lists(rows: Sequence[Evaluation]) -> tuple[Any, list[Any]]:
    return [row.event for row in rows], [
        FREE if first is FREE else [row.arguments[place] for row in rows]
        for place, first in enumerate(rows[0].arguments)
    ]


def _grouped_by_types(rows: Sequence[Evaluation]) -> list[Sequence[Evaluation]]:
    """Groups of rows whose values have the same types, since a column of Arrow has one type."""
    kinds = [
        {
            name: KINDS.get(type(each), type(each))
            for name, each in (*row.event.items(), *enumerate(row.arguments))
            if each is not None
        }
        for row in rows
    ]
    whole: dict[Any, Any] = {}
    if all(whole.setdefault(name, kind) is kind for each in kinds for name, kind in each.items()):
        return [rows]
    groups: dict[Any, list[Evaluation]] = {}
    for row, each in zip(rows, kinds, strict=True):
        groups.setdefault(tuple(each.items()), []).append(row)
    return list(groups.values())


def _arrow(rows: Sequence[Evaluation]) -> tuple[Any, list[Any]]:
    import pyarrow as pa

    events, arguments = _lists(rows)
    names = dict.fromkeys(name for event in events for name in event)
    table = pa.table({name: pa.array([event.get(name) for event in events]) for name in names})
    return table, [each if each is FREE else pa.array(each) for each in arguments]


# Each process makes its thread pool and event loop at first use, a child of `fork()` too.

_made: dict[int, tuple[ThreadPoolExecutor | None, asyncio.AbstractEventLoop | None]] = {}
"""The thread pool and the event loop of each process, by its id."""
_making = fork_lock(PART)


def _threads() -> ThreadPoolExecutor:
    with _making:
        pool, loop = _made.get(os.getpid(), (None, None))
        if pool is None:
            pool = ThreadPoolExecutor(_THREADS, "operators")
            _made[os.getpid()] = pool, loop
        return pool


def _on_loop(work: Any) -> Any:
    with _making:
        pool, loop = _made.get(os.getpid(), (None, None))
        if loop is None:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="operators", daemon=True).start()
            _made[os.getpid()] = pool, loop
    return asyncio.run_coroutine_threadsafe(work, loop).result()


async def _wait(answer: Any) -> Any:
    return await answer
