"""Events that are plain dicts, by their columns: the same as if every event were taken by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harken.events import Event, EventBatch, validate
from harken.events.dict_views import DictViews, dict_views
from harken.events.object_views import ObjectViews
from harken.limits import DEFAULT_LIMITS

NAMES = frozenset(("a", "b", "é"))
PLAIN = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=3)),
    *(st.sampled_from([-0.0, float("inf"), 2.0**63, 0, 1, "", "é", "\x00"]),),
)
EVENTS = st.lists(st.dictionaries(st.sampled_from([*NAMES, "other"]), PLAIN, max_size=4), min_size=1, max_size=6)
PATHS = [("a",), ("b",), ("é",), ("other",), ("a", "x"), ()]


def by_themselves(raw: list[Any]) -> EventBatch:
    return EventBatch.of(tuple(Event.of(each, None, DEFAULT_LIMITS, NAMES) for each in raw), tuple(range(len(raw))))


@given(EVENTS)
@example([{"b": False}, {"b": float("nan")}])  # no number is left, and no cells of numbers
def test_the_views_are_those_of_the_events(raw: list[dict[str, Any]]) -> None:
    views, expected = dict_views(raw, NAMES, DEFAULT_LIMITS), by_themselves(raw)
    assert views is not None
    assert list(views) == list(expected)
    assert [views.event(index) for index in range(-1, len(raw))] == [expected[-1], *expected]
    for path in PATHS:
        found, wanted = views.cells(path), expected.cells(path)
        assert found.present.tolist() == wanted.present.tolist() == views.counts(path).tolist()
        assert [cells.kind for cells in found.cells] == [cells.kind for cells in wanted.cells]
        for ours, theirs in zip(found.cells, wanted.cells, strict=True):
            assert ours.rows.tolist() == theirs.rows.tolist()
            assert ours.values.tolist() == theirs.values.tolist()
            assert np.array_equal(whole(ours.part, ours), whole(theirs.part, theirs))
        assert not views.branching(path).any()
    assert {path[0] for path in PATHS if path and views.cells(path).cells} <= set(views.known_names())
    assert list(views.part(slice(1, 3))) == list(expected)[1:3]


def whole(part: Any, cells: Any) -> Any:
    return np.zeros(len(cells.rows)) if part is None else part


@pytest.mark.parametrize(
    "odd",
    [{"a": [1]}, {"a": {"x": 1}}, {"a": date(2026, 1, 1)}, {"a": 2**63}, {"a": "\ud800"}, {"a": np.int64(1)}, None, 7],
    ids=str,
)
def test_what_is_not_plain_is_taken_one_by_one(odd: Any) -> None:
    raw = [{"a": 1}, odd, {"a": 2}]
    assert dict_views(raw, NAMES, DEFAULT_LIMITS) is None
    found = validate(raw, names=NAMES)
    assert isinstance(found.batch.views, ObjectViews)
    assert len(found.batch) + len(found.rejected) == 3
    assert {0, 2} <= set(found.batch.positions)


def test_what_nobody_asks_for_may_be_anything() -> None:
    found = validate([{"a": 1, "other": [object()]}], names=NAMES)
    assert isinstance(found.batch.views, DictViews)
    assert list(found.batch) == [Event({"a": 1})]


def test_limits_are_left_to_who_tells_of_them() -> None:
    raw = [{"a": 1, "b": 2}]
    assert dict_views(raw, NAMES, replace(DEFAULT_LIMITS, max_event_values=1)) is None
    assert len(validate(raw, None, replace(DEFAULT_LIMITS, max_event_values=1), NAMES).rejected) == 1


def test_the_columns_are_those_that_events_have_not_those_that_are_wanted() -> None:
    """Detection rules ask for hundreds of attributes, of which an event has some dozens."""
    wanted = frozenset(map(str, range(5_000)))
    raw = [{str(10 * event + place): place for place in range(20)} | {"other": object()} for event in range(5)]
    views = dict_views(raw, wanted, DEFAULT_LIMITS)
    assert views is not None
    assert set(views.known_names()) == {str(number) for number in range(60)}
    assert views.cells(("15",)).present.tolist() == [True, True, False, False, False]
    assert views.cells(("4999",)).cells == ()
    assert list(views.part(slice(1, 2))) == [Event({str(10 + place): place for place in range(20)})]


def test_where_events_have_little_in_common_there_are_no_columns() -> None:
    names = frozenset(map(str, range(100)))
    assert dict_views([{str(number): 1} for number in range(40)], names, DEFAULT_LIMITS) is None
    assert dict_views([{str(number): 1} for number in range(30)], names, DEFAULT_LIMITS) is not None
    assert dict_views([], NAMES, DEFAULT_LIMITS) is None
