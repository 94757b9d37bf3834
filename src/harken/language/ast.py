"""The nodes of a subscription's expression: tiny, frozen, compared by content, and checked when they are made.

`x NOT IN (…)`, `x IS NOT NULL` and their like have no nodes of their own: they are `Not` of the positive form, which in
three-valued logic is the same. Leaves remember the offset at which they stood in the text (`at`, -1 where they were
not parsed); it takes no part in comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite

from harken.schema.paths import Path, format_path
from harken.schema.values import COMPARISONS, INT64_MAX, INT64_MIN, KINDS, Kind, Value

DEFAULT_ESCAPE = "\\"
_WILDCARDS: dict[str, str | None] = {"%": None, "_": ""}


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of the event, by its path."""

    path: Path
    at: int = field(default=-1, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("an attribute needs a name")

    @property
    def name(self) -> str:
        return format_path(self.path)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value written in the text."""

    value: Value
    at: int = field(default=-1, compare=False, repr=False)

    def __post_init__(self) -> None:
        value = self.value
        kind = type(value)
        if kind is int:
            if not INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]
                raise ValueError(f"{value} does not fit in 64 bits; write it with a point to make it a float")
        elif kind is float:
            if not isfinite(value):  # type: ignore[arg-type]
                raise ValueError("a number has to be finite and within the range of binary64")
        elif kind not in KINDS:
            raise TypeError(f"{kind.__name__} is not a kind of value")

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
    """`left + right` over variables and numbers; a minus sign before a variable is `0 - ?x`."""

    left: Operand
    operator: str
    right: Operand

    def __post_init__(self) -> None:
        if self.operator not in ("+", "-", "*", "/"):
            raise ValueError(f"{self.operator!r} is not an arithmetic operator")


Operand = Attribute | Constant | Variable | Arithmetic


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, with one of = <> < <= > >=."""

    left: Operand
    operator: str
    right: Operand

    def __post_init__(self) -> None:
        if self.operator not in COMPARISONS:
            raise ValueError(f"{self.operator!r} is not a comparison")


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

    def pieces(self) -> list[str | None]:
        """The pattern as plain characters, with None for `%` and "" for `_`."""
        return like_pieces(str(self.pattern.value), self.escape)


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
    """A bare boolean attribute, or TRUE or FALSE, standing as a condition."""

    operand: Attribute | Constant

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


Predicate = Comparison | Between | In | Like | IsNull | Contains | Holds | Call
Expression = Predicate | Not | And | Or


class EscapeError(ValueError):
    """An escape in a pattern that escapes nothing; `index` is its place in the pattern."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


def like_pieces(pattern: str, escape: str) -> list[str | None]:
    """A pattern as plain characters, with None for `%` and "" for `_`. Raises EscapeError where an escape is stray."""
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
    return pieces


def conjunction(items: list[Expression]) -> Expression:
    """The conjunction of the items, flattened; one item stands for itself."""
    flat = [part for item in items for part in (item.items if isinstance(item, And) else (item,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(items: list[Expression]) -> Expression:
    """The disjunction of the items, flattened; one item stands for itself."""
    flat = [part for item in items for part in (item.items if isinstance(item, Or) else (item,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def predicates(expression: Expression) -> Iterator[tuple[Predicate, int]]:
    """Every predicate, in the order of the text, with the number of AND, OR and NOT that it stands inside."""
    waiting: list[tuple[Expression, int]] = [(expression, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, And | Or):
            waiting.extend((item, depth + 1) for item in reversed(node.items))
        elif isinstance(node, Not):
            waiting.append((node.item, depth + 1))
        else:
            yield node, depth


def leaves(node: Predicate | Operand) -> Iterator[Attribute | Constant | Variable]:
    """The attributes, constants and variables of a predicate or an operand, in the order of the text."""
    match node:
        case Attribute() | Constant() | Variable():
            yield node
        case Arithmetic():
            waiting: list[Operand] = [node]
            while waiting:  # without recursion, because nothing has limited its depth yet
                operand = waiting.pop()
                if isinstance(operand, Arithmetic):
                    waiting += (operand.right, operand.left)
                else:
                    yield operand
        case Comparison():
            yield from leaves(node.left)
            yield from leaves(node.right)
        case Between():
            for operand in (node.operand, node.low, node.high):
                yield from leaves(operand)
        case In():
            yield from leaves(node.operand)
            yield from node.values
        case Like():
            yield from leaves(node.operand)
            yield node.pattern
        case IsNull():
            yield node.attribute
        case Contains():
            yield node.attribute
            yield node.value
        case Holds():
            yield node.operand
        case Call():
            yield from node.arguments


def offset_of(node: Expression | Operand) -> int:
    """Where a node starts in its text: the offset of its first leaf, 0 if it was not parsed."""
    if isinstance(node, Attribute | Constant | Variable | Arithmetic):
        return next((leaf.at for leaf in leaves(node) if leaf.at >= 0), 0)
    first = next(predicates(node))[0]
    return first.at if isinstance(first, Call) else next(map(offset_of, leaves(first)))


def arithmetic_depth(predicate: Predicate) -> int:
    """The levels of arithmetic in a predicate."""
    deepest = 0
    waiting: list[tuple[Operand, int]] = []
    if isinstance(predicate, Comparison):
        waiting = [(predicate.left, 0), (predicate.right, 0)]
    elif isinstance(predicate, Between):
        waiting = [(predicate.operand, 0), (predicate.low, 0), (predicate.high, 0)]
    elif isinstance(predicate, In | Like):
        waiting = [(predicate.operand, 0)]
    while waiting:
        operand, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(operand, Arithmetic):
            waiting += ((operand.left, depth + 1), (operand.right, depth + 1))
    return deepest


def attributes(expression: Expression) -> list[Path]:
    """The paths that an expression mentions, each once, in the order of the text."""
    found: dict[Path, None] = {}
    for predicate, _ in predicates(expression):
        found.update((leaf.path, None) for leaf in leaves(predicate) if isinstance(leaf, Attribute))
    return list(found)


def constants(expression: Expression) -> list[Constant]:
    """The constants of an expression, in the order of the text."""
    found = (leaf for predicate, _ in predicates(expression) for leaf in leaves(predicate))
    return [leaf for leaf in found if isinstance(leaf, Constant)]
