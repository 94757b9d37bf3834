"""Engines cut into parts and joined again find what one engine finds."""

from __future__ import annotations

import numpy as np
import pytest

from drawn import generate
from harken import Engine, Schema
from harken.internals import join_engines
from harken.schema import FloatDomain
from harken.schema.event_types import EventType

TEXTS = {
    "a": "x = 1 OR y = 2",
    "b": "x < 5",
    "c": "name LIKE '%oo%'",
    "d": "x = y",
    "e": "x <> 3 AND y > 0",
    "f": "tags CONTAINS ('red')",
    "g": "name IS NULL",
    "h": "x = 1 OR name LIKE '_b%' OR y = 7",
}
EVENTS = [
    {"x": 1, "y": 2},
    {"x": 4, "y": 4, "name": "foo"},
    {"x": 3, "y": 7, "name": "abc"},
    {"tags": ["red", "blue"], "x": [1, 2]},
    {},
]


def answers(engine: Engine) -> list[list[str]]:
    return [sorted(ids) for ids in engine.match_batch(EVENTS).ids]


def united(parts: list[Engine]) -> list[list[str]]:
    found = [part.match_batch(EVENTS).ids for part in parts]
    return [sorted(id for ids in row for id in ids) for row in zip(*found, strict=True)]


def filled(algorithm: str = "columnar") -> Engine:
    engine = Engine(algorithm=algorithm)
    assert not engine.subscribe_many(TEXTS.items()).faults
    return engine


@pytest.mark.parametrize("algorithm", ["columnar", "naive"])
@pytest.mark.parametrize("parts", [1, 2, 3, 20])
def test_parts_find_together_what_the_whole_finds(algorithm: str, parts: int) -> None:
    engine = filled(algorithm)
    cut = engine.internals.cut(parts)
    assert len(cut) == parts
    assert sum(map(len, cut)) == len(engine)
    assert united(cut) == answers(engine)


def test_what_left_is_in_no_part() -> None:
    engine = filled()
    engine.merge()
    engine.unsubscribe("a")
    engine.subscribe("b", "x > 100", replace=True)
    assert sorted(each.id for part in engine.internals.cut(2) for each in part) == sorted(set(TEXTS) - {"a"})
    assert united(engine.internals.cut(2)) == answers(engine)


def test_parts_share_rows_and_cost() -> None:
    workload = generate("stock", 20_000, 64)
    engine = Engine()
    engine.subscribe_many(workload.table())
    parts = engine.internals.cut(4)
    sizes = [len(part) for part in parts]
    assert sum(sizes) == 20_000
    assert max(sizes) < 2 * 20_000 / 4
    found = [part.match_batch(workload.events).counts for part in parts]
    assert np.sum(found, axis=0).tolist() == engine.match_batch(workload.events).counts


@pytest.mark.parametrize("algorithm", ["columnar", "naive"])
def test_parts_are_joined_again(algorithm: str) -> None:
    engine = filled(algorithm)
    whole, twice = join_engines(engine.internals.cut(3))
    assert twice == []
    assert answers(whole) == answers(engine)
    whole.subscribe("z", "x = 1")
    whole.unsubscribe("a")
    assert "z" in whole.match({"x": 1}).ids
    assert "a" not in whole.match({"x": 1}).ids


def test_an_id_that_two_parts_have_belongs_to_the_first() -> None:
    first, second = Engine(), Engine()
    first.subscribe_many([("a", "x = 1"), ("b", "x = 2")])
    second.subscribe_many([("b", "x = 3"), ("c", "x = 4 OR y LIKE '%1'")])
    whole, twice = join_engines([first, second])
    assert twice == ["b"]
    assert [whole.match({"x": x}).ids for x in (1, 2, 3, 4)] == [["a"], ["b"], [], ["c"]]
    assert whole.match({"y": "21"}).ids == ["c"]


def test_attributes_are_those_that_texts_look_at() -> None:
    engine = Engine()
    engine.subscribe_many([("a", "x.y = 1 AND name LIKE '%o%'"), ("b", "low = high"), ("c", "gone IS NULL")])
    assert engine.attributes() == {"x", "name", "low", "high", "gone"}


def test_a_schema_looks_at_what_it_declares() -> None:
    number = FloatDomain("float")
    engine = Engine(Schema(attributes={("price", "net"): number, ("size",): number}))
    engine.subscribe("a", "size = 1")
    assert engine.attributes() == {"size", "price"}


def test_the_attribute_by_which_most_are_found() -> None:
    workload = generate("stock", 2_000, 0)
    engine = Engine()
    engine.subscribe_many(workload.table())
    assert engine.internals.clustering_attribute() == "symbol"
    assert Engine().internals.clustering_attribute() is None
    assert Engine(algorithm="naive").internals.clustering_attribute() is None


def test_event_types_ask_for_all_attributes() -> None:
    assert Engine(Schema(event_types={"sale": EventType("sale", {})})).attributes() is None


def test_an_engine_that_everybody_left_is_joined() -> None:
    engine = Engine()
    engine.subscribe("a", "x = 1")
    engine.unsubscribe("a")
    whole, twice = join_engines([engine])
    assert (len(whole), twice) == (0, [])
