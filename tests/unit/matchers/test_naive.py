"""The matcher that filters nothing: it examines all, and one that fails leaves the others."""

from __future__ import annotations

from typing import Any

import pytest

from harken.errors import InvalidValueError, LimitError
from harken.events import Event, EventBatch
from harken.language import Compiler
from harken.limits import Limits
from harken.matchers import Entry
from harken.matchers.naive import Naive
from harken.schema import parse_schema


def batch(*events: dict[str, Any]) -> EventBatch:
    return EventBatch.of(tuple(map(Event.of, events)), tuple(range(len(events))))


def entries(*texts: str) -> list[Entry]:
    return [Entry(number, Compiler().compile(text)) for number, text in enumerate(texts)]


@pytest.fixture
def matcher() -> Naive:
    matcher = Naive()
    matcher.add(entries("x = 1", "x = 2", "x < 5 OR y = 1"))
    return matcher


def test_matches_are_numbers_by_event(matcher: Naive) -> None:
    result = matcher.match(batch({"x": 1}, {"x": 9}, {"x": [1, 2]}))
    assert [sorted(found) for found in result.by_event()] == [[0, 2], [], [0, 1, 2]]


def test_every_subscription_is_a_candidate_for_every_event(matcher: Naive) -> None:
    assert matcher.match(batch({"x": 1}, {})).candidates.tolist() == [3, 3]


def test_no_subscriptions_no_candidates() -> None:
    result = Naive().match(batch({"x": 1}))
    assert (list(result.by_event()), result.candidates.tolist(), result.errors) == ([[]], [0], [])


def test_no_events_no_answers(matcher: Naive) -> None:
    result = matcher.match(batch())
    assert (list(result.by_event()), result.candidates.tolist(), result.errors) == ([], [], [])


def test_a_match_by_two_conjunctions_is_one(matcher: Naive) -> None:
    assert list(matcher.match(batch({"x": 4, "y": 1})).by_event()) == [[2]]


def test_remove(matcher: Naive) -> None:
    matcher.remove([0, 2])
    result = matcher.match(batch({"x": [1, 2]}))
    assert (list(result.by_event()), result.candidates.tolist()) == ([[1]], [1])


def test_a_number_can_be_used_again(matcher: Naive) -> None:
    matcher.remove([0])
    matcher.add([Entry(0, Compiler().compile("x = 9"))])
    assert list(matcher.match(batch({"x": 9})).by_event()) == [[0]]


def test_stats(matcher: Naive) -> None:
    assert matcher.stats() == {"subscriptions": 3, "conjunctions": 4}


# Failures

COLOURS = parse_schema(
    '[domains.colour]\ntype = "enumerated"\nvalues = ["red", "green"]\n[attributes]\ncolour = "colour"\n'
)


def test_one_that_fails_is_reported_and_the_rest_goes_on() -> None:
    """It asks for the code of a value that its domain does not have: the event was never held against the schema."""
    matcher = Naive()
    matcher.add([Entry(7, Compiler(COLOURS).compile("colour = 'red'"))])
    matcher.add([Entry(8, Compiler().compile("colour = 'pink' OR x = 1"))])
    result = matcher.match(batch({"x": 1}, {"colour": "pink"}, {"colour": "red"}))
    assert list(result.by_event()) == [[8], [8], [7]]
    assert result.candidates.tolist() == [2, 2, 2]
    ((index, number, error),) = result.errors
    assert (index, number) == (1, 7)
    assert isinstance(error, InvalidValueError)


def test_a_puzzle_is_given_up_and_the_rest_goes_on() -> None:
    matcher = Naive(Limits(max_bindings=50))
    matcher.add(entries("a < b AND b < c AND c < d AND d < a", "a = 1"))
    result = matcher.match(batch({name: list(range(10)) for name in "abcd"}))
    assert list(result.by_event()) == [[1]]
    ((index, number, error),) = result.errors
    assert (index, number) == (0, 0)
    assert isinstance(error, LimitError)
    assert error.limit == "max_bindings"
