"""The nodes of an XPath expression: tiny, frozen, compared by content.

`Exists`, `Comparison`, `And`, `Or` and `Not` over locations are the *indexable* part of the language; `ValueComparison`
and `Truth` are conditions beyond it. Whatever indexable nodes can express, they express: a meaning has one tree.

A location remembers the offset at which it stood in the text (`at`, -1 if it was not parsed); that takes no part in
comparison. Parsing makes millions of nodes, so the frequent ones set their fields themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

_set = object.__setattr__


class NodeKind(IntEnum):
    """The kinds of nodes of a document."""

    ROOT = 0
    ELEMENT = 1
    ATTRIBUTE = 2
    TEXT = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a location: the nodes of a kind and a name, one level below or anywhere below.

    A name is an expanded name, `{uri}local` or `local`. None stands for any name, and for the lack of one (text).
    """

    is_descendant: bool
    kind: NodeKind
    name: str | None
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, init=False)
class Location:
    """A path from the context node, or from the root node at the top of a text; without steps it is that node."""

    steps: tuple[Step, ...]
    at: int = field(compare=False, repr=False)

    def __init__(self, steps: tuple[Step, ...], at: int = -1) -> None:
        _set(self, "steps", steps)
        _set(self, "at", at)


@dataclass(frozen=True, slots=True)
class Exists:
    """Some node is at the path."""

    path: Location


@dataclass(frozen=True, slots=True, init=False)
class Comparison:
    """Some node at the path compares with the value as the operator says. The path stands on the left."""

    path: Location
    operator: str
    """One of = != < <= > >=."""
    value: str | float

    def __init__(self, path: Location, operator: str, value: str | float) -> None:
        _set(self, "path", path)
        _set(self, "operator", operator)
        _set(self, "value", value)


@dataclass(frozen=True, slots=True)
class ValueComparison:
    """A comparison of any two values. It is not a `Comparison`, and not both sides are constants."""

    left: Value
    operator: str
    """One of = != < <= > >=."""
    right: Value


@dataclass(frozen=True, slots=True)
class Truth:
    """`boolean()` of a value: of nodes that no location selects, a string, a number, or a call that is a condition."""

    value: Value


@dataclass(frozen=True, slots=True)
class And:
    """All items hold. There are at least two, none of them an And."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some item holds. There are at least two, none of them an Or."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The item does not hold. It is not a Not."""

    item: Expression


@dataclass(frozen=True, slots=True)
class AxisStep:
    """One step along any axis, with predicates that may ask for positions."""

    axis: str
    kind: NodeKind | None
    """None: nodes of all kinds."""
    name: str | None
    """As in a `Step`; `{uri}*` stands for any name of a namespace."""
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentRoot:
    """The root node, where it is not the context node: a `/` inside a predicate."""


@dataclass(frozen=True, slots=True)
class AxisPath:
    """Steps from nodes. There is at least one, and the first cannot be a step of the location that it starts from."""

    start: Value
    steps: tuple[AxisStep, ...]


@dataclass(frozen=True, slots=True)
class FilteredNodes:
    """The nodes, counted in document order, that meet all predicates."""

    nodes: Value
    predicates: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class NodeUnion:
    """All nodes of at least two sets."""

    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function of XPath's core library. If its result is a boolean, it stands in a `Truth`."""

    name: str
    arguments: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Calculation:
    """`left operator right`, of numbers."""

    left: Value
    operator: str
    """One of + - * div mod."""
    right: Value


@dataclass(frozen=True, slots=True)
class Minus:
    """`-value`."""

    value: Value


Expression = Exists | Comparison | ValueComparison | Truth | And | Or | Not
NodeSet = Location | DocumentRoot | AxisPath | FilteredNodes | NodeUnion
Value = NodeSet | FunctionCall | Calculation | Minus | str | float | Expression
TRUE, FALSE = Truth(FunctionCall("true")), Truth(FunctionCall("false"))
