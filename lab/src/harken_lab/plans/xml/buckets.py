"""Buckets for inequalities (section 4.2): `> x` becomes `> b`, which many share, and `> x` is tested last.

Query_Bucket has, for each linear path and direction, the bounds of its buckets or, until there are enough constants to
choose them, the constants. A change reads those of its own linear paths.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.tables import create_table, delete_keys, insert_rows, rows_of_keys
from harken_lab.plans.xml.chains import StoredPredicate

TABLE = "query_bucket"
BUCKETS = 20
"""Buckets for each linear path and direction: about the number that the paper suggests from experience."""
_SAMPLE = 200
"""Number of constants from which the bounds are chosen. Until there are as many, there are no buckets."""
_UP, _DOWN = (">", ">="), ("<", "<=")
_COLUMNS = {
    "linearpath_id": Storage.WHOLE,
    "is_up": Storage.WHOLE,
    "is_bound": Storage.WHOLE,
    "number": Storage.NUMBER,
}
_READ = f"""SELECT b.linearpath_id, b.is_up, b.is_bound, b.number
FROM given CROSS JOIN {TABLE} b WHERE b.linearpath_id = given.key"""


def create_buckets(database: Connection) -> None:
    """Create the table."""
    create_table(database, TABLE, _COLUMNS, path="linearpath_id")


class Buckets:
    """The bounds of the buckets of some linear paths, chosen once for each linear path and direction."""

    def __init__(self) -> None:
        self._samples: dict[tuple[int, bool], list[float]] = {}
        self._bounds: dict[tuple[int, bool], list[float]] = {}

    @classmethod
    def of(cls, database: Connection, predicates: Iterable[StoredPredicate]) -> Buckets:
        """The buckets of the linear paths of a change, with its inequalities learnt and stored."""
        inequalities = [each for each in predicates if _is_inequality(each)]
        paths = {each.path for each in inequalities}
        buckets = cls()
        for path, is_up, is_bound, number in rows_of_keys(database, _READ, paths):
            side = buckets._bounds if is_bound else buckets._samples
            side.setdefault((path, bool(is_up)), []).append(number)
        for bounds in buckets._bounds.values():
            bounds.sort()
        for each in inequalities:
            buckets.learn(each)
        buckets._store(database, paths)
        return buckets

    def learn(self, predicate: StoredPredicate) -> None:
        """Add the constant of an inequality to the sample, until it is large enough to choose bounds."""
        key = predicate.path, predicate.op in _UP
        if key in self._bounds or predicate.number is None:
            return
        sample = self._samples.setdefault(key, [])
        sample.append(predicate.number)
        if len(sample) == _SAMPLE:
            sample.sort()
            self._bounds[key] = sorted({sample[place * _SAMPLE // BUCKETS] for place in range(1, BUCKETS)})
            del self._samples[key]

    def _store(self, database: Connection, paths: Iterable[int]) -> None:
        delete_keys(database, TABLE, "linearpath_id", paths)
        for is_bound, side in enumerate((self._samples, self._bounds)):
            rows = [(path, int(is_up), is_bound, each) for (path, is_up), numbers in side.items() for each in numbers]
            insert_rows(database, TABLE, _COLUMNS, rows)

    def wider(self, predicate: StoredPredicate) -> StoredPredicate | None:
        """For an inequality, that of its bucket, which holds whenever the inequality does; None without bounds."""
        if not _is_inequality(predicate):
            return None
        bounds = self._bounds.get((predicate.path, predicate.op in _UP))
        number = predicate.number
        if bounds is None or number is None:
            return None
        if predicate.op in _UP:
            place = bisect_right(bounds, number)
            bound = bounds[place - 1] if place else -inf
        else:
            place = bisect_left(bounds, number)
            bound = bounds[place] if place < len(bounds) else inf
        return predicate._replace(number=bound)


def _is_inequality(predicate: StoredPredicate) -> bool:
    return predicate.op in _UP + _DOWN and predicate.number is not None
