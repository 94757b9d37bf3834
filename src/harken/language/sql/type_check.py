"""Checks the names and types of an expression against a schema, and rejects what cannot be evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime

from harken.errors import CheckError, InvalidValueError, LanguageError, UnavailableError, did_you_mean, in_backticks
from harken.language.ast import (
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Constant,
    Contains,
    Expression,
    Function,
    Holds,
    In,
    Like,
    Operand,
    Predicate,
    RLike,
    Variable,
    XPathBoolean,
    leaves,
    offset_of,
    predicates,
)
from harken.language.functions import FUNCTIONS, constant_fault
from harken.language.operator_calls import call_faults
from harken.language.places import located
from harken.language.sql.habits import CLOCKS, function_hint
from harken.language.sql.printer import print_operand
from harken.schema import EVENT_TYPE, CodedDomain, Domain, Kind, Schema, format_path
from harken.schema.signatures import NO_SIGNATURES, Signatures
from harken.schema.values import show

_SHOWN = 8
_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def check(
    expression: Expression,
    schema: Schema | None = None,
    text: str | None = None,
    signatures: Signatures = NO_SIGNATURES,
) -> list[LanguageError]:
    """Every fault of the expression, in the order of the text; with the text, each has its place."""
    faults: list[tuple[LanguageError, int]] = []
    for predicate, _ in predicates(expression):
        if signatures and isinstance(predicate, Call):
            faults += call_faults(predicate, signatures, schema)
            continue
        faults += _unavailable(predicate, bool(signatures))
        if schema is not None:
            faults += _mistyped(predicate, schema)
    if text is not None:
        for error, at in faults:
            error.at(*located(text, at))
    return [error for error, _ in faults]


def _unavailable(predicate: Predicate, has_operators: bool) -> list[tuple[LanguageError, int]]:
    """Faults that need no schema: what takes operators that are missing, and constants that functions reject."""
    if isinstance(predicate, Call):
        message = f"the operator `{predicate.name}` is not available: this engine has no operators"
        hint = function_hint(predicate.name) or "harken.Engine(operators=[…]) takes them"
        return [(UnavailableError(message, hint=hint), predicate.at)]
    faults: list[tuple[LanguageError, int]] = []
    if not has_operators:
        message = "the variable ?{} is not available: this engine has no operator that could bind it"
        variables = [leaf for leaf in leaves(predicate) if isinstance(leaf, Variable)]
        faults += [(UnavailableError(message.format(leaf.name)), leaf.at) for leaf in variables]
    for call in _calls(predicate):
        if isinstance(call, Arithmetic):
            continue
        for place, argument in enumerate(call.arguments):
            fault = constant_fault(call.name, place, argument.value) if isinstance(argument, Constant) else None
            if fault is not None:
                faults.append((CheckError(fault[0], hint=fault[1]), offset_of(argument)))
    return faults


def _mistyped(predicate: Predicate, schema: Schema) -> Iterator[tuple[LanguageError, int]]:
    unknown = [leaf for leaf in leaves(predicate) if isinstance(leaf, Attribute) and _domain(schema, leaf) is None]
    for leaf in unknown:
        hint = _unquoted(leaf, predicate, schema) or CLOCKS.get(leaf.name.upper()) or _near(leaf.name, schema)
        yield CheckError(f"the schema has no attribute `{leaf.name}`", hint=hint), leaf.at
    if unknown:
        return
    wrong = [fault for call in _calls(predicate) for fault in _wrong_arguments(call, schema)]
    if wrong:
        yield from wrong
        return
    match predicate:
        case Comparison(left=left, operator=operator, right=right):
            yield from _unlike(left, right, schema, operator)
        case Between(operand=operand, low=low, high=high):
            yield from _unlike(operand, low, schema)
            yield from _unlike(operand, high, schema)
        case In(operand=operand, values=values):
            for value in values:
                yield from _unlike(operand, value, schema)
        case Contains(attribute=attribute, value=value):
            yield from _unlike(attribute, value, schema)
        case Like(operand=operand):
            yield from _not_of_kind(operand, Kind.STRING, "LIKE is for strings", schema)
        case RLike(operand=operand):
            yield from _not_of_kind(operand, Kind.STRING, "RLIKE is for strings", schema)
        case XPathBoolean(operand=operand):
            yield from _not_of_kind(operand, Kind.STRING, "xpath_boolean is for strings", schema)
        case Holds(operand=operand):
            message = "only a boolean can stand alone as a condition"
            yield from _not_of_kind(operand, Kind.BOOLEAN, message, schema)


def _calls(predicate: Predicate) -> Iterator[Function | Arithmetic]:
    """The functions and the arithmetic in a predicate."""
    waiting: list[Operand]
    match predicate:
        case Comparison(left=left, right=right):
            waiting = [right, left]
        case Between(operand=operand, low=low, high=high):
            waiting = [high, low, operand]
        case In(operand=operand) | Like(operand=operand) | RLike(operand=operand) | Holds(operand=operand):
            waiting = [operand]
        case _:
            waiting = []
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, Function):
            yield operand
            waiting += reversed(operand.arguments)
        elif isinstance(operand, Arithmetic):
            yield operand
            waiting += (operand.right, operand.left)


def _wrong_arguments(call: Function | Arithmetic, schema: Schema) -> Iterator[tuple[LanguageError, int]]:
    """Arguments of a kind that the function does not take."""
    if isinstance(call, Arithmetic):
        for side in (call.left, call.right):
            yield from _not_of_kind(side, Kind.NUMBER, "arithmetic is over numbers", schema)
        return
    signature = FUNCTIONS[call.name]
    for place, argument in enumerate(call.arguments):
        kind, taken = _kind(argument, schema), signature.parameter(place).kinds
        if kind is not None and kind not in taken:
            message = f"`{call.name}` takes a {' or '.join(sorted(taken))}, and this is {_described(argument, schema)}"
            yield CheckError(message), offset_of(argument)
    if signature.result is None:
        first, *others = call.arguments
        for other in others:
            yield from _unlike_kinds(first, other, schema)


def _unlike_kinds(left: Operand, right: Operand, schema: Schema) -> Iterator[tuple[LanguageError, int]]:
    left_kind, right_kind = _kind(left, schema), _kind(right, schema)
    if left_kind is not None and right_kind is not None and left_kind is not right_kind:
        message = f"{_described(left, schema)} does not compare with {_described(right, schema)}"
        yield CheckError(message, hint=_rewritten(right, left_kind)), offset_of(right)


def _unlike(left: Operand, right: Operand, schema: Schema, operator: str = "=") -> Iterator[tuple[LanguageError, int]]:
    """Faults of comparing two operands: kinds that differ, domains that differ, a value outside its domain."""
    if isinstance(right, Attribute) and not isinstance(left, Attribute):
        left, right = right, left
    wrong = list(_unlike_kinds(left, right, schema))
    if wrong or None in (_kind(left, schema), _kind(right, schema)):
        yield from wrong
        return
    at = offset_of(right)
    domain, other = _domain(schema, left), _domain(schema, right)
    if isinstance(right, Function):
        if isinstance(domain, CodedDomain) and operator not in ("=", "<>"):
            message = f"{_described(left, schema)} has an order of its own, but {_described(right, schema)} has none"
            yield CheckError(message), at
    elif isinstance(right, Attribute):
        if domain != other and (isinstance(domain, CodedDomain) or isinstance(other, CodedDomain)):
            yield CheckError(f"{_described(left, schema)} does not compare with {_described(right, schema)}"), at
    elif isinstance(domain, CodedDomain) and isinstance(right, Constant):
        try:
            domain.code(str(right.value))
        except InvalidValueError as error:
            hint = error.hint or error.message
            yield CheckError(f"{show(right.value)} is not a value of `{_name(left)}`", hint=hint), at


def _not_of_kind(operand: Operand, kind: Kind, rule: str, schema: Schema) -> Iterator[tuple[LanguageError, int]]:
    if _kind(operand, schema) not in (kind, None):
        yield CheckError(f"{rule}, and this is {_described(operand, schema)}"), offset_of(operand)


def _rewritten(operand: Operand, kind: Kind) -> str | None:
    """How to write a constant as a value of this kind, if it looks like one."""
    if not isinstance(operand, Constant):
        return None
    match kind, operand.value:
        case ((Kind.TIMESTAMP | Kind.DATE), str(text)):
            return f"write {kind.upper()} {show(text)}"
        case Kind.BOOLEAN, str(text) if text.lower() in ("true", "false"):
            return f"write {text.upper()}, without quotes"
        case Kind.NUMBER, str(text) if _NUMBER.fullmatch(text):
            return f"write {text}, without quotes"
        case Kind.STRING, (int() | float()) as number if not isinstance(number, bool):
            return f"write '{number}', in quotes"
        case Kind.BOOLEAN, (0 | 1) as number:
            return f"write {show(bool(number))}"
        case Kind.DATE, datetime() as time:
            return f"write {show(time.date())}"
        case Kind.TIMESTAMP, date() as day:
            return f"write {show(datetime(day.year, day.month, day.day, tzinfo=UTC))}"
        case _:
            return None


def _unquoted(leaf: Attribute, predicate: Predicate, schema: Schema) -> str | None:
    """The hint for a name that is a value of the attribute that it is compared with."""
    if isinstance(predicate, Comparison):
        other = predicate.left if predicate.right is leaf else predicate.right
        domain = _domain(schema, other)
        if isinstance(domain, CodedDomain) and leaf.name in domain.values:
            return f"a string is written in single quotes: {show(leaf.name)}"
    return None


def _near(name: str, schema: Schema) -> str | None:
    """The name that was probably meant or, if none is near, some names that the schema has."""
    names = [*map(format_path, schema.attributes), *([format_path(EVENT_TYPE)] if schema.event_types else [])]
    near = did_you_mean(name, names) or did_you_mean(name, names, case_sensitive=False)
    if near is not None or not names:
        return near
    more = ", …" if len(names) > _SHOWN else ""
    shown = ", ".join(map(in_backticks, names[:_SHOWN]))
    return f"the schema has {shown}{more}; a string is written in single quotes"


def _domain(schema: Schema, operand: Operand) -> Domain | None:
    return schema.domain_of(operand.path) if isinstance(operand, Attribute) else None


def _kind(operand: Operand, schema: Schema) -> Kind | None:
    if isinstance(operand, Constant):
        return operand.kind
    if isinstance(operand, Arithmetic):
        return Kind.NUMBER
    if isinstance(operand, Function):
        result = FUNCTIONS[operand.name].result
        kinds = (_kind(each, schema) for each in operand.arguments)
        return next((kind for kind in kinds if kind is not None), None) if result is None else result
    domain = _domain(schema, operand)
    return None if domain is None else domain.kind


def _described(operand: Operand, schema: Schema) -> str:
    if isinstance(operand, Constant):
        return f"the {operand.kind} {show(operand.value)}"
    if isinstance(operand, Function | Arithmetic):
        return f"`{print_operand(operand)}` ({_kind(operand, schema)})"
    domain = _domain(schema, operand)
    return f"`{_name(operand)}` ({domain.describe() if domain is not None else 'unknown'})"


def _name(operand: Operand) -> str:
    return operand.name if isinstance(operand, Attribute | Variable) else "constant"
