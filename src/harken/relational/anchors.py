"""Which predicate a row is found by: its most selective equality or, where it has none, its most selective range."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Any

from harken.relational.sql_rows import SqlRow
from harken.relational.typed_values import Typed

_MOST_VALUES = 10_000
"""Different values of equalities that are told apart, an attribute."""
_MOST_BOUNDS = 1_000
"""Ends of ranges that are kept as a sample, an attribute."""
_FEW_BOUNDS = 8


class Anchors:
    """What is known of predicates. An attribute with many values is taken to be more selective than one with few."""

    def __init__(self) -> None:
        self._values: dict[int, set[Any]] = {}
        self._bounds: dict[int, list[Any]] = {}

    def learn(self, rows: Iterable[SqlRow]) -> None:
        """Take these rows into account."""
        for _, predicates in rows:
            for each in predicates:
                if each.point is not None:
                    values = self._values.setdefault(each.attribute, set())
                    if len(values) < _MOST_VALUES:
                        values.add(each.point)
                elif not each.is_outside:
                    bounds = self._bounds.setdefault(each.attribute, [])
                    for cut in (each.low, each.high):
                        if cut is not None and len(bounds) < _MOST_BOUNDS:
                            insort(bounds, cut[0])

    def choose(self, predicates: tuple[Typed, ...]) -> Typed | None:
        """The predicate to find a row by; None if all admit nearly everything."""
        points = [each for each in predicates if each.point is not None]
        if points:
            return max(points, key=lambda each: (len(self._values.get(each.attribute, ())), -each.attribute))
        ranges = [each for each in predicates if not each.is_outside and (each.low or each.high)]
        return min(ranges, key=lambda each: (self._share(each), each.attribute), default=None)

    def _share(self, typed: Typed) -> float:
        """The estimated share of values that a range admits, by the ends of the ranges that are known."""
        bounds = self._bounds.get(typed.attribute, [])
        if len(bounds) < _FEW_BOUNDS:
            return 0.25 if typed.low and typed.high else 0.5
        below = 0 if typed.low is None else bisect_left(bounds, typed.low[0])
        above = len(bounds) if typed.high is None else bisect_left(bounds, typed.high[0])
        return (above - below) / len(bounds)
