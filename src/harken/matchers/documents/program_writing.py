"""Expressions of XPath as programs over lists of nodes: see `kernels/documents.py` for what the instructions do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.concurrency.collecting import collector_paused
from harken.kernels.documents import (
    AND,
    BUT,
    DIFFERS,
    EQUALS,
    GREATER,
    GREATER_EQUAL,
    HAS_NUMBERS,
    HAS_STRINGS,
    IS_COMPARED,
    IS_LISTED,
    IS_NOT_NUMBER,
    IS_NUMBER,
    LESS,
    LESS_EQUAL,
    NUMERIC,
    OR,
    REACHED,
    REQUIRED,
    RISE,
    SHIFT,
    UP,
    copy_programs,
)
from harken.kernels.documents import ROOT as TO_ROOT
from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, NodeKind, Not, Or, Step
from harken.language.xpath.numbers import number_of
from harken.matchers.documents.node_conditions import NodeCondition
from harken.matchers.documents.vocabulary import ROOT, GrowingVocabulary, numeric_value
from harken.matchers.documents.xpath_cover import cover

_BY_NUMBER = {"!=": IS_NOT_NUMBER, "<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL}
_MOST_WALKS = 65_536


@dataclass(frozen=True, slots=True)
class NodePrograms:
    """Programs of subscriptions, concatenated, in the numbers of a vocabulary."""

    numbers: NDArray[np.int32]
    """The subscription number of each program."""
    starts: NDArray[np.int64]
    code: NDArray[np.uint32]
    conditions: Mapping[int, NodeCondition] = field(default_factory=dict)
    """By subscription number, the exact conditions of expressions of which a program is only a cover."""

    def __len__(self) -> int:
        return len(self.numbers)

    def taken(self, places: NDArray[np.int64]) -> NodePrograms:
        """The programs at these places."""
        starts = np.empty(len(places) + 1, np.int64)
        code = np.empty(int((self.starts[places + 1] - self.starts[places]).sum()), np.uint32)
        copy_programs(self.starts, self.code, places, starts, code)
        numbers = self.numbers[places]
        conditions = self.conditions
        if conditions:
            conditions = {number: conditions[number] for number in numbers.tolist() if number in conditions}
        return NodePrograms(numbers, starts, code, conditions)

    def renumbered(self, numbers: NDArray[np.int32]) -> NodePrograms:
        """The same programs under new numbers: `numbers` has the new number at each old one."""
        conditions = {int(numbers[number]): condition for number, condition in self.conditions.items()}
        return replace(self, numbers=numbers[self.numbers].astype(np.int32), conditions=conditions)


def joined(parts: Sequence[NodePrograms]) -> NodePrograms:
    """Concatenate programs of the same vocabulary."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part.code) for part in parts)])
    starts = [part.starts[:-1] + end for part, end in zip(parts, ends[:-1].tolist(), strict=True)]
    return NodePrograms(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([part.code for part in parts]),
        dict(chain.from_iterable(part.conditions.items() for part in parts)),
    )


def written(expressions: Iterable[tuple[int, Expression]], vocabulary: GrowingVocabulary) -> NodePrograms:
    """The programs of expressions, given by subscription number. Adds their names and constants to the vocabulary."""
    writer = _Writer(vocabulary)
    numbers, starts = [], [0]
    conditions: dict[int, NodeCondition] = {}
    with collector_paused():
        for number, expression in expressions:
            try:
                writer.write(expression)
            except _BeyondIndexError:
                writer.rewind(starts[-1])
                writer.write(cover(expression))
                conditions[number] = NodeCondition(expression)
            numbers.append(number)
            starts.append(len(writer.code))
    return NodePrograms(np.array(numbers, np.int32), np.array(starts, np.int64), writer.finished(), conditions)


class _BeyondIndexError(Exception):
    """No program decides the expression."""


class _Walk(NamedTuple):
    """The end of steps without predicates from a linear path, and the way back."""

    steps: tuple[Step, ...]
    """Compared by identity: the parser returns one tuple for equal steps."""
    at: int
    climbs: list[int]


class _Level(NamedTuple):
    """Steps up to one with predicates, while the steps after it are being written."""

    start: int
    """The linear path before the steps."""
    at: int
    """The linear path at their end."""
    climbs: list[int]
    has_list: bool
    """Whether some of the predicates are already written."""
    behind: list[Expression]
    """Predicates written after the following steps, because these are more likely to fail."""
    negative: list[Not]


class _Writer:
    """Writes programs one after another. Their constants are added to the vocabulary at the end, all at once."""

    def __init__(self, vocabulary: GrowingVocabulary) -> None:
        self.code: list[int] = []
        self._vocabulary = vocabulary
        self._elements: dict[tuple[int, bool, str | None], int] = {}
        """Linear paths by parent and last step, for elements."""
        self._walks: dict[tuple[int, int], _Walk] = {}
        self._values: list[bytes] = []
        self._value_paths: list[int] = []
        self._value_places: list[int] = []
        """The place of each value in the code."""
        self._numbers: list[float] = []
        self._number_places: list[int] = []
        self._uses: dict[int, int] = {}
        self._longest: dict[int, int] = {}

    def finished(self) -> NDArray[np.uint32]:
        """The code of all programs."""
        vocabulary = self._vocabulary
        code = np.array(self.code, np.uint32)
        paths = np.array(self._value_paths, np.int64)
        keys = vocabulary.arrays.path_key[paths & ~NUMERIC] | (paths & NUMERIC).astype(np.int32)
        code[self._value_places] = vocabulary.intern(self._values, keys)
        code[self._number_places] = vocabulary.add_numbers(np.array(self._numbers, np.float64))
        for path, uses in self._uses.items():
            vocabulary.use(path, uses, self._longest.get(path, 0))
        return code

    def write(self, expression: Expression) -> None:
        """Write a program. Its final list has a node if the expression is true."""
        self._level(ROOT, [expression], REQUIRED)

    def rewind(self, start: int) -> None:
        """Drop the code from a place on, with its constants."""
        del self.code[start:]
        values = bisect_left(self._value_places, start)
        del self._value_places[values:], self._values[values:], self._value_paths[values:]
        numbers = bisect_left(self._number_places, start)
        del self._number_places[numbers:], self._numbers[numbers:]

    # Each of these methods writes code that pushes one list of nodes at the end of a linear path.

    def _level(self, path: int, items: Sequence[Expression], required: int) -> None:
        """Push the nodes for which all items hold."""
        if len(items) == 1 and not isinstance(items[0], Not):
            self._item(path, items[0], required)
            return
        positive, negative = _by_rank(items)
        if not positive:
            self._leaf(REACHED, path, required, IS_LISTED)
        self._join(path, positive, False, required)
        self._exclude(path, negative, required)

    def _join(self, path: int, items: Sequence[Expression], has_list: bool, required: int) -> None:
        """Push the nodes for which all items hold. With `has_list`, intersect with the top list."""
        for item in items:
            self._item(path, item, required)
            if has_list:
                self.code.append(AND | required)
            has_list = True

    def _exclude(self, path: int, items: Sequence[Not], required: int) -> None:
        """Remove from the top list the nodes for which any of these negations is false."""
        for negation in items:
            self._item(path, negation.item, 0)
            self.code.append(BUT | required)

    def _item(self, path: int, item: Expression, required: int) -> None:
        if isinstance(item, And):
            self._level(path, item.items, required)
        elif isinstance(item, Or):
            self._any(path, item.items, required)
        elif isinstance(item, Not):
            self._level(path, [item], required)
        elif isinstance(item, Exists):
            self._path(path, item.path.steps, None, required)
        elif isinstance(item, Comparison):
            self._path(path, item.path.steps, item, required)
        else:
            raise _BeyondIndexError

    def _any(self, path: int, items: Sequence[Expression], required: int) -> None:
        for place, item in enumerate(items):
            self._item(path, item, required if len(items) == 1 else 0)
            if place:
                self.code.append(OR | (required if place == len(items) - 1 else 0))

    def _path(self, path: int, steps: tuple[Step, ...], comparison: Comparison | None, required: int) -> None:
        """Push the nodes from which the steps lead to a node, and to one that passes the comparison if given."""
        walk = self._walks.get((path, id(steps)))
        if walk is not None and walk.steps is steps:
            self._test(walk.at, comparison, required)
            self._rise(path, walk.climbs, required)
            return
        open_levels: list[_Level] = []
        at, place = path, 0
        while place < len(steps):
            climbs: list[int] = []
            start, first = at, place
            at, place = self._walk(at, steps, place, climbs)
            predicates = steps[place - 1].predicates
            if not predicates or (place == len(steps) and comparison is None):
                if predicates:
                    self._level(at, predicates, required)
                else:
                    self._test(at, comparison, required)
                    if first == 0 and len(self._walks) < _MOST_WALKS:
                        self._walks[path, id(steps)] = _Walk(steps, at, climbs)
                self._rise(start, climbs, required)
                break
            positive, negative = _by_rank(predicates)
            rank = _rank(_moved(comparison, steps[place:]))
            before = [item for item in positive if _rank(item) <= rank]
            self._join(at, before, False, required)
            open_levels.append(_Level(start, at, climbs, bool(before), positive[len(before) :], negative))
        else:
            self._test(at, comparison, required)
        for level in reversed(open_levels):
            if level.has_list:
                self.code.append(AND | required)
            self._join(level.at, level.behind, True, required)
            self._exclude(level.at, level.negative, required)
            self._rise(level.start, level.climbs, required)

    def _walk(self, at: int, steps: tuple[Step, ...], place: int, climbs: list[int]) -> tuple[int, int]:
        """Advance to the next step with predicates, or to the last step. Nodes in between need no list."""
        while True:
            step = steps[place]
            climbs.append(RISE | at << SHIFT if step.is_descendant else UP | 1 << SHIFT)
            at = self._step(at, step)
            place += 1
            if step.predicates or place == len(steps):
                return at, place

    def _rise(self, path: int, climbs: list[int], required: int) -> None:
        """Go up step by step. Adjacent steps to parents, and all steps to the root, are one instruction."""
        if path == ROOT:
            self.code.append(TO_ROOT | required)
            return
        ups = 0
        for climb in reversed(climbs):
            if climb & 15 == UP:
                ups += 1
                continue
            if ups:
                self.code.append(UP | ups << SHIFT)
                ups = 0
            self.code.append(climb | required)
        if ups:
            self.code.append(UP | ups << SHIFT)

    def _step(self, path: int, step: Step) -> int:
        """The linear path extended by one step."""
        is_element = step.kind is NodeKind.ELEMENT
        key = path, step.is_descendant, step.name
        extended = self._elements.get(key) if is_element else None
        if extended is None:
            name = None if step.name is None else step.name.encode()
            extended = self._vocabulary.step(path, step.is_descendant, int(step.kind), name)
            if is_element:
                self._elements[key] = extended
        return extended

    def _test(self, path: int, comparison: Comparison | None, required: int) -> None:
        """Push the nodes at the end of a path that pass the comparison, all without one."""
        if comparison is None:
            self._leaf(REACHED, path, required, IS_LISTED)
            return
        operator, value = comparison.operator, comparison.value
        if type(value) is str and operator in ("=", "!="):
            content = value.encode()
            if operator == "=":
                self._leaf(EQUALS, path, required, HAS_STRINGS)
                self._longest[path] = max(self._longest.get(path, 0), len(content))
            else:
                self._leaf(DIFFERS, path, required, IS_LISTED)
            self._value(content, path)
            return
        number = number_of(value)
        if operator == "=":
            self._leaf(IS_NUMBER, path, required, HAS_NUMBERS)
            self._value(numeric_value(number), path | NUMERIC)
            return
        self._leaf(_BY_NUMBER[operator], path, required, IS_LISTED | IS_COMPARED)
        self._number_places.append(len(self.code))
        self._numbers.append(number)
        self.code.append(0)

    def _leaf(self, operation: int, path: int, required: int, uses: int) -> None:
        self.code.append(operation | required | path << SHIFT)
        self._uses[path] = self._uses.get(path, 0) | uses

    def _value(self, content: bytes, path: int) -> None:
        self._value_places.append(len(self.code))
        self._values.append(content)
        self._value_paths.append(path)
        self.code.append(0)


def _moved(comparison: Comparison | None, steps: tuple[Step, ...]) -> Exists | Comparison:
    """The comparison, or the test for existence, at the end of `steps`."""
    path = Location(steps)
    return Exists(path) if comparison is None else Comparison(path, comparison.operator, comparison.value)


def _by_rank(items: Sequence[Expression]) -> tuple[list[Expression], list[Not]]:
    """The items that are not negated, most likely to fail first, and the negated ones."""
    positive = [item for item in items if not isinstance(item, Not)]
    return sorted(positive, key=_rank), [item for item in items if isinstance(item, Not)]


def _rank(item: Expression) -> int:
    """Rank by how likely an item is to fail: equal strings first, then other comparisons, then existence."""
    if isinstance(item, Comparison):
        return 0 if item.operator == "=" and isinstance(item.value, str) else 2
    if isinstance(item, Exists):
        inner = [_rank(predicate) for step in item.path.steps for predicate in step.predicates]
        return min(inner, default=4) if inner else 4
    if isinstance(item, And):
        return min(map(_rank, item.items), default=4)
    return 3
