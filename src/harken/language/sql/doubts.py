"""Warnings: what is in the language, and yet probably not what was meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harken.language.ast import DEFAULT_ESCAPE, Attribute, Contains, Expression, Like, Predicate, leaves, predicates
from harken.language.sql.habits import CLOCKS
from harken.schema import Schema, StringDomain, Value
from harken.schema.paths import Path
from harken.schema.values import show

_CURRENT = "current_"
_ESCAPED_PERCENT = DEFAULT_ESCAPE + "%"
_BACKSLASH_AND_ANY = DEFAULT_ESCAPE + _ESCAPED_PERCENT


def doubts(expression: Expression, text: str, constants: Sequence[Value], schema: Schema | None) -> Iterator[str]:
    """What to warn of. The expression may be a template (see shapes.py), with the constants of the text."""
    if not _may_have_doubts(text, schema):
        return
    for predicate, _ in predicates(expression):
        if schema is None:
            yield from _doubts_of_names(predicate, text)
        if isinstance(predicate, Like):
            yield from _doubts_of_pattern(str(predicate.pattern.given(constants)), predicate.escape)
        elif isinstance(predicate, Contains) and schema is not None and _is_string(predicate.attribute.path, schema):
            yield substring_doubt(predicate.attribute.name, str(predicate.value.given(constants)))


def substring_doubt(name: str, value: str) -> str:
    """What CONTAINS asks of a string, and how to search in one."""
    pattern = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return (
        f"CONTAINS asks whether {show(value)} is one of the values of {name}, not whether it is a part of one: "
        f"to search in a string write {name} LIKE {show(f'%{pattern}%')}"
    )


def _may_have_doubts(text: str, schema: Schema | None) -> bool:
    """A quick look at the text, because hardly any has something to warn of."""
    return _ESCAPED_PERCENT in text or "*" in text or (_CURRENT if schema is None else "contains") in text.lower()


def _doubts_of_names(predicate: Predicate, text: str) -> Iterator[str]:
    for leaf in leaves(predicate):
        name = leaf.name if isinstance(leaf, Attribute) else ""
        if name.lower().startswith(_CURRENT) and name.upper() in CLOCKS and f"`{name}`" not in text:
            yield f"{name} is taken for an attribute's name; {CLOCKS[name.upper()]}"


def _doubts_of_pattern(pattern: str, escape: str) -> Iterator[str]:
    if escape == DEFAULT_ESCAPE and pattern.endswith(_ESCAPED_PERCENT) and not pattern.endswith(_BACKSLASH_AND_ANY):
        yield (
            f"the pattern {show(pattern)} ends in a percent sign, not in a wildcard, because \\ escapes it: for a "
            f"backslash and then anything write {show(pattern[:-2] + _BACKSLASH_AND_ANY)}"
        )
    if "*" in pattern and "%" not in pattern and "_" not in pattern:
        yield f"in the pattern {show(pattern)} the * is a plain character: % stands for any characters"


def _is_string(path: Path, schema: Schema) -> bool:
    """Whether the schema says that the attribute is a string, and no event type that it may have several values."""
    rules = [each.rules[path] for each in schema.event_types.values() if path in each.rules]
    return isinstance(schema.domain_of(path), StringDomain) and not any(rule.multiple for rule in rules)
