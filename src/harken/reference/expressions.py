"""The semantics, in the plainest code: the oracle that judges every matcher, and what `explain` shows.

It evaluates the expression itself, not its normal form, and shares with the rest only the AST, the schema and errors.

Truth is three-valued: True, False, or None for unknown. An event is a nested dict; a list is a set of values, of which
a *binding* picks one. An event matches when some binding makes the expression true.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from ipaddress import ip_address, ip_network
from math import ceil, floor, fmod, isfinite, isinf
from typing import Any

import re2

from harken.errors import LimitError, UnavailableError
from harken.language.ast import (
    And,
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
    IsNull,
    IsTruth,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    RLike,
    XPathBoolean,
    predicates,
)
from harken.language.xpath.parser import parse_accepted
from harken.limits import DEFAULT_LIMITS
from harken.reference import document_trees
from harken.reference import documents as documents_reference
from harken.schema import Domain, EnumeratedDomain, HierarchicalDomain, Schema
from harken.schema.paths import Path

Truth = bool | None
_MISSING: Any = None


def matches(expression: Expression, event: Mapping[str, Any], schema: Schema | None = None) -> bool:
    """Whether some binding makes the expression true. Raises LimitError where the search takes too long."""
    return find_binding(expression, event, schema) is not None


def find_binding(
    expression: Expression,
    event: Mapping[str, Any],
    schema: Schema | None = None,
    bound: Mapping[str, Any] | None = None,
    most_tries: int = DEFAULT_LIMITS.max_bindings,
) -> Mapping[str, Any] | None:
    """The event with one element picked of every array that matters, so that the expression is true; or None.

    `bound` is the event with some elements already picked: only the others are searched. Raises LimitError.
    """
    try:
        return _Search(event, schema, most_tries).solve([(expression, True)], event if bound is None else bound)
    except RecursionError:
        raise LimitError("too many arrays depend on each other", limit="max_bindings") from None


def truth(node: Expression, whole: Mapping[str, Any], bound: Mapping[str, Any], schema: Schema | None = None) -> Truth:
    """The truth of an expression under a binding. `whole` is the event with its sets, `bound` has one value of each."""
    match node:
        case Not(item=item):
            inner = truth(item, whole, bound, schema)
            return None if inner is None else not inner
        case IsTruth(item=item, wanted=wanted):
            return truth(item, whole, bound, schema) is wanted
        case And(items=items):
            truths = [truth(item, whole, bound, schema) for item in items]
            return False if False in truths else None if None in truths else True
        case Or(items=items):
            truths = [truth(item, whole, bound, schema) for item in items]
            return True if True in truths else None if None in truths else False
        case _:
            return _predicate_truth(node, whole, bound, schema)


def all_values(event: Any, path: Path) -> list[Any]:
    """Every value of a path in the whole event. Nulls and NaNs do not count; an object does."""
    if isinstance(event, list):
        return [value for element in event for value in all_values(element, path)]
    if event is None or event != event:
        return []
    if not path:
        return [event]
    return all_values(event[path[0]], path[1:]) if isinstance(event, Mapping) and path[0] in event else []


# Predicates


def _predicate_truth(
    node: Predicate, whole: Mapping[str, Any], bound: Mapping[str, Any], schema: Schema | None
) -> Truth:
    def compared(left: Operand, operator: str, right: Operand) -> Truth:
        domain = _domain(left, schema) or _domain(right, schema)
        return compare(beside(left, right), operator, beside(right, left), domain)

    def beside(operand: Operand, other: Operand) -> Any:
        """The value of an operand, read as a time if it is compared with a constant time."""
        value = value_of(operand, whole, bound)
        if isinstance(operand, Constant) or (schema is not None and isinstance(operand, Attribute)):
            return value
        return _read_as(other.value, value) if isinstance(other, Constant) else value

    match node:
        case Comparison(left=left, operator=operator, right=right):
            return compared(left, operator, right)
        case Between(operand=operand, low=low, high=high):
            truths = [compared(operand, ">=", low), compared(operand, "<=", high)]
            return False if False in truths else None if None in truths else True
        case In(operand=operand, values=values):
            truths = [compared(operand, "=", value) for value in values]
            return True if True in truths else None if None in truths else False
        case Like(operand=operand):
            value = value_of(operand, whole, bound)
            return _like(value, node.pieces()) if isinstance(value, str) else None
        case RLike(operand=operand, pattern=pattern):
            value = value_of(operand, whole, bound)
            return re2.search(str(pattern.value), value) is not None if isinstance(value, str) else None
        case XPathBoolean(operand=operand, xpath=xpath):
            value = value_of(operand, whole, bound)
            if not isinstance(value, str):
                return None
            document = document_trees.read(value, document_trees.UNBOUNDED)
            return documents_reference.holds(parse_accepted(str(xpath.value)), document)
        case Holds(operand=operand):
            value = value_of(operand, whole, bound)
            return value if isinstance(value, bool) else None
        case IsNull(attribute=attribute):
            return not all_values(whole, attribute.path)
        case Contains(attribute=attribute, value=constant):
            elements = all_values(whole, attribute.path)
            if schema is None:
                elements = [_read_as(constant.value, each) for each in elements]
            truths = [compare(each, "=", constant.value, None) for each in elements]
            return True if True in truths else None if None in truths or not truths else False
        case Call():
            raise UnavailableError("operators are not available")


def compare(left: Any, operator: str, right: Any, domain: Domain | None) -> Truth:
    """A comparison of two values; unknown if one is missing or their kinds differ."""
    if _kind(left) is None or _kind(left) != _kind(right):
        return None
    if operator in ("=", "<>"):
        return bool(left == right) is (operator == "=")
    if isinstance(domain, HierarchicalDomain):
        below, above = (left, right) if operator in ("<", "<=") else (right, left)
        return (below != above or operator in ("<=", ">=")) and _is_kind_of(below, above, domain)
    if isinstance(domain, EnumeratedDomain):
        return _compare_partially(left, operator, right, domain)
    truths: dict[str, bool] = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return truths[operator]


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number" if value == value else None
    if isinstance(value, str):
        return "string"
    if isinstance(value, datetime):
        return "timestamp"
    return "date" if isinstance(value, date) else None


def _read_as(constant: Any, value: Any) -> Any:
    """A string parsed as a time if the constant is one, None if it does not parse; other values as they are."""
    if isinstance(value, str) and _kind(constant) == "timestamp":
        return _read_timestamp(value)
    return _read_date(value) if isinstance(value, str) and _kind(constant) == "date" else value


_DAY = "([0-9]{4})-([0-9]{2})-([0-9]{2})"
_CLOCK = "([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?)?"
_ZONE = "(?:(Z)|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"


def _read_timestamp(text: str) -> datetime | None:
    """A full timestamp of ISO 8601's extended format, truncated to the microsecond; without a zone it is in UTC."""
    parts = re.fullmatch(f"{_DAY}[T ]{_CLOCK}{_ZONE}", text)
    if parts is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, zone_hour, zone_minute = parts.groups()
    hours, minutes = int(zone_hour or 0), int(zone_minute or 0)
    if hours > 23 or minutes > 59:
        return None
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if sign == "-" else 1)
    clock = (int(hour), int(minute or 0), int(second or 0), int((fraction or "0")[:6].ljust(6, "0")))
    try:
        return datetime(int(year), int(month), int(day), *clock, timezone(offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _read_date(text: str) -> date | None:
    parts = re.fullmatch(_DAY, text)
    try:
        return None if parts is None else date(*map(int, parts.groups()))
    except ValueError:
        return None


def _is_kind_of(value: str, kind: str, domain: HierarchicalDomain) -> bool:
    parents = dict(domain.parents)
    ancestor: str | None = value
    while ancestor is not None:
        if ancestor == kind:
            return True
        ancestor = parents[ancestor]
    return False


def _compare_partially(left: str, operator: str, right: str, domain: EnumeratedDomain) -> Truth:
    if left == right:
        return operator in ("<=", ">=")
    if right in _above(left, domain):
        return operator in ("<", "<=")
    if left in _above(right, domain):
        return operator in (">", ">=")
    return None


def _above(value: str, domain: EnumeratedDomain) -> set[str]:
    above: set[str] = set()
    waiting = [value]
    while waiting:
        lowest = waiting.pop()
        higher = {upper for lower, upper in domain.order if lower == lowest} - above
        above |= higher
        waiting.extend(higher)
    return above


def _like(text: str, pieces: Sequence[str | None]) -> bool:
    """Whether the text matches the pattern, in which None stands for any characters and "" for any one.

    `fits[j]` says whether the pieces read so far can end just before character j.
    """
    fits = [True] + [False] * len(text)
    for piece in pieces:
        if piece is None:
            reached = False
            for index, fit in enumerate(fits):
                reached = reached or fit
                fits[index] = reached
        else:
            fits = [False] + [fits[index] and piece in ("", text[index]) for index in range(len(text))]
    return fits[-1]


# Operands


def value_of(operand: Operand, whole: Mapping[str, Any], bound: Mapping[str, Any]) -> Any:
    """The value of an operand under a binding. None is unknown: a missing value or an undefined result."""
    match operand:
        case Constant(value=value):
            return value
        case Attribute(path=path):
            node: Any = bound
            for key in path:
                node = node.get(key, _MISSING) if isinstance(node, Mapping) else _MISSING
            return node
        case Arithmetic(left=left, operator=operator, right=right):
            return _arithmetic(value_of(left, whole, bound), operator, value_of(right, whole, bound))
        case Function(name="size", arguments=(Attribute(path=path),)):
            return len(all_values(whole, path)) or None
        case Function(name="coalesce", arguments=arguments):
            values = [value_of(each, whole, bound) for each in arguments]
            return next((value for value in values if _kind(value) is not None), None)
        case Function(name=name, arguments=arguments):
            values = [value_of(each, whole, bound) for each in arguments]
            return None if None in map(_kind, values) else _function(name, values)
        case _:
            raise UnavailableError("variables are not available")


def _arithmetic(left: Any, operator: str, right: Any) -> Any:
    """Arithmetic by value, whether a number is an integer or a float.

    Of two 64-bit integers the result is exact, except for `/`; else it is that of binary64. A division by zero, and a
    result that is not finite or does not fit in 64 bits, is unknown.
    """
    if _kind(left) != "number" or _kind(right) != "number" or (operator in "/%" and right == 0):
        return None
    if _is_int64(left) and _is_int64(right) and operator != "/":
        return _if_int64(_exactly(int(left), operator, int(right)))
    left, right = float(left), float(right)
    if operator == "%":
        return None if isinf(left) else _if_finite(fmod(left, right))
    try:
        results: dict[str, Callable[[], float]] = {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: left / right,
        }
        return _if_finite(results[operator]())
    except OverflowError:
        return None


def _exactly(left: int, operator: str, right: int) -> int:
    if operator == "%":  # with the sign of the dividend
        return left - right * int(Fraction(left, right))
    return left + right if operator == "+" else left - right if operator == "-" else left * right


def _is_int64(value: Any) -> bool:
    return bool(-(2**63) <= value < 2**63) and bool(value == int(value))


def _if_int64(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


def _if_finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _function(name: str, values: list[Any]) -> Any:
    """A function of values, none of them missing; unknown if the first is of the wrong kind."""
    kinds = {
        "string": ("lower", "upper", "trim", "length", "substring", "cidr_contains"),
        "number": ("abs", "round", "floor", "ceil"),
        "timestamp": ("year", "month", "day", "dayofweek", "hour"),
        "date": ("year", "month", "day", "dayofweek"),
    }
    value, *more = values
    if name == "cidr_contains":
        return _cidr_contains(value, more[0]) if isinstance(more[0], str) else None
    if name not in kinds.get(_kind(value) or "", ()):
        return None
    match name:
        case "lower":
            return str(value).lower()
        case "upper":
            return value.upper()
        case "trim":
            return re.sub(r"\A *(.*?) *\Z", r"\1", value, flags=re.DOTALL)
        case "length":
            return len(value)
        case "substring":
            return _substring(value, *more)
        case "abs":
            return _if_int64(abs(int(value))) if _is_int64(value) else _if_finite(abs(value))
        case "floor" | "ceil":
            return None if isinf(value) else _if_int64(floor(value) if name == "floor" else ceil(value))
        case "round":
            return _round(value, *more)
        case "dayofweek":
            return (value.weekday() + 1) % 7 + 1
        case _:
            return getattr(value, name)


def _substring(text: str, position: int, length: int | None = None) -> str:
    """The characters whose places are from `position` on; the first has place 1, the last place -1."""
    first = {0: 1}.get(position, position)
    start = first if first > 0 else len(text) + 1 + first
    end = len(text) + 1 if length is None else start + length
    return "".join(character for place, character in enumerate(text, 1) if start <= place < end)


def _round(value: Any, digits: int = 0) -> Any:
    """Round the decimal notation of a number to `digits` decimal digits, halves away from zero."""
    if isinf(value):
        return None
    written = Fraction(int(value)) if _is_int64(value) else Fraction(repr(value))
    unit = Fraction(10) ** -max(-400, min(400, digits))
    steps = floor(abs(written) / unit + Fraction(1, 2))
    rounded = steps * unit * (1 if written >= 0 else -1)
    return _if_int64(int(rounded)) if _is_int64(value) else _if_finite(float(rounded))


def _cidr_contains(network: str, text: str) -> Truth:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return bool(address in ip_network(network))


def _domain(operand: Operand, schema: Schema | None) -> Domain | None:
    return schema.domain_of(operand.path) if schema is not None and isinstance(operand, Attribute) else None


# Bindings


_Goal = tuple[Expression, bool]
"""An expression, and the truth that it has to have."""


class _Search:
    """The search for a binding, one group of goals at a time.

    Goals that share no array are solved separately, so that the number of tries is the sum over the groups and not
    their product. The alternatives of a goal are tried one by one. Where goals do share arrays, an element of the
    most shared array is picked, and the remaining goals may fall into groups again.
    """

    def __init__(self, whole: Mapping[str, Any], schema: Schema | None, most_tries: int) -> None:
        self.whole = whole
        self.schema = schema
        self.most_tries = most_tries
        self.tries = 0

    def solve(self, goals: list[_Goal], bound: Mapping[str, Any], picks: int = 0) -> Mapping[str, Any] | None:
        """A binding that meets all the goals, or None. `picks` is the number of arrays that are bound already."""
        if picks > 1:  # only arrays that depend on each other can take exponentially long
            self.tries += len(goals)
            if self.tries > self.most_tries:
                raise LimitError(f"no binding was found in {self.most_tries:,} tries", limit="max_bindings")
        for group in _groups([part for goal in goals for part in _parts(goal)], bound):
            extended = self._meet(group, bound, picks)
            if extended is None:
                return None
            bound = extended
        return bound

    def _meet(self, group: list[_Goal], bound: Mapping[str, Any], picks: int) -> Mapping[str, Any] | None:
        shared = Counter(array for goal in group for array in _arrays(goal, bound))
        if not shared:
            met = all(truth(node, self.whole, bound, self.schema) is wanted for node, wanted in group)
            return bound if met else None
        node, wanted = group[0]
        if len(group) == 1 and isinstance(node, And | Or):
            bindings = (self.solve([(item, wanted)], bound, picks) for item in node.items)
        else:
            array = shared.most_common(1)[0][0]
            elements = _elements(_at(bound, array))
            bindings = (self.solve(group, _replaced(bound, array, element), picks + 1) for element in elements)
        return next((binding for binding in bindings if binding is not None), None)


def _parts(goal: _Goal) -> Iterator[_Goal]:
    """The goals that a goal consists of: a conjunction is true if all of its items are."""
    node, wanted = goal
    if isinstance(node, Not):
        yield from _parts((node.item, not wanted))
    elif isinstance(node, IsTruth) and wanted:
        yield from _parts((node.item, node.wanted))
    elif isinstance(node, And | Or) and isinstance(node, And) is wanted:
        for item in node.items:
            yield from _parts((item, wanted))
    else:
        yield goal


def _groups(goals: list[_Goal], bound: Mapping[str, Any]) -> list[list[_Goal]]:
    """The goals in groups. Goals that share an array are in one group."""
    groups: list[tuple[list[_Goal], set[Path]]] = []
    for goal in goals:
        arrays = _arrays(goal, bound)
        joined, apart = [goal], []
        for group in groups:
            if group[1] & arrays:
                joined, arrays = group[0] + joined, group[1] | arrays
            else:
                apart.append(group)
        groups = [*apart, (joined, arrays)]
    return [group for group, _ in groups]


def _arrays(goal: _Goal, bound: Mapping[str, Any]) -> set[Path]:
    """The arrays that a goal depends on."""
    paths = _bound_paths(predicate for predicate, _ in predicates(goal[0]))
    return {array for path in paths if (array := array_on(bound, path)) is not None}


def _bound_paths(nodes: Any) -> Iterator[Path]:
    """The paths of which a binding picks a value: all but those of CONTAINS, IS NULL and size, which see all values."""
    for node in nodes:
        match node:
            case Attribute(path=path):
                yield path
            case Function(name="size"):
                pass
            case Function(arguments=arguments):
                yield from _bound_paths(arguments)
            case Arithmetic(left=left, right=right) | Comparison(left=left, right=right):
                yield from _bound_paths((left, right))
            case Between(operand=operand, low=low, high=high):
                yield from _bound_paths((operand, low, high))
            case In(operand=operand) | Like(operand=operand) | RLike(operand=operand) | Holds(operand=operand):
                yield from _bound_paths((operand,))
            case XPathBoolean(operand=operand):
                yield from _bound_paths((operand,))


def array_on(event: Mapping[str, Any], path: Path) -> Path | None:
    """The first array on the path that has an element."""
    node: Any = event
    for length, key in enumerate(path, 1):
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
        if isinstance(node, list) and _elements(node):
            return path[:length]
    return None


def _elements(array: list[Any]) -> list[Any]:
    return [
        each for each in array if each is not None and each == each and (not isinstance(each, list) or _elements(each))
    ]


def _at(event: Mapping[str, Any], path: Path) -> Any:
    return event if not path else _at(event[path[0]], path[1:])


def _replaced(event: Mapping[str, Any], path: Path, value: Any) -> Mapping[str, Any]:
    """A copy of the event with another value at the path."""
    return {**event, path[0]: value if len(path) == 1 else _replaced(event[path[0]], path[1:], value)}
