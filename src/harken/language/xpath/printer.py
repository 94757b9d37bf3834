"""The canonical text of an XPath expression: parsing it gives the expression again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from harken.language.xpath.ast import (
    And,
    AxisPath,
    AxisStep,
    Calculation,
    Comparison,
    DocumentRoot,
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
from harken.language.xpath.core_functions import ValueKind, kind_of
from harken.language.xpath.expression_building import ANYWHERE, PARENT, parts_of, predicates_of
from harken.language.xpath.token_reader import XML_NAMESPACE

_LOOSE = (And, Or, ValueComparison, Comparison)
"""What binds no more tightly than a comparison."""


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
    """The text of a condition without declarations; at the top, paths start at the root."""
    match part:
        case Exists(path=path):
            return print_path(path, prefixes, is_top=is_top)
        case Comparison(path=path, operator=operator, value=value):
            return f"{print_path(path, prefixes, is_top=is_top)} {operator} {print_value(value)}"
        case Truth(value=AxisPath() | FilteredNodes() | NodeUnion() | DocumentRoot() | FunctionCall() as value):
            is_plain = kind_of(value) in (ValueKind.NODES, ValueKind.BOOLEAN)
            text = print_operand(value, prefixes, is_top=is_top)
            return text if is_plain else f"boolean({text})"
        case Truth(value=value):
            return f"boolean({print_operand(value, prefixes, is_top=is_top)})"
        case ValueComparison(left=left, operator=operator, right=right):
            sides = [(each, print_operand(each, prefixes, is_top=is_top)) for each in (left, right)]
            one, other = (f"({text})" if isinstance(each, _LOOSE) else text for each, text in sides)
            return f"{one} {operator} {other}"
        case Not(item=item):
            return f"not({print_part(item, prefixes, is_top=is_top)})"
        case And(items=items):
            parts = (print_part(item, prefixes, is_top=is_top) for item in items)
            return " and ".join(
                f"({text})" if isinstance(item, Or) else text for item, text in zip(items, parts, strict=True)
            )
        case Or(items=items):
            return " or ".join(print_part(item, prefixes, is_top=is_top) for item in items)


def print_operand(value: Value, prefixes: Mapping[str, str], *, is_top: bool) -> str:
    """The text of a value where any value may stand, such as an argument of a function."""

    def nested(part: Value) -> str:
        return _print_nested(part, prefixes, is_top=is_top)

    match value:
        case str() | float():
            return print_value(value)
        case Location():
            return print_path(value, prefixes, is_top=is_top)
        case DocumentRoot():
            return "(/)"
        case AxisPath(start=start, steps=steps):
            return _print_axis_path(start, steps, prefixes, is_top=is_top)
        case FilteredNodes(nodes=nodes, predicates=predicates):
            text = print_operand(nodes, prefixes, is_top=is_top)
            return (text if text == "(/)" else f"({text})") + _print_predicates(predicates, prefixes)
        case NodeUnion(parts=parts):
            return " | ".join(f"({nested(each)})" if isinstance(each, NodeUnion) else nested(each) for each in parts)
        case FunctionCall(name=name, arguments=arguments):
            return f"{name}({', '.join(print_operand(each, prefixes, is_top=is_top) for each in arguments)})"
        case Calculation(left=left, operator=operator, right=right):
            return f"{nested(left)} {operator} {nested(right)}"
        case Minus(value=part):
            return f"-{nested(part)}"
        case Exists(path=path):
            return f"boolean({print_path(path, prefixes, is_top=is_top)})"
        case Truth(value=part) if kind_of(part) is not ValueKind.BOOLEAN:
            return f"boolean({print_operand(part, prefixes, is_top=is_top)})"
        case _:
            return print_part(value, prefixes, is_top=is_top)


def _print_nested(value: Value, prefixes: Mapping[str, str], *, is_top: bool) -> str:
    """The text of a value beside an operator."""
    text = print_operand(value, prefixes, is_top=is_top)
    return f"({text})" if isinstance(value, (*_LOOSE, Calculation, NodeUnion)) else text


def _print_axis_path(start: Value, steps: Sequence[AxisStep], prefixes: Mapping[str, str], *, is_top: bool) -> str:
    if isinstance(start, Location):
        is_empty = not start.steps
        text = "" if is_empty else print_path(start, prefixes, is_top=is_top)
        slash = "" if is_empty and not is_top else "/"
    else:
        text = "" if isinstance(start, DocumentRoot) else print_operand(start, prefixes, is_top=is_top)
        text, slash = (f"({text})" if isinstance(start, NodeUnion) else text), "/"
    for place, step in enumerate(steps):
        if step == ANYWHERE and place < len(steps) - 1:
            text += "//" if slash else ".//"
            slash = ""
            continue
        text += slash + print_axis_step(step, prefixes)
        slash = "/"
    return text


def print_axis_step(step: AxisStep, prefixes: Mapping[str, str]) -> str:
    """The text of a step along any axis, without the slash before it."""
    if step == PARENT:
        return ".."
    if step.kind is None:
        test = "node()"
    elif step.kind is NodeKind.TEXT:
        test = "text()"
    else:
        test = "*" if step.name is None else print_name(step.name, prefixes)
    axis = {"child": "", "attribute": "@"}.get(step.axis, f"{step.axis}::")
    return axis + test + _print_predicates(step.predicates, prefixes)


def _print_predicates(predicates: Iterable[Expression], prefixes: Mapping[str, str]) -> str:
    return "".join(f"[{print_part(each, prefixes, is_top=False)}]" for each in predicates)


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
    return print_test(step, prefixes) + _print_predicates(step.predicates, prefixes)


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


def _names(value: Value) -> Iterator[str]:
    """The names in an expression, in the order in which it is printed."""
    if isinstance(value, Location | AxisPath):
        if isinstance(value, AxisPath):
            yield from _names(value.start)
        for step in value.steps:
            if step.name is not None:
                yield step.name
            for predicate in step.predicates:
                yield from _names(predicate)
        return
    for part in parts_of(value):
        yield from _names(part)
    for predicate in predicates_of(value):
        yield from _names(predicate)
