"""XPath subscriptions drawn from documents: paths are tag paths of the documents, and constants are their values.

After the query generator of XML publish/subscribe on a relational database (Tian et al., section 5.2).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from harken.events.xml import Documents, read_documents
from harken.language.xpath.ast import NodeKind

_BLOCK = 1_024
"""Subscriptions whose random numbers are drawn at once. Thus the first subscriptions do not depend on their number."""
_NUMBER = re.compile(r"\s*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*")
_UNSIGNED = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_ORDERED = ("<", "<=", ">", ">=")
_STAR, _DESCENDS, _IS_LEFT_OUT = 1, 2, 4
_MOST_STEPS = 64
"""Random styles drawn for the steps of a subscription. Longer subscriptions use them again."""


@dataclass(frozen=True)
class XPathShape:
    """The shape of subscriptions. On the paper's data the defaults give about its number of distinct linear paths."""

    paths: tuple[int, ...] = (2, 10)
    """The least and the most linear paths of a subscription, each with a comparison."""
    mean: float = 7.0
    equality: float = 0.8
    """The share of equalities. The others are < <= > >= on numbers and != on texts."""
    descendant: float = 0.05
    """The probability that a step has `//` before it, or is left out for `//`: half of the time each."""
    wildcard: float = 0.05
    """The probability that a step has `*` in place of its name."""
    longest: int = 200
    """Most characters of a constant: longer values are never drawn."""
    skew: float = 0.03
    """A tag path is drawn in proportion to its number of values to this power. At 0 all are equally likely."""

    def __post_init__(self) -> None:
        if len(self.paths) != 2 or not 1 <= self.paths[0] <= self.paths[1] <= _MOST_STEPS:
            raise ValueError(f"`paths` are a least and a most number within 1 to {_MOST_STEPS}, not {list(self.paths)}")
        if not self.paths[0] <= self.mean <= self.paths[1]:
            raise ValueError(f"`mean` is within {self.paths[0]} to {self.paths[1]}, not {self.mean}")
        for name in ("equality", "descendant", "wildcard", "skew"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` is a share, from 0 to 1, not {getattr(self, name)}")
        if self.longest < 1:
            raise ValueError(f"`longest` is 1 or more, not {self.longest}")


class _Value(NamedTuple):
    """A value of documents as a constant of subscriptions."""

    literal: str
    number: str | None
    """The constant for comparisons by order; None if the value is no number."""


class _LeafPath(NamedTuple):
    """A tag path that ends in values: an attribute, or an element without elements."""

    elements: tuple[str, ...]
    """The expanded names of the elements on the way."""
    attribute: str
    """The expanded name of the attribute; empty if the value belongs to the last element."""
    values: list[_Value]

    def names(self) -> tuple[str, ...]:
        return (*self.elements, self.attribute)

    def ways(self) -> Iterator[tuple[str, ...]]:
        """The names that lead from the root to each of the elements."""
        return (self.elements[:end] for end in range(1, len(self.elements) + 1))


class Tags:
    """The tag paths of documents that end in values, sorted so that paths with a common prefix are adjacent."""

    def __init__(self, documents: Sequence[bytes], longest: int = XPathShape.longest) -> None:
        """Raises ValueError if there is nothing to draw, or a document cannot be read."""
        leaves = _leaf_paths(documents, longest)
        if not leaves:
            raise ValueError(f"the documents have no value of up to {longest} characters to draw")
        leaves.sort(key=lambda leaf: [*((1, name) for name in leaf.elements), (0, leaf.attribute)])
        uris = {_uri(name) for leaf in leaves for name in leaf.names()} - {""}
        self.namespaces = sorted(uris)
        self.values = [leaf.values for leaf in leaves]
        ways: dict[tuple[str, ...], int] = {}
        self.chains = [tuple(ways.setdefault(way, len(ways)) for way in leaf.ways()) for leaf in leaves]
        """Of each tag path: the numbers of its elements. Elements with the same path from the root have one number."""
        self.elements = [self._written(way[-1]) for way in ways]
        """The name of every numbered element, as subscriptions write it."""
        self.attributes = [leaf.attribute and f"@{self._written(leaf.attribute)}" for leaf in leaves]
        """The attribute at the end of each tag path, as subscriptions write it; empty if there is none."""
        self.used_namespaces = [{uri for uri in map(_uri, leaf.names()) if uri} for leaf in leaves]
        """The namespaces of each tag path."""
        roots = np.array([chain[0] for chain in self.chains])
        self.roots = [np.flatnonzero(roots == root) for root in np.unique(roots)]
        """The tag paths of each root element: those of a subscription have one root."""

    def __len__(self) -> int:
        return len(self.values)

    def _written(self, name: str) -> str:
        uri = _uri(name)
        return f"{self.prefix(uri)}:{name[len(uri) + 2 :]}" if uri else name

    def prefix(self, uri: str) -> str:
        return f"n{self.namespaces.index(uri) + 1}"

    def prologue(self, uris: Collection[str]) -> str:
        """The declarations of namespaces that a subscription begins with."""
        return "".join(f"declare namespace {self.prefix(uri)}='{uri}'; " for uri in sorted(uris))


class XPaths:
    """Draws subscriptions from the tags of documents, and counts their predicates and linear paths."""

    def __init__(self, tags: Tags, shape: XPathShape | None = None) -> None:
        self.tags, self.shape = tags, shape or XPathShape()
        self.predicates = 0
        self.linear_paths: set[str] = set()
        """The distinct linear paths that were drawn: from the root to the compared node, without predicates."""

    def texts(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        """The texts of subscriptions, drawn a block at a time."""
        for start in range(0, rows, _BLOCK):
            drawn = self._draw(rng)
            for number in range(min(_BLOCK, rows - start)):
                begin, end = drawn.offsets[number], drawn.offsets[number + 1]
                uris = set[str]().union(*(self.tags.used_namespaces[path] for path in drawn.paths[begin:end]))
                prologue = self.tags.prologue(uris) if uris else ""
                (item,) = _Writer(self.tags, drawn, number, self.linear_paths).items(begin, end, 0, "", False)
                self.predicates += end - begin
                yield f"{prologue}{item[1:]}" if item[0] == "." else f"{prologue}/{item}"

    def _draw(self, rng: np.random.Generator) -> _Draws:
        """The random choices of a block."""
        shape = self.shape
        least, most = shape.paths
        weights = np.array([len(values) for values in self.tags.values], np.float64) ** shape.skew
        totals = np.array([weights[each].sum() for each in self.tags.roots])
        root = rng.choice(len(totals), _BLOCK, p=totals / totals.sum())
        counts = least + rng.binomial(most - least, (shape.mean - least) / max(1, most - least), _BLOCK)
        counts = np.minimum(counts, np.array([len(each) for each in self.tags.roots])[root])
        # The smallest exponential variates are a sample without replacement, in proportion to the weights.
        keys = rng.exponential(size=(_BLOCK, len(weights))) / weights
        for number, inside in enumerate(self.tags.roots):
            outside = np.ones(len(weights), np.bool_)
            outside[inside] = False
            keys[np.ix_(root == number, outside)] = np.inf
        width = min(most, len(weights))
        first = np.argsort(keys, axis=1)[:, :width]
        first[np.arange(width) >= counts[:, None]] = len(weights)
        first.sort(axis=1)
        paths = first[first < len(weights)]
        sizes = np.array([len(values) for values in self.tags.values])
        styles = np.where(rng.random((_BLOCK, _MOST_STEPS)) < shape.wildcard, _STAR, 0)
        descends = rng.random((_BLOCK, _MOST_STEPS)) / max(shape.descendant, 1e-300)
        styles += np.where(descends < 0.5, _IS_LEFT_OUT, np.where(descends < 1.0, _DESCENDS, 0))
        return _Draws(
            list(accumulate(counts.tolist(), initial=0)),
            paths.tolist(),
            (rng.random(len(paths)) * sizes[paths]).astype(np.int64).tolist(),
            (rng.random(len(paths)) < shape.equality).tolist(),
            rng.integers(0, len(_ORDERED), len(paths)).tolist(),
            styles.tolist(),
        )


class _Draws(NamedTuple):
    """The random choices of a block. `offsets` say where the predicates of each subscription begin."""

    offsets: list[int]
    paths: list[int]
    values: list[int]
    is_equality: list[bool]
    operators: list[int]
    styles: list[list[int]]


class _Writer:
    """Writes one subscription. Predicates with a common path prefix are nested below it."""

    __slots__ = ("_drawn", "_linear_paths", "_step", "_styles", "_tags")

    def __init__(self, tags: Tags, drawn: _Draws, number: int, linear_paths: set[str]) -> None:
        self._tags, self._drawn, self._linear_paths = tags, drawn, linear_paths
        self._styles, self._step = drawn.styles[number], 0

    def _style(self) -> int:
        self._step += 1
        return self._styles[self._step % _MOST_STEPS]

    def items(self, begin: int, end: int, depth: int, above: str, descends: bool) -> list[str]:
        """The predicates below an element that these tag paths share, relative to it; `.` is the element itself.

        `above` is the linear path to the element. With `descends` the step that leads to it was left out.
        """
        chains, paths = self._tags.chains, self._drawn.paths
        predicates = []
        here = begin
        while here < end:
            path = paths[here]
            chain = chains[path]
            if len(chain) == depth:
                predicates.append(self._leaf(here, path, above, descends))
                here += 1
                continue
            element = chain[depth]
            next_ = here + 1
            while next_ < end and len(chains[paths[next_]]) > depth and chains[paths[next_]][depth] == element:
                next_ += 1
            style = self._style()
            if style & _IS_LEFT_OUT and depth and len(chain) > depth + 1:
                predicates += self.items(here, next_, depth + 1, above, True)
            else:
                name = "*" if style & _STAR else self._tags.elements[element]
                step = ".//" + name if descends or style > _STAR else name
                way = f"{above}{step[1:]}" if step[0] == "." else f"{above}/{step}"
                inner = self.items(here, next_, depth + 1, way, False)
                predicates.append(_joined(step, inner))
            here = next_
        return predicates

    def _leaf(self, place: int, path: int, above: str, descends: bool) -> str:
        """A comparison with an attribute of the element, or with its own value."""
        tags, drawn = self._tags, self._drawn
        name = tags.attributes[path]
        if name:
            style = self._style()
            if style & _STAR:
                name = "@*"
            if descends or style > _STAR:
                name = ".//" + name
            self._linear_paths.add(above + name[1:] if name[0] == "." else f"{above}/{name}")
        else:
            name = "."
            self._linear_paths.add(above)
        literal, number = tags.values[path][drawn.values[place]]
        if drawn.is_equality[place]:
            return f"{name} = {literal}"
        if number is None:
            return f"{name} != {literal}"
        return f"{name} {_ORDERED[drawn.operators[place]]} {number}"


def _joined(step: str, inner: list[str]) -> str:
    if len(inner) > 1:
        return f"{step}[{' and '.join(inner)}]"
    only = inner[0]
    return step + only[1:] if only[0] == "." else f"{step}/{only}"


def _leaf_paths(documents: Sequence[bytes], longest: int) -> list[_LeafPath]:
    """The tag paths of documents that end in values which can be constants."""
    read = _read(documents)
    paths = read.paths
    kind = paths.kind[read.path]
    has_elements = np.zeros(len(kind), np.bool_)
    has_elements[read.parent[kind == NodeKind.ELEMENT]] = True
    nodes = np.flatnonzero((kind == NodeKind.ATTRIBUTE) | ((kind == NodeKind.ELEMENT) & ~has_elements))
    nodes = nodes[np.argsort(read.path[nodes], kind="stable")]
    constants: dict[bytes, _Value | None] = {}
    values: dict[int, list[_Value]] = {}
    for path, begin, end in zip(*(each[nodes].tolist() for each in (read.path, read.begin, read.end)), strict=True):
        data = read.text[begin:end].tobytes()
        if data not in constants:
            constants[data] = _value(data.decode(), longest)
        value = constants[data]
        if value is not None:
            values.setdefault(path, []).append(value)
    names = {path: paths.name(path).decode() for path in range(len(paths))}
    leaves = []
    for path, own in values.items():
        way = []
        above = path
        while above > 0:
            way.append(names[above])
            above = int(paths.parent[above])
        attribute = way.pop(0) if paths.kind[path] == NodeKind.ATTRIBUTE else ""
        leaves.append(_LeafPath(tuple(reversed(way)), attribute, own))
    return leaves


def _read(documents: Sequence[bytes]) -> Documents:
    offsets = np.array([0, *accumulate(map(len, documents))], np.int64)
    data = np.frombuffer(b"".join(documents), np.uint8)
    read = read_documents(data, offsets, np.arange(len(documents), dtype=np.int32))
    if read.errors:
        place, error = read.errors[0]
        raise ValueError(f"document {place} cannot be read: {error.message}") from error
    return read


def _value(text: str, longest: int) -> _Value | None:
    """A value as a constant; None if it is empty, too long, or has both kinds of quotes."""
    if not text or len(text) > longest or ("'" in text and '"' in text):
        return None
    literal = f'"{text}"' if "'" in text else f"'{text}'"
    if not _NUMBER.fullmatch(text):
        return _Value(literal, None)
    return _Value(literal, text if _UNSIGNED.fullmatch(text) else literal)


def _uri(name: str) -> str:
    return name[1:].partition("}")[0] if name.startswith("{") else ""
