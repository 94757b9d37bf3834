"""Dictionaries that grow: labels stay while constants come and go, in the order of the constants."""

from __future__ import annotations

from bisect import bisect_right
from datetime import date
from random import Random
from typing import Any

import numpy as np
import pytest

from harken.codes.columns import Column
from harken.events import Event, EventBatch
from harken.events.cells import Cells
from harken.schema import Kind
from harken_lab.papers import growing as module
from harken_lab.papers.growing import FIRST_LABEL, LAST_LABEL, GrowingDictionary, MovedLabels


def numbers(widest: int = 0) -> GrowingDictionary:
    return GrowingDictionary(Column(("x",), Kind.NUMBER), widest)


def cells(*values: Any) -> Cells:
    batch = EventBatch.of(tuple(Event.of({"x": value}) for value in values), tuple(range(len(values))))
    (found,) = batch.cells(("x",)).cells
    return found


def labels(dictionary: GrowingDictionary, *values: Any) -> list[int]:
    found: list[int] = dictionary.encode(cells(*values)).tolist()
    return found


def add(dictionary: GrowingDictionary, *constants: Any) -> list[int]:
    """Labels of constants, none of which may make others move."""
    found, moved = dictionary.add(list(constants))
    assert moved is None
    assert labels(dictionary, *constants) == found.tolist()
    return found.tolist()


# Labels


def test_nothing_is_known_at_first() -> None:
    dictionary = numbers()
    assert len(dictionary) == 0
    assert labels(dictionary, 5, -5) == [FIRST_LABEL, FIRST_LABEL]
    assert dictionary.nbytes > 0


def test_constants_have_even_labels_and_gaps_the_next() -> None:
    dictionary = numbers()
    first, second = add(dictionary, 10, 20)
    assert first % 2 == second % 2 == 0
    assert FIRST_LABEL < first < second < LAST_LABEL
    assert labels(dictionary, 9, 10, 10.5, 19, 20, 99) == [1, first, first + 1, first + 1, second, second + 1]


def test_labels_are_given_in_the_order_of_asking() -> None:
    dictionary = numbers()
    found, _ = dictionary.add([30, 10, 20, 10])
    assert found[1] == found[3] < found[2] < found[0]
    assert len(dictionary) == 3


def test_labels_stay_as_others_come() -> None:
    dictionary = numbers()
    before = add(dictionary, 10, 20)
    add(dictionary, 15, 5, 25, 2**60, -(2**60), 12.5)
    assert labels(dictionary, 10, 20) == before
    assert add(dictionary, 10, 20) == before


def test_many_constants_in_one_direction_move_nothing() -> None:
    dictionary = numbers()
    add(dictionary, 0)
    for value in range(1, 2_000):
        add(dictionary, value, -value)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.NUMBER, [0, 1, -1, 0.5, -0.5, 2**53, 2**53 + 1, 2.0**53 + 2, 1e300, -1e300, 2**63 - 1, -(2**63)]),
        (Kind.STRING, ["", "a", "ab", "b", "é", "\uffee", "😀", "z" * 30]),
        (Kind.BOOLEAN, [False, True]),
        (Kind.DATE, [date(1970, 1, 1), date.min, date.max, date(2026, 5, 4)]),
    ],
)
@pytest.mark.parametrize("least_step", [4, 1 << 28])
def test_the_order_of_labels_is_that_of_the_values(
    kind: Kind, values: list[Any], least_step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEAST_STEP", least_step)
    rng = Random(f"{kind}")
    for _ in range(20):
        dictionary = GrowingDictionary(Column(("x",), kind), widest=rng.choice([0, 8]))
        known: set[Any] = set()
        for value in rng.sample(values, rng.randrange(1, len(values) + 1)):
            dictionary.add([value])
            known.add(value)
            assert_ordered(dictionary, sorted(known), values)


def assert_ordered(dictionary: GrowingDictionary, known: list[Any], values: list[Any]) -> None:
    of_known = labels(dictionary, *known)
    assert of_known == sorted(set(of_known))
    assert all(label % 2 == 0 for label in of_known)
    assert set(of_known) <= set(dictionary.labels.tolist())
    for value, label in zip(values, labels(dictionary, *values), strict=True):
        if value in known:
            assert label == of_known[known.index(value)]
        else:
            place = bisect_right(known, value)
            assert label > (of_known[place - 1] if place else 0)
            assert label < (of_known[place] if place < len(known) else LAST_LABEL)


# Moves


def test_where_a_gap_is_full_all_move_and_it_is_told() -> None:
    dictionary = numbers()
    add(dictionary, 0, 1)
    low, high, moves = 0.0, 1.0, 0
    for _ in range(40):
        before = dictionary.labels
        middle = (low + high) / 2
        _, moved = dictionary.add([middle])
        if moved is not None:
            moves += 1
            assert moved.old.tolist() == before.tolist()
            assert moved.new.tolist() == [x for x in dictionary.labels.tolist() if x != labels(dictionary, middle)[0]]
        low, high = (low, middle) if moves % 2 else (middle, high)
    assert 1 <= moves <= 3
    assert np.all(np.diff(dictionary.labels.astype(np.int64)) >= 4)


def test_intervals_move_with_their_constants() -> None:
    old, new = np.array([10, 20, 30], np.uint32), np.array([100, 200, 300], np.uint32)
    moved = MovedLabels(old, new)
    assert moved.low(np.array([FIRST_LABEL, 10, 11, 30, 31], np.uint32)).tolist() == [FIRST_LABEL, 100, 101, 300, 301]
    assert moved.high(np.array([LAST_LABEL, 9, 10, 29, 30], np.uint32)).tolist() == [LAST_LABEL, 99, 100, 299, 300]


def test_a_move_of_nothing() -> None:
    nothing = MovedLabels(np.empty(0, np.uint32), np.empty(0, np.uint32))
    assert nothing.low(np.array([FIRST_LABEL], np.uint32)).tolist() == [FIRST_LABEL]
    assert nothing.high(np.array([LAST_LABEL], np.uint32)).tolist() == [LAST_LABEL]


# Dense labels


def test_integers_lie_dense_up_to_the_widest() -> None:
    dictionary = numbers(widest=100)
    found, _ = dictionary.add([10, 13])
    assert dictionary.is_dense
    assert found.tolist() == [2, 8]
    assert labels(dictionary, 9, 10, 11, 12, 13, 14, 11.5) == [1, 2, 4, 6, 8, 9, 5]
    assert len(dictionary) == 4


def test_dense_labels_grow_by_as_much_again() -> None:
    dictionary = numbers(widest=1_000)
    dictionary.add([0, 9])
    _, moved = dictionary.add([10])
    assert moved is None, "those above do not move those below"
    assert len(dictionary) == 10 + 1 + 11
    _, moved = dictionary.add([-1])
    assert moved is not None
    assert labels(dictionary, *range(10)) == [moved.new[moved.old.tolist().index(2 + 2 * x)] for x in range(10)]


def test_dense_labels_grow_no_wider_than_they_may() -> None:
    dictionary = numbers(widest=100)
    dictionary.add([0])
    for value in range(1, 50):
        dictionary.add([value, -value])
        assert dictionary.is_dense
    assert len(dictionary) <= 100
    dictionary.add([100])
    assert not dictionary.is_dense


@pytest.mark.parametrize("constant", [0.5, 1_000, -(2**63), 1e300])
def test_dense_labels_end_with_what_they_cannot_hold(constant: float) -> None:
    dictionary = numbers(widest=100)
    before, _ = dictionary.add([0, 9])
    (label,), moved = dictionary.add([constant])
    assert not dictionary.is_dense
    now = labels(dictionary, 0, 9)
    assert now == (before.tolist() if moved is None else moved.low(before).tolist())
    assert sorted([(0, now[0]), (9, now[1]), (constant, int(label))]) == sorted(
        zip([0, 9, constant], labels(dictionary, 0, 9, constant), strict=True)
    )
    assert_ordered(dictionary, sorted([0, 9, constant]), [0, 9, constant])


def test_other_kinds_are_never_dense() -> None:
    dictionary = GrowingDictionary(Column(("x",), Kind.DATE), widest=1_000)
    dictionary.add([date(2026, 1, 1), date(2026, 1, 5)])
    assert not dictionary.is_dense
    assert len(dictionary) == 2


# Forgetting


def test_what_is_not_used_is_forgotten_and_the_rest_stays() -> None:
    dictionary = numbers()
    kept, _, last = add(dictionary, 10, 20, 30)
    dictionary.keep(np.array([True, False, True]))
    assert len(dictionary) == 2
    assert labels(dictionary, 10, 20, 30) == [kept, kept + 1, last]
    add(dictionary, 20)
    assert labels(dictionary, 10, 30) == [kept, last]


def test_all_may_be_forgotten() -> None:
    for dictionary in (numbers(), GrowingDictionary(Column(("x",), Kind.STRING))):
        constants = ["a", "b"] if dictionary.column.kind is Kind.STRING else [0.5, 2]
        dictionary.add(constants)
        dictionary.keep(np.zeros(2, np.bool_))
        assert len(dictionary) == 0
        assert labels(dictionary, *constants) == [FIRST_LABEL, FIRST_LABEL]
        dictionary.add(constants)
        assert_ordered(dictionary, constants, constants)


def test_dense_labels_forget_nothing() -> None:
    dictionary = numbers(widest=100)
    dictionary.add([0, 9])
    dictionary.keep(np.zeros(10, np.bool_))
    assert len(dictionary) == 10


def test_what_was_dense_may_be_so_again() -> None:
    dictionary = numbers(widest=100)
    dictionary.add([0, 9])
    dictionary.add([0.5])
    dictionary.keep(np.isin(dictionary.labels, labels(dictionary, 0, 9)))
    _, moved = dictionary.add([4])
    assert dictionary.is_dense
    assert moved is not None
    assert labels(dictionary, *range(10)) == list(range(2, 22, 2))
