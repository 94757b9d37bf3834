"""Domains with a fixed list of values: enumerated, with a partial order, and hierarchical, with "is a kind of"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar

from harken.errors import SchemaError
from harken.schema.domains import Domain, shortened
from harken.schema.faults import quick_hint
from harken.schema.values import Kind, Value

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class CodedDomain(Domain):
    """A domain whose values are listed. The code of a value is its index in `values`."""

    values: tuple[str, ...]
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)
    kind: ClassVar[Kind] = Kind.STRING

    def read(self, raw: object) -> str:
        if not isinstance(raw, str) or raw not in self._codes:
            raise self.rejection(raw, hint=self._hint(raw))
        return str.__str__(raw)  # str() of a string enumeration's member is its name

    def read_text(self, text: str) -> str:
        return self.read(text)

    def code(self, value: str) -> int:
        """The index of a value in `values`. Raises InvalidValueError."""
        code = self._codes.get(value)
        if code is None:
            raise self.rejection(value, hint=self._hint(value))
        return code

    def runs(self, operator: str, value: str, wanted: bool) -> list[tuple[int, int]]:
        """The (first, last) runs of codes for which `code operator value` is true or, unless `wanted`, false.

        The operator is one of < <= > >=. Raises InvalidValueError.
        """
        raise NotImplementedError

    def describe(self) -> str:
        return f"one of {_listed(self.values)}"

    def _hint(self, raw: object) -> str | None:
        return quick_hint(raw, self.values) if isinstance(raw, str) else None

    def _number(self, values: Iterable[str]) -> None:
        """Number the values. Constructors call this once."""
        object.__setattr__(self, "values", tuple(values))
        object.__setattr__(self, "_codes", {value: code for code, value in enumerate(self.values)})


@dataclass(frozen=True, slots=True)
class EnumeratedDomain(CodedDomain):
    """A list of values. `order` has (lower, higher) pairs; the partial order is their closure.

    = and <> are identity. Values that the order does not relate compare unknown under < <= > >=.
    """

    order: tuple[tuple[str, str], ...] = ()
    # For every code, bit masks of the codes above it and below it; computed on first use.
    _related: tuple[tuple[int, ...], tuple[int, ...]] | None = field(
        init=False, repr=False, compare=False, default=None
    )

    def __post_init__(self) -> None:
        if not self.values:
            raise SchemaError(f"domain `{self.name}` has no values")
        repeated = _first_repeated(self.values)
        if repeated is not None:
            raise SchemaError(f"domain `{self.name}` lists {repeated!r} twice")
        self._number(self.values)
        for value in (value for pair in self.order for value in pair):
            if value not in self._codes:
                problem = f"the order of domain `{self.name}` names {value!r}, which is not one of its values"
                raise SchemaError(problem, hint=self._hint(value))
        # Sorted, so that the same order of values gives equal domains.
        pairs = sorted(set(self.order), key=lambda pair: (self._codes[pair[0]], self._codes[pair[1]]))
        object.__setattr__(self, "order", tuple(pairs))
        try:
            self._sorter().prepare()
        except CycleError as error:
            cycle = _listed(error.args[1], " < ")
            raise SchemaError(f"the order of domain `{self.name}` has a cycle: {cycle}") from None

    def compare(self, operator: str, left: Value, right: Value) -> bool | None:
        if operator in ("=", "<>"):
            return Domain.compare(self, operator, left, right)
        if left not in self._codes or right not in self._codes:
            return None
        if left == right:
            return operator in ("<=", ">=")
        if self._is_below(str(left), str(right)):
            return operator in ("<", "<=")
        if self._is_below(str(right), str(left)):
            return operator in (">", ">=")
        return None

    def runs(self, operator: str, value: str, wanted: bool) -> list[tuple[int, int]]:
        code = self.code(value)
        above, below = self._closure()
        same = 1 << code
        true = (below if operator in ("<", "<=") else above)[code] | (same if operator in ("<=", ">=") else 0)
        return _runs_of_bits(true if wanted else (above[code] | below[code] | same) & ~true)

    def _is_below(self, lower: str, higher: str) -> bool:
        above, _ = self._closure()
        return bool(above[self._codes[lower]] >> self._codes[higher] & 1)

    def _closure(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """For every code, bit masks of the codes above it and below it."""
        related = self._related
        if related is None:
            pairs = [(self._codes[lower], self._codes[higher]) for lower, higher in self.order]
            order = [self._codes[value] for value in self._sorter().static_order()]
            turned = [(higher, lower) for lower, higher in pairs]
            related = self._reached(pairs, order[::-1]), self._reached(turned, order)
            object.__setattr__(self, "_related", related)
        return related

    def _reached(self, pairs: Iterable[tuple[int, int]], order: Iterable[int]) -> tuple[int, ...]:
        """For every code, a bit mask of the codes reachable by `pairs`. `order` has a code after those it leads to."""
        onward: dict[int, list[int]] = {}
        for start, end in pairs:
            onward.setdefault(start, []).append(end)
        masks = [0] * len(self.values)
        for code in order:
            for end in onward.get(code, ()):
                masks[code] |= masks[end] | 1 << end
        return tuple(masks)

    def _sorter(self) -> TopologicalSorter[str]:
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for lower, higher in self.order:
            sorter.add(higher, lower)
        return sorter


@dataclass(frozen=True, slots=True)
class HierarchicalDomain(CodedDomain):
    """A forest of values, given as (value, parent or None) pairs, and numbered in preorder.

    `a <= b` holds when a is b or a kind of b, `a < b` when it is a kind of b and not b; both are true or false for
    any two values. A value and its descendants have consecutive codes: see `span`.
    """

    values: tuple[str, ...] = field(init=False, repr=False, compare=False)
    parents: tuple[tuple[str, str | None], ...]
    _last: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.parents:
            raise SchemaError(f"domain `{self.name}` has no values")
        repeated = _first_repeated([value for value, _ in self.parents])
        if repeated is not None:
            raise SchemaError(f"in domain `{self.name}` {repeated!r} is placed twice: a value has at most one parent")
        parent_of = dict(self.parents)
        for value, parent in self.parents:
            if parent is not None and parent not in parent_of:
                problem = f"in domain `{self.name}` {value!r} is below {parent!r}, which is not one of its values"
                raise SchemaError(problem, hint=quick_hint(parent, parent_of))
        self._number(_preorder(self.parents))
        if len(self.values) < len(self.parents):
            lost = next(value for value in parent_of if value not in self._codes)
            raise SchemaError(f"in domain `{self.name}` the parents of {lost!r} form a cycle")
        # Parents in preorder too, so that the same forest gives equal domains.
        object.__setattr__(self, "parents", tuple((value, parent_of[value]) for value in self.values))
        object.__setattr__(self, "_last", self._last_codes())

    def span(self, value: str) -> tuple[int, int]:
        """The first and the last code of a value and its descendants. Raises InvalidValueError."""
        code = self.code(value)
        return code, self._last[code]

    def runs(self, operator: str, value: str, wanted: bool) -> list[tuple[int, int]]:
        first, last = self.span(value)
        if operator in ("<", "<="):
            start = first if operator == "<=" else first + 1
            true = [(start, last)] if start <= last else []
        else:
            above = [first] if operator == ">=" else []
            parent = self.parents[first][1]
            while parent is not None:
                above.append(self._codes[parent])
                parent = self.parents[above[-1]][1]
            true = [(code, code) for code in reversed(above)]  # a parent has a lower code
        return true if wanted else _between(true, len(self.values))

    def compare(self, operator: str, left: Value, right: Value) -> bool | None:
        if operator in ("=", "<>"):
            return Domain.compare(self, operator, left, right)
        if operator in (">", ">="):
            left, right = right, left
        if left not in self._codes or right not in self._codes:
            return None
        if left == right:
            return operator in ("<=", ">=")
        first, last = self.span(str(right))
        return first <= self._codes[str(left)] <= last

    def describe(self) -> str:
        roots = [value for value, parent in self.parents if parent is None]
        return f"one of {len(self.values)} kinds of {_listed(roots)}"

    def _last_codes(self) -> tuple[int, ...]:
        last = list(range(len(self.values)))
        for code in reversed(range(len(last))):
            parent = self.parents[code][1]
            if parent is not None:
                above = self._codes[parent]
                last[above] = max(last[above], last[code])
        return tuple(last)


def _between(runs: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """The runs of numbers below `size` that lie between `runs`."""
    gaps = []
    start = 0
    for first, last in (*runs, (size, size)):
        if start < first:
            gaps.append((start, first - 1))
        start = last + 1
    return gaps


def _runs_of_bits(bits: int) -> list[tuple[int, int]]:
    """The first and the last position of every run of ones."""
    runs = []
    place = 0
    while bits:
        skipped = (bits & -bits).bit_length() - 1
        bits >>= skipped
        length = (~bits & bits + 1).bit_length() - 1
        runs.append((place + skipped, place + skipped + length - 1))
        place += skipped + length
        bits >>= length
    return runs


def _preorder(parents: Iterable[tuple[str, str | None]]) -> Iterable[str]:
    """The values below a root in preorder, siblings as given. Iterative, since a forest may be deep."""
    children: dict[str | None, list[str]] = {}
    for value, parent in parents:
        children.setdefault(parent, []).append(value)
    waiting = children.get(None, [])[::-1]
    while waiting:
        value = waiting.pop()
        yield value
        waiting.extend(reversed(children.get(value, ())))


def _first_repeated(values: Sequence[str]) -> str | None:
    if len(set(values)) == len(values):
        return None
    return next(value for value, count in Counter(values).items() if count > 1)


def _listed(values: Sequence[str], separator: str = ", ") -> str:
    """The first values, as a message shows them."""
    shown = [shortened(value) for value in values[:_SHOWN]]
    return separator.join(shown if len(values) <= _SHOWN else [*shown, "…"])
