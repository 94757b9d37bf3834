"""Calls of one operator: in batches or one by one, bounded in time, repeated, counted, and given up where they fail."""

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
"""Truth or, where variables are to be bound, all their bindings; or why it is unknown."""
_THREADS = 8
_MOST_ABANDONED = 16
"""Calls that ran out of time and still run: beyond so many the operator is left alone."""
_COMPARABLE = {*KINDS, type(None), bytes, type(FREE)}
"""Types of values that are the same if they are equal: an array may hold 1 or TRUE."""
_FIRST_WAIT = 0.05
"""Seconds before a call is made again."""


class Evaluation(NamedTuple):
    """One evaluation: what the operator sees of an event, and the arguments of the predicate."""

    event: Mapping[str, Any]
    arguments: tuple[Any, ...]


@dataclass(slots=True)
class CallCounts:
    """What an operator did so far."""

    calls: int = 0
    evaluations: int = 0
    """Predicates that were evaluated on an event: a batch has several in a call."""
    failures: int = 0
    timeouts: int = 0
    retries: int = 0
    refused: int = 0
    """Evaluations that were not made, because the operator was left alone."""
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
        """By process: a child of `fork()` does not wait for a call that its parent was making."""
        self._in_a_row = 0
        self._paused_until = 0.0
        self._abandoned: list[Future[Any]] = []

    def __call__(self, rows: Sequence[Evaluation]) -> list[Outcome]:
        """The outcome of each row. Rows of a batched operator have variables at the same places."""
        operator = self.operator
        if operator.is_deterministic and operator.signature.reads is not None and len(rows) > 1:
            places = _equal_rows(rows)
            if places is not None and len(set(places)) < len(rows):
                distinct = list(dict.fromkeys(places))
                known = dict(zip(distinct, self._called([rows[place] for place in distinct]), strict=True))
                return [known[place] for place in places]
        return self._called(rows)

    def stats(self) -> dict[str, Any]:
        """Counts, and whether it is called at present."""
        return {**self.counts.to_dict(), "is_paused": monotonic() < self._paused_until}

    @property
    def cost(self) -> float:
        """What an evaluation takes: as stated, else in milliseconds as measured, else 1."""
        if self.operator.cost is not None:
            return self.operator.cost
        counts = self.counts
        return max(1e-3, 1e3 * counts.seconds / counts.evaluations) if counts.evaluations else 1.0

    # One call after the other, or all at once

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
            return self._refuse(paused, len(rows))
        started, refused = perf_counter(), self.counts.refused
        found = work()
        with self._lock:
            made = len(rows) - (self.counts.refused - refused)  # it may have been given up on the way
            self.counts.calls += made
            self.counts.evaluations += made
            self.counts.seconds += perf_counter() - started
        return found

    def _one(self, row: Evaluation) -> Outcome:
        """One row, tried as often as the policy says."""
        free = _free(row)
        found: Outcome = self._tried(lambda: self._read(self.operator.function(row.event, *row.arguments), free))
        return found

    def _tried(self, work: Callable[[], Any]) -> Any:
        wait = _FIRST_WAIT
        for turn in range(self.operator.retries + 1):
            paused = self._pause()
            if paused is not None:
                return self._refuse(paused, 1)[0]
            try:
                with self._turn():
                    found = self._timed(work)
            except BaseException as problem:
                error = self._failed(problem)
            else:
                self._in_a_row = 0
                return found
            if turn < self.operator.retries:
                with self._lock:
                    self.counts.retries += 1
                sleep(wait)
                wait *= 2
        return error

    def _turn(self) -> AbstractContextManager[Any]:
        """Engines are matched in several threads: an operator that is not said to be safe there is called in one."""
        if self.operator.is_thread_safe or self.operator.is_async:
            return nullcontext()
        return self._turns.setdefault(os.getpid(), threading.RLock())

    def _timed(self, work: Callable[[], Any]) -> Any:
        """The result of the work, which is left behind if it takes too long."""
        limit = self.operator.timeout
        if limit is None:
            return work()
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as problem:
                future.set_exception(problem)

        # A thread of its own: one of a pool that never comes back would be missing there.
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
                return self._refuse(paused, 1)[0]
            try:
                answer = await asyncio.wait_for(operator.function(row.event, *row.arguments), operator.timeout)
                found = self._read(answer, _free(row))
            except BaseException as problem:
                error = self._failed(problem)
            else:
                self._in_a_row = 0
                return found
            if turn < operator.retries:
                self.counts.retries += 1
                await asyncio.sleep(wait)
                wait *= 2
        assert error is not None
        return error

    def _batch(self, rows: Sequence[Evaluation]) -> list[Outcome]:
        paused = self._pause()
        if paused is not None:
            return self._refuse(paused, len(rows))
        started = perf_counter()
        free = _free(rows[0])
        function = self.operator.function
        groups = [rows] if self.operator.batched == "lists" else _alike(rows)
        if len(groups) > 1:
            answered = {id(row): each for group in groups for row, each in zip(group, self._batch(group), strict=True)}
            return [answered[id(row)] for row in rows]
        columns = _lists if self.operator.batched == "lists" else _arrow

        def call() -> list[Any]:
            events, arguments = columns(rows)
            found = function(events, *arguments)
            if self.operator.is_async:
                found = _on_loop(_wait(found))
            answers = found.to_pylist() if hasattr(found, "to_pylist") else list(found)
            if len(answers) != len(rows):
                raise OperatorError(f"it answered {len(answers)} times for {len(rows)} events")
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
        except Exception as problem:  # an answer may be anything, also what fails while it is read
            return self._failed(problem)

    # Failing

    def _pause(self) -> OperatorError | None:
        """Why the operator is left alone at present, if it is."""
        if monotonic() < self._paused_until:
            message = f"the operator `{self.operator.name}` failed {self.operator.most_failures} times in a row"
            return OperatorError(message, hint=f"it is left alone for {self.operator.pause:g} seconds")
        return None

    def _refuse(self, error: OperatorError, count: int) -> list[Outcome]:
        with self._lock:
            self.counts.refused += count
        return [error] * count

    def _failed(self, problem: BaseException) -> HarkenError:
        """Count a failure, and word it. What ends the program goes on."""
        if isinstance(problem, KeyboardInterrupt):
            raise problem
        is_late = isinstance(problem, FutureTimeoutError | TimeoutError | asyncio.TimeoutError)
        with self._lock:
            self.counts.failures += 1
            self.counts.timeouts += is_late
            self._in_a_row += 1
            is_stuck = sum(not each.done() for each in self._abandoned) > _MOST_ABANDONED
            if self._in_a_row >= self.operator.most_failures or is_stuck:
                self._paused_until = monotonic() + self.operator.pause
                self._in_a_row = self.operator.most_failures - 1  # then one more try, and no more if that fails
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
        """What an answer says. Raises OperatorError or LimitError."""
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
            raise OperatorError("it returned None, not bindings", hint="return an empty list where there are none")
        if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
            hint = "yield each binding, or return a list of them"
            raise OperatorError(f"it returned a {type(answer).__name__}, not bindings", hint=hint)
        found: dict[Any, Binding] = {}
        most = self._limits.max_operator_bindings
        for count, each in enumerate(answer, 1):
            if count > most:
                message = f"the operator `{self.operator.name}` returned more than {most:,} bindings"
                raise LimitError(message, limit="max_operator_bindings")
            several = (each,) if free == 1 and not isinstance(each, tuple) else each
            if not isinstance(several, tuple | list) or len(several) != free:
                if not free:
                    message = f"it returned bindings, such as {each!r:.40}, and there is no variable to bind"
                    raise OperatorError(message, hint="return True or False where no argument is harken.FREE")
                raise OperatorError(f"a binding is a tuple of {free}, not {each!r:.40}")
            values = tuple(_value(one) for one in several)
            if None not in values:
                found[tuple(map(type, values)), values] = values  # type: ignore[assignment]
        return tuple(found.values())  # 1 and TRUE are equal in Python, and not the same


def _value(given: Any) -> Value | None:
    """What is bound, as a value of the language; None if it is none. Raises OperatorError."""
    if hasattr(given, "item") and type(given).__module__ == "numpy":
        given = given.item()
    kind = type(given)
    if given is None or (kind is float and given != given):
        return None
    try:
        if kind is int or kind is float:
            Constant(given)  # whole numbers of 64 bits, finite others
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


def _free(row: Evaluation) -> int:
    """How many variables are to be bound."""
    return sum(each is FREE for each in row.arguments)


def _equal_rows(rows: Sequence[Evaluation]) -> list[int] | None:
    """For each row the place of the first that is the same; None if they do not compare."""
    first: dict[Any, int] = {}
    found: list[int] = []
    for place, row in enumerate(rows):
        values = (*row.event.values(), *row.arguments)
        if any(type(each) not in _COMPARABLE for each in values):
            return None
        found.append(first.setdefault((tuple(row.event), tuple(map(type, values)), values), place))
    return found


def _lists(rows: Sequence[Evaluation]) -> tuple[Any, list[Any]]:
    return [row.event for row in rows], [
        FREE if first is FREE else [row.arguments[place] for row in rows]
        for place, first in enumerate(rows[0].arguments)
    ]


def _alike(rows: Sequence[Evaluation]) -> list[Sequence[Evaluation]]:
    """Rows by the types of their values: those of a column of Arrow are of one."""
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


# Threads and the loop are made when they are first needed, again in a child of `fork()`.

_made: dict[int, tuple[ThreadPoolExecutor | None, asyncio.AbstractEventLoop | None]] = {}
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
