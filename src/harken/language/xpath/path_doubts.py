"""Warnings about an XPath expression that is in the language, and probably not what was meant."""

from __future__ import annotations

import re

from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, NodeKind, Not, Or
from harken.language.xpath.printer import prefixes_of, print_path, print_value

_NUMBER = re.compile(r"[ \t\r\n]*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t\r\n]*")
_EQUALITIES = ("=", "!=")


def doubts(expression: Expression) -> tuple[str, ...]:
    """What can never be true, or always is, as far as it is easily seen; each once."""
    found: list[str] = []
    _add_doubts(expression, expression, None, found)
    return tuple(dict.fromkeys(found)) if found else ()


def _add_doubts(part: Expression, whole: Expression, context: NodeKind | None, found: list[str]) -> None:
    """Of a part whose paths start at a node of a kind; None at the top. (Types are tested, as every text passes.)"""
    if type(part) is And or type(part) is Or:
        for item in part.items:
            _add_doubts(item, whole, context, found)
        return
    if type(part) is Not:
        _add_doubts(part.item, whole, context, found)
        return
    assert isinstance(part, Comparison | Exists)
    path = part.path
    if type(part) is Comparison:
        operator, value = part.operator, part.value
        if operator not in _EQUALITIES and isinstance(value, str) and not _NUMBER.fullmatch(value):
            shown = f"{_shown(path, whole, context)} {operator} {print_value(value)}"
            found.append(f"`{shown}` is never true: {operator} compares numbers, and {print_value(value)} is none")
    elif not path.steps:
        where = "every document has a root" if context is None else "the node itself is always there"
        found.append(f"`{_shown(path, whole, context)}` is always true: {where}")
    above = context
    for step in path.steps:
        kind = step.kind
        if above is not None and above is not NodeKind.ELEMENT:
            what = "an attribute" if above is NodeKind.ATTRIBUTE else "text"
            found.append(f"`{_shown(path, whole, context)}` finds nothing: {what} has nothing below it")
        elif above is None and kind is not NodeKind.ELEMENT and not step.is_descendant:
            what = "attributes" if kind is NodeKind.ATTRIBUTE else "text"
            found.append(f"`{_shown(path, whole, context)}` finds nothing: the root has no {what}, only one element")
        for predicate in step.predicates:
            _add_doubts(predicate, whole, kind, found)
        above = kind


def _shown(path: Location, whole: Expression, context: NodeKind | None) -> str:
    return print_path(path, prefixes_of(whole), is_top=context is None)
