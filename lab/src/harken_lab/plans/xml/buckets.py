"""Buckets for inequalities (section 4.2): `> x` becomes `> b`, which many share, and `> x` is tested last."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf

from harken.language.xpath.linear import LinearPath
from harken_lab.plans.xml.path_predicates import PathPredicate

BUCKETS = 20
"""Buckets for each linear path and direction: about the number that the paper suggests from experience."""
_SAMPLE = 200
"""Number of constants from which the bounds are chosen. Until there are as many, there are no buckets."""
_UP, _DOWN = (">", ">="), ("<", "<=")


class Buckets:
    """The bounds of buckets, chosen once for each linear path and direction."""

    def __init__(self) -> None:
        self._samples: dict[tuple[LinearPath, bool], list[float]] = {}
        self._bounds: dict[tuple[LinearPath, bool], list[float]] = {}

    def learn(self, predicate: PathPredicate) -> None:
        """Add the constant of an inequality to the sample, until it is large enough to choose bounds."""
        if predicate.op not in _UP + _DOWN or predicate.number is None:
            return
        key = predicate.path.path, predicate.op in _UP
        if key in self._bounds:
            return
        sample = self._samples.setdefault(key, [])
        sample.append(predicate.number)
        if len(sample) == _SAMPLE:
            sample.sort()
            self._bounds[key] = sorted({sample[place * _SAMPLE // BUCKETS] for place in range(1, BUCKETS)})
            del self._samples[key]

    def wider(self, predicate: PathPredicate) -> PathPredicate | None:
        """For an inequality, that of its bucket, which holds whenever the inequality does; None without bounds."""
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
