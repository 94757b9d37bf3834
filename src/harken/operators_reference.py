"""The semantics of operators and variables, in the plainest code: the oracle for subscriptions that call them.

A variable has one of the values that calls found for it, or none. Under such a *substitution* a call is true if it
found just these values, and every other part is what `reference` says with the values in place of the variables. A
subscription matches if some substitution makes it true. A call under NOT, whose variables stand nowhere else, is false
if it found anything.

All substitutions are tried, so it is for few bindings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import product
from math import prod
from typing import Any

from harken.errors import LimitError
from harken.language.ast import And, Attribute, Call, Comparison, Constant, Expression, Holds, Not, Or, Variable
from harken.limits import DEFAULT_LIMITS
from harken.reference import find_binding
from harken.schema import Schema

Found = bool | None | Sequence[tuple[Any, ...]]
"""What a call found: truth, None if it is unknown, or tuples for its variables, a place for each time one stands there.
"""
_NONE = object()
"""What a variable has that no call bound."""
_MOST = DEFAULT_LIMITS.max_bindings
_MISSING = ("\0",)
"""The path of an attribute that no event has."""


def matches(
    expression: Expression, event: Mapping[str, Any], found: Mapping[Call, Found], schema: Schema | None = None
) -> bool:
    """Whether some substitution makes the expression true of a canonical event, given what its calls found."""
    return substitution(expression, event, found, schema) is not None


def substitution(
    expression: Expression, event: Mapping[str, Any], found: Mapping[Call, Found], schema: Schema | None = None
) -> dict[str, Any] | None:
    """One that makes the expression true, with the variables that it gives a value; None if there is none."""
    return next(_solutions(expression, event, found, schema), None)


def _solutions(
    expression: Expression, event: Mapping[str, Any], found: Mapping[Call, Found], schema: Schema | None
) -> Iterator[dict[str, Any]]:
    values: dict[str, list[Any]] = {}
    for call in calls(expression):
        rows = found[call]
        variables = [each.name for each in call.arguments if isinstance(each, Variable)]
        for place, name in enumerate(variables):
            own = values.setdefault(name, [_NONE])
            if isinstance(rows, Sequence):
                own += [row[place] for row in rows if not any(_same(row[place], each) for each in own)]
    names = list(values)
    local = {name for call in _negated(expression, True) for name in _names(call)}
    choices = [values[name] if name not in local else [_NONE] for name in names]
    if prod(map(len, choices)) > _MOST:
        raise LimitError(f"there are more than {_MOST:,} substitutions to try", limit="max_bindings")
    for chosen in product(*choices):
        bound = dict(zip(names, chosen, strict=True))
        if find_binding(_under(expression, bound, found, True), event, schema) is not None:
            yield {name: value for name, value in bound.items() if value is not _NONE}


def calls(expression: Any) -> list[Call]:
    """The calls of an expression, each once."""
    if isinstance(expression, Call):
        return [expression]
    items = getattr(expression, "items", None) or ([expression.item] if hasattr(expression, "item") else [])
    return list(dict.fromkeys(call for item in items for call in calls(item)))


def _negated(node: Any, is_positive: bool) -> list[Call]:
    """The calls that stand under an odd number of NOT."""
    if isinstance(node, Call):
        return [] if is_positive else [node]
    if isinstance(node, And | Or):
        return [call for item in node.items for call in _negated(item, is_positive)]
    if hasattr(node, "item"):
        turns = isinstance(node, Not) or getattr(node, "wanted", True) is False
        return _negated(node.item, is_positive is not turns)
    return []


def _names(call: Call) -> list[str]:
    return [each.name for each in call.arguments if isinstance(each, Variable)]


def _under(node: Any, bound: Mapping[str, Any], found: Mapping[Call, Found], is_positive: bool) -> Any:
    """The same with truth in place of calls, and values in place of variables."""
    if isinstance(node, Call):
        truth = _call(node, bound, found[node], is_positive)
        return Comparison(Attribute(_MISSING), "=", Constant(0)) if truth is None else Holds(Constant(truth))
    if isinstance(node, Variable):
        value = bound.get(node.name, _NONE)
        return Attribute(_MISSING) if value is _NONE else Constant(value)
    if isinstance(node, tuple):
        return tuple(_under(each, bound, found, is_positive) for each in node)
    if isinstance(node, Attribute | Constant) or not is_dataclass(node):
        return node
    assert not isinstance(node, type)
    turns = isinstance(node, Not) or getattr(node, "wanted", True) is False
    inside = is_positive is not turns
    parts = {each.name: _under(getattr(node, each.name), bound, found, inside) for each in fields(node)}
    return type(node)(**parts)


def _call(call: Call, bound: Mapping[str, Any], rows: Found, is_positive: bool) -> bool | None:
    if not isinstance(rows, Sequence):
        return rows
    names = _names(call)
    if not is_positive:
        return any(_fits(names, row) for row in rows)
    wanted = [bound[name] for name in names]
    return any(all(_same(one, other) for one, other in zip(row, wanted, strict=True)) for row in rows)


def _fits(names: list[str], row: Sequence[Any]) -> bool:
    """Whether a variable that stands twice has the same value at both places."""
    return all(
        _same(row[one], row[other]) for one in range(len(names)) for other in range(one) if names[one] == names[other]
    )


def _same(one: Any, other: Any) -> bool:
    if one is _NONE or other is _NONE:
        return one is other
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return type(one) is type(other) and bool(one == other)
