"""Warnings about valid XPath expressions that probably do not mean what was intended."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harken.errors import ContradictionError
from harken.language.xpath.ast import (
    FALSE,
    TRUE,
    And,
    AxisPath,
    Comparison,
    Exists,
    Expression,
    FilteredNodes,
    FunctionCall,
    Location,
    NodeKind,
    Not,
    Or,
    Truth,
    Value,
    ValueComparison,
)
from harken.language.xpath.expression_building import constant, parts_of
from harken.language.xpath.printer import prefixes_of, print_path, print_value

_NUMBER = re.compile(r"[ \t\r\n]*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t\r\n]*")
_EQUALITIES = ("=", "!=")


def doubts(expression: Expression) -> tuple[str, ...]:
    """Warnings about parts that are never or always true, where that is easily seen; each once."""
    warnings: list[str] = []
    _add_doubts(expression, expression, None, warnings)
    return tuple(dict.fromkeys(warnings)) if warnings else ()


def never_true(expression: Expression) -> ContradictionError | None:
    """The error for an expression that is false of every document, where its constants alone say so."""
    if type(expression) is Exists or type(expression) is Comparison or constant(expression) is not False:
        return None
    hint = "its constants alone make it false: leave them out"
    return ContradictionError("no document can ever match this", hint=hint)


def _add_doubts(value: Value, whole: Expression, context: NodeKind | None, warnings: list[str]) -> None:
    """Add warnings about a value whose paths start at a node of kind `context`; None at the top."""
    if type(value) is And or type(value) is Or:
        for item in value.items:
            _add_doubts(item, whole, context, warnings)
    elif type(value) is Not:
        _add_doubts(value.item, whole, context, warnings)
    elif type(value) is Comparison:
        _add_comparison(value, whole, context, warnings)
    elif type(value) is Exists:
        path = value.path
        if not path.steps:
            where = "every document has a root" if context is None else "the node itself is always there"
            warnings.append(f"`{_shown(path, whole, context)}` is always true: {where}")
        _add_location(path, whole, context, warnings)
    elif type(value) is Location:
        _add_location(value, whole, context, warnings)
    else:
        _add_rest(value, whole, context, warnings)


def _add_comparison(part: Comparison, whole: Expression, context: NodeKind | None, warnings: list[str]) -> None:
    operator, value = part.operator, part.value
    if operator not in _EQUALITIES and isinstance(value, str) and not _NUMBER.fullmatch(value):
        constant_text = print_value(value)
        shown = f"{_shown(part.path, whole, context)} {operator} {constant_text}"
        warnings.append(f"`{shown}` is never true: {operator} compares numbers, and {constant_text} is not one")
    _add_location(part.path, whole, context, warnings)


def _add_location(path: Location, whole: Expression, context: NodeKind | None, warnings: list[str]) -> None:
    above = context
    for step in path.steps:
        kind = step.kind
        if above is not None and above is not NodeKind.ELEMENT:
            what = "an attribute" if above is NodeKind.ATTRIBUTE else "text"
            warnings.append(f"`{_shown(path, whole, context)}` finds nothing: {what} has nothing below it")
        elif above is None and kind is not NodeKind.ELEMENT and not step.is_descendant:
            what = "attributes" if kind is NodeKind.ATTRIBUTE else "text"
            warnings.append(f"`{_shown(path, whole, context)}` finds nothing: the root has no {what}, only one element")
        for predicate in step.predicates:
            _add_doubts(predicate, whole, kind, warnings)
        above = kind


def _add_rest(value: Value, whole: Expression, context: NodeKind | None, warnings: list[str]) -> None:
    """Add warnings about what the index does not decide."""
    parts: Iterable[Value] = parts_of(value)
    kinds: dict[Expression, NodeKind] = {}
    match value:
        case Truth(value=FunctionCall(name="true" | "false" as truth)):
            always = "always" if truth == "true" else "never"
            warnings.append(f"a condition of constants alone is {always} true: leave it out")
        case FunctionCall(name="name"):
            warnings.append("name() has no prefix: documents keep namespaces only; use local-name(), namespace-uri()")
        case ValueComparison():
            parts = _compared_parts(value, warnings)
        case AxisPath(steps=steps):
            kinds = {each: step.kind or NodeKind.ELEMENT for step in steps for each in step.predicates}
        case FilteredNodes(predicates=predicates):
            kinds = dict.fromkeys(predicates, NodeKind.ELEMENT)
    for part in parts:
        _add_doubts(part, whole, context, warnings)
    for predicate, kind in kinds.items():
        _add_doubts(predicate, whole, kind, warnings)


def _compared_parts(value: ValueComparison, warnings: list[str]) -> list[Value]:
    """The sides of a comparison that have doubts of their own. Adds a warning if a side is a truth."""
    sides = [value.left, value.right]
    if TRUE in sides or FALSE in sides:
        warnings.append("true() and false() compare with the existence of nodes; compare a text: @a = 'true'")
    elif any(isinstance(each, Comparison | ValueComparison) for each in sides):
        warnings.append("a comparison compares as 0 or 1; join comparisons with and: a > 1 and a < 5")
    return [each for each in sides if each not in (TRUE, FALSE)]


def _shown(path: Location, whole: Expression, context: NodeKind | None) -> str:
    return print_path(path, prefixes_of(whole), is_top=context is None)
