"""The nodes of a subscription's expression: tiny, frozen, compared by content, and checked when they are made.

`x NOT IN (…)`, `x IS NOT NULL` and their like have no nodes of their own: they are `Not` of the positive form, which in
three-valued logic is the same. Leaves remember the offset at which they stood in the text (`at`, -1 where they were
not parsed); it takes no part in comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from typing import Any

from harken.schema.paths import Path, format_path
from harken.schema.values import COMPARISONS, INT64_MAX, INT64_MIN, KINDS, Kind, Value

DEFAULT_ESCAPE = "\\"
_WILDCARDS: dict[str, str | None] = {"%": None, "_": ""}


# Attributes, constants and comparisons set their fields themselves, in half the time of a frozen dataclass's __init__:
# most of parsing is making them.
_set = object.__setattr__


@dataclass(frozen=True, slots=True, init=False)
class Attribute:
    """An attribute of the event, by its path."""

    path: Path
    at: int = field(compare=False, repr=False)

    def __init__(self, path: Path, at: int = -1) -> None:
        if not path:
            raise ValueError("an attribute needs a name")
        _set(self, "path", path)
        _set(self, "at", at)

    @property
    def name(self) -> str:
        return format_path(self.path)


@dataclass(frozen=True, slots=True, init=False)
class Constant:
    """A value written in the text."""

    value: Value
    at: int = field(compare=False, repr=False)

    def __init__(self, value: Value, at: int = -1) -> None:
        kind = type(value)
        if kind is int:
            if not INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]
                raise ValueError(f"{value} does not fit in 64 bits; write it with a point to make it a float")
        elif kind is float:
            if not isfinite(value):  # type: ignore[arg-type]
                raise ValueError("a number has to be finite and within the range of binary64")
        elif kind not in KINDS:
            raise TypeError(f"{kind.__name__} is not a kind of value")
        _set(self, "value", value)
        _set(self, "at", at)

    @property
    def kind(self) -> Kind:
        return KINDS[type(self.value)]

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and TRUE are equal in Python but not the same constant.
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Variable:
    """`?name`: bound by an operator predicate."""

    name: str
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left + right` over numbers; a minus sign before an operand other than a constant is `0 - operand`."""

    left: Operand
    operator: str
    right: Operand

    def __post_init__(self) -> None:
        if self.operator not in ("+", "-", "*", "/", "%"):
            raise ValueError(f"{self.operator!r} is not an arithmetic operator")


@dataclass(frozen=True, slots=True)
class Function:
    """`name(argument, …)`: a value computed by a function of the language."""

    name: str
    """In lower case."""
    arguments: tuple[Operand, ...]
    at: int = field(default=-1, compare=False, repr=False)


Operand = Attribute | Constant | Variable | Arithmetic | Function


@dataclass(frozen=True, slots=True, init=False)
class Comparison:
    """`left operator right`, with one of = <> < <= > >=."""

    left: Operand
    operator: str
    right: Operand

    def __init__(self, left: Operand, operator: str, right: Operand) -> None:
        if operator not in COMPARISONS:
            raise ValueError(f"{operator!r} is not a comparison")
        _set(self, "left", left)
        _set(self, "operator", operator)
        _set(self, "right", right)


@dataclass(frozen=True, slots=True)
class Between:
    """`operand BETWEEN low AND high`, which is `operand >= low AND operand <= high`."""

    operand: Operand
    low: Operand
    high: Operand


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (value, …)`."""

    operand: Operand
    values: tuple[Constant, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("IN needs at least one value")


@dataclass(frozen=True, slots=True)
class Like:
    """`operand LIKE pattern`: `%` any characters, `_` any one, and the escape before either makes it plain."""

    operand: Operand
    pattern: Constant
    escape: str = DEFAULT_ESCAPE

    def __post_init__(self) -> None:
        if self.pattern.kind is not Kind.STRING:
            raise TypeError("a pattern is a string")
        if len(self.escape) != 1:
            raise ValueError("an escape is one character")
        self.pieces()

    def pieces(self) -> Sequence[str | None]:
        """The pattern as plain characters, with None for `%` and "" for `_`."""
        return like_pieces(str(self.pattern.value), self.escape)


@dataclass(frozen=True, slots=True)
class RLike:
    """`operand RLIKE pattern`: a regular expression of RE2 matches somewhere in the text."""

    operand: Operand
    pattern: Constant

    def __post_init__(self) -> None:
        if self.pattern.kind is not Kind.STRING:
            raise TypeError("a regular expression is a string")


@dataclass(frozen=True, slots=True)
class XPathBoolean:
    """`xpath_boolean(operand, xpath)`: an XPath expression is true of the document that an attribute holds."""

    operand: Attribute
    xpath: Constant

    def __post_init__(self) -> None:
        if self.xpath.kind is not Kind.STRING:
            raise TypeError("an XPath expression is a string")


@dataclass(frozen=True, slots=True)
class IsNull:
    """`attribute IS NULL`: the attribute has no value at all in the event."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class Contains:
    """`attribute CONTAINS value`: the value is in the attribute's whole set of values."""

    attribute: Attribute
    value: Constant


@dataclass(frozen=True, slots=True)
class Holds:
    """A bare boolean attribute, a boolean function, or TRUE or FALSE, standing as a condition."""

    operand: Attribute | Constant | Function

    def __post_init__(self) -> None:
        if isinstance(self.operand, Constant) and self.operand.kind is not Kind.BOOLEAN:
            raise TypeError(f"{self.operand.value!r} is not a condition")


@dataclass(frozen=True, slots=True)
class Call:
    """`name(argument, …)`: a predicate that a plugged-in operator decides."""

    name: str
    arguments: tuple[Attribute | Constant | Variable, ...]
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IsTruth:
    """`condition IS TRUE` or, unless `wanted`, `IS FALSE`: never unknown."""

    item: Expression
    wanted: bool


@dataclass(frozen=True, slots=True)
class Not:
    """Negation; unknown stays unknown."""

    item: Expression


@dataclass(frozen=True, slots=True)
class And:
    """A conjunction of two or more, none of which is a conjunction."""

    items: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if len(self.items) < 2 or And in map(type, self.items):
            raise ValueError("And takes two or more items, none of them And")


@dataclass(frozen=True, slots=True)
class Or:
    """A disjunction of two or more, none of which is a disjunction."""

    items: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if len(self.items) < 2 or Or in map(type, self.items):
            raise ValueError("Or takes two or more items, none of them Or")


Predicate = Comparison | Between | In | Like | RLike | XPathBoolean | IsNull | Contains | Holds | Call
Expression = Predicate | IsTruth | Not | And | Or

# Tuples, since `isinstance(node, And | Or)` makes the union each time.
_JUNCTIONS, _WRAPPERS, _LEAVES = (And, Or), (Not, IsTruth), (Attribute, Constant, Variable)


class EscapeError(ValueError):
    """An escape in a pattern that escapes nothing; `index` is its index in the pattern."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


@lru_cache(maxsize=1_024)
def like_pieces(pattern: str, escape: str) -> Sequence[str | None]:
    """A pattern as plain characters, with None for `%` and "" for `_`. Raises EscapeError where an escape is stray.

    Cached, since compiling a text calls it several times.
    """
    if escape not in pattern:
        return tuple([_WILDCARDS.get(character, character) for character in pattern])
    pieces: list[str | None] = []
    characters = enumerate(pattern)
    for index, character in characters:
        if character == escape:
            _, escaped = next(characters, (index, None))
            if escaped is None:
                raise EscapeError("the pattern ends with an escape that escapes nothing", index)
            if escaped not in ("%", "_", escape):
                message = f"the escape before {escaped!r} is stray: only %, _ and the escape need one"
                raise EscapeError(message, index)
            pieces.append(escaped)
        else:
            pieces.append(_WILDCARDS.get(character, character))
    return tuple(pieces)


def conjunction(items: list[Expression]) -> Expression:
    """The conjunction of the items, flattened; one item stands for itself."""
    flat = [part for item in items for part in (item.items if isinstance(item, And) else (item,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(items: list[Expression]) -> Expression:
    """The disjunction of the items, flattened; one item stands for itself."""
    flat = [part for item in items for part in (item.items if isinstance(item, Or) else (item,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def predicates(expression: Expression) -> list[tuple[Predicate, int]]:
    """Every predicate, in the order of the text, with the number of AND, OR and NOT that it stands inside."""
    with_depths: list[tuple[Predicate, int]] = []
    waiting: list[tuple[Expression, int]] = [(expression, 0)]
    while waiting:
        node, depth = waiting.pop()
        if type(node) in _PARTS:
            with_depths.append((node, depth))  # type: ignore[arg-type]
        elif isinstance(node, _JUNCTIONS):
            waiting += [(item, depth + 1) for item in reversed(node.items)]
        elif isinstance(node, _WRAPPERS):
            waiting.append((node.item, depth + 1))
    return with_depths


_PARTS: dict[type, Callable[[Any], tuple[Operand, ...]]] = {
    Comparison: attrgetter("left", "right"),
    Between: attrgetter("operand", "low", "high"),
    In: lambda node: (node.operand, *node.values),
    Like: attrgetter("operand", "pattern"),
    RLike: attrgetter("operand", "pattern"),
    XPathBoolean: attrgetter("operand", "xpath"),
    IsNull: lambda node: (node.attribute,),
    Contains: attrgetter("attribute", "value"),
    Holds: lambda node: (node.operand,),
    Call: attrgetter("arguments"),
}
"""The operands of a predicate, in the order of the text."""


def leaves(node: Predicate | Operand) -> list[Attribute | Constant | Variable]:
    """The attributes, constants and variables of a predicate or an operand, in the order of the text."""
    parts_of = _PARTS.get(type(node))
    parts: tuple[Any, ...] = (node,) if parts_of is None else parts_of(node)
    collected: list[Attribute | Constant | Variable] = []
    for part in parts:
        if isinstance(part, _LEAVES):
            collected.append(part)
            continue
        waiting: list[Operand] = [part]
        while waiting:  # iterative, because the depth is not limited yet
            operand = waiting.pop()
            if isinstance(operand, Arithmetic):
                waiting += (operand.right, operand.left)
            elif isinstance(operand, Function):
                waiting += reversed(operand.arguments)
            else:
                collected.append(operand)
    return collected


def offset_of(node: Expression | Operand) -> int:
    """Where a node starts in its text: the offset of its first leaf, 0 if it was not parsed."""
    if type(node) is Comparison and type(node.left) is Attribute:  # fast path
        return max(node.left.at, 0)
    while True:
        if isinstance(node, Comparison):
            node = node.left
        elif isinstance(node, _JUNCTIONS):
            node = node.items[0]
        elif isinstance(node, _WRAPPERS):
            node = node.item
        else:
            break
    if isinstance(node, (Attribute, Call, Function)) and node.at >= 0:
        return node.at
    return next((leaf.at for leaf in leaves(node) if leaf.at >= 0), 0)


def operands(predicate: Predicate) -> tuple[Operand, ...]:
    """The operands of a predicate in which arithmetic and functions may stand."""
    if isinstance(predicate, Comparison):
        return predicate.left, predicate.right
    if isinstance(predicate, Between):
        return predicate.operand, predicate.low, predicate.high
    return (predicate.operand,) if isinstance(predicate, In | Like | RLike | XPathBoolean | Holds) else ()


def has_arithmetic(predicate: Predicate) -> bool:
    """Whether an operand of a predicate contains arithmetic."""
    waiting = list(operands(predicate))
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, Arithmetic):
            return True
        if isinstance(operand, Function):
            waiting += operand.arguments
    return False


def arithmetic_depth(predicate: Predicate) -> int:
    """Number of levels of arithmetic and functions in a predicate."""
    deepest = 0
    waiting: list[tuple[Operand, int]] = [(operand, 0) for operand in operands(predicate)]
    while waiting:
        operand, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(operand, Arithmetic):
            waiting += ((operand.left, depth + 1), (operand.right, depth + 1))
        elif isinstance(operand, Function):
            waiting += ((argument, depth + 1) for argument in operand.arguments)
    return deepest


def attributes(expression: Expression) -> list[Path]:
    """The distinct paths of an expression, in the order of the text."""
    paths: dict[Path, None] = {}
    for predicate, _ in predicates(expression):
        paths.update((leaf.path, None) for leaf in leaves(predicate) if isinstance(leaf, Attribute))
    return list(paths)


def constants(expression: Expression) -> list[Constant]:
    """The constants of an expression, in the order of the text."""
    return [leaf for each, _ in predicates(expression) for leaf in leaves(each) if isinstance(leaf, Constant)]
