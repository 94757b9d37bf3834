"""Choose the anchor of a row: its most selective equality or, if it has none, its most selective range."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from itertools import islice
from typing import Any

from harken.relational.sql_rows import SqlRow
from harken.relational.typed_values import StoredInterval

MOST_VALUES = 10_000
"""Most different values of equalities that are counted for an attribute."""
_MOST_BOUNDS = 1_000
"""Most bounds of ranges in the sample of an attribute."""
_FEW_BOUNDS = 8
"""With fewer sampled bounds the share of a range is a guess."""


class Anchors:
    """Statistics of predicates. An attribute with more different values counts as more selective."""

    def __init__(self) -> None:
        self._values: dict[int, set[Any]] = {}
        """The values of equalities on each attribute."""
        self._bounds: dict[int, list[Any]] = {}
        """The bounds of ranges on each attribute, in order."""

    def learn(self, rows: Iterable[SqlRow]) -> None:
        """Add the predicates of rows to the statistics."""
        for _, predicates in rows:
            for each in predicates:
                if each.point is not None:
                    values = self._values.setdefault(each.attribute, set())
                    if len(values) < MOST_VALUES:
                        values.add(each.point)
                elif not each.is_outside:
                    bounds = self._bounds.setdefault(each.attribute, [])
                    for cut in (each.low, each.high):
                        if cut is not None and len(bounds) < _MOST_BOUNDS:
                            insort(bounds, cut[0])

    def learn_values(self, attribute: int, values: Iterable[Any]) -> None:
        """Add the values of equalities on an attribute."""
        known = self._values.setdefault(attribute, set())
        known.update(islice(values, MOST_VALUES - len(known)))

    def choose(self, predicates: tuple[StoredInterval, ...]) -> StoredInterval | None:
        """The predicate to find a row by; None if there is neither an equality nor a range."""
        points = [each for each in predicates if each.point is not None]
        if points:
            return max(points, key=lambda each: (len(self._values.get(each.attribute, ())), -each.attribute))
        ranges = [each for each in predicates if not each.is_outside and (each.low or each.high)]
        return min(ranges, key=lambda each: (self._share(each), each.attribute), default=None)

    def _share(self, interval: StoredInterval) -> float:
        """The estimated share of values that a range admits: the share of the sampled bounds in it."""
        bounds = self._bounds.get(interval.attribute, [])
        if len(bounds) < _FEW_BOUNDS:
            return 0.25 if interval.low and interval.high else 0.5
        below = 0 if interval.low is None else bisect_left(bounds, interval.low[0])
        above = len(bounds) if interval.high is None else bisect_left(bounds, interval.high[0])
        return (above - below) / len(bounds)
