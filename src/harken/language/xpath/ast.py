"""The nodes of an XPath expression: tiny, frozen, compared by content.

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


Expression = Exists | Comparison | And | Or | Not
