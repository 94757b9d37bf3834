"""Warnings about an XPath expression that is in the language, and probably not what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harken.language.xpath.ast import And, Comparison, Exists, Expression, Kind, Location, Not, Or
from harken.language.xpath.printer import prefixes_of, print_path, print_value

_NUMBER = re.compile(r"[ \t\r\n]*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t\r\n]*")
_EQUALITIES = ("=", "!=")
_LEAVES = (Kind.ATTRIBUTE, Kind.TEXT)


def doubts(expression: Expression) -> tuple[str, ...]:
    """What can never be true, or always is, as far as it is easily seen; each once."""
    return tuple(dict.fromkeys(_doubts(expression, expression, None)))


def _doubts(part: Expression, whole: Expression, context: Kind | None) -> Iterator[str]:
    """Of a part whose paths start at a node of a kind; None at the top."""
    match part:
        case And(items=items) | Or(items=items):
            for item in items:
                yield from _doubts(item, whole, context)
        case Not(item=item):
            yield from _doubts(item, whole, context)
        case Exists(path=path):
            if not path.steps:
                where = "every document has a root" if context is None else "the node itself is always there"
                yield f"`{_shown(path, whole, context)}` is always true: {where}"
            yield from _path_doubts(path, whole, context)
        case Comparison(path=path, operator=operator, value=value):
            if isinstance(value, str) and operator not in _EQUALITIES and not _NUMBER.fullmatch(value):
                shown = f"{_shown(path, whole, context)} {operator} {print_value(value)}"
                yield f"`{shown}` is never true: {operator} compares numbers, and {print_value(value)} is none"
            yield from _path_doubts(path, whole, context)


def _path_doubts(path: Location, whole: Expression, context: Kind | None) -> Iterator[str]:
    above = context
    for step in path.steps:
        is_at_root = above is None and not step.is_descendant
        if above in _LEAVES:
            what = "an attribute" if above is Kind.ATTRIBUTE else "text"
            yield f"`{_shown(path, whole, context)}` finds nothing: {what} has nothing below it"
        elif is_at_root and step.kind in _LEAVES:
            what = "attributes" if step.kind is Kind.ATTRIBUTE else "text"
            yield f"`{_shown(path, whole, context)}` finds nothing: the root has no {what}, only one element"
        for predicate in step.predicates:
            yield from _doubts(predicate, whole, step.kind)
        above = step.kind


def _shown(path: Location, whole: Expression, context: Kind | None) -> str:
    return print_path(path, prefixes_of(whole), is_top=context is None)
