"""Candidates to matches: what is settled passes, what is in doubt is verified, each number comes once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harken.errors import LimitError
from harken.events import Event, EventBatch
from harken.language import normalise
from harken.language.normal_form import NormalForm
from harken.language.sql import parse
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import MatchResult
from harken.matchers.candidates import Candidates, join, settle


def batch(*events: dict[str, Any]) -> EventBatch:
    return EventBatch.of(tuple(map(Event.of, events)), tuple(range(len(events))))


def candidates(*pairs: list[int], doubtful: list[int] | None = None) -> Candidates:
    """From the numbers of each event; those in `doubtful`, places among all pairs, have to be verified."""
    offsets = np.cumsum([0, *map(len, pairs)]).astype(np.int64)
    marks = None if doubtful is None else np.isin(np.arange(offsets[-1]), doubtful)
    return Candidates(offsets, np.array([number for numbers in pairs for number in numbers], np.int32), marks)


def settled(found: Candidates, *texts: str, limits: Limits = DEFAULT_LIMITS, repeats: bool = True) -> MatchResult:
    forms = [normalise(parse(text)) for text in texts]
    events = batch(*({"x": index} for index in range(len(found.offsets) - 1)))
    return settle(found, events, lambda number: forms[number], limits, repeats=repeats)


def unasked(number: int) -> NormalForm:
    raise AssertionError("there is no doubt")


def test_what_is_settled_passes_as_it_is() -> None:
    given = candidates([3, 1], [], [2])
    found = settle(given, batch({}, {}, {}), unasked, DEFAULT_LIMITS, repeats=False)
    assert found.numbers is given.numbers
    assert found.offsets is given.offsets
    assert found.candidates.tolist() == [2, 0, 1]


def test_what_is_in_doubt_is_verified() -> None:
    found = settled(candidates([0, 1], [0, 1], [1], doubtful=[0, 2, 4]), "x = 1", "x < 1")
    assert list(found.by_event()) == [[1], [0, 1], []]
    assert found.candidates.tolist() == [2, 2, 1]


def test_each_number_comes_once() -> None:
    found = settled(candidates([4, 2, 4, 4], [4, 2]), repeats=True)
    assert list(found.by_event()) == [[2, 4], [2, 4]]
    assert found.candidates.tolist() == [2, 2]


def test_what_is_settled_once_is_not_in_doubt() -> None:
    given = candidates([0, 0], [0, 0], doubtful=[0, 3])
    found = settle(given, batch({}, {}), unasked, DEFAULT_LIMITS)
    assert list(found.by_event()) == [[0], [0]]


def test_one_that_fails_is_told_and_is_no_match() -> None:
    events = batch({"x": 1}, {name: list(range(10)) for name in "abcd"})
    form = normalise(parse("a < b AND b < c AND c < d AND d < a OR x = 1"))
    given = candidates([5], [5], doubtful=[0, 1])
    found = settle(given, events, {5: form}.__getitem__, Limits(max_bindings=50))
    assert list(found.by_event()) == [[5], []]
    ((index, number, error),) = found.errors
    assert (index, number) == (1, 5)
    assert isinstance(error, LimitError)


def test_no_events() -> None:
    found = settle(candidates(), batch(), unasked, DEFAULT_LIMITS)
    assert (list(found.by_event()), found.candidates.tolist()) == ([], [])


@pytest.mark.parametrize("doubtful", [None, [0]])
def test_join(doubtful: list[int] | None) -> None:
    first, second = candidates([1, 2], [], [3]), candidates([4], [5], [], doubtful=doubtful)
    found = join([first, second])
    assert found.offsets.tolist() == [0, 3, 4, 5]
    assert found.numbers.tolist() == [1, 2, 4, 5, 3]
    assert found.events().tolist() == [0, 0, 0, 1, 2]
    assert (found.doubtful is None) is (doubtful is None)
    if found.doubtful is not None:
        assert found.doubtful.tolist() == [False, False, True, False, False]
    assert join([first]) is first
