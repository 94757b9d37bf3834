"""Strings that were compared with timestamps or dates and are none: they are counted."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harken import Engine, Schema
from harken.events import read_events
from harken.matchers.algorithm_registry import ALGORITHMS
from harken.schema import BUILT_IN

EVENTS: list[dict[str, Any]] = [
    {"at": "2026-02-01T10:00:00Z", "day": "2026-02-01"},
    {"at": "never", "day": "2026-02-01T10:00:00Z"},
    {"at": ["2026-02-01T10:00:00Z", "x", "y", 5]},
    {"at": datetime(2026, 2, 1, tzinfo=UTC), "other": "z"},
    {"at": None},
    {},
]
COUNTS = {"at": {"timestamp": 3}, "day": {"date": 1}}


def engine_of(*texts: str, **settings: Any) -> Engine:
    engine = Engine(**settings)
    for number, text in enumerate(texts or ("at > TIMESTAMP '2026-01-01 00:00:00' OR day = DATE '2026-01-01'",)):
        engine.subscribe(f"s{number}", text)
    return engine


@pytest.mark.parametrize("algorithm", sorted(set(ALGORITHMS) - {"gough"}))
def test_in_batches(algorithm: str) -> None:
    engine = engine_of(algorithm=algorithm)
    assert engine.stats()["unparsed"] == {}
    assert engine.match_batch(EVENTS, on_mismatch="ignore").unparsed == COUNTS
    assert engine.match_batch(EVENTS, on_mismatch="ignore").unparsed == COUNTS
    assert engine.stats()["unparsed"] == {"at": {"timestamp": 6}, "day": {"date": 2}}


@pytest.mark.parametrize("algorithm", ["columnar", "scan", "naive"])
def test_one_by_one(algorithm: str) -> None:
    engine = engine_of(algorithm=algorithm)
    for event in EVENTS:
        engine.match(event)
    assert engine.stats()["unparsed"] == COUNTS


def test_of_batches_of_one_event() -> None:
    engine = engine_of()
    assert [engine.match_batch([event], on_mismatch="ignore").unparsed for event in EVENTS[:3]] == [
        *({}, {"at": {"timestamp": 1}, "day": {"date": 1}}, {"at": {"timestamp": 2}}),
    ]


def test_alike_for_json_and_arrow() -> None:
    flat = [{"at": f"2026-02-01T10:00:0{n}Z" if n % 3 else "?", "n": n} for n in range(9)]
    engine = engine_of()
    lines = io.BytesIO("\n".join(json.dumps(event) for event in flat).encode())
    (decoded,) = read_events(lines, "jsonl", names=engine.attributes())
    assert engine.match_batch(decoded).unparsed == {"at": {"timestamp": 3}}
    for type in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({"at": pa.array([event["at"] for event in flat], type)})
        found = engine.match_batch(table, on_mismatch="ignore")
        assert (found.counts, found.unparsed) == ([0, 1, 1] * 3, {"at": {"timestamp": 3}})


def test_shared_among_threads() -> None:
    events = EVENTS * 500
    for engine in (engine_of(), engine_of("at LIKE '%a%b%' AND at > TIMESTAMP '2026-01-01 00:00:00'")):
        found = engine.match_batch(events, threads=2, on_mismatch="ignore")
        assert found.unparsed["at"] == {"timestamp": 1_500}
    table = pa.table({"at": ["2026-02-01T10:00:00Z", "x"] * 2_000})
    found = engine_of().match_batch(table, threads=2, on_mismatch="ignore")
    assert found.unparsed == {"at": {"timestamp": 2_000}}


def test_where_few_of_many_attributes_are_there() -> None:
    engine = engine_of(*(f"a{n} > TIMESTAMP '2026-01-01 00:00:00'" for n in range(200)))
    events = [{f"a{n}": "2026-02-01T10:00:00Z" if n % 2 else "x"} for n in range(200)]
    found = engine.match_batch(events, on_mismatch="ignore")
    assert found.counts == [0, 1] * 100
    assert found.unparsed == {f"a{n}": {"timestamp": 1} for n in range(0, 200, 2)}


def test_only_what_is_compared_with_a_timestamp() -> None:
    engine = engine_of("at = 'never'", "year(at) = 2026", "at IS NULL")
    assert not engine.match_batch(EVENTS, on_mismatch="ignore").unparsed
    schema = Schema(attributes={("at",): BUILT_IN["timestamp"], ("name",): BUILT_IN["string"]})
    declared = engine_of("at > TIMESTAMP '2026-01-01 00:00:00'", schema=schema)
    found = declared.match_batch([{"at": "2026-02-01"}, {"at": "never"}])
    assert (found.counts, len(found.rejected), found.unparsed) == ([1, 0], 1, {})


def test_an_engine_that_was_loaded_counts_too(tmp_path: Path) -> None:
    engine_of().save(tmp_path)
    engine = Engine.load(tmp_path)
    engine.match(EVENTS[1])
    assert engine.match_batch(EVENTS, on_mismatch="ignore").unparsed == COUNTS
    assert engine.stats()["unparsed"] == {"at": {"timestamp": 4}, "day": {"date": 2}}


def test_subscriptions_from_a_table_read_strings_too() -> None:
    noon = datetime(2026, 2, 1, 12, tzinfo=UTC)
    predicates = [
        [{"attribute": "at", "operator": ">", "timestamp": noon}],
        [{"attribute": "at", "operator": ">", "timestamp": noon}, {"attribute": "at", "operator": "is not null"}],
        [
            {"attribute": "at", "operator": ">", "timestamp": noon, "value": None},
            {"attribute": "at", "operator": "<", "timestamp": None, "value": "2026-02-02"},
        ],
    ]
    engine = Engine()
    engine.subscribe_many(pa.table({"id": ["a", "b", "c"], "predicates": predicates}))
    events = [{"at": text} for text in ("2026-02-01T13:00:00Z", "2026-02-03T13:00:00Z", "2026-02-01", "x")]
    assert [sorted(ids) for ids in engine.match_batch(events).ids] == [["a", "b", "c"], ["a", "b"], [], []]
    assert engine.attributes() == {"at"}
