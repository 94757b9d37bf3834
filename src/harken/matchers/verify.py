"""Whether an event meets a conjunction, exactly: how every matcher settles its candidates.

Most paths lead to one value. A test whose path leads to an array is deferred. Deferred tests that share an array form a
group, and one element of the array has to pass all of them. Groups are decided one by one, never as a product. Tests
that compare elements of several arrays may need a search; `max_bindings` limits the number of its tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harken.errors import LimitError
from harken.events import Event
from harken.language.normal_form import Conjunction, Constraint, NormalForm, Presence, Residual, ValueSet
from harken.language.trees import Tree
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.derived import Cursor, Derivation, Whole, advance, derivation
from harken.schema.paths import Path


@dataclass(frozen=True, slots=True)
class CursorTest:
    """A test of the values at some cursors. It is deferred if any cursor is at an array."""

    passes: Callable[[list[Any]], bool]
    cursors: tuple[Cursor, ...]
    made: tuple[Derivation | None, ...] = (None,)
    """For each value, the derivation that computes it from its cursors; None if it is the value at its cursor."""


def is_match(form: NormalForm | Tree, event: Event, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether the event meets one of the conjunctions, or the tree. Raises LimitError."""
    if not isinstance(form, NormalForm):
        from harken.matchers.verify_trees import holds

        return holds(form, event, limits)
    search: BindingSearch | None = None
    for conjunction in form.conjunctions:
        waiting = _left_open(conjunction, event)
        if waiting is None:
            continue
        if not waiting:
            return True
        search = search or BindingSearch(limits.max_bindings)
        if search.finds(waiting):
            return True
    return False


def _left_open(conjunction: Conjunction, event: Event) -> list[CursorTest] | None:
    """The tests that need a binding, if all others pass; None if one fails."""
    waiting: list[CursorTest] = []
    for path, constraint in conjunction.constraints:
        outcome = open_constraint(path, constraint, event)
        if outcome is False:
            return None
        if outcome is not True:
            waiting.append(outcome)
    for residual in conjunction.residuals:
        outcome = open_residual(residual, event)
        if outcome is False:
            return None
        if outcome is not True:
            waiting.append(outcome)
    return waiting


def open_constraint(path: Path, constraint: Constraint, event: Event) -> bool | CursorTest:
    """Whether the event meets a constraint, or a test if that depends on the binding."""
    if not isinstance(constraint, ValueSet):
        return bool(event.values(path)) is (constraint is Presence.PRESENT)
    rest: Path = ()
    if len(path) == 1:
        node = event.attributes.get(path[0])
    elif not path[0]:
        return _opened(CursorTest(_admits_one(constraint.admits), *_cursors((path,), event)))
    else:
        node, rest = advance((event.attributes, path))
    if node is None:
        return False
    if type(node) is list:
        return CursorTest(_admits_one(constraint.admits), ((node, rest),))
    return constraint.admits(node)


def open_residual(residual: Residual, event: Event) -> bool | CursorTest:
    """Whether a residual predicate is true of the event, or a test if that depends on the binding."""
    if residual.of_sets:
        return residual.holds([event.values(path) for path in residual.paths])
    return _opened(CursorTest(residual.holds, *_cursors(residual.paths, event)))


def _opened(test: CursorTest) -> bool | CursorTest:
    """The test, if it needs a binding; else whether it passes."""
    return test if arrays_of(test) else settled(test)


def _cursors(paths: Sequence[Path], event: Event) -> tuple[tuple[Cursor, ...], tuple[Derivation | None, ...]]:
    """The cursors of some paths, and for each path its derivation, or None if it is not derived."""
    cursors: list[Cursor] = []
    made: list[Derivation | None] = []
    for path in paths:
        if path[0]:
            cursors.append(advance((event.attributes, path)))
            made.append(None)
            continue
        derived = derivation(path)
        for source in derived.sources:
            if source.is_whole:
                cursors.append((Whole(event.values(source.path)), ()))
            else:
                cursors.append(advance((event.attributes, source.path)))
        made.append(derived)
    return tuple(cursors), tuple(made)


class BindingSearch:
    """A search for elements that pass all tests. Counts the tests of one subscription against a limit."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.made = 0

    def finds(self, tests: list[CursorTest]) -> bool:
        """Whether some binding passes every test. Raises LimitError."""
        try:
            return self.satisfiable(tests)
        except RecursionError:
            raise LimitError("too many arrays depend on each other", limit="max_bindings") from None

    def satisfiable(self, tests: list[CursorTest], picks: int = 0) -> bool:
        """Whether elements of the arrays can be picked so that every test passes. Raises LimitError."""
        if picks > 1:  # one pass through one array is not counted, however long the array is
            self.made += len(tests)
            if self.made > self.most:
                raise LimitError(f"no binding was found in {self.most:,} tests", limit="max_bindings")
        waiting = [test for test in tests if arrays_of(test)]
        if not all(settled(test) for test in tests if not arrays_of(test)):
            return False
        for group in _connected(waiting):
            array = _most_shared(group)
            if not any(self.satisfiable(_picked(group, array, element), picks + 1) for element in array):
                return False
        return True


def _connected(tests: list[CursorTest]) -> list[list[CursorTest]]:
    """The tests in groups: tests that share an array, directly or through others, are in one group."""
    by_array: dict[int, list[CursorTest]] = {}
    for test in tests:
        for array in arrays_of(test):
            by_array.setdefault(array, []).append(test)
    groups: list[list[CursorTest]] = []
    seen: set[int] = set()
    for first in tests:
        group, waiting = [], [first]
        while waiting:
            test = waiting.pop()
            if id(test) not in seen:
                seen.add(id(test))
                group.append(test)
                for array in arrays_of(test):
                    waiting.extend(by_array.pop(array, ()))
        if group:
            groups.append(group)
    return groups


def arrays_of(test: CursorTest) -> set[int]:
    """The arrays at the cursors of a test, by identity: in a canonical event every array is a separate object."""
    return {id(node) for node, _ in test.cursors if type(node) is list}


def _most_shared(group: list[CursorTest]) -> list[Any]:
    """The array that most cursors of the group are at. Once an element of it is picked, the group may fall apart."""
    waiting = [node for test in group for node, _ in test.cursors if type(node) is list]
    counts = Counter(map(id, waiting))
    return max(waiting, key=lambda array: counts[id(array)])


def _picked(group: list[CursorTest], array: list[Any], element: Any) -> list[CursorTest]:
    """The group with one element picked from one array."""
    return [picked_in(test, array, element) for test in group]


def picked_in(test: CursorTest, array: list[Any], element: Any) -> CursorTest:
    """A test with one element picked from one array."""
    cursors = [advance((element, path)) if node is array else (node, path) for node, path in test.cursors]
    return CursorTest(test.passes, tuple(cursors), test.made)


def settled(test: CursorTest) -> bool:
    """Whether a test that needs no binding passes."""
    if test.made == (None,):
        return test.passes([test.cursors[0][0]])
    nodes = [node.values if type(node) is Whole else node for node, _ in test.cursors]
    values: list[Any] = []
    first = 0
    for derived in test.made:
        last = first + (1 if derived is None else len(derived.sources))
        values.append(nodes[first] if derived is None else derived.evaluate(nodes[first:last]))
        first = last
    return test.passes(values)


def _admits_one(admits: Callable[[Any], bool]) -> Callable[[list[Any]], bool]:
    return lambda values: admits(values[0])
