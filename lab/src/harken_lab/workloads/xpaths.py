"""XPath subscriptions drawn from documents: their paths are tag paths of the documents, their constants are values.

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
"""Subscriptions whose random numbers are drawn at once. With the same block, fewer subscriptions are the same ones."""
_NUMBER = re.compile(r"\s*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*")
_UNSIGNED = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_ORDERED = ("<", "<=", ">", ">=")
_STAR, _DESCENDS, _IS_LEFT_OUT = 1, 2, 4
_MOST_STEPS = 64
"""Random steps a subscription, of which it uses as many as it has steps."""


@dataclass(frozen=True)
class XPathShape:
    """What subscriptions look like. The defaults give about the paper's number of distinct linear paths on its data."""

    paths: tuple[int, ...] = (2, 10)
    """The least and the most linear paths of a subscription, each with a comparison."""
    mean: float = 7.0
    equality: float = 0.8
    """The share of equalities. The others are < <= > >= on numbers and != on texts."""
    descendant: float = 0.05
    """The probability that `//` is before a step, or else in place of it: half of the time each."""
    wildcard: float = 0.05
    """The probability that a step has `*` in place of its name."""
    longest: int = 200
    """Characters of a constant, at most: longer values are never drawn."""
    skew: float = 0.03
    """A tag path is drawn in proportion to how many values it has, to this power. At 0 all are as likely."""

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
    """A value of documents as subscriptions write it."""

    literal: str
    number: str | None
    """For comparisons by order; None if it is no number."""


class _LeafPath(NamedTuple):
    """A tag path that ends in values: an attribute, or an element without elements."""

    elements: tuple[str, ...]
    """The expanded names of the elements on the way."""
    attribute: str
    """Its expanded name; empty if the value is the last element's."""
    values: list[_Value]

    def names(self) -> tuple[str, ...]:
        return (*self.elements, self.attribute)

    def ways(self) -> Iterator[tuple[str, ...]]:
        """The ways to its elements, from the root on."""
        return (self.elements[:end] for end in range(1, len(self.elements) + 1))


class Tags:
    """What documents offer to subscriptions: tag paths that end in values. Those that begin alike are side by side."""

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
        """The elements on the way to each, numbered by the way to them."""
        self.elements = [self._written(way[-1]) for way in ways]
        """The name of every numbered element as subscriptions write it."""
        self.attributes = [leaf.attribute and f"@{self._written(leaf.attribute)}" for leaf in leaves]
        """The same for what each ends with; empty if it ends with an element."""
        self.asked = [{uri for uri in map(_uri, leaf.names()) if uri} for leaf in leaves]
        """The namespaces of each."""
        roots = np.array([chain[0] for chain in self.chains])
        self.roots = [np.flatnonzero(roots == root) for root in np.unique(roots)]
        """Those below each root element: a subscription has those of one."""

    def __len__(self) -> int:
        return len(self.values)

    def _written(self, name: str) -> str:
        uri = _uri(name)
        return f"{self.prefix(uri)}:{name[len(uri) + 2 :]}" if uri else name

    def prefix(self, uri: str) -> str:
        return f"n{self.namespaces.index(uri) + 1}"

    def prologue(self, asked: Collection[str]) -> str:
        """The declarations of namespaces that a subscription begins with."""
        return "".join(f"declare namespace {self.prefix(uri)}='{uri}'; " for uri in sorted(asked))


class XPaths:
    """Draws subscriptions from the tags of documents, and counts what it has drawn."""

    def __init__(self, tags: Tags, shape: XPathShape | None = None) -> None:
        self.tags, self.shape = tags, shape or XPathShape()
        self.predicates = 0
        self.linear_paths: set[str] = set()
        """The different ones that were drawn: from the root to what is compared, without predicates."""

    def texts(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        """So many subscriptions, drawn a block at a time."""
        for start in range(0, rows, _BLOCK):
            drawn = self._draw(rng)
            for number in range(min(_BLOCK, rows - start)):
                begin, end = drawn.offsets[number], drawn.offsets[number + 1]
                asked = set[str]().union(*(self.tags.asked[path] for path in drawn.paths[begin:end]))
                prologue = self.tags.prologue(asked) if asked else ""
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
        # The least of exponential variates: drawn without replacement, in proportion to the weights.
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
    """The choices of a block: by subscription, where it begins; by predicate; and by subscription and step, styles."""

    offsets: list[int]
    paths: list[int]
    values: list[int]
    is_equality: list[bool]
    operators: list[int]
    styles: list[list[int]]


class _Writer:
    """Writes one subscription. Predicates that share a way are nested where it parts."""

    __slots__ = ("_drawn", "_linear_paths", "_step", "_styles", "_tags")

    def __init__(self, tags: Tags, drawn: _Draws, number: int, linear_paths: set[str]) -> None:
        self._tags, self._drawn, self._linear_paths = tags, drawn, linear_paths
        self._styles, self._step = drawn.styles[number], 0

    def _style(self) -> int:
        self._step += 1
        return self._styles[self._step % _MOST_STEPS]

    def items(self, begin: int, end: int, depth: int, above: str, descends: bool) -> list[str]:
        """What is asked below an element that these tag paths share: as relative paths, `.` being the element itself.

        `above` is the linear path to here. With `descends` the step to here was left out.
        """
        chains, paths = self._tags.chains, self._drawn.paths
        found = []
        here = begin
        while here < end:
            path = paths[here]
            chain = chains[path]
            if len(chain) == depth:
                found.append(self._leaf(here, path, above, descends))
                here += 1
                continue
            element = chain[depth]
            next_ = here + 1
            while next_ < end and len(chains[paths[next_]]) > depth and chains[paths[next_]][depth] == element:
                next_ += 1
            style = self._style()
            if style & _IS_LEFT_OUT and depth and len(chain) > depth + 1:
                found += self.items(here, next_, depth + 1, above, True)
            else:
                name = "*" if style & _STAR else self._tags.elements[element]
                step = ".//" + name if descends or style > _STAR else name
                way = f"{above}{step[1:]}" if step[0] == "." else f"{above}/{step}"
                inner = self.items(here, next_, depth + 1, way, False)
                found.append(_joined(step, inner))
            here = next_
        return found

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
    """The tag paths of documents that end in values which a constant can say."""
    read = _read(documents)
    paths = read.paths
    kind = paths.kind[read.path]
    has_elements = np.zeros(len(kind), np.bool_)
    has_elements[read.parent[kind == NodeKind.ELEMENT]] = True
    nodes = np.flatnonzero((kind == NodeKind.ATTRIBUTE) | ((kind == NodeKind.ELEMENT) & ~has_elements))
    nodes = nodes[np.argsort(read.path[nodes], kind="stable")]
    known: dict[bytes, _Value | None] = {}
    values: dict[int, list[_Value]] = {}
    for path, begin, end in zip(*(each[nodes].tolist() for each in (read.path, read.begin, read.end)), strict=True):
        data = read.text[begin:end].tobytes()
        if data not in known:
            known[data] = _value(data.decode(), longest)
        value = known[data]
        if value is not None:
            values.setdefault(path, []).append(value)
    names = {path: paths.name(path).decode() for path in range(len(paths))}
    found = []
    for path, own in values.items():
        way = []
        above = path
        while above > 0:
            way.append(names[above])
            above = int(paths.parent[above])
        attribute = way.pop(0) if paths.kind[path] == NodeKind.ATTRIBUTE else ""
        found.append(_LeafPath(tuple(reversed(way)), attribute, own))
    return found


def _read(documents: Sequence[bytes]) -> Documents:
    offsets = np.array([0, *accumulate(map(len, documents))], np.int64)
    data = np.frombuffer(b"".join(documents), np.uint8)
    read = read_documents(data, offsets, np.arange(len(documents), dtype=np.int32))
    if read.errors:
        place, error = read.errors[0]
        raise ValueError(f"document {place} cannot be read: {error.message}") from error
    return read


def _value(text: str, longest: int) -> _Value | None:
    """A value as a constant; None if no constant says it, or only a long one."""
    if not text or len(text) > longest or ("'" in text and '"' in text):
        return None
    literal = f'"{text}"' if "'" in text else f"'{text}'"
    if not _NUMBER.fullmatch(text):
        return _Value(literal, None)
    return _Value(literal, text if _UNSIGNED.fullmatch(text) else literal)


def _uri(name: str) -> str:
    return name[1:].partition("}")[0] if name.startswith("{") else ""
