"""Warnings about valid texts that probably do not mean what was intended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

from harken.language.ast import (
    DEFAULT_ESCAPE,
    Attribute,
    Between,
    Comparison,
    Constant,
    Contains,
    Expression,
    In,
    Like,
    Predicate,
    has_arithmetic,
    leaves,
    predicates,
)
from harken.language.sql.habits import CLOCKS, ONE_NAME, name_hint, starts_before
from harken.schema import Domain, IntegerDomain, Schema, StringDomain, Value
from harken.schema.paths import Path
from harken.schema.values import show

_CURRENT = "current_"
_SIGN_IN_NAME = re.compile(r"\w[-/][^\W\d]")
_ESCAPED_PERCENT = DEFAULT_ESCAPE + "%"
_BACKSLASH_AND_ANY = DEFAULT_ESCAPE + _ESCAPED_PERCENT


_MOST_SIGNS = 16
"""Limit on the attributes in arithmetic that are checked: each check reads the line from its start."""

Doubts = Callable[[str, Sequence[Value]], Iterator[str]]
"""The warnings about a text, given its constants in the order of the text."""


def doubts_of(expression: Expression, schema: Schema | None) -> Doubts:
    """The function that gives the warnings about texts with the shape of this expression."""
    doubts: list[Doubts] = []
    signs: list[Doubts] = []
    hole = 0
    for predicate, _ in predicates(expression):
        names = [leaf.name for leaf in leaves(predicate) if isinstance(leaf, Attribute)]
        if schema is None:
            doubts.extend(_about_name(name) for name in names if _is_clock(name))
        if len(signs) < _MOST_SIGNS and has_arithmetic(predicate):
            signs += [_about_sign(leaf.at) for leaf in leaves(predicate) if isinstance(leaf, Attribute)]
        last = hole + sum(isinstance(leaf, Constant) for leaf in leaves(predicate)) - 1
        if isinstance(predicate, Like):
            doubts.append(_about_pattern(last, predicate.escape))
        elif isinstance(predicate, Contains) and schema is not None and _is_string(predicate.attribute.path, schema):
            doubts.append(_about_contains(last, predicate.attribute.name))
        if schema is not None:
            doubts += _about_interval(predicate, range(hole, last + 1), schema)
        hole = last + 1
    return lambda text, constants: (doubt for each in [*doubts, *signs] for doubt in each(text, constants))


def may_be_doubtful(text: str, schema: Schema | None) -> bool:
    """A quick filter, since warnings are rare."""
    if ("-" in text or "/" in text) and _SIGN_IN_NAME.search(text):
        return True
    if schema is not None and any(map(_has_interval, schema.attributes.values())):
        return True
    return _ESCAPED_PERCENT in text or "*" in text or (_CURRENT if schema is None else "contains") in text.lower()


def substring_doubt(name: str, value: str) -> str:
    """What CONTAINS means for a string, and how to search in one."""
    pattern = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return (
        f"CONTAINS asks whether {show(value)} is one of the values of {name}, not whether it is a part of one: "
        f"to search in a string write {name} LIKE {show(f'%{pattern}%')}"
    )


def _is_clock(name: str) -> bool:
    return name.lower().startswith(_CURRENT) and name.upper() in CLOCKS


def _about_name(name: str) -> Doubts:
    def doubts(text: str, constants: Sequence[Value]) -> Iterator[str]:
        if f"`{name}`" not in text:
            yield f"{name} is taken for an attribute's name; {CLOCKS[name.upper()]}"

    return doubts


def _about_sign(at: int) -> Doubts:
    """A difference or a quotient of names without blanks, in texts that have it at this offset."""

    def doubts(text: str, constants: Sequence[Value]) -> Iterator[str]:
        hint = name_hint(text, at) if starts_before(text, at) else None
        if hint is not None and hint.startswith(ONE_NAME):
            yield f"the sign in {hint.removeprefix(ONE_NAME).strip('`')} is taken for arithmetic; {hint}"

    return doubts


def _about_pattern(hole: int, escape: str) -> Doubts:
    def doubts(text: str, constants: Sequence[Value]) -> Iterator[str]:
        pattern = str(constants[hole])
        has_escape = escape == DEFAULT_ESCAPE and pattern.endswith(_ESCAPED_PERCENT)
        if has_escape and not pattern.endswith(_BACKSLASH_AND_ANY):
            yield (
                f"the pattern {show(pattern)} ends in a percent sign, not in a wildcard, because \\ escapes it: for a "
                f"backslash and then anything write {show(pattern[:-2] + _BACKSLASH_AND_ANY)}"
            )
        if "*" in pattern and "%" not in pattern and "_" not in pattern:
            yield f"in the pattern {show(pattern)} the * is a plain character: % stands for any characters"

    return doubts


def _about_interval(predicate: Predicate, holes: Sequence[int], schema: Schema) -> Iterator[Doubts]:
    """A constant outside the interval of integers that its attribute has for a domain."""
    match predicate:
        case Comparison(left=Attribute() as attribute) | Comparison(right=Attribute() as attribute):
            pass
        case Between(operand=Attribute() as attribute) | In(operand=Attribute() as attribute):
            pass
        case Contains(attribute=attribute):
            pass
        case _:
            return
    domain = schema.domain_of(attribute.path)
    if not _has_interval(domain):
        return

    def doubts(text: str, constants: Sequence[Value]) -> Iterator[str]:
        for hole in holes:
            if not domain.admits(constants[hole]):
                yield f"{show(constants[hole])} is outside the domain of {attribute.name}, {domain.describe()}"

    yield doubts


def _has_interval(domain: Domain | None) -> TypeGuard[IntegerDomain]:
    return isinstance(domain, IntegerDomain) and (domain.low is not None or domain.high is not None)


def _about_contains(hole: int, name: str) -> Doubts:
    return lambda text, constants: iter([substring_doubt(name, str(constants[hole]))])


def _is_string(path: Path, schema: Schema) -> bool:
    """Whether the schema declares the attribute a string, and no event type lets it have several values."""
    rules = [event_type.rules[path] for event_type in schema.event_types.values() if path in event_type.rules]
    return isinstance(schema.domain_of(path), StringDomain) and not any(rule.multiple for rule in rules)
