"""Warnings about valid XPath expressions that probably do not mean what was intended."""

from __future__ import annotations

import re

from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, NodeKind, Not, Or
from harken.language.xpath.printer import prefixes_of, print_path, print_value

_NUMBER = re.compile(r"[ \t\r\n]*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t\r\n]*")
_EQUALITIES = ("=", "!=")


def doubts(expression: Expression) -> tuple[str, ...]:
    """Warnings about parts that are never or always true, where that is easily seen; each once."""
    warnings: list[str] = []
    _add_doubts(expression, expression, None, warnings)
    return tuple(dict.fromkeys(warnings)) if warnings else ()


def _add_doubts(part: Expression, whole: Expression, context: NodeKind | None, warnings: list[str]) -> None:
    """Add warnings about a part whose paths start at a node of kind `context`; None at the top."""
    if type(part) is And or type(part) is Or:
        for item in part.items:
            _add_doubts(item, whole, context, warnings)
        return
    if type(part) is Not:
        _add_doubts(part.item, whole, context, warnings)
        return
    assert isinstance(part, Comparison | Exists)
    path = part.path
    if type(part) is Comparison:
        operator, value = part.operator, part.value
        if operator not in _EQUALITIES and isinstance(value, str) and not _NUMBER.fullmatch(value):
            constant = print_value(value)
            shown = f"{_shown(path, whole, context)} {operator} {constant}"
            warnings.append(f"`{shown}` is never true: {operator} compares numbers, and {constant} is not one")
    elif not path.steps:
        where = "every document has a root" if context is None else "the node itself is always there"
        warnings.append(f"`{_shown(path, whole, context)}` is always true: {where}")
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


def _shown(path: Location, whole: Expression, context: NodeKind | None) -> str:
    return print_path(path, prefixes_of(whole), is_top=context is None)
