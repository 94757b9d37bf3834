"""Whether an event meets a conjunction, exactly: how every matcher settles its candidates.

Most paths lead to one value. Where one comes to an array, its test waits; tests whose paths meet the same array form a
group, and an element of it has to be found that meets them all. Groups are settled one by one, never their product.
Tests that compare elements of several arrays can tie these into a puzzle: `max_bindings` bounds what is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harken.errors import LimitError
from harken.events import Event
from harken.language.normal_form import Conjunction, NormalForm, Presence, ValueSet
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.paths import Path

_Cursor = tuple[Any, Path]
"""A node of the event, and the path that is left to go from it."""


@dataclass(frozen=True, slots=True)
class _Test:
    """A test of the values at some cursors, at least one of which stands before an array."""

    passes: Callable[[list[Any]], bool]
    cursors: tuple[_Cursor, ...]


def is_match(form: NormalForm, event: Event, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether the event meets one of the conjunctions. Raises LimitError."""
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


def _left_open(conjunction: Conjunction, event: Event) -> list[_Test] | None:
    """The tests that wait for a binding, if all others pass; None if one does not."""
    attributes = event.attributes
    waiting: list[_Test] = []
    for path, constraint in conjunction.constraints:
        if not isinstance(constraint, ValueSet):
            if bool(event.values(path)) is not (constraint is Presence.PRESENT):
                return None
            continue
        rest: Path = ()
        if len(path) == 1:
            node = attributes.get(path[0])
        else:
            node, rest = _advance((attributes, path))
        if node is None:
            return None
        if type(node) is list:
            waiting.append(_Test(_admits(constraint.admits), ((node, rest),)))
        elif not constraint.admits(node):
            return None
    for residual in conjunction.residuals:
        if residual.of_sets:
            if not residual.holds([event.values(path) for path in residual.paths]):
                return None
            continue
        test = _Test(residual.holds, tuple(_advance((attributes, path)) for path in residual.paths))
        if _arrays(test):
            waiting.append(test)
        elif not _settled(test):
            return None
    return waiting


def _advance(cursor: _Cursor) -> _Cursor:
    """As far along the path as objects lead: to an array with the path that is left, or to a value, or to None."""
    node, path = cursor
    for steps, key in enumerate(path):
        if type(node) is dict:
            node = node.get(key)
        else:
            return (node, path[steps:]) if type(node) is list else (None, ())
    return node, ()


class BindingSearch:
    """The search for elements that pass the tests, and how many tests it has put off or made, for one subscription."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.made = 0

    def finds(self, tests: list[_Test]) -> bool:
        """Whether some binding passes every test. Raises LimitError."""
        try:
            return self.satisfiable(tests)
        except RecursionError:
            raise LimitError("too many arrays depend on each other", limit="max_bindings") from None

    def satisfiable(self, tests: list[_Test], picks: int = 0) -> bool:
        """Whether elements of the arrays can be picked so that every test passes. Raises LimitError."""
        if picks > 1:  # to go once through one array is no puzzle, however long it is
            self.made += len(tests)
            if self.made > self.most:
                raise LimitError(f"no binding was found in {self.most:,} tests", limit="max_bindings")
        waiting = [test for test in tests if _arrays(test)]
        if not all(_settled(test) for test in tests if not _arrays(test)):
            return False
        for group in _connected(waiting):
            array = _most_shared(group)
            if not any(self.satisfiable(_picked(group, array, element), picks + 1) for element in array):
                return False
        return True


def _connected(tests: list[_Test]) -> list[list[_Test]]:
    """The tests in groups: together are those that share an array, directly or through others."""
    by_array: dict[int, list[_Test]] = {}
    for test in tests:
        for array in _arrays(test):
            by_array.setdefault(array, []).append(test)
    groups: list[list[_Test]] = []
    seen: set[int] = set()
    for first in tests:
        group, waiting = [], [first]
        while waiting:
            test = waiting.pop()
            if id(test) not in seen:
                seen.add(id(test))
                group.append(test)
                for array in _arrays(test):
                    waiting.extend(by_array.pop(array, ()))
        if group:
            groups.append(group)
    return groups


def _arrays(test: _Test) -> set[int]:
    """The arrays before which a test waits, by identity: in a canonical event every array is an object of its own."""
    return {id(node) for node, _ in test.cursors if type(node) is list}


def _most_shared(group: list[_Test]) -> list[Any]:
    """The array before which most tests wait: once it is picked from, the group may fall apart."""
    waiting = [node for test in group for node, _ in test.cursors if type(node) is list]
    counts = Counter(map(id, waiting))
    return max(waiting, key=lambda array: counts[id(array)])


def _picked(group: list[_Test], array: list[Any], element: Any) -> list[_Test]:
    """The group with one element picked of one array."""
    return [
        _Test(
            test.passes,
            tuple(_advance((element, path)) if node is array else (node, path) for node, path in test.cursors),
        )
        for test in group
    ]


def _settled(test: _Test) -> bool:
    return test.passes([node for node, _ in test.cursors])


def _admits(admits: Callable[[Any], bool]) -> Callable[[list[Any]], bool]:
    return lambda values: admits(values[0])
