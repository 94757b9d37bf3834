"""Whether an event meets a tree, exactly: the counterpart of verify.py for trees, which are not multiplied out.

Tests that do not depend on the binding are decided first, and with them most alternatives. The rest is split into
groups that share no array, each decided separately. If a group is one OR, its alternatives are tried one by one; else
an element of the most shared array is picked, and the group is split again. `max_bindings` limits the number of tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harken.errors import LimitError
from harken.events import Event
from harken.language.trees import Constrained, Every, Some, Tree
from harken.limits import Limits
from harken.matchers.verify import CursorTest, arrays_of, open_constraint, open_residual, picked_in, settled


@dataclass(frozen=True, slots=True)
class _Open:
    """AND or OR of tests that need a binding."""

    is_and: bool
    items: list[_Waiting]


_Waiting = CursorTest | _Open


def holds(tree: Tree, event: Event, limits: Limits) -> bool:
    """Whether some binding makes the tree true. Raises LimitError."""
    outcome = _opened(tree, event)
    if isinstance(outcome, bool):
        return outcome
    try:
        return _Search(limits.max_bindings).solve([outcome], 0)
    except RecursionError:
        raise LimitError("too many arrays depend on each other", limit="max_bindings") from None


def _opened(tree: Tree, event: Event) -> bool | _Waiting:
    if isinstance(tree, Constrained):
        return open_constraint(tree.path, tree.constraint, event)
    if isinstance(tree, Every | Some):
        return _joined(isinstance(tree, Every), (_opened(item, event) for item in tree.items))
    return open_residual(tree, event)


def _joined(is_and: bool, items: Iterator[bool | _Waiting]) -> bool | _Waiting:
    """AND or OR of items: its truth, if the items decide it."""
    waiting: list[_Waiting] = []
    for item in items:
        if item is (not is_and):
            return not is_and
        if not isinstance(item, bool):
            waiting.append(item)
    if not waiting:
        return is_and
    return waiting[0] if len(waiting) == 1 else _Open(is_and, waiting)


class _Search:
    """The search for a binding."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.made = 0

    def solve(self, goals: list[_Waiting], picks: int) -> bool:
        """Whether elements can be picked so that all goals are met."""
        if picks > 1:  # one pass through one array is not counted, however long the array is
            self.made += len(goals)
            if self.made > self.most:
                raise LimitError(f"no binding was found in {self.most:,} tests", limit="max_bindings")
        return all(self._meet(group, picks) for group in _groups(goals))

    def _meet(self, group: list[_Waiting], picks: int) -> bool:
        first = group[0]
        if len(group) == 1 and isinstance(first, _Open) and not first.is_and:
            return any(self.solve([item], picks + 1) for item in first.items)
        waiting = [node for goal in group for test in _tests(goal) for node, _ in test.cursors if type(node) is list]
        counts = Counter(map(id, waiting))
        array = max(waiting, key=lambda node: counts[id(node)])
        return any(self._with(group, array, element, picks) for element in array)

    def _with(self, group: list[_Waiting], array: list[Any], element: Any, picks: int) -> bool:
        left = _joined(True, (_picked(goal, array, element) for goal in group))
        return left if isinstance(left, bool) else self.solve([left], picks + 1)


def _picked(goal: _Waiting, array: list[Any], element: Any) -> bool | _Waiting:
    if isinstance(goal, _Open):
        return _joined(goal.is_and, (_picked(item, array, element) for item in goal.items))
    test = picked_in(goal, array, element)
    return test if arrays_of(test) else settled(test)


def _groups(goals: list[_Waiting]) -> list[list[_Waiting]]:
    """The goals in groups. Goals that share an array are in one group."""
    groups: list[tuple[list[_Waiting], set[int]]] = []
    for goal in _parts(goals):
        arrays = {array for test in _tests(goal) for array in arrays_of(test)}
        together, apart = [goal], []
        for group in groups:
            if group[1] & arrays:
                together, arrays = group[0] + together, group[1] | arrays
            else:
                apart.append(group)
        groups = [*apart, (together, arrays)]
    return [group for group, _ in groups]


def _parts(goals: list[_Waiting]) -> Iterator[_Waiting]:
    for goal in goals:
        if isinstance(goal, _Open) and goal.is_and:
            yield from _parts(goal.items)
        else:
            yield goal


def _tests(goal: _Waiting) -> Iterator[CursorTest]:
    if isinstance(goal, CursorTest):
        yield goal
    else:
        for item in goal.items:
            yield from _tests(item)
