"""The one tree of a meaning: nodes of the AST, made of their parts.

Steps that a location takes become part of it, comparisons of a location with a constant become a `Comparison`, and
what is made of constants alone is computed, unless XPath cannot write the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from harken.language.xpath.ast import (
    FALSE,
    TRUE,
    And,
    AxisPath,
    AxisStep,
    Calculation,
    Comparison,
    Exists,
    Expression,
    FilteredNodes,
    FunctionCall,
    Location,
    Minus,
    NodeKind,
    NodeUnion,
    Not,
    Or,
    Step,
    Truth,
    Value,
    ValueComparison,
)
from harken.language.xpath.core_functions import (
    CORE_FUNCTIONS,
    PURE,
    ValueKind,
    applied,
    calculated,
    compared,
    kind_of,
    to_boolean,
)

MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ANYWHERE = AxisStep("descendant-or-self", None, None)
"""What stands between the slashes of `//`."""
SELF = AxisStep("self", None, None)
PARENT = AxisStep("parent", None, None)
_MOST_CACHED = 65_536
_SHORT = 64
_steps: dict[tuple[bool, NodeKind, str | None], Step] = {}


def plain_step(is_descendant: bool, kind: NodeKind, name: str | None) -> Step:
    """A step without predicates. Equal steps are mostly one object."""
    key = is_descendant, kind, name
    step = _steps.get(key)
    if step is None:
        step = Step(*key)
        if len(_steps) < _MOST_CACHED and len(name or "") <= _SHORT:
            _steps[key] = step
    return step


# Paths


def stepped(start: Value, step: AxisStep) -> Value:
    """The nodes that one more step leads to."""
    if step == SELF:
        return start
    if isinstance(start, Location):
        taken = _as_step(step, is_far=False)
        return AxisPath(start, (step,)) if taken is None else Location((*start.steps, taken), start.at)
    if not isinstance(start, AxisPath):
        return AxisPath(start, (step,))
    if start.steps[-1] == ANYWHERE:
        if step == ANYWHERE:
            return start
        taken = _as_step(step, is_far=True) if len(start.steps) == 1 else None
        if taken is not None and isinstance(start.start, Location):
            return Location((*start.start.steps, taken), start.start.at)
    return AxisPath(start.start, (*start.steps, step))


def _as_step(step: AxisStep, *, is_far: bool) -> Step | None:
    """The step as one of a location, behind `//` if it is far; None if a location has no such step."""
    is_below = step.axis == "descendant"
    if not (is_below or step.axis in ("child", "attribute")) or step.kind is None:
        return None
    if (step.kind is NodeKind.ATTRIBUTE) != (step.axis == "attribute") or (step.name or "").endswith("}*"):
        return None
    if any(map(uses_position, step.predicates)):
        return None
    plain = plain_step(is_far or is_below, step.kind, step.name)
    return Step(plain.is_descendant, plain.kind, plain.name, step.predicates) if step.predicates else plain


def uses_position(value: Value) -> bool:
    """Whether a value depends on the position of its context node, or on the number of nodes there."""
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, FunctionCall) and current.name in ("position", "last"):
            return True
        waiting.extend(parts_of(current))
    return False


def parts_of(value: Value) -> Iterator[Value]:
    """The parts of a value that are evaluated in its own context: what is inside predicates is not."""
    match value:
        case And(items=items) | Or(items=items) | NodeUnion(parts=items) | FunctionCall(arguments=items):
            yield from items
        case Not(item=part) | Truth(value=part) | Minus(value=part):
            yield part
        case Exists(path=part) | Comparison(path=part) | AxisPath(start=part) | FilteredNodes(nodes=part):
            yield part
        case ValueComparison(left=left, right=right) | Calculation(left=left, right=right):
            yield left
            yield right


def predicates_of(value: Value) -> Iterator[Expression]:
    """The predicates of a set of nodes, without those of its parts."""
    match value:
        case Location(steps=steps) | AxisPath(steps=steps):
            for step in steps:
                yield from step.predicates
        case FilteredNodes(predicates=predicates):
            yield from predicates


# Values


def truth_of(value: Value) -> Expression:
    """`boolean()` of a value."""
    if isinstance(value, Location):
        return Exists(value)
    if isinstance(value, str | float):
        return TRUE if to_boolean(value) else FALSE
    if kind_of(value) is ValueKind.BOOLEAN and not isinstance(value, FunctionCall):
        return value  # type: ignore[return-value]
    return Truth(value)


def negated(value: Value) -> Expression:
    """`not()` of a value."""
    condition = truth_of(value)
    return condition.item if isinstance(condition, Not) else Not(condition)


def comparison(left: Value, operator: str, right: Value) -> Expression:
    """A comparison of two values."""
    if isinstance(left, Location) and (value := _writable(right)) is not None:
        return Comparison(left, operator, value)
    if isinstance(right, Location) and (value := _writable(left)) is not None:
        return Comparison(right, MIRRORED[operator], value)
    one, other = constant(left), constant(right)
    if one is not None and other is not None:
        return TRUE if compared(one, operator, other) else FALSE
    return ValueComparison(left, operator, right)


def calculation(left: Value, operator: str, right: Value) -> Value:
    """An arithmetic operation."""
    return _computed(Calculation(left, operator, right))


def minus(value: Value) -> Value:
    """The negative of a value."""
    if isinstance(value, Minus) and kind_of(value.value) is ValueKind.NUMBER:
        return value.value
    return _computed(Minus(value))


def called(name: str, arguments: tuple[Value, ...]) -> Value:
    """A call of a function of the core library, with as many arguments as it takes."""
    if name == "not":
        return negated(arguments[0])
    if name == "boolean":
        return truth_of(arguments[0])
    call = _computed(FunctionCall(name, arguments))
    return truth_of(call) if kind_of(call) is ValueKind.BOOLEAN else call


def constant(value: Value, absent: Value | None = None) -> Any:
    """What a value is in every document, as a string, a number or a boolean; None if that is not easily seen.

    With `absent`, what it is in documents without those nodes.
    """
    if absent is not None and value == absent:
        return None
    match value:
        case str() | float():
            return value
        case Calculation(left=left, operator=operator, right=right):
            one, other = _number(left, absent), _number(right, absent)
            return None if one is None or other is None else calculated(one, operator, other)
        case Minus(value=part):
            number = _number(part, absent)
            return None if number is None else -number
        case FunctionCall(name=name, arguments=arguments):
            return _call_constant(name, arguments, absent)
        case ValueComparison(left=left, operator=operator, right=right):
            return _relation_constant(left, operator, right, absent)
        case Truth(value=part):
            truth = False if part == absent else constant(part, absent)
            return None if truth is None else to_boolean(truth)
        case Not(item=item):
            truth = constant(item, absent)
            return None if truth is None else not truth
        case And(items=items):
            return _junction([constant(item, absent) for item in items], False)
        case Or(items=items):
            return _junction([constant(item, absent) for item in items], True)
        case Exists(path=path) | Comparison(path=path):
            return False if path == absent else None
    return None


def _junction(truths: list[Any], decisive: bool) -> bool | None:
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive


def _relation_constant(left: Value, operator: str, right: Value, absent: Value | None) -> bool | None:
    if absent is not None and absent in (left, right):
        other = right if left == absent else left
        if kind_of(other) is not ValueKind.BOOLEAN:
            return False  # no node compares
        truth = constant(other, absent)
        if truth is None:
            return None
        return compared(False, operator, truth) if left == absent else compared(truth, operator, False)
    one, another = constant(left, absent), constant(right, absent)
    return None if one is None or another is None else compared(one, operator, another)


def _call_constant(name: str, arguments: tuple[Value, ...], absent: Value | None) -> Any:
    signature = CORE_FUNCTIONS[name]
    if absent is not None and absent in arguments:
        if name in ("count", "sum"):
            return 0.0
        if name in ("name", "local-name", "namespace-uri"):
            return ""
    if name not in PURE or (signature.of_context and not arguments):
        return None
    values = []
    for kind, each in zip(signature.arguments + (ValueKind.STRING,) * len(arguments), arguments, strict=False):
        value = (False if kind is ValueKind.BOOLEAN else "") if each == absent else constant(each, absent)
        values.append(value)
    return None if None in values else applied(name, values)


def _number(value: Value, absent: Value | None) -> float | None:
    if absent is not None and value == absent:
        return math.nan
    found = constant(value, absent)
    if found is None:
        return None
    return float(applied("number", [found]))


def _writable(value: Value) -> str | float | None:
    """A string or a number that XPath can write, -0 as 0; None for all else."""
    found = value if isinstance(value, str | float) else constant(value)
    if isinstance(found, float):
        return found + 0.0 if math.isfinite(found) else None
    return found if isinstance(found, str) and not ("'" in found and '"' in found) else None


def _computed(value: Value) -> Value:
    """The value, or what it always is if XPath can write that."""
    found = constant(value)
    if isinstance(found, bool):
        return FunctionCall("true" if found else "false")
    if isinstance(found, float):
        is_plain = math.isfinite(found) and not (found == 0 and math.copysign(1.0, found) < 0)
        return found if is_plain else value
    return found if isinstance(found, str) and not ("'" in found and '"' in found) else value
