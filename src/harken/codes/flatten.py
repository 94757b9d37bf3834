"""Normal forms as rows: each asks for one interval in each of its columns, as columns.py describes.

A constraint of several intervals, or of several kinds, becomes several rows, of which a single value meets at most one.
If that makes too many rows, an attribute gets the hull of its intervals. A predicate that no interval can say
(patterns, CONTAINS, attribute against attribute) gets the constraints that it implies. Such rows are inexact: they
match more.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.language.intervals import Cut, Intervals, Line
from harken.language.normal_form import Conjunction, Constraint, NormalForm, Presence, ValueSet, line_of
from harken.schema import CodedDomain, Kind
from harken.schema.paths import Path

MOST_COMBINATIONS = 16
"""Most rows of a conjunction for each interval of the attribute that has most intervals."""
MOST_ROWS = 32_768
"""Most rows of a subscription."""

_INTEGERS = 5
"""Integers per predicate in `_Gathered.cuts`."""
_NUMBER, _STRING = Kind.NUMBER, Kind.STRING
"""Global names, because looking up a member of an enumeration takes long."""
_STEPS: dict[type, timedelta] = {date: timedelta(days=1), datetime: timedelta(microseconds=1)}


class _Between(NamedTuple):
    """A predicate: the place of its column, and the cuts between which its values are; None is an end of the line."""

    column: int
    low: Cut | None
    high: Cut | None


def flatten(
    entries: Iterable[tuple[int, NormalForm]],
) -> tuple[NDArray[np.int32], list[ColumnPredicates], NDArray[np.bool_], NDArray[np.bool_]]:
    """The subscription of each row, the predicates column by column, which rows are inexact, and which are of
    subscriptions of which several rows may be true of one event.
    """
    numbers: list[int] = []
    inexact: list[int] = []
    overlapping: list[int] = []
    flattener = Flattener()
    for number, form in entries:
        if flattener.took_plain(form, len(numbers)):
            numbers.append(number)
            continue
        for row, is_exact in flattener.rows(form):
            for column, low, high in row:
                flattener.gathered[column].add(len(numbers), low, high)
            if not is_exact:
                inexact.append(len(numbers))
            if len(form.conjunctions) > 1:
                overlapping.append(len(numbers))
            numbers.append(number)
    columns = [each.predicates() for each in flattener.gathered if each.cuts]
    return np.array(numbers, np.int32), columns, _marked(inexact, len(numbers)), _marked(overlapping, len(numbers))


def plain_predicates(form: NormalForm) -> list[tuple[Path, Kind, Cut | None, Cut | None]] | None:
    """The predicates of a subscription that is one exact row of numbers and strings, with their cuts; else None."""
    conjunction = form.conjunctions[0]
    if len(form.conjunctions) != 1 or conjunction.residuals:
        return None
    predicates: list[tuple[Path, Kind, Cut | None, Cut | None]] = []
    for path, constraint in conjunction.constraints:
        if type(constraint) is not ValueSet or constraint.domain is not None or constraint.integers is not None:
            return None
        kind, admitted = constraint.parts[0]
        if len(constraint.parts) > 1 or len(admitted.cuts) > 2 or (kind is not _NUMBER and kind is not _STRING):
            return None
        ((low, high),) = _pieces(admitted)
        predicates.append((path, kind, low, high))
    return predicates


def _marked(rows: list[int], count: int) -> NDArray[np.bool_]:
    marks = np.zeros(count, np.bool_)
    marks[rows] = True
    return marks


class _Gathered:
    """The predicates of one column, in the order in which they are added."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.constants: dict[Any, int] = {}
        """The place of each constant."""
        self.cuts: list[int] = []
        """Of each predicate: its row, the place of its low cut's constant, the side, and the same of its high cut."""

    def add(self, row: int, low: Cut | None, high: Cut | None) -> None:
        self.cuts += (row, *self._placed(low), *self._placed(high))

    def take_back(self, row: int) -> None:
        """Drop the last predicate, if it is of this row."""
        if self.cuts[-_INTEGERS:][:1] == [row]:
            del self.cuts[-_INTEGERS:]

    def predicates(self) -> ColumnPredicates:
        cuts = np.array(self.cuts, np.int32).reshape(-1, _INTEGERS)
        rows, low, high = (cuts[:, each].copy() for each in (0, 1, 3))
        low_side, high_side = (cuts[:, each].astype(np.uint8) for each in (2, 4))
        return ColumnPredicates(self.column, list(self.constants), rows, low, low_side, high, high_side)

    def _placed(self, cut: Cut | None) -> tuple[int, int]:
        return (-1, 0) if cut is None else (self.constants.setdefault(cut[0], len(self.constants)), cut[1])


class Flattener:
    """Makes rows of normal forms, and collects their columns."""

    def __init__(self) -> None:
        self.gathered: list[_Gathered] = []
        self._places: dict[Column, int] = {}
        # Columns of numbers and strings without a domain: between two values there is always another.
        self._numbers: dict[Path, _Gathered] = {}
        self._strings: dict[Path, _Gathered] = {}
        # A coded domain may be long: its column is looked up by the domain's identity.
        self._quick: dict[tuple[Path, Kind | None, int], tuple[int, CodedDomain | None]] = {}

    def use_columns(self, columns: Iterable[Column]) -> None:
        """Begin with these columns, in their order."""
        for column in columns:
            self._places[column] = len(self.gathered)
            self.gathered.append(_Gathered(column))

    def took_plain(self, form: NormalForm, row: int) -> bool:
        """Add a subscription if it is one exact row of numbers and strings, as most are. Returns whether it is.

        This is the quick way. Cache misses take most of its time, so each object is read once.
        """
        conjunction = form.conjunctions[0]
        if len(form.conjunctions) != 1 or conjunction.residuals:
            return False
        numbers, strings = self._numbers, self._strings
        for path, constraint in conjunction.constraints:
            if type(constraint) is not ValueSet or constraint.domain is not None or constraint.integers is not None:
                break
            parts = constraint.parts
            kind, (inside, cuts) = parts[0]
            if len(parts) > 1 or not 1 <= len(cuts) <= 2 or (kind is not _NUMBER and kind is not _STRING):
                break
            # One dictionary a kind: hashing a member of an enumeration runs Python code.
            columns = numbers if kind is _NUMBER else strings
            try:
                gathered = columns[path]
            except KeyError:
                gathered = columns[path] = self.gathered[self._place(path, kind)]
            constants = gathered.constants
            value, side = cuts[0]
            place = constants.setdefault(value, len(constants))
            if len(cuts) == 1:
                gathered.cuts += (row, -1, 0, place, side) if inside else (row, place, side, -1, 0)
                continue
            other, other_side = cuts[1]
            other_place = place if other is value else constants.setdefault(other, len(constants))
            if inside:  # all but what is between the two: the low cut lies behind the high one
                gathered.cuts += (row, other_place, other_side, place, side)
            else:
                gathered.cuts += (row, place, side, other_place, other_side)
        else:
            return True
        for before, _ in conjunction.constraints:
            if before is path:
                break
            for columns in (numbers, strings):
                if before in columns:
                    columns[before].take_back(row)
        return False

    def rows(self, form: NormalForm) -> Iterable[tuple[tuple[_Between, ...], bool]]:
        """The different rows of a subscription, and whether each is exact."""
        if len(form.conjunctions) == 1:
            alternatives, is_exact = self._alternatives(form.conjunctions[0], MOST_ROWS)
            return [(row, is_exact) for row in product(*alternatives)]
        rows: dict[tuple[_Between, ...], bool] = {}
        for place, conjunction in enumerate(form.conjunctions):
            share = (MOST_ROWS - len(rows)) // (len(form.conjunctions) - place)
            alternatives, is_exact = self._alternatives(conjunction, share)
            for row in product(*alternatives):
                rows[row] = rows.get(row, False) or is_exact
        return rows.items()

    def _alternatives(self, conjunction: Conjunction, most_rows: int) -> tuple[list[list[_Between]], bool]:
        """For every attribute the predicates, one of which has to hold; and whether they say all of the conjunction."""
        alternatives: dict[Path, list[_Between]] = {}
        for path, constraint in conjunction.constraints:
            alternatives[path] = self.predicates(path, constraint)
        is_exact = not conjunction.residuals
        for residual in conjunction.residuals:
            for path, constraint in residual.implied():
                if path not in alternatives:
                    alternatives[path] = self.predicates(path, constraint)
        if any(len(several) > 1 for several in alternatives.values()):
            is_exact = self._limited(alternatives, most_rows) and is_exact
        # In one order, so that equal rows compare equal.
        return [alternatives[path] for path in sorted(alternatives)], is_exact

    def _limited(self, alternatives: dict[Path, list[_Between]], most_rows: int) -> bool:
        """Replace alternatives by their hull where there would be too many rows. Returns False if any was replaced."""
        *others, widest = sorted(alternatives, key=lambda path: len(alternatives[path]))
        is_exact = True
        combinations = 1
        for path in others:
            more = combinations * len(alternatives[path])
            if more > MOST_COMBINATIONS or (more > combinations and more * len(alternatives[widest]) > most_rows):
                alternatives[path] = [self._hull(path, alternatives[path])]
                is_exact = False
            else:
                combinations = more
        if combinations * len(alternatives[widest]) > max(most_rows, combinations):
            alternatives[widest] = [self._hull(widest, alternatives[widest])]
            is_exact = False
        return is_exact

    def predicates(self, path: Path, constraint: Constraint) -> list[_Between]:
        """A constraint as predicates: one for each interval of each kind."""
        if isinstance(constraint, Presence):
            return [self._presence(path, constraint)]
        domain = constraint.domain
        predicates: list[_Between] = []
        for kind, admitted in constraint.parts:
            column = self._place(path, kind, domain)
            pieces = _pieces(admitted)
            line = line_of(kind, domain or constraint.integers)
            if line.step is not None:
                pieces = [_counted(low, high, line) for low, high in pieces]
            predicates += [_Between(column, low, high) for low, high in pieces]
        return predicates

    def _hull(self, path: Path, several: list[_Between]) -> _Between:
        """One predicate that admits all that any of several admits."""
        first, last = several[0], several[-1]
        if first.column != last.column:
            return self._presence(path, Presence.PRESENT)
        return _Between(first.column, first.low, last.high)

    def _presence(self, path: Path, wanted: Presence) -> _Between:
        value = wanted is Presence.PRESENT
        return _Between(self._place(path, None), (value, 0), (value, 1))

    def _place(self, path: Path, kind: Kind | None, domain: CodedDomain | None = None) -> int:
        """The place of a column in `gathered`, where it is added if it is new."""
        quick = self._quick.get((path, kind, id(domain)))
        if quick is not None:
            return quick[0]
        column = Column(path, kind, None if domain is None else domain.values)
        place = self._places.setdefault(column, len(self._places))
        if place == len(self.gathered):
            self.gathered.append(_Gathered(column))
        self._quick[path, kind, id(domain)] = place, domain  # keeps the domain alive, so that its id stays its own
        return place


def _pieces(admitted: Intervals) -> list[tuple[Cut | None, Cut | None]]:
    """The intervals of a set. All but one interval is one piece, whose low cut lies behind the high one."""
    cuts = admitted.cuts
    if admitted.inside and len(cuts) == 2:
        return [(cuts[1], cuts[0])]
    ends: list[Cut | None] = [None, *cuts] if admitted.inside else [*cuts]
    if len(ends) % 2:
        ends.append(None)
    return list(zip(ends[::2], ends[1::2], strict=True))


def _counted(low: Cut | None, high: Cut | None, line: Line) -> tuple[Cut | None, Cut | None]:
    """The same interval on a line whose values can be counted, where cuts stand before values.

    The high cut is moved behind the value before it, and an end that has one value only gets a cut as well: then one
    value is one constant. Of a wrapped interval it is the low cut that ends what is left out.
    """
    if low is not None and high is not None and low > high:
        return _behind(low), high
    if high is not None:
        high = _behind(high)
        if low is None and high[0] == line.least:
            low = (line.least, 0)
    elif low is not None and low[0] == line.greatest:
        high = (line.greatest, 1)
    return low, high


def _behind(cut: Cut) -> Cut:
    """The cut before a value as the one behind the value before that."""
    value = cut[0]
    return (type(value)(value - 1) if isinstance(value, int) else value - _STEPS[type(value)], 1)
