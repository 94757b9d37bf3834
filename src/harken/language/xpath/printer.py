"""The canonical text of an XPath expression: parsing it gives the expression again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, NodeKind, Not, Or, Step
from harken.language.xpath.grammar import XML_NAMESPACE


def print_expression(expression: Expression) -> str:
    """The text of an expression, with the declarations of its namespaces in front."""
    prefixes = prefixes_of(expression)
    declared = ((prefix, uri) for uri, prefix in prefixes.items() if uri != XML_NAMESPACE)
    prologue = "".join(f"declare namespace {prefix} = {print_value(uri)}; " for prefix, uri in declared)
    return prologue + print_part(expression, prefixes, is_top=True)


def prefixes_of(expression: Expression) -> dict[str, str]:
    """A prefix for each namespace that an expression names."""
    uris = dict.fromkeys(name[1:].rpartition("}")[0] for name in _names(expression) if name.startswith("{"))
    plain = [uri for uri in uris if uri != XML_NAMESPACE]
    return {XML_NAMESPACE: "xml"} | {uri: f"n{number}" for number, uri in enumerate(plain, 1)}


def print_part(part: Expression, prefixes: Mapping[str, str], *, is_top: bool) -> str:
    """The text of a part of an expression without declarations; at the top, paths start at the root."""
    match part:
        case Exists(path=path):
            return print_path(path, prefixes, is_top=is_top)
        case Comparison(path=path, operator=operator, value=value):
            return f"{print_path(path, prefixes, is_top=is_top)} {operator} {print_value(value)}"
        case Not(item=item):
            return f"not({print_part(item, prefixes, is_top=is_top)})"
        case And(items=items):
            parts = (print_part(item, prefixes, is_top=is_top) for item in items)
            return " and ".join(
                f"({text})" if isinstance(item, Or) else text for item, text in zip(items, parts, strict=True)
            )
        case Or(items=items):
            return " or ".join(print_part(item, prefixes, is_top=is_top) for item in items)


def print_path(path: Location, prefixes: Mapping[str, str], *, is_top: bool) -> str:
    """The text of a path. The root node is written `.`, since `and` behind a `/` would be a name."""
    if not path.steps:
        return "."
    text = "".join(("//" if step.is_descendant else "/") + print_step(step, prefixes) for step in path.steps)
    if is_top:
        return text
    return "." + text if path.steps[0].is_descendant else text[1:]


def print_step(step: Step, prefixes: Mapping[str, str]) -> str:
    """The text of a step, without the slash before it."""
    predicates = "".join(f"[{print_part(each, prefixes, is_top=False)}]" for each in step.predicates)
    return print_test(step, prefixes) + predicates


def print_test(step: Step, prefixes: Mapping[str, str]) -> str:
    """The text of a step without its predicates."""
    if step.kind is NodeKind.TEXT:
        return "text()"
    sign = "@" if step.kind is NodeKind.ATTRIBUTE else ""
    return sign + ("*" if step.name is None else print_name(step.name, prefixes))


def print_name(name: str, prefixes: Mapping[str, str]) -> str:
    """An expanded name with its prefix, or unchanged if its namespace has none."""
    uri, _, local = name[1:].rpartition("}")
    return f"{prefixes[uri]}:{local}" if name.startswith("{") and uri in prefixes else name


def print_value(value: str | float) -> str:
    """A constant. XPath has no escapes in strings and no exponents in numbers."""
    if isinstance(value, str):
        quote = '"' if "'" in value else "'"
        return f"{quote}{value}{quote}"
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def _names(part: Expression) -> Iterator[str]:
    match part:
        case And(items=items) | Or(items=items):
            for item in items:
                yield from _names(item)
        case Not(item=item):
            yield from _names(item)
        case Exists(path=path) | Comparison(path=path):
            for step in path.steps:
                if step.name is not None:
                    yield step.name
                for predicate in step.predicates:
                    yield from _names(predicate)
