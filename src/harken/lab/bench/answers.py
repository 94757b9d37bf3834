"""Answers held against each other, outside any timer. A difference is fatal."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.lab.bench.contestants import Ids, Offsets
from harken.lab.bench.figures import WrongAnswerError
from harken.lab.workloads.conditions import OPERATORS, Conditions
from harken.lab.workloads.workload import Workload
from harken.schema import parse_path

_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Answers:
    """The ids of every event, in order."""

    def __init__(self, ids: Ids, offsets: Offsets) -> None:
        self.offsets = offsets.copy()
        events = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        # One sort of all pairs is much quicker than a sort for every event.
        keys = events << 32 | ids.astype(np.int64)
        keys.sort()
        self.ids = (keys & 0xFFFFFFFF).astype(np.int32)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Answers):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.ids, other.ids)

    __hash__ = None  # type: ignore[assignment]

    def of(self, event: int) -> Ids:
        return self.ids[self.offsets[event] : self.offsets[event + 1]]

    def first_difference(self, other: Answers) -> int:
        """The first event whose answers are not the same."""
        return next(event for event in range(len(self)) if not np.array_equal(self.of(event), other.of(event)))


def refuse_differences(found: Mapping[str, Answers], what: str) -> None:
    """Raise WrongAnswerError unless all have the same answers."""
    (first, expected), *others = found.items()
    for name, answers in others:
        if answers != expected:
            event = answers.first_difference(expected)
            raise WrongAnswerError(
                f"{what}, event {event}: {name} finds {len(answers.of(event)):,} subscriptions, "
                f"{first} finds {len(expected.of(event)):,}, and they are not the same"
            )


def refuse_wrong(name: str, answers: Answers, workload: Workload, events: NDArray[np.int64]) -> None:
    """Raise WrongAnswerError unless these events have the answers that evaluating every subscription gives."""
    for event in events.tolist():
        true = every_true(workload, event)
        if not np.array_equal(answers.of(event), true):
            raise WrongAnswerError(
                f"{workload.name} with {workload.subscriptions:,} subscriptions, event {event}: {name} finds "
                f"{len(answers.of(event)):,} of them, and {len(true):,} are true, or others"
            )


def every_true(workload: Workload, event: int) -> Ids:
    """The subscriptions that are true of an event, each predicate evaluated on the value as it is: no codes.

    What is asked of an array, and of what is inside of it, has to hold for one element.
    """
    values = workload.events.slice(event, 1).to_pylist()[0]
    by_name: dict[str, list[Conditions]] = {}
    for each in workload.conditions:
        by_name.setdefault(parse_path(each.attribute)[0], []).append(each)
    alive = np.ones(workload.subscriptions, np.bool_)
    for name, conditions in by_name.items():
        asking = np.zeros(workload.subscriptions, np.bool_)
        for each in conditions:
            asking[each.rows] = True
        for element in values[name] if isinstance(values[name], list) else [values[name]]:
            failing = [each.rows[~_holds(each, _inside(element, each))] for each in conditions]
            is_true = asking.copy()
            is_true[np.concatenate(failing)] = False
            asking &= ~is_true  # they have found their element
        alive[asking] = False
    return np.flatnonzero(alive).astype(np.int32)


def _inside(element: Any, conditions: Conditions) -> Any:
    for key in parse_path(conditions.attribute)[1:]:
        element = None if element is None else element[key]
    return element


def _holds(conditions: Conditions, value: int | str | None) -> NDArray[np.bool_]:
    if value is None:
        return np.zeros(len(conditions.rows), np.bool_)
    constants = np.asarray(conditions.constants)
    # Each constant is compared once for each operator, then every predicate looks its answer up.
    table = np.array([_COMPARE[name](np.asarray(value), constants) for name in OPERATORS], np.bool_)
    held: NDArray[np.bool_] = table[conditions.operators, conditions.operands]
    return held


def refuse_unlike_arrow(ids: Ids, offsets: Offsets, result: pa.ListArray) -> None:
    """Raise WrongAnswerError unless an Arrow result says what the buffer does, with `s{id}` for strings."""
    ends = np.asarray(result.offsets)
    values = result.values
    picked = np.linspace(0, len(ids) - 1, num=min(len(ids), 1_000)).astype(np.int64)
    expected = ids[picked].tolist()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        expected = [f"s{each}" for each in expected]
    if not np.array_equal(ends, offsets) or values.take(pa.array(picked)).to_pylist() != expected:
        raise WrongAnswerError(f"the Arrow result of type {result.type} differs from the ids that it was made from")
