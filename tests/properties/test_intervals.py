"""Sets of intervals against membership: each operation, on every kind of line, at points on and around the cuts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from itertools import product
from math import inf, nextafter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.language import intervals
from harken.language.intervals import EMPTY, FULL, LINES, Intervals, Line
from harken.language.normal_form import (
    Constraint,
    Presence,
    ValueSet,
    excludes,
    implies,
    intersection,
    intersection_of,
    union_of,
)
from harken.schema.values import COMPARISONS, Kind
from properties.replay import many_examples
from properties.scalars import INT64_MAX, INT64_MIN

Test = Callable[[Any], bool]
_BIG = 2**53
_NEW_YEAR = date(2024, 1, 1)
_MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_STRINGS = [
    *("", "\0", "a", "a\0", "ab", "a\U0010ffff", "b", "é", "\ud7ff", "\ue000", "\uffff", "😀"),
    *("\U0010ffff", "\U0010ffffa"),
]


@dataclass(frozen=True)
class Sample:
    """A line, the constants that sets are made with, and points of the line that tell any two such sets apart."""

    line: Line
    constants: list[Any]
    points: list[Any]
    countable: bool = True


SAMPLES = {
    "numbers": Sample(
        LINES[Kind.NUMBER],
        [0, -0.0, 1, 1.5, _BIG, _BIG + 1, float(_BIG), float(_BIG + 2), INT64_MAX, INT64_MIN, 2.0**63, 1e308],
        [
            *(-inf, -1e308, INT64_MIN, -1, -0.0, 0, 5e-324, 1, 1.0, nextafter(1.5, 0), 1.5, 2, _BIG - 1, _BIG),
            *(float(_BIG), _BIG + 1, _BIG + 2, float(_BIG + 2), INT64_MAX - 1, INT64_MAX, 2.0**63, 1e308, inf),
        ],
        countable=False,
    ),
    "strings": Sample(LINES[Kind.STRING], _STRINGS, [*_STRINGS, "\0\0", "aa", "a\U0010ffffz", "zz"], countable=False),
    "booleans": Sample(LINES[Kind.BOOLEAN], [False, True], [False, True]),
    "dates": Sample(
        LINES[Kind.DATE],
        [date.min, *(_NEW_YEAR + timedelta(days) for days in (0, 1, 3)), date.max],
        [
            *(date.min, date.min + timedelta(1)),
            *(_NEW_YEAR + timedelta(days) for days in range(-1, 5)),
            *(date.max - timedelta(1), date.max),
        ],
    ),
    "timestamps": Sample(
        LINES[Kind.TIMESTAMP],
        [_FIRST, *(_MIDNIGHT + count * _TICK for count in (0, 1, 3)), _LAST],
        [_FIRST, _FIRST + _TICK, *(_MIDNIGHT + count * _TICK for count in range(-1, 5)), _LAST - _TICK, _LAST],
    ),
    "small integers": Sample(
        intervals.integers(-2, 3), [-1e308, -3, -2, -1.5, 0, 0.0, 0.5, 1, 2, 3, 3.5, 4, 2.0**63], list(range(-2, 4))
    ),
    "one integer": Sample(intervals.integers(7, 7), [6, 6.5, 7, 7.0, 7.5, 8], [7]),
    "large integers": Sample(
        intervals.integers(_BIG - 1, INT64_MAX),
        [_BIG - 1, float(_BIG), _BIG + 1, _BIG + 1.0, INT64_MAX, 2.0**63, INT64_MAX - 1],
        [_BIG - 1, _BIG, _BIG + 1, _BIG + 2, _BIG + 3, INT64_MAX - 2, INT64_MAX - 1, INT64_MAX],
    ),
}
anywhere = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
countable = {name: sample for name, sample in SAMPLES.items() if sample.countable}


def some_set(rng: Random, sample: Sample, depth: int = 3) -> tuple[Intervals, Test]:
    """A set made by some operations, and the same set as a test of values."""
    roll = rng.randrange(8) if depth else rng.randrange(4)
    if roll < 2:
        operator, value = rng.choice(tuple(COMPARISONS)), rng.choice(sample.constants)
        return intervals.COMPARISONS[operator](value), lambda x: COMPARISONS[operator](x, value)
    if roll == 2:
        values = [rng.choice(sample.constants) for _ in range(rng.randrange(4))]
        return intervals.points(values), lambda x: x in values
    if roll == 3:
        low, high = rng.choice(sample.constants), rng.choice(sample.constants)
        return intervals.between(low, high), lambda x: low <= x <= high
    left, in_left = some_set(rng, sample, depth - 1)
    if roll == 4:
        return left.complement(), lambda x: not in_left(x)
    right, in_right = some_set(rng, sample, depth - 1)
    if roll < 7:
        return left.intersection(right), lambda x: in_left(x) and in_right(x)
    return left.union(right), lambda x: in_left(x) or in_right(x)


@anywhere
@many_examples
@given(rng=st.randoms(use_true_random=False))
def test_operations_agree_with_membership(sample, rng):
    made, test = some_set(rng, sample)
    expected = [test(point) for point in sample.points]
    assert [point in made for point in sample.points] == expected
    assert [point in sample.line.canonical(made) for point in sample.points] == expected
    assert list(made.cuts) == sorted(set(made.cuts))  # in order, and none twice


@anywhere
@many_examples
@given(rng=st.randoms(use_true_random=False))
def test_many_sets_at_once_are_what_one_after_the_other_makes_of_them(sample, rng):
    sets = [some_set(rng, sample, 2)[0] for _ in range(rng.randrange(1, 9))]
    assert intervals.common(sets) == reduce(Intervals.intersection, sets)
    turned = [each.complement() for each in sets]
    assert intervals.united(sets) == reduce(Intervals.intersection, turned).complement()
    for left, right in product(sets, repeat=2):
        assert left.overlaps(right) is not left.intersection(right).empty


@anywhere
@many_examples
@given(rng=st.randoms(use_true_random=False))
def test_constraints_at_once_are_what_one_after_the_other_makes_of_them(sample, rng):
    kinds = (Kind.BOOLEAN, Kind.NUMBER, Kind.STRING)

    def constraint() -> Constraint:
        if rng.randrange(6) == 0:
            return rng.choice((Presence.PRESENT, Presence.ABSENT))
        sets = [(kind, some_set(rng, sample, 1)[0]) for kind in kinds if rng.randrange(2)]
        full = [(kind, each) for kind, each in sets if not each.empty]
        return ValueSet(tuple(full)) if full else Presence.PRESENT

    several = [constraint() for _ in range(rng.randrange(1, 7))]
    folded: Constraint | None = several[0]
    for each in several[1:]:
        folded = None if folded is None else intersection(folded, each)
    assert intersection_of(several) == folded
    values = [each for each in several if each is not Presence.ABSENT]
    if values:
        assert union_of(values) == reduce(lambda left, right: union_of([left, right]), values)
    for left, right in product(several, repeat=2):
        both = intersection(left, right)
        assert excludes(left, right) is (both is None)
        assert implies(left, right) is (both == left)


@anywhere
@many_examples
@given(rng=st.randoms(use_true_random=False))
def test_laws(sample, rng):
    a, b, c = (some_set(rng, sample, 2)[0] for _ in range(3))
    assert a.complement().complement() == a
    assert a.union(b) == b.union(a)
    assert a.intersection(b) == b.intersection(a)
    assert a.union(b).complement() == a.complement().intersection(b.complement())
    assert a.intersection(b.union(c)) == a.intersection(b).union(a.intersection(c))
    assert a.union(b).union(c) == a.union(b.union(c))
    assert a.union(a) == a.intersection(a) == a
    assert a.union(a.complement()) == FULL
    assert a.intersection(a.complement()) == EMPTY
    assert a.union(EMPTY) == a.intersection(FULL) == a


@anywhere
@many_examples
@given(rng=st.randoms(use_true_random=False))
def test_operations_keep_the_canonical_form(sample, rng):
    """Normalisation makes sets canonical once, and only then unites and intersects them."""
    canonical = sample.line.canonical
    a, b = some_set(rng, sample, 2)[0], some_set(rng, sample, 2)[0]
    assert canonical(canonical(a)) == canonical(a)
    assert canonical(a).union(canonical(b)) == canonical(a.union(b))
    assert canonical(a).intersection(canonical(b)) == canonical(a.intersection(b))
    assert canonical(a).complement() == canonical(a.complement())


@pytest.mark.parametrize("sample", countable.values(), ids=countable)
@many_examples
@given(rng=st.randoms(use_true_random=False))
def test_on_a_countable_line_equal_sets_have_equal_cuts(sample, rng):
    a, b = some_set(rng, sample), some_set(rng, sample, 1)
    members = [[point for point in sample.points if test(point)] for _, test in (a, b)]
    mine, theirs = sample.line.canonical(a[0]), sample.line.canonical(b[0])
    assert (mine == theirs) is (members[0] == members[1])
    assert mine.empty is (not members[0])
    assert mine.full is (members[0] == sample.points)


@given(
    st.text(alphabet=[*"ab%", "\ud7ff", "\ue000", "😀", "\U0010ffff"], max_size=3), st.sampled_from(_STRINGS), st.text()
)
def test_prefixed_is_the_interval_of_a_prefix(prefix, more, text):
    made = LINES[Kind.STRING].canonical(intervals.prefixed(prefix))
    assert prefix + more in made
    for value in (text, more, prefix[:-1], prefix[:-1] + more):
        assert (value in made) is value.startswith(prefix)


@given(st.lists(st.integers(0, 9)), st.integers(0, 9))
def test_codes_are_canonical_points(wanted, code):
    line = intervals.integers(0, 9)
    made = intervals.codes([(each, each) for each in sorted(set(wanted))], line)
    assert (code in made) is (code in wanted)
    assert made == line.canonical(made)
    assert made.full is (set(wanted) == set(range(10)))
