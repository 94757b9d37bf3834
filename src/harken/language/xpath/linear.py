"""An XPath expression as conjunctions of branches, as Tian et al. store it in tables (SIGMOD 2004, 3.1 and 3.2).

A *branch* is a linear path, a comparison of what it ends at, and the *branching points* on the way: steps at which
branches of the conjunction diverge, so that all of them have to pass through one node there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, NoReturn

from harken.errors import LimitError, UnavailableError
from harken.language.xpath.ast import (
    And,
    Comparison,
    Exists,
    Expression,
    Location,
    NodeKind,
    Not,
    Or,
    Step,
    Truth,
    ValueComparison,
)
from harken.language.xpath.printer import prefixes_of, print_part
from harken.limits import DEFAULT_LIMITS, Limits

_STEP = re.compile("(//?)([^/]+)")
_ESCAPES = str.maketrans({"%": "%25", "/": "%2F", "{": "%7B", "}": "%7D"})
_ESCAPED = re.compile("%(25|2F|7B|7D)")


@dataclass(frozen=True, slots=True)
class LinearPath:
    """Steps from the root node without predicates. There may be none: that is the root."""

    steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str) -> LinearPath:
        """The path with this `text`."""
        return cls(tuple(_step(slashes == "//", name) for slashes, name in _STEP.findall(text)))

    @property
    def text(self) -> str:
        """The whole path, as in Fig. 3.4: `/a//b//c/d/text()`."""
        return "".join(("//" if step.is_descendant else "/") + _name(step) for step in self.steps) or "/"

    @property
    def prefix(self) -> str:
        """What stands before the first double slash; the whole path if it has none. It may be empty."""
        (first, _) = self._cuts()
        return self.text if first is None else "".join("/" + _name(step) for step in self.steps[:first])

    @property
    def middle(self) -> str | None:
        """What stands between the first and the last double slash: `b/p`, or `b//p` if there are more than two."""
        first, last = self._cuts()
        return None if first == last else LinearPath(self.steps[first:last]).text.lstrip("/")

    @property
    def postfix(self) -> str | None:
        """What stands behind the last double slash, reversed: `text()/d/c`."""
        (_, last) = self._cuts()
        return None if last is None else "/".join(map(_name, reversed(self.steps[last:])))

    def _cuts(self) -> tuple[int | None, int | None]:
        """The places of the first and the last step with a double slash."""
        places = [place for place, step in enumerate(self.steps) if step.is_descendant]
        return (places[0], places[-1]) if places else (None, None)


@dataclass(frozen=True, slots=True)
class Branch:
    """Some node at the end of a path compares with a value; without an operator, some node exists there."""

    path: LinearPath
    operator: str | None = None
    """One of = != < <= > >=."""
    value: str | float | None = None
    points: tuple[tuple[int, int], ...] = ()
    """The branching points on the path: their numbers, from 1 within the conjunction, and their steps, from 1."""

    @property
    def branch_info(self) -> str:
        """The branching points as in the BrInfo column of Fig. 3.4: `bp#1=2&bp#2=3`."""
        return "&".join(f"bp#{number}={step}" for number, step in self.points)


@dataclass(frozen=True, slots=True)
class BranchConjunction:
    """Branches that all have to hold, and to meet at their branching points. Equalities come first."""

    branches: tuple[Branch, ...]


def conjunctions(expression: Expression, limits: Limits = DEFAULT_LIMITS) -> list[BranchConjunction]:
    """The disjunctive normal form: the expression is true if one of these is.

    Raises LimitError beyond `max_conjunctions`, and UnavailableError for `not` and for what is no branch.
    """
    return [_conjunction(leaves) for leaves in _Expander(expression, limits).expand(expression, ())]


def reject_unlinear(expression: Expression, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raise what `conjunctions` would raise, without multiplying anything out."""
    _Counter(expression, limits).count(expression)


class _Rejections:
    """Rejects expressions that are no conjunctions, or too many."""

    def __init__(self, whole: Expression, limits: Limits) -> None:
        self._whole = whole
        self._most = limits.max_conjunctions

    def reject_not(self, part: Not, *, is_top: bool) -> NoReturn:
        """Raise UnavailableError."""
        shown = print_part(part, prefixes_of(self._whole), is_top=is_top)
        message = f"`{shown:.80}` is no conjunction of branches: it says that a node does not exist"
        raise UnavailableError(message, hint="subscriptions with `not` are for the index of documents")

    def reject_value(self, part: Expression, *, is_top: bool) -> NoReturn:
        """Raise UnavailableError."""
        shown = print_part(part, prefixes_of(self._whole), is_top=is_top)
        message = (
            f"`{shown:.80}` is no branch: it does not compare a path of child and descendant steps with a constant"
        )
        raise UnavailableError(message, hint="such subscriptions are for the index of documents")

    def reject_more(self, size: int) -> int:
        """Return a size. Raises LimitError if it is too large."""
        if size > self._most:
            message = f"the expression has {size:,} or more conjunctions of branches, more than {self._most:,}"
            raise LimitError(message, limit="max_conjunctions")
        return size


class _Counter(_Rejections):
    """Counts the conjunctions of an expression."""

    def count(self, part: Expression, *, is_top: bool = True) -> int:
        """Number of alternatives of a part."""
        match part:
            case And(items=items):
                return self._product(items, is_top=is_top)
            case Or(items=items):
                return self.reject_more(sum(self.count(item, is_top=is_top) for item in items))
            case Not():
                self.reject_not(part, is_top=is_top)
            case ValueComparison() | Truth():
                self.reject_value(part, is_top=is_top)
            case Exists(path=path) | Comparison(path=path):
                return self._product([each for step in path.steps for each in step.predicates], is_top=False)

    def _product(self, items: Iterable[Expression], *, is_top: bool) -> int:
        product = 1
        for item in items:
            product = self.reject_more(product * self.count(item, is_top=is_top))
        return product


class _Place(NamedTuple):
    """A step where it stands in the expression. Equal steps at two places may lead to two nodes."""

    number: int
    step: Step


class _Leaf(NamedTuple):
    """A branch: the places on its way, and its comparison."""

    way: tuple[_Place, ...]
    operator: str | None = None
    value: str | float | None = None


_Alternatives = list[tuple[_Leaf, ...]]


class _Expander(_Rejections):
    """Multiplies an expression out."""

    def __init__(self, whole: Expression, limits: Limits) -> None:
        super().__init__(whole, limits)
        self._numbers = count()

    def expand(self, part: Expression, way: tuple[_Place, ...]) -> _Alternatives:
        """The alternatives of a part at the node at the end of a way."""
        match part:
            case And(items=items):
                alternatives: _Alternatives = [()]
                for item in items:
                    alternatives = self._times(alternatives, self.expand(item, way))
                return alternatives
            case Or(items=items):
                alternatives = []
                for item in items:
                    alternatives += self.expand(item, way)
                    self.reject_more(len(alternatives))
                return alternatives
            case Not():
                self.reject_not(part, is_top=not way)
            case ValueComparison() | Truth():
                self.reject_value(part, is_top=not way)
            case Exists(path=path):
                return self._followed(path, None, None, way)
            case Comparison(path=path, operator=operator, value=value):
                return self._followed(path, operator, value, way)

    def _followed(
        self, path: Location, operator: str | None, value: str | float | None, way: tuple[_Place, ...]
    ) -> _Alternatives:
        alternatives: _Alternatives = [()]
        for step in path.steps:
            way = (*way, _Place(next(self._numbers), Step(step.is_descendant, step.kind, step.name)))
            for predicate in step.predicates:
                alternatives = self._times(alternatives, self.expand(predicate, way))
        if operator is None and path.steps and path.steps[-1].predicates:
            return alternatives  # a predicate on a node implies that the node exists
        return [(*leaves, _Leaf(way, operator, value)) for leaves in alternatives]

    def _times(self, left: _Alternatives, right: _Alternatives) -> _Alternatives:
        self.reject_more(len(left) * len(right))
        return [one + other for one in left for other in right]


def _conjunction(leaves: Sequence[_Leaf]) -> BranchConjunction:
    numbers = {place: number for number, place in enumerate(_branching(leaves), 1)}
    branches = [
        Branch(
            LinearPath(tuple(place.step for place in leaf.way)),
            leaf.operator,
            leaf.value,
            tuple((numbers[place.number], at) for at, place in enumerate(leaf.way, 1) if place.number in numbers),
        )
        for leaf in leaves
    ]
    return BranchConjunction(tuple(sorted(branches, key=lambda branch: branch.operator != "=")))


def _branching(leaves: Sequence[_Leaf]) -> Iterator[int]:
    """The places at which leaves diverge, in order of appearance. Leaves that end at one place diverge there."""
    onward: dict[int, set[tuple[bool, int]]] = {}
    for number, leaf in enumerate(leaves):
        ways = [*((False, place.number) for place in leaf.way[1:]), (True, number)]
        for place, following in zip(leaf.way, ways, strict=False):  # a leaf at the root has no place
            onward.setdefault(place.number, set()).add(following)
    return (place for place, following in onward.items() if len(following) > 1)


def node_text(kind: int, name: str | None) -> str:
    """A step, or a node of a tag path, without its slash. A slash inside a namespace is written %2F."""
    if kind == NodeKind.TEXT:
        return "text()"
    sign = "@" if kind == NodeKind.ATTRIBUTE else ""
    if name is None:
        return sign + "*"
    if name.startswith("{"):
        uri, _, local = name[1:].rpartition("}")
        return f"{sign}{{{uri.translate(_ESCAPES)}}}{local}"
    return sign + name


def _name(step: Step) -> str:
    return node_text(step.kind, step.name)


def _step(is_descendant: bool, text: str) -> Step:
    if text == "text()":
        return Step(is_descendant, NodeKind.TEXT, None)
    kind = NodeKind.ATTRIBUTE if text.startswith("@") else NodeKind.ELEMENT
    name = text.removeprefix("@")
    if name.startswith("{"):
        uri, _, local = name[1:].rpartition("}")
        name = f"{{{_ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), uri)}}}{local}"
    return Step(is_descendant, kind, None if name == "*" else name)
