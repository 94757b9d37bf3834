"""The search for a substitution: bindings on which all calls of a conjunction agree, and which pass all tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harken.errors import LimitError
from harken.events import Event
from harken.language.ast import Expression
from harken.language.compiled import Form
from harken.language.sql.operator_plans import OperatorConjunction, OperatorPlan, as_attributes, variables_of
from harken.limits import Limits
from harken.matchers.verify import is_match
from harken.operators.calling import Binding
from harken.schema.values import KINDS, Value

Substitution = dict[str, Value]
_Key = tuple[tuple[object, Value], ...]


@dataclass(frozen=True, slots=True)
class CallRelation:
    """The result of a call as a relation: its variables, and the rows of values that they may have together."""

    variables: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class VariableTest:
    """A test of some variables."""

    variables: frozenset[str]
    passes: Callable[[Mapping[str, Value]], bool]


@dataclass(frozen=True, slots=True)
class Join:
    """The calls and tests that constrain the variables of a conjunction."""

    occurrences: tuple[tuple[int, tuple[str, ...]], ...]
    """Literals, with the names of their variables in this conjunction."""
    tests: tuple[tuple[frozenset[str], Form], ...]
    mixed: tuple[frozenset[str], Form] | None

    @classmethod
    def of(
        cls, made: OperatorConjunction, occurrences: Sequence[tuple[int, tuple[str, ...]]], plan: OperatorPlan
    ) -> Join:
        def compiled(test: Expression) -> tuple[frozenset[str], Form]:
            return frozenset(variables_of(test)), plan.compile_test(as_attributes(test)).form

        return cls(
            tuple((literal, names) for literal, names in occurrences if names),
            tuple(compiled(test) for test in made.tests),
            None if made.mixed is None else compiled(made.mixed),
        )

    def solve(self, bindings: dict[int, Sequence[Binding]], event: Event, limits: Limits) -> Substitution | None:
        """A substitution that satisfies the conjunction; None if there is none. Raises LimitError."""
        relations = [CallRelation(names, bindings[literal]) for literal, names in self.occurrences]
        tests = [VariableTest(names, passing(form, {}, limits)) for names, form in self.tests]
        if self.mixed is not None:
            names, form = self.mixed
            tests.append(VariableTest(names, passing(form, event.attributes, limits)))
        return joined(relations, tests, limits.max_bindings)


def passing(form: Form, attributes: dict[str, Any], limits: Limits) -> Callable[[Mapping[str, Value]], bool]:
    """A test of variables, and of these attributes of an event."""

    def passes(bound: Mapping[str, Value]) -> bool:
        event = {**attributes, **{f"?{name}": value for name, value in bound.items()}}
        return is_match(form, Event(event), limits)

    return passes


def joined(relations: Sequence[CallRelation], tests: Sequence[VariableTest], most: int) -> Substitution | None:
    """A substitution of all variables that is in every relation and passes every test; None if there is none.

    Relations that share no variable or test, directly or through others, are searched separately, never as a product.
    Raises LimitError after trying more than `most` rows.
    """
    substitution: Substitution = {}
    budget = [most]
    for component, component_tests in _components(relations, tests):
        part = _solve(component, component_tests, budget, most)
        if part is None:
            return None
        substitution |= part
    return substitution


def _components(
    relations: Sequence[CallRelation], tests: Sequence[VariableTest]
) -> list[tuple[list[CallRelation], list[VariableTest]]]:
    """Relations and tests in groups that share no variable."""
    leader: dict[str, str] = {}

    def root(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for names in (*(each.variables for each in relations), *(each.variables for each in tests)):
        first, *others = tuple(names) or ("",)
        for other in others:
            leader[root(other)] = root(first)
    groups: dict[str, tuple[list[CallRelation], list[VariableTest]]] = {}
    for relation in relations:
        groups.setdefault(root(relation.variables[0]), ([], []))[0].append(relation)
    for test in tests:
        groups.setdefault(root(next(iter(test.variables))), ([], []))[1].append(test)
    return list(groups.values())


def _solve(
    relations: list[CallRelation], tests: list[VariableTest], budget: list[int], most: int
) -> Substitution | None:
    steps = _steps(relations, tests)
    bound: Substitution = {}

    def search(depth: int) -> bool:
        if depth == len(steps):
            return True
        relation, index, bound_before, tests_now = steps[depth]
        names = relation.variables
        for row in index.get(_key([bound[name] for name in bound_before]), ()):
            budget[0] -= 1
            if budget[0] < 0:
                message = f"more than {most:,} combinations of bindings were tried"
                raise LimitError(message, limit="max_bindings")
            fresh = [name for name in names if name not in bound]
            bound.update(zip(names, row, strict=True))
            if all(test.passes(bound) for test in tests_now) and search(depth + 1):
                return True
            for name in fresh:
                del bound[name]
        return False

    return bound if search(0) else None


_Step = tuple[CallRelation, dict[_Key, list[tuple[Value, ...]]], tuple[str, ...], list[VariableTest]]
"""A relation, its rows by the variables that are bound before it, these variables, and the tests that it completes."""


def _steps(relations: list[CallRelation], tests: list[VariableTest]) -> list[_Step]:
    """The order in which relations are searched: those that share a bound variable first, then small ones."""
    remaining = sorted(relations, key=lambda each: len(each.rows))
    waiting = list(tests)
    bound: set[str] = set()
    steps: list[_Step] = []
    while remaining:
        relation = next((each for each in remaining if bound & set(each.variables)), remaining[0])
        remaining.remove(relation)
        bound_before = tuple(name for name in relation.variables if name in bound)
        places = [relation.variables.index(name) for name in bound_before]
        index: dict[_Key, list[tuple[Value, ...]]] = {}
        for row in relation.rows:
            index.setdefault(_key([row[place] for place in places]), []).append(row)
        bound |= set(relation.variables)
        tests_now = [test for test in waiting if test.variables <= bound]
        waiting = [test for test in waiting if not test.variables <= bound]
        steps.append((relation, index, bound_before, tests_now))
    return steps


def _key(values: list[Value]) -> _Key:
    """A key that is the same for values equal by the language: 1 equals 1.0, but not TRUE."""
    return tuple((KINDS[type(value)], value) for value in values)
