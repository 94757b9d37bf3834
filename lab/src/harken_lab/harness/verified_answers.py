"""Answers, compared outside any timer. A difference ends the run."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.schema import parse_path
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.workloads.conditions import OPERATORS, Conditions
from harken_lab.workloads.workload import Workload

if TYPE_CHECKING:
    from harken_lab.harness.contestants import FilledMatcher

Numbers = NDArray[np.int32]
Offsets = NDArray[np.int64]

_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Answers:
    """The numbers of the subscriptions that each event matches, ascending."""

    def __init__(self, numbers: Numbers, offsets: Offsets) -> None:
        self.offsets = offsets.copy()
        events = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        # Sorting all pairs at once is much quicker than sorting the matches of each event.
        keys = events << 32 | numbers.astype(np.int64)
        keys.sort()
        self.numbers = (keys & 0xFFFFFFFF).astype(np.int32)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Answers):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.numbers, other.numbers)

    __hash__ = None  # type: ignore[assignment]

    def of(self, event: int) -> Numbers:
        return self.numbers[self.offsets[event] : self.offsets[event + 1]]

    def first_difference(self, other: Answers) -> int:
        """The first event for which these answers differ from others."""
        return next(event for event in range(len(self)) if not np.array_equal(self.of(event), other.of(event)))


def verify(
    workload: Workload, filled: Mapping[str, FilledMatcher], most: int | None = None, evaluated: int = 8
) -> None:
    """Raise WrongAnswerError unless all contestants agree with each other, and one of them with plain evaluation.

    The contestant with most events is compared with each of the others, on the events that both have, up to the first
    `most`. For `evaluated` of these events its answers are compared with evaluating every predicate by itself.
    """
    if not filled:
        return
    name, first = max(filled.items(), key=lambda item: item[1].events)
    count = min(first.events, most or first.events)
    expected = {count: first.answers(count)}
    for other, each in filled.items():
        shared = min(each.events, count)
        if shared not in expected:
            expected[shared] = first.answers(shared)
        if other != name:
            _require_equal(title(workload), (name, expected[shared]), (other, each.answers(shared)))
    for event in np.unique(np.linspace(0, count - 1, evaluated).astype(np.int64)).tolist():
        _require_true(name, expected[count], workload, event)


def title(workload: Workload) -> str:
    """The name of the workload and its number of subscriptions."""
    return f"{workload.name} with {workload.subscriptions:,} subscriptions"


def _require_equal(what: str, expected: tuple[str, Answers], actual: tuple[str, Answers]) -> None:
    (first, right), (name, answers) = expected, actual
    if answers != right:
        event = answers.first_difference(right)
        raise WrongAnswerError(
            f"{what}, event {event}: {name} finds {len(answers.of(event)):,} subscriptions, "
            f"{first} finds {len(right.of(event)):,}, and they are not the same"
        )


def _require_true(name: str, answers: Answers, workload: Workload, event: int) -> None:
    true = true_subscriptions(workload, event)
    if not np.array_equal(answers.of(event), true):
        raise WrongAnswerError(
            f"{title(workload)}, event {event}: {name} finds {len(answers.of(event)):,} subscriptions, "
            f"{len(true):,} are true, and they are not the same"
        )


def true_subscriptions(workload: Workload, event: int) -> Numbers:
    """The subscriptions that are true of an event, by evaluating each predicate on the plain value, without codes.

    All conditions on an array, and on the attributes inside it, have to hold for one element.
    """
    values = workload.events.slice(event, 1).to_pylist()[0]
    by_name: dict[str, list[Conditions]] = {}
    for each in workload.conditions:
        by_name.setdefault(parse_path(each.attribute)[0], []).append(each)
    alive = np.ones(workload.subscriptions, np.bool_)
    for name, conditions in by_name.items():
        open_ = np.zeros(workload.subscriptions, np.bool_)  # subscriptions that no element has met yet
        for each in conditions:
            open_[each.rows] = True
        for element in values[name] if isinstance(values[name], list) else [values[name]]:
            failing = [each.rows[~_holds(each, _inside(element, each))] for each in conditions]
            is_true = open_.copy()
            is_true[np.concatenate(failing)] = False
            open_ &= ~is_true
        alive[open_] = False
    return np.flatnonzero(alive).astype(np.int32)


def _inside(element: Any, conditions: Conditions) -> Any:
    for key in parse_path(conditions.attribute)[1:]:
        element = None if element is None else element[key]
    return element


def _holds(conditions: Conditions, value: int | str | None) -> NDArray[np.bool_]:
    if value is None:
        return np.zeros(len(conditions.rows), np.bool_)
    constants = np.asarray(conditions.constants)
    # Compare each constant once per operator; every predicate then looks up its answer.
    table = np.array([_COMPARE[name](np.asarray(value), constants) for name in OPERATORS], np.bool_)
    is_true: NDArray[np.bool_] = table[conditions.operators, conditions.operands]
    return is_true


def verify_arrow(numbers: Numbers, offsets: Offsets, result: pa.ListArray) -> None:
    """Raise WrongAnswerError unless an Arrow result equals the numbers it is made from; strings are `s{number}`."""
    values = result.values
    picked = np.linspace(0, len(numbers) - 1, num=min(len(numbers), 1_000)).astype(np.int64)
    expected = numbers[picked].tolist()
    if pa.types.is_string(values.type):
        expected = [f"s{each}" for each in expected]
    if not np.array_equal(np.asarray(result.offsets), offsets) or values.take(pa.array(picked)).to_pylist() != expected:
        raise WrongAnswerError(f"the Arrow result of type {result.type} differs from the numbers that it was made from")
