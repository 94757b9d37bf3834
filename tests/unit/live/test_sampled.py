"""Subscriptions against events that come without types: what the first ones had is warned of, once."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from harken import Engine, Schema
from harken.errors import MismatchError, MismatchWarning
from harken.events import EventBatch
from harken.live.sampled import SAMPLE
from harken.matchers.algorithm_registry import ALGORITHMS
from harken.schema import BUILT_IN

JANUARY = "at > TIMESTAMP '2026-01-01 00:00:00'"


def engine_of(*texts: str, algorithm: str = "columnar", schema: Schema | None = None) -> Engine:
    engine = Engine(schema, algorithm)
    for number, text in enumerate(texts):
        engine.subscribe(f"s{number}", text)
    return engine


def told(engine: Engine, events: Any) -> list[str]:
    """The warnings about a batch."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        engine.match_batch(events)
    assert all(each.category is MismatchWarning and each.filename == __file__ for each in found)
    return [str(each.message) for each in found]


@pytest.mark.parametrize(
    ("where", "event", "line"),
    [
        (
            "EventID = 4625",
            {"EventID": "4625"},
            "`EventID` is of type string: 1 subscription compares it with a number ('s0'); "
            "cast the column, or write strings in single quotes",
        ),
        (
            "day > '2026-01-01'",
            {"day": date(2026, 2, 1)},
            "`day` is of type date: 1 subscription compares it with a string ('s0'); write DATE '…'",
        ),
        ("x AND y = 1", {"x": 1, "y": 1}, "`x` is of type number: 1 subscription compares it with a boolean ('s0')"),
        ("tags CONTAINS 5", {"tags": ["a", "b"]}, "`tags` is of type string: 1 subscription compares it with a number"),
        ("a.b = 'x'", {"a": [{"b": 1}]}, "`a.b` is of type number: 1 subscription compares it with a string ('s0')"),
        ("lower(name) = 'x'", {"name": 5}, "`name` is of type number: 1 subscription compares it with a string"),
        ("name LIKE '%a%b%'", {"name": True}, "`name` is of type boolean: 1 subscription compares it with a string"),
        (JANUARY, {"at": 1_770_000_000}, "`at` is of type number: 1 subscription compares it with a timestamp ('s0')"),
        (
            JANUARY,
            {"at": "1 February 2026"},
            "`at` is of type string: 1 subscription compares it with a timestamp ('s0'); "
            "none is a full ISO 8601 timestamp, such as 2026-01-31T12:00:00Z",
        ),
        (
            "hour(at) > 12",
            {"at": "2026-01-01T00:00:00Z"},
            "compares it with a timestamp ('s0'); cast the column, or declare its type in a schema",
        ),
        ("at = DATE '2026-01-01'", {"at": "2026-01-01T00:00:00Z"}, "none is a full ISO 8601 date, such as 2026-01-31"),
    ],
)
def test_what_is_told(where: str, event: dict[str, Any], line: str) -> None:
    engine = engine_of(where)
    (message,) = told(engine, [event, event])
    assert message.startswith("1 of 1 subscription can never match events like the first 2:\n  ")
    assert line in message
    assert not told(engine, [event])
    with pytest.raises(MismatchError, match="can never match events like the first"):
        engine_of(where).match_batch([event], on_mismatch="fail")
    assert not engine_of(where).match_batch([event], on_mismatch="ignore").ids[0]


@pytest.mark.parametrize(
    ("where", "events"),
    [
        ("x = 1", [{"x": "1"}, {"x": 1}]),
        ("x = 1", [{"x": None}, {"x": float("nan")}, {"x": []}, {}]),
        ("x = 1", [{"y": "1"}]),
        ("x = 1 OR x = '1'", [{"x": "1"}]),
        ("x IN (1, '1')", [{"x": "1"}]),
        ("x = 1", [{"x": {"y": 1}}]),
        ("x = 1", [{"x": ["1", 1]}]),
        ("x IS NULL", [{"x": "1"}]),
        ("coalesce(x, y) = 1", [{"x": "1"}]),
        (JANUARY, [{"at": "2026-02-01T10:00:00Z"}]),
        (JANUARY, [{"at": "n/a"}, {"at": "2026-02-01T10:00:00Z"}]),
        (JANUARY, [{"at": "n/a"}, {"at": datetime(2026, 2, 1, tzinfo=UTC)}]),
        (f"{JANUARY} OR at = 'n/a'", [{"at": "n/a"}]),
    ],
)
def test_what_is_not_told(where: str, events: list[dict[str, Any]]) -> None:
    assert not told(engine_of(where), events)


def test_who_also_matches_in_another_way_is_told_apart() -> None:
    (message,) = told(engine_of("x = 1 OR y = 1", "x = 1"), [{"x": "1", "y": 1}])
    first = "1 of 2 subscriptions can never match events like the first 1, and 1 of 2 subscriptions can match them only"
    assert message.startswith(first)
    (message,) = told(engine_of("x = 1 OR y = 1", "x IN (1, 'a')"), [{"x": "1", "y": 1}])
    assert message.startswith("1 of 2 subscriptions can match events like the first 1 only in part:")


def test_kinds_are_gathered_over_batches() -> None:
    engine = engine_of("x = 1", "y = 1")
    assert not told(engine, [{"z": 1}])
    assert not told(engine, [{"x": 1}])
    assert not told(engine, [{"x": "1"}])
    (message,) = told(engine, [{"y": "1"}])
    assert "like the first 4" in message
    assert "`y`" in message
    assert "`x`" not in message


def test_after_the_sample_events_are_looked_at_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of("x = 1")
    assert not told(engine, [{"z": 1}] * SAMPLE)
    monkeypatch.setattr(EventBatch, "known_names", lambda batch: pytest.fail("it was looked at"))
    assert not told(engine, [{"x": "1"}])
    engine.subscribe("more", "x = 2")
    assert not told(engine, [{"x": "1"}])


def test_of_a_large_batch_the_first_events_are_looked_at() -> None:
    assert not told(engine_of("x = 1"), [*[{"z": 1}] * SAMPLE, {"x": "1"}])
    (message,) = told(engine_of("x = 1"), [*[{"x": "1"}] * SAMPLE, {"x": 1}])
    assert "like the first 1,000" in message


def test_what_is_subscribed_later_has_a_sample_of_its_own() -> None:
    engine = engine_of("x = 1")
    assert not told(engine, [{"x": 1}] * SAMPLE)
    engine.subscribe("later", "y = 'a'")
    (message,) = told(engine, [{"x": "1", "y": 1}])
    assert "`y`" in message
    assert "`x`" not in message
    engine.subscribe("again", "y = 'b'")
    assert not told(engine, [{"y": 1}])


def test_fail_raises_each_time_until_it_is_mended() -> None:
    engine = engine_of("x = 1", "y = 1")
    for events in ([{"x": "1"}], [{"x": "1"}] * SAMPLE, [{"x": "1"}]):
        with pytest.raises(MismatchError, match="`x` is of type string"):
            engine.match_batch(events, on_mismatch="fail")
    engine.unsubscribe("s0")
    assert engine.match_batch([{"x": "1"}], on_mismatch="fail").ids == [[]]


def test_with_a_schema_events_are_judged_one_by_one() -> None:
    schema = Schema(attributes={("x",): BUILT_IN["integer"]})
    engine = engine_of("x = 1", schema=schema)
    assert not told(engine, [{"y": "1"}])
    assert len(engine.match_batch([{"x": "1"}]).rejected) == 1


def test_of_a_table_only_strings_that_are_no_timestamps_are_left_to_tell() -> None:
    engine = engine_of(JANUARY, "x = 1")
    table = pa.table({"at": ["1 February"], "x": ["1"]})
    columns, sample = told(engine, table)
    assert "`x` is of type string" in columns
    assert "`at`" not in columns
    assert "none is a full ISO 8601 timestamp" in sample
    assert "`x`" not in sample
    assert not told(engine, table)


def test_documents_are_left_alone() -> None:
    engine = Engine()
    engine.subscribe("x", "/a", language="xpath")
    engine.subscribe("document", "document = 5")
    assert not told(engine, [b"<a/>", b"\xff"])


@pytest.mark.parametrize("algorithm", sorted(set(ALGORITHMS) - {"gough"}))
def test_whatever_the_algorithm(algorithm: str) -> None:
    engine = engine_of("x = 1", JANUARY, algorithm=algorithm)
    (message,) = told(engine, [{"x": "1", "at": "never"}])
    assert message.startswith("2 of 2 subscriptions can never match")
    assert not told(engine, [{"x": "1"}])
