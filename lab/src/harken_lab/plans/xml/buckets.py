"""Buckets for inequalities (section 4.2): `> x` becomes `> b`, which many share, with `> x` behind all the rest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf

from harken.language.xpath.linear import LinearPath
from harken_lab.plans.xml.path_predicates import PathPredicate

BUCKETS = 20
"""Buckets of a linear path and a direction: the paper's experience suggests about so many."""
_SAMPLE = 200
"""Constants that are looked at before bounds are laid. Until then nothing is put into buckets."""
_UP, _DOWN = (">", ">="), ("<", "<=")


class Buckets:
    """The bounds of buckets, laid once for each linear path and direction."""

    def __init__(self) -> None:
        self._seen: dict[tuple[LinearPath, bool], list[float]] = {}
        self._bounds: dict[tuple[LinearPath, bool], list[float]] = {}

    def learn(self, predicate: PathPredicate) -> None:
        """Take the constant of an inequality into account, until there are enough to lay bounds."""
        if predicate.op not in _UP + _DOWN or predicate.number is None:
            return
        key = predicate.path.path, predicate.op in _UP
        if key in self._bounds:
            return
        seen = self._seen.setdefault(key, [])
        seen.append(predicate.number)
        if len(seen) == _SAMPLE:
            seen.sort()
            self._bounds[key] = sorted({seen[place * _SAMPLE // BUCKETS] for place in range(1, BUCKETS)})
            del self._seen[key]

    def wider(self, predicate: PathPredicate) -> PathPredicate | None:
        """What holds whenever an inequality does, and is one of few; None if there are no bounds yet."""
        bounds = self._bounds.get((predicate.path.path, predicate.op in _UP))
        number = predicate.number
        if bounds is None or number is None or predicate.op not in _UP + _DOWN:
            return None
        if predicate.op in _UP:
            place = bisect_right(bounds, number)
            bound = bounds[place - 1] if place else -inf
        else:
            place = bisect_left(bounds, number)
            bound = bounds[place] if place < len(bounds) else inf
        return predicate._replace(number=bound)
