"""Derived attributes in an engine: what it looks at, what it saves, and events with more bindings than can be tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harken import Engine
from harken.events import validate
from harken.events.derived_cells import MOST_VALUES
from harken.language.sql import parse
from harken.matchers import ALGORITHMS
from harken.reference import expressions as reference
from harken.schema.derived import derived_path

pytestmark = pytest.mark.seconds

TEXTS = {
    "lower": "lower(page) = 'home'",
    "sum": "a + b = 250",
    "more": "a + b > 100000",
    "compared": "a.x < b",
    "network": "cidr_contains('10.0.0.0/8', ip)",
    "unknown": "(n > 3) IS NOT TRUE",
    "pattern": "page ILIKE '%om%' AND n % 2 = 0",
}


def subscribed(algorithm: str = "columnar", **options: Any) -> Engine:
    engine = Engine(algorithm=algorithm, **options)
    for id, where in TEXTS.items():
        engine.subscribe(id, where)
    return engine


EVENTS: list[dict[str, Any]] = [
    {"page": "HOME", "n": 4, "ip": "10.2.3.4"},
    {"page": ["x", "Home"], "n": [3, 5], "ip": ["1.2.3.4", "10.0.0.1"]},
    {"a": list(range(100)), "b": list(range(0, 300, 6)), "n": 9},
    {"a": [{"x": 5}, {"x": 1}], "b": 3, "n": 9},
    {},
]


def expected(events: list[dict[str, Any]]) -> list[list[str]]:
    return [sorted(id for id, where in TEXTS.items() if reference.matches(parse(where), event)) for event in events]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_event_with_too_many_bindings_is_verified(algorithm: str) -> None:
    path = derived_path('["+",{"at":["a"]},{"at":["b"]}]')
    assert len(EVENTS[2]["a"]) * len(EVENTS[2]["b"]) > MOST_VALUES
    open_rows = validate(EVENTS).batch.cells(path).open_rows
    assert open_rows is not None
    assert open_rows.tolist() == [2]
    engine = subscribed(algorithm)
    assert [sorted(ids) for ids in engine.match_batch(EVENTS).ids] == expected(EVENTS)
    assert [sorted(engine.match(event).ids) for event in EVENTS] == expected(EVENTS)


def test_sources_are_looked_at_and_nothing_else() -> None:
    engine = subscribed()
    assert engine.attributes() == {"page", "a", "b", "ip", "n"}
    for id in ("sum", "more", "compared"):
        engine.unsubscribe(id)
    engine.merge()
    assert engine.attributes() == {"page", "ip", "n"}
    table = pa.table({"page": ["HOME"], "other": [object.__doc__]})
    with pytest.warns(match="`ip` is no column"):
        assert engine.match_batch(table).ids == [["lower", "unknown"]]


def test_what_is_asked_for_is_told_by_its_sources() -> None:
    engine = Engine()
    engine.subscribe("a", "lower(pages) = 'x' AND length(n) = 3")
    found = engine.mismatches(pa.schema({"page": pa.string(), "n": pa.int64()}))
    assert [(each.attribute, each.asks, each.found) for each in found] == [
        ("n", "string", "int64"),
        ("pages", "value", None),
    ]
    assert not engine.mismatches(pa.schema({"pages": pa.string(), "n": pa.string()}))


def test_a_saved_index_has_them(tmp_path: Path) -> None:
    engine = subscribed()
    engine.merge()
    engine.save(tmp_path / "index")
    loaded = Engine.load(tmp_path / "index")
    assert [sorted(ids) for ids in loaded.match_batch(EVENTS).ids] == expected(EVENTS)
    assert loaded.attributes() == engine.attributes()
    loaded.subscribe("more of it", "lower(page) = 'x' AND n > 4")
    assert "more of it" in loaded.match(EVENTS[1]).ids


def test_arrow_json_and_objects_agree() -> None:
    flat = [{"page": "HOME", "n": 4, "ip": "10.2.3.4"}, {"page": "é", "n": 9, "ip": "x"}, {"page": None, "n": 3}]
    engine = subscribed()
    want = expected(flat)
    assert [sorted(ids) for ids in engine.match_batch(flat).ids] == want
    table = pa.Table.from_pylist([{"a": None, "b": None, **each} for each in flat])
    table = table.set_column(0, "a", pa.nulls(3, pa.int64())).set_column(1, "b", pa.nulls(3, pa.int64()))
    assert [sorted(ids) for ids in engine.match_batch(table, on_mismatch="ignore").ids] == want
