"""Sets of values of one kind, as intervals, with exact arithmetic.

A set is a sorted row of cuts through the line of values. A cut is (value, 0) just before the value or (value, 1) just
after it, and each one switches from outside the set to inside or back; `inside` says where the row begins, at the far
left. So `x < 5` is inside up to (5, 0), `x <> 5` is inside but for what lies between (5, 0) and (5, 1), the complement
only flips `inside`, and union and intersection are one sweep.

On a line whose values can be counted (dates, integers, codes) a cut after a value is the cut before the next one, and
cuts at the ends of the line are left out. Then equal sets have equal cuts, `x > 3 AND x < 4` is empty for integers, and
a set of the whole line has no cuts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import ceil, floor
from typing import Any, NamedTuple

from harken.schema.values import Kind, Value

Cut = tuple[Any, int]


class Intervals(NamedTuple):
    """A set of values of one kind."""

    inside: bool
    cuts: tuple[Cut, ...]

    def __contains__(self, value: object) -> bool:
        cuts = self.cuts
        if len(cuts) == 1:
            return (cuts[0] <= (value, 0)) is not self.inside
        return (bisect_right(cuts, (value, 0)) % 2 == 1) is not self.inside

    @property
    def empty(self) -> bool:
        return not self.inside and not self.cuts

    @property
    def full(self) -> bool:
        return self.inside and not self.cuts

    def complement(self) -> Intervals:
        return Intervals(not self.inside, self.cuts)

    def union(self, other: Intervals) -> Intervals:
        return united((self, other))

    def intersection(self, other: Intervals) -> Intervals:
        """One sweep over the cuts of both, keeping those at which being inside both changes."""
        cuts, other_cuts = self.cuts, other.cuts
        in_self, in_other = self.inside, other.inside
        inside = now = in_self and in_other
        kept: list[Cut] = []
        i = j = 0
        while i < len(cuts) or j < len(other_cuts):
            cut = cuts[i] if j == len(other_cuts) or (i < len(cuts) and cuts[i] <= other_cuts[j]) else other_cuts[j]
            if i < len(cuts) and cuts[i] == cut:
                in_self, i = not in_self, i + 1
            if j < len(other_cuts) and other_cuts[j] == cut:
                in_other, j = not in_other, j + 1
            if (in_self and in_other) is not now:
                now = not now
                kept.append(cut)
        return Intervals(inside, tuple(kept))

    def overlaps(self, other: Intervals) -> bool:
        """Whether some value is in both. Takes a step for each cut of the set with fewer cuts."""
        few, many = (self, other) if len(self.cuts) <= len(other.cuts) else (other, self)
        inside, begin = few.inside, 0
        for cut in few.cuts:
            place = bisect_left(many.cuts, cut, begin)
            # Up to this cut, `many` is inside if it was so behind the cut before, or becomes it on the way.
            if inside and (place > begin or many.inside is (begin % 2 == 0)):
                return True
            begin = place + (place < len(many.cuts) and many.cuts[place] == cut)
            inside = not inside
        return inside and (len(many.cuts) > begin or many.inside is (begin % 2 == 0))


EMPTY = Intervals(False, ())
FULL = Intervals(True, ())


def united(sets: Sequence[Intervals]) -> Intervals:
    """The values that are in one of the sets or more."""
    return _where(sets, 1)


def common(sets: Sequence[Intervals]) -> Intervals:
    """The values that are in all of the sets."""
    return _where(sets, len(sets))


def _where(sets: Sequence[Intervals], least: int) -> Intervals:
    """The values that are in at least this many of the sets: one sweep over the cuts of all, sorted once."""
    changes: dict[Cut, int] = {}
    for each in sets:
        change = -1 if each.inside else 1
        for cut in each.cuts:
            changes[cut] = changes.get(cut, 0) + change
            change = -change
    count = sum(each.inside for each in sets)
    inside = now = count >= least
    kept: list[Cut] = []
    for cut in sorted(changes):
        count += changes[cut]
        if (count >= least) is not now:
            now = not now
            kept.append(cut)
    return Intervals(inside, tuple(kept))


# The values x of which `x operator value` is true, for each operator.
COMPARISONS: dict[str, Callable[[Value], Intervals]] = {
    "=": lambda value: Intervals(False, ((value, 0), (value, 1))),
    "<>": lambda value: Intervals(True, ((value, 0), (value, 1))),
    "<": lambda value: Intervals(True, ((value, 0),)),
    "<=": lambda value: Intervals(True, ((value, 1),)),
    ">": lambda value: Intervals(False, ((value, 1),)),
    ">=": lambda value: Intervals(False, ((value, 0),)),
}


def between(low: Value, high: Value) -> Intervals:
    """The values from low to high, both included."""
    return Intervals(False, ((low, 0), (high, 1))) if low <= high else EMPTY  # type: ignore[operator]


def points(values: Iterable[Value]) -> Intervals:
    """The set of these values."""
    ordered: list[Any] = sorted(set(values))
    return Intervals(False, tuple((value, side) for value in ordered for side in (0, 1)))


def prefixed(prefix: str) -> Intervals:
    """The strings that start with the prefix: from it up to the next string that does not."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return Intervals(False, ((prefix, 0),)) if prefix else FULL
    following = ord(stem[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:  # surrogates are no characters
        following = 0xE000
    return Intervals(False, ((prefix, 0), (stem[:-1] + chr(following), 0)))


@dataclass(frozen=True, slots=True)
class Line:
    """The values that a set is drawn from: its ends, and the step to the next value where they can be counted."""

    least: Any = None
    greatest: Any = None
    step: Callable[[Any], Any] | None = None
    whole: bool = False
    """The values are integers, so that a cut at 2.5 is one before 3."""

    def canonical(self, intervals: Intervals) -> Intervals:
        cuts = intervals.cuts
        if self.step is None and (not cuts or self.least is None or cuts[0] > (self.least, 0)):
            return intervals  # on a line without steps only its end moves a cut
        inside = intervals.inside
        kept: list[Cut] = []
        for cut in cuts:
            moved = self._moved(cut)
            if moved is None:
                break
            if self.least is not None and moved <= (self.least, 0):
                inside = not inside
            elif kept and kept[-1] == moved:
                kept.pop()
            else:
                kept.append(moved)
        return Intervals(inside, tuple(kept))

    def is_point(self, intervals: Intervals) -> bool:
        """Whether a set in canonical form has just one value."""
        if intervals.inside:
            return self.least is not None and self.canonical(points([self.least])) == intervals
        return bool(intervals.cuts) and self.canonical(points([intervals.cuts[0][0]])) == intervals

    def _moved(self, cut: Cut) -> Cut | None:
        """The cut as one before a value of the line, or None where no value follows it."""
        value, side = cut
        if self.step is None:
            return cut
        if self.whole:
            value, side = (floor(value), 1) if side else (ceil(value), 0)
        if value > self.greatest or (side and value == self.greatest):
            return None
        if value < self.least:
            return self.least, 0
        return (self.step(value), 0) if side else (value, 0)


def integers(low: int, high: int) -> Line:
    """The integers from low to high."""
    return Line(low, high, lambda value: value + 1, whole=True)


LINES: dict[Kind, Line] = {
    Kind.NUMBER: Line(),
    Kind.STRING: Line(least=""),
    Kind.BOOLEAN: Line(False, True, lambda value: True),
    Kind.DATE: Line(date.min, date.max, lambda value: value + timedelta(days=1)),
    Kind.TIMESTAMP: Line(
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        lambda value: value + timedelta(microseconds=1),
    ),
}


def codes(runs: Iterable[tuple[int, int]], line: Line) -> Intervals:
    """The set of these (first, last) runs of codes, in order, on a line of codes."""
    return line.canonical(Intervals(False, tuple(cut for first, last in runs for cut in ((first, 0), (last + 1, 0)))))
