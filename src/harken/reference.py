"""The semantics, in the plainest code: the oracle that judges every matcher, and what `explain` shows.

It evaluates the expression itself, not its normal form, and shares with the rest only the AST and the schema.

Truth is three-valued: True, False, or None for unknown. An event is a nested dict; a list is a set of values, of which
a *binding* picks one. An event matches when some binding makes the expression true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from harken.language.ast import (
    And,
    Attribute,
    Between,
    Call,
    Comparison,
    Constant,
    Contains,
    Expression,
    Holds,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    leaves,
    predicates,
)
from harken.schema import Domain, EnumeratedDomain, HierarchicalDomain, Schema
from harken.schema.paths import Path

Truth = bool | None
_MISSING: Any = None


def matches(expression: Expression, event: Mapping[str, Any], schema: Schema | None = None) -> bool:
    """Whether some binding makes the expression true."""
    return find_binding(expression, event, schema) is not None


def find_binding(
    expression: Expression, event: Mapping[str, Any], schema: Schema | None = None
) -> Mapping[str, Any] | None:
    """The event with one element picked of every array that matters, so that the expression is true; or None."""
    if not any(_array_on(event, path) for path in _bound_paths(predicate for predicate, _ in predicates(expression))):
        return event if truth(expression, event, event, schema) else None
    for goals in _alternatives(expression, True):
        bound = _solve(goals, event, event, schema)
        if bound is not None:
            return bound
    return None


def truth(node: Expression, whole: Mapping[str, Any], bound: Mapping[str, Any], schema: Schema | None = None) -> Truth:
    """The truth of an expression under a binding. `whole` is the event with its sets, `bound` has one value of each."""
    match node:
        case Not(item=item):
            inner = truth(item, whole, bound, schema)
            return None if inner is None else not inner
        case And(items=items):
            found = [truth(item, whole, bound, schema) for item in items]
            return False if False in found else None if None in found else True
        case Or(items=items):
            found = [truth(item, whole, bound, schema) for item in items]
            return True if True in found else None if None in found else False
        case _:
            return _predicate_truth(node, whole, bound, schema)


def all_values(event: Any, path: Path) -> list[Any]:
    """Every value of a path in the whole event. Nulls and NaNs are none; an object is one."""
    if isinstance(event, list):
        return [value for element in event for value in all_values(element, path)]
    if event is None or event != event:
        return []
    if not path:
        return [event]
    return all_values(event[path[0]], path[1:]) if isinstance(event, Mapping) and path[0] in event else []


# Predicates


def _predicate_truth(
    node: Predicate, whole: Mapping[str, Any], bound: Mapping[str, Any], schema: Schema | None
) -> Truth:
    def compared(left: Operand, operator: str, right: Operand) -> Truth:
        domain = _domain(left, schema) or _domain(right, schema)
        return compare(_value(left, bound), operator, _value(right, bound), domain)

    match node:
        case Comparison(left=left, operator=operator, right=right):
            return compared(left, operator, right)
        case Between(operand=operand, low=low, high=high):
            found = [compared(operand, ">=", low), compared(operand, "<=", high)]
            return False if False in found else None if None in found else True
        case In(operand=operand, values=values):
            found = [compared(operand, "=", value) for value in values]
            return True if True in found else None if None in found else False
        case Like(operand=operand):
            value = _value(operand, bound)
            return _like(value, node.pieces()) if isinstance(value, str) else None
        case Holds(operand=operand):
            value = _value(operand, bound)
            return value if isinstance(value, bool) else None
        case IsNull(attribute=attribute):
            return not all_values(whole, attribute.path)
        case Contains(attribute=attribute, value=constant):
            found = [compare(each, "=", constant.value, None) for each in all_values(whole, attribute.path)]
            return True if True in found else None if None in found or not found else False
        case Call():
            raise NotImplementedError("operators have no reference semantics yet")


def compare(left: Any, operator: str, right: Any, domain: Domain | None) -> Truth:
    """A comparison of two values; unknown if one is missing or their kinds differ."""
    if _kind(left) is None or _kind(left) != _kind(right):
        return None
    if operator in ("=", "<>"):
        return bool(left == right) is (operator == "=")
    if isinstance(domain, HierarchicalDomain):
        below, above = (left, right) if operator in ("<", "<=") else (right, left)
        return (below != above or operator in ("<=", ">=")) and _is_kind_of(below, above, domain)
    if isinstance(domain, EnumeratedDomain):
        return _compare_partially(left, operator, right, domain)
    found: dict[str, bool] = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return found[operator]


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number" if value == value else None
    if isinstance(value, str):
        return "string"
    if isinstance(value, datetime):
        return "timestamp"
    return "date" if isinstance(value, date) else None


def _is_kind_of(value: str, kind: str, domain: HierarchicalDomain) -> bool:
    parents = dict(domain.parents)
    at: str | None = value
    while at is not None:
        if at == kind:
            return True
        at = parents[at]
    return False


def _compare_partially(left: str, operator: str, right: str, domain: EnumeratedDomain) -> Truth:
    if left == right:
        return operator in ("<=", ">=")
    if right in _above(left, domain):
        return operator in ("<", "<=")
    if left in _above(right, domain):
        return operator in (">", ">=")
    return None


def _above(value: str, domain: EnumeratedDomain) -> set[str]:
    found: set[str] = set()
    waiting = [value]
    while waiting:
        lowest = waiting.pop()
        higher = {upper for lower, upper in domain.order if lower == lowest} - found
        found |= higher
        waiting.extend(higher)
    return found


def _like(text: str, pieces: list[str | None]) -> bool:
    """Whether the text fits the pattern; None in it is any characters, "" any one.

    `fits[j]` says whether the pieces read so far can end just before character j.
    """
    fits = [True] + [False] * len(text)
    for piece in pieces:
        if piece is None:
            reached = False
            for index, fit in enumerate(fits):
                reached = reached or fit
                fits[index] = reached
        else:
            fits = [False] + [fits[index] and piece in ("", text[index]) for index in range(len(text))]
    return fits[-1]


def _value(operand: Operand, bound: Mapping[str, Any]) -> Any:
    if isinstance(operand, Constant):
        return operand.value
    if not isinstance(operand, Attribute):
        raise NotImplementedError("variables have no reference semantics yet")
    at: Any = bound
    for key in operand.path:
        at = at.get(key, _MISSING) if isinstance(at, Mapping) else _MISSING
    return at


def _domain(operand: Operand, schema: Schema | None) -> Domain | None:
    return schema.domain_of(operand.path) if schema is not None and isinstance(operand, Attribute) else None


# Bindings


_Goal = tuple[Predicate, bool]


def _alternatives(node: Expression, wanted: bool) -> Iterator[list[_Goal]]:
    """The ways to make an expression true, or false: lists of predicates with the truth that each has to have."""
    match node:
        case Not(item=item):
            yield from _alternatives(item, not wanted)
        case And(items=items) | Or(items=items) if isinstance(node, And) is wanted:
            yield from _all_of(items, wanted)
        case And(items=items) | Or(items=items):
            for item in items:
                yield from _alternatives(item, wanted)
        case _:
            yield [(node, wanted)]


def _all_of(items: tuple[Expression, ...], wanted: bool) -> Iterator[list[_Goal]]:
    if not items:
        yield []
        return
    for first in _alternatives(items[0], wanted):
        for rest in _all_of(items[1:], wanted):
            yield first + rest


def _solve(
    goals: list[_Goal], whole: Mapping[str, Any], bound: Mapping[str, Any], schema: Schema | None
) -> Mapping[str, Any] | None:
    """A binding that meets all the goals. Goals that share no array are met one group at a time, so that the number
    of tries is the sum over the groups and not their product."""
    for group, arrays in _groups(goals, bound):
        if not arrays:
            if any(truth(predicate, whole, bound, schema) is not wanted for predicate, wanted in group):
                return None
            continue
        array = min(arrays)
        for element in _elements(_at(bound, array)):
            tried = _solve(group, whole, _replaced(bound, array, element), schema)
            if tried is not None:
                bound = tried
                break
        else:
            return None
    return bound


def _groups(goals: list[_Goal], bound: Mapping[str, Any]) -> list[tuple[list[_Goal], set[Path]]]:
    """The goals, those that share an array together, with the arrays of each group."""
    groups: list[tuple[list[_Goal], set[Path]]] = []
    for goal in goals:
        arrays = {array for path in _bound_paths([goal[0]]) if (array := _array_on(bound, path)) is not None}
        joined, apart = [goal], []
        for group in groups:
            if group[1] & arrays:
                joined, arrays = group[0] + joined, group[1] | arrays
            else:
                apart.append(group)
        groups = [*apart, (joined, arrays)]
    return groups


def _bound_paths(nodes: Any) -> Iterator[Path]:
    """The paths of which a binding picks a value: all but those of CONTAINS and IS NULL, which see the whole set."""
    for node in nodes:
        if not isinstance(node, Contains | IsNull):
            yield from (leaf.path for leaf in leaves(node) if isinstance(leaf, Attribute))


def _array_on(event: Mapping[str, Any], path: Path) -> Path | None:
    """The first array with an element that the path comes to."""
    at: Any = event
    for length, key in enumerate(path, 1):
        if not isinstance(at, Mapping) or key not in at:
            return None
        at = at[key]
        if isinstance(at, list) and _elements(at):
            return path[:length]
    return None


def _elements(array: list[Any]) -> list[Any]:
    return [
        each for each in array if each is not None and each == each and (not isinstance(each, list) or _elements(each))
    ]


def _at(event: Mapping[str, Any], path: Path) -> Any:
    return event if not path else _at(event[path[0]], path[1:])


def _replaced(event: Mapping[str, Any], path: Path, value: Any) -> Mapping[str, Any]:
    """A copy of the event with another value at the path."""
    return {**event, path[0]: value if len(path) == 1 else _replaced(event[path[0]], path[1:], value)}
