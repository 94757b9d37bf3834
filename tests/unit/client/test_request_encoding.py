"""Bodies of requests: how Python objects are written, and where batches are cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from harken.client.request_encoding import Body, Unsendable, batches, bodies, in_json
from harken.errors import EventError, InvalidValueError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2.5, True, None, "é"]}, '{"a":[1,2.5,true,null,"é"]}'),
        (datetime(2026, 1, 2, 3, 4, 5), '"2026-01-02T03:04:05.000000Z"'),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), '"2026-01-02T01:00:00.000000Z"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (timedelta(minutes=1), "60.0"),
        (Decimal("2.50"), "2.5"),
        ([float("nan"), Decimal("nan"), (float("nan"),)], "[null,null,[null]]"),
        (MappingProxyType({"a": frozenset({1})}), '{"a":[1]}'),
        ({"a": np.int64(1), "b": np.array([1.5])}, '{"a":1,"b":[1.5]}'),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert in_json(value).decode() == text


@pytest.mark.parametrize("value", [float("inf"), object(), "\ud800", {"a": b"x"}])
def test_what_json_cannot_hold(value: Any) -> None:
    with pytest.raises(InvalidValueError, match="this cannot be written as JSON"):
        in_json({"value": value})


def test_a_circle_is_rejected() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidValueError):
        in_json(circle)


def test_one_event_is_an_object_and_many_are_lines() -> None:
    assert list(bodies({"a": 1})) == [Body(b'{"a":1}', "application/json", (0,))]
    assert list(bodies(iter([{"a": 1}, {"a": 2}]))) == [Body(b'{"a":1}\n{"a":2}\n', "application/x-ndjson", (0, 1))]
    assert list(bodies([])) == []


def test_documents_travel_alone() -> None:
    found = list(bodies([{"a": 1}, b"<x/>", {"a": 2}, "<é/>"]))
    assert found == [
        Body(b'{"a":1}\n', "application/x-ndjson", (0,)),
        Body(b"<x/>", "application/xml", (1,)),
        Body(b'{"a":2}\n', "application/x-ndjson", (2,)),
        Body("<é/>".encode(), "application/xml", (3,)),
    ]
    assert list(bodies(b"<x/>")) == [Body(b"<x/>", "application/xml", (0,))]


def test_a_content_type_sends_all_in_one() -> None:
    cloud = "application/cloudevents+json"
    assert list(bodies({"id": "1"}, cloud)) == [Body(b'{"id":"1"}', cloud, (0,))]
    batch = "application/cloudevents-batch+json"
    assert list(bodies([{"id": "1"}, {}], batch)) == [Body(b'[{"id":"1"},{}]', batch, range(2))]
    assert list(bodies(b'{"a":1}\n', "application/x-ndjson")) == [Body(b'{"a":1}\n', "application/x-ndjson", None)]
    assert list(bodies([{"a": 1}], "application/x-ndjson")) == list(bodies([{"a": 1}]))


def test_what_is_no_event() -> None:
    with pytest.raises(EventError, match="a int is no event"):
        list(bodies(5))  # type: ignore[arg-type]


def test_what_cannot_be_sent_does_not_stop_the_rest() -> None:
    first, second, third = bodies([{"a": object()}, {"a": 1}, 7])  # type: ignore[list-item]
    assert isinstance(first, Unsendable)
    assert isinstance(second, Unsendable)
    assert [first.position, second.position] == [0, 2]
    assert third == Body(b'{"a":1}\n', "application/x-ndjson", (1,))


def test_batches_are_cut_by_number_and_by_bytes() -> None:
    def sizes(most: int, most_bytes: int) -> list[int]:
        found = list(batches(({"a": "x" * each} for each in (1, 1, 1, 100, 1)), most, most_bytes))
        assert all(isinstance(each, Body) for each in found)
        return [len(each.positions) for each in found if isinstance(each, Body)]

    assert sizes(10, 10_000) == [5]
    assert sizes(2, 10_000) == [2, 2, 1]
    assert sizes(10, 40) == [3, 1, 1]


def test_events_are_read_as_they_are_sent() -> None:
    read = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal read
        while True:
            read += 1
            yield {"a": read}

    first = next(bodies(endless()))
    assert isinstance(first, Body)
    assert (len(first.positions), read) == (1_000, 1_000)
    assert json.loads(first.content.splitlines()[-1]) == {"a": 1_000}
