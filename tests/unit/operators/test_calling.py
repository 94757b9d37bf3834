"""Calls of operators: answers, batches, timeouts and failures."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import pytest

import harken
from harken import Limits
from harken.errors import HarkenError, LimitError, OperatorError
from harken.limits import DEFAULT_LIMITS
from harken.operators.calling import Caller, Evaluation

FREE = harken.FREE


def caller(function: Any, limits: Limits = DEFAULT_LIMITS, **options: Any) -> Caller:
    return Caller(harken.operator(name="f", **options)(function), limits)


def one(call: Caller, *arguments: Any) -> Any:
    (outcome,) = call([Evaluation({"n": 1}, arguments)])
    return outcome


def message_of(outcome: Any) -> str:
    assert isinstance(outcome, HarkenError)
    return outcome.message


# Answers


def test_truth() -> None:
    import numpy

    assert one(caller(lambda event: True)) is True
    assert one(caller(lambda event: numpy.bool_(False))) is False
    assert one(caller(lambda event: [()])) is True  # the binding of no variables
    assert one(caller(lambda event: iter([(), ()]))) is True
    assert one(caller(lambda event: [])) is False
    assert one(caller(lambda event: iter([]))) is False


def test_bindings() -> None:
    import numpy

    assert one(caller(lambda event, x=FREE: [1, 1, 2.0, True, "a", None, float("nan")]), FREE) == (
        (1,),
        (2.0,),
        (True,),
        ("a",),
    )
    assert one(caller(lambda event, x=FREE: False), FREE) == ()
    assert one(caller(lambda event, x=FREE: []), FREE) == ()
    assert one(caller(lambda event, x=FREE: [False]), FREE) == ((False,),)
    assert one(caller(lambda event, x=FREE: numpy.arange(2)), FREE) == ((0,), (1,))
    assert one(caller(lambda event, x=FREE, y=FREE: [(1, "a"), [2, "b"]]), FREE, FREE) == ((1, "a"), (2, "b"))


@pytest.mark.parametrize(
    ("answer", "free", "message"),
    [
        (None, 0, "it returned None, which is neither true nor false"),
        (3, 0, "it returned a int, not truth"),
        ("yes", 0, "it returned a str, not truth"),
        ([False], 0, "it returned bindings, such as False, but there is no variable to bind"),
        ([0], 0, "it returned bindings, such as 0, but there is no variable to bind"),
        ([True], 0, "it returned bindings, such as True, but there is no variable to bind"),
        ([None], 0, "it returned bindings, such as None, but there is no variable to bind"),
        ([(), (3,)], 0, "it returned bindings, such as (3,), but there is no variable to bind"),
        (None, 1, "it returned None, not bindings"),
        (None, 2, "it returned None, not bindings"),
        (True, 1, "it returned a bool, not bindings"),
        ("abc", 1, "it returned a str, not bindings"),
        ([(1, 2)], 1, "a binding is a tuple of 1, not (1, 2)"),
        ([1], 2, "a binding is a tuple of 2, not 1"),
        ([object], 1, "is no value that a variable can hold"),
        ([2**63], 1, "does not fit in 64 bits"),
        ([float("inf")], 1, "a number has to be finite"),
        (["\ud800"], 1, "a variable cannot hold"),
    ],
)
def test_an_invalid_answer_is_a_failure(answer: Any, free: int, message: str) -> None:
    call = caller(lambda event, x=FREE, y=FREE: answer)
    assert message in message_of(one(call, *[FREE] * free))
    assert call.counts.failures == 1


def test_a_million_bindings_exceed_a_named_limit() -> None:
    made = 0

    def many(event: Any, x: Any = FREE) -> Any:
        nonlocal made
        for number in range(10**6):
            made += 1
            yield number

    outcome = one(caller(many, Limits(max_operator_bindings=1_000)), FREE)
    assert isinstance(outcome, LimitError)
    assert outcome.limit == "max_operator_bindings"
    assert made == 1_001


def test_an_answer_of_a_batch_that_is_none_fails_alone() -> None:
    call = caller(lambda events, x=FREE: [[1], None, []], batched="lists")
    outcomes = call([Evaluation({"n": number}, (FREE,)) for number in range(3)])
    assert (outcomes[0], outcomes[2]) == (((1,),), ())
    assert message_of(outcomes[1]) == "the operator `f` failed: it returned None, not bindings"
    assert outcomes[1].hint == "return an empty list if there are none"
    column = caller(lambda events, x=FREE: pa.array([[1], None]), batched=True)
    assert "it returned None, not bindings" in message_of(
        column([Evaluation({"n": 1}, (FREE,)), Evaluation({"n": 2}, (FREE,))])[1]
    )
    call = caller(lambda events: [True, [0], [False]], batched="lists")
    outcomes = call([Evaluation({"n": number}, ()) for number in range(3)])
    assert outcomes[0] is True
    assert [message_of(each).rpartition(",")[0] for each in outcomes[1:]] == [
        "the operator `f` failed: it returned bindings, such as 0",
        "the operator `f` failed: it returned bindings, such as False",
    ]
    assert call.counts.failures == 2


# Batches


def test_a_batch_is_one_call() -> None:
    seen: list[Any] = []

    def f(events: pa.Table, place: pa.Array, x: Any = FREE) -> pa.Array:
        seen.append((events.to_pylist(), place.to_pylist(), x))
        return pa.array([[number] for number in range(len(events))])

    call = caller(f, batched=True)
    rows = [
        Evaluation({"n": number, "only": "here"} if number else {"n": 0}, ("a" * number, FREE)) for number in range(3)
    ]
    assert call(rows) == [((0,),), ((1,),), ((2,),)]
    assert seen[0][0][0] == {"n": 0, "only": None}
    assert seen[0][1:] == (["", "a", "aa"], FREE)
    assert call.stats()["calls"] == 1
    assert call.stats()["evaluations"] == 3
    assert call.stats()["mean_call_size"] == 3.0


def test_a_batch_of_lists() -> None:
    call = caller(
        lambda events, n: [event["n"] == each for event, each in zip(events, n, strict=True)], batched="lists"
    )
    assert call([Evaluation({"n": 1}, (1,)), Evaluation({"n": 1}, (2,))]) == [True, False]


def test_a_batch_that_answers_too_little_fails_as_a_whole() -> None:
    call = caller(lambda events: [True], batched="lists")
    assert {message_of(each) for each in call([Evaluation({"n": 1}, ()), Evaluation({"n": 2}, ())])} == {
        "the operator `f` failed: it returned 1 answers for 2 events"
    }


def test_an_answer_that_fails_while_it_is_read_spares_the_others() -> None:
    def breaks() -> Any:
        yield 1
        raise KeyError("later")

    call = caller(lambda events, x=FREE: [breaks(), [2]], batched="lists")
    outcomes = call([Evaluation({"n": 1}, (FREE,)), Evaluation({"n": 2}, (FREE,))])
    assert "KeyError: 'later'" in message_of(outcomes[0])
    assert outcomes[1] == ((2,),)


def test_equal_rows_of_a_deterministic_operator_are_called_once() -> None:
    calls: list[Any] = []
    call = caller(lambda event, x: bool(calls.append(x)) or True, reads=("n",))
    assert call([Evaluation({"n": 1}, (1,)), Evaluation({"n": 1}, (1,)), Evaluation({"n": 1}, (True,))]) == [True] * 3
    assert calls == [1, True]
    calls.clear()
    call = caller(lambda event, x: bool(calls.append(x)) or True, reads=("n",), deterministic=False)
    call([Evaluation({"n": 1}, (1,)), Evaluation({"n": 1}, (1,))])
    assert calls == [1, 1]


def test_rows_are_equal_only_if_their_types_are() -> None:
    call = caller(lambda event: isinstance(event["n"], bool), reads=("n",))
    assert call([Evaluation({"n": 1}, ()), Evaluation({"n": True}, ()), Evaluation({"n": 1.0}, ())]) == [
        False,
        True,
        False,
    ]
    call = caller(lambda event: isinstance(event["n"][0], bool), reads=("n",))
    assert call([Evaluation({"n": (1,)}, ()), Evaluation({"n": (True,)}, ())]) == [False, True]


def test_a_column_of_arrow_has_values_of_one_type() -> None:
    """Events with values of different types go in different calls."""
    sizes: list[int] = []

    def f(events: pa.Table, x: pa.Array) -> list[bool]:
        sizes.append(len(x))
        return [each == other for each, other in zip(events["n"].to_pylist(), x.to_pylist(), strict=True)]

    rows = [
        Evaluation({"n": 1}, (1,)),
        Evaluation({"n": "x"}, ("x",)),
        Evaluation({"n": 2}, (1,)),
        Evaluation({"n": 1}, ("x",)),
    ]
    assert caller(f, batched=True)(rows) == [True, True, False, False]
    assert sorted(sizes) == [1, 1, 2]


async def _one_answer(events: Any) -> Any:
    return [True]


async def _none(events: Any) -> Any:
    return None


def test_a_batched_coroutine_that_answers_wrongly() -> None:
    rows = [Evaluation({"n": 1}, ()), Evaluation({"n": 2}, ())]
    assert "it returned 1 answers for 2 events" in message_of(caller(_one_answer, batched="lists")(rows)[0])
    assert "failed: TypeError" in message_of(caller(_none, batched="lists")(rows)[1])


def test_threads_and_coroutines_run_side_by_side() -> None:
    barrier = threading.Barrier(4, timeout=30)

    def waits(event: Any) -> bool:
        barrier.wait()
        return True

    rows = [Evaluation({"n": number}, ()) for number in range(4)]
    assert caller(waits, thread_safe=True)(rows) == [True] * 4
    met: list[int] = []

    async def meets(event: Any) -> bool:
        met.append(event["n"])
        while len(met) < 4:
            await asyncio.sleep(0.001)
        return True

    assert caller(meets, timeout=30)(rows) == [True] * 4


async def _several(events: Any) -> Any:
    return [True for _ in events]


def test_a_batched_coroutine() -> None:
    assert caller(_several, batched="lists")([Evaluation({"n": 1}, ()), Evaluation({"n": 2}, ())]) == [True, True]


def test_an_operator_with_changing_answers_is_called_once_an_event() -> None:
    """So that all subscriptions see the same answer for an event."""
    calls: list[int] = []

    @harken.operator(deterministic=False)
    def lies(event: Any, n: int) -> bool:
        calls.append(n)
        return len(calls) % 2 == 0

    engine = harken.Engine(operators=[lies])
    for number in range(20):
        engine.subscribe(number, "lies(1)" if number % 2 else "NOT lies(1)")
    for event in range(5):
        assert len(engine.match({"event": event}).ids) == 10
    assert calls == [1] * 5


# Failures


def test_an_operator_that_raises_fails_for_that_event_only() -> None:
    def f(event: Any) -> bool:
        if event["n"] == 1:
            raise ValueError("out of luck")
        return True

    outcomes = caller(f)([Evaluation({"n": number}, ()) for number in range(3)])
    assert outcomes[0] is True
    assert message_of(outcomes[1]) == "the operator `f` failed: ValueError: out of luck"
    assert isinstance(outcomes[1], OperatorError)
    assert outcomes[2] is True


def test_one_that_ends_the_program_only_fails() -> None:
    assert "SystemExit" in message_of(one(caller(lambda event: sys.exit(3))))


def test_a_call_past_its_timeout_is_abandoned() -> None:
    release = threading.Event()
    call = caller(lambda event: release.wait(600), timeout=0.05)
    assert message_of(one(call)) == "the operator `f` took longer than 0.05 seconds"
    assert not release.is_set(), "the call goes on, but nothing waits for it"
    assert call.counts.timeouts == 1
    release.set()

    async def sleeps(event: Any) -> bool:
        await asyncio.sleep(30)
        return True

    assert "took longer" in message_of(one(caller(sleeps, timeout=0.05)))


def test_a_failed_call_is_repeated() -> None:
    tries: list[int] = []

    def f(event: Any) -> bool:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("not yet")
        return True

    call = caller(f, retries=2)
    assert one(call) is True
    assert call.counts.retries == 2


def test_an_operator_that_keeps_failing_is_paused_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    is_well = False

    def f(event: Any) -> bool:
        calls.append(1)
        if not is_well:
            raise ConnectionError("down")
        return True

    now = 1_000.0
    monkeypatch.setattr("harken.operators.calling.monotonic", lambda: now)
    call = caller(f, most_failures=3, pause=0.2, deterministic=False)
    outcomes = call([Evaluation({"n": number}, ()) for number in range(10)])
    assert len(calls) == 3
    assert "failed 3 times in a row" in message_of(outcomes[5])
    assert "failed 3 times in a row" in message_of(one(call))
    assert call.stats()["is_paused"]
    assert call.stats()["rejected"] == 8
    assert call.stats()["calls"] == 3
    now += 0.25
    assert "down" in message_of(one(call))  # one try, which fails
    assert len(calls) == 4
    assert "in a row" in message_of(one(call))
    now += 0.25
    is_well = True
    assert one(call) is True
    assert one(call) is True


def test_costs_are_stated_or_measured() -> None:
    call = caller(lambda event: time.sleep(0.002) or True)
    assert call.cost == 1.0
    one(call)
    assert call.cost > 1.5
    assert caller(lambda event: True, cost=7).cost == 7
