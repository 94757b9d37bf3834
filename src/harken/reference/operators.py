"""The semantics of operators and variables, in the plainest code: the oracle for subscriptions that call them.

A *substitution* gives each variable one of the values that calls returned for it, or none. Under it, a call is true if
it returned these values together; every other part is evaluated by `reference.expressions`, with the values in place of
the variables. A subscription matches if some substitution makes it true. A call under NOT, whose variables stand
nowhere else, is false if it returned any binding.

All substitutions are tried, so this is for few bindings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from itertools import product
from math import isinf, prod
from typing import Any

from harken.errors import LimitError
from harken.language.ast import (
    And,
    Attribute,
    Call,
    Comparison,
    Constant,
    Expression,
    Function,
    Holds,
    Not,
    Or,
    Variable,
)
from harken.limits import DEFAULT_LIMITS
from harken.reference.expressions import find_binding
from harken.schema import Schema

CallResult = bool | None | Sequence[tuple[Any, ...]]
"""The result of a call: its truth, None if unknown, or bindings: tuples with a value for each variable in the call, in
order. A variable that stands there twice has two places."""
CallResults = Mapping[Call, CallResult]
NOTHING: Mapping[str, Any] = {}
_NONE = object()
"""The value of an unbound variable."""
_MOST = DEFAULT_LIMITS.max_bindings
_MISSING = ("\0",)
"""The path of an attribute that no event has."""


def matches(
    expression: Expression, event: Mapping[str, Any], results: CallResults, schema: Schema | None = None
) -> bool:
    """Whether some substitution makes the expression true of a canonical event, given the results of its calls."""
    return substitution(expression, event, results, schema) is not None


def substitution(
    expression: Expression, event: Mapping[str, Any], results: CallResults, schema: Schema | None = None
) -> dict[str, Any] | None:
    """A substitution that makes the expression true, without unbound variables; None if there is none."""
    return next(_solutions(expression, event, results, schema), None)


def _solutions(
    expression: Expression, event: Mapping[str, Any], results: CallResults, schema: Schema | None
) -> Iterator[dict[str, Any]]:
    for bound in substitutions(expression, results):
        if elements(under(expression, bound, results), event, schema) is not None:
            yield bound


def substitutions(
    expression: Expression, results: CallResults, fixed: Mapping[str, Any] = NOTHING, *, is_positive: bool = True
) -> Iterator[dict[str, Any]]:
    """All substitutions of an expression's variables: by values that calls returned, by none, or by `fixed` ones.

    `is_positive` is whether the expression stands under an even number of NOT. Raises LimitError for too many.
    """
    values: dict[str, list[Any]] = {}
    for call in calls(expression):
        rows = results[call]
        for place, name in enumerate(_names(call)):
            candidates = values.setdefault(name, [_NONE])
            if isinstance(rows, Sequence):
                candidates += [row[place] for row in rows if not any(_same(row[place], each) for each in candidates)]
    local = {name for call in _negated(expression, is_positive) for name in _names(call)}
    values |= {name: [_NONE] for name in local} | {name: [value] for name, value in fixed.items()}
    if prod(map(len, values.values())) > _MOST:
        raise LimitError(f"there are more than {_MOST:,} substitutions to try", limit="max_bindings")
    for chosen in product(*values.values()):
        yield {name: value for name, value in zip(values, chosen, strict=True) if value is not _NONE}


def outcome(answer: Any, variables: int) -> CallResult:
    """The result of a call with this many variables, from an operator's answer; unknown if that is malformed.

    An answer lists bindings: tuples, or single values where there is one variable. False is no binding. Without
    variables an answer is a truth, or a list of empty tuples. Bindings with a missing value are dropped.
    """
    if answer is False or (answer is True and not variables):
        return () if variables else answer
    if not isinstance(answer, list | tuple):
        return None
    rows = []
    for each in answer:
        row = (each,) if variables == 1 and not isinstance(each, tuple) else each
        if not isinstance(row, tuple | list) or len(row) != variables or not all(map(_can_be_bound, row)):
            return None
        if not any(value is None or value != value for value in row):
            rows.append(tuple(row))
    return rows if variables else bool(rows)


def _can_be_bound(value: Any) -> bool:
    """Whether a value is one of the language, or missing."""
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**63
    if isinstance(value, float):
        return not isinf(value)
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return value is None or isinstance(value, bool | date)


def elements(
    plain: Expression,
    event: Mapping[str, Any],
    schema: Schema | None = None,
    picked: Mapping[str, Any] | None = None,
    most: int = _MOST,
) -> Mapping[str, Any] | None:
    """The event with an element picked of each array, so that an expression without calls and variables is true.

    None if no elements make it true. Some may be `picked` already. Raises LimitError.
    """
    return find_binding(plain, event, schema, picked, most)


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
    return [argument.name for argument in call.arguments if isinstance(argument, Variable)]


def under(node: Any, bound: Mapping[str, Any], results: CallResults, is_positive: bool = True) -> Any:
    """An expression with truths in place of its calls, and values in place of its variables."""
    if isinstance(node, Call):
        truth = _call(node, bound, results[node], is_positive)
        return Comparison(Attribute(_MISSING), "=", Constant(0)) if truth is None else Holds(Constant(truth))
    if isinstance(node, Variable):
        value = bound.get(node.name, _NONE)
        # Wrapped, since a variable is no constant: without a schema, strings beside a constant may be read as times.
        return Attribute(_MISSING) if value is _NONE else Function("coalesce", (Constant(value),))
    if isinstance(node, tuple):
        return tuple(under(each, bound, results, is_positive) for each in node)
    if isinstance(node, Attribute | Constant) or not is_dataclass(node):
        return node
    assert not isinstance(node, type)
    turns = isinstance(node, Not) or getattr(node, "wanted", True) is False
    inside = is_positive is not turns
    parts = {each.name: under(getattr(node, each.name), bound, results, inside) for each in fields(node)}
    return type(node)(**parts)


def _call(call: Call, bound: Mapping[str, Any], rows: CallResult, is_positive: bool) -> bool | None:
    if not isinstance(rows, Sequence):
        return rows
    names = _names(call)
    if not is_positive:
        return any(_fits(names, row) for row in rows)
    wanted = [bound.get(name, _NONE) for name in names]
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
