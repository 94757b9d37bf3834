"""Rows of subscriptions in files: opened again as they were, rejected if they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drawn import generate
from harken import Engine, load_schema
from harken.errors import CapabilityError, SegmentError, StoreUnavailableError
from unit.relational.test_matchers import EVENTS, TEXTS, answers

SCHEMA = """
version = 1
[domains.size]
type = "enumerated"
values = ["s", "m", "l"]
order = [["s", "m", "l"]]
[attributes]
size = "size"
"""


@pytest.fixture(params=["duckdb", "sqlite"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a file."""
    return f"{request.param}:///{tmp_path}/rows.db"


def removed(url: str) -> None:
    path = Path(url.partition(":///")[2])
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def stored(engine: Engine, query: str) -> Any:
    matcher: Any = engine._live.matcher
    return matcher._session.database.rows(query)[0][0]


def test_an_engine_goes_on_where_it_was(algorithm: str, file: str, tmp_path: Path) -> None:
    engine, judge = Engine(algorithm=algorithm, database=file), Engine(algorithm="naive")
    for each in (engine, judge):
        each.subscribe_many(TEXTS.items())
        each.subscribe("derived", "lower(name) = 'a' OR price + cost > 33")
    expected = answers(judge, EVENTS)
    assert answers(engine, EVENTS) == expected
    rows = engine.stats()["matcher"]["rows"]
    engine.save(tmp_path / "engine")
    del engine
    loaded = Engine.load(tmp_path / "engine", database=file)
    assert loaded.stats()["matcher"]["rows"] == rows
    assert stored(loaded, "SELECT sequence FROM harken_rows") == 2, "nothing was filled again"
    assert answers(loaded, EVENTS) == expected
    for each in (loaded, judge):
        each.unsubscribe("toy")
        each.subscribe("between", "price > 29", replace=True)
        each.subscribe("more", "colour = 'red' OR weight <> 3")
    more = [*EVENTS, {"colour": "red"}, {"weight": 3}, {"weight": 4}]
    expected = answers(judge, more)
    assert answers(loaded, more) == expected
    loaded.save(tmp_path / "engine")
    del loaded
    assert answers(Engine.load(tmp_path / "engine", database=file), more) == expected


def test_a_workload_is_matched_after_opening_as_before(algorithm: str, file: str, tmp_path: Path) -> None:
    drawn = generate("le-subscribe", 200, 30, 5)
    texts = [(str(place), text) for place, text in enumerate(drawn.texts().to_pylist())]
    engine, judge = Engine(algorithm=algorithm, database=file), Engine()
    engine.subscribe_many(texts[:100])
    engine.save(tmp_path / "engine")
    del engine
    loaded = Engine.load(tmp_path / "engine", database=file)
    loaded.subscribe_many(texts[100:])
    judge.subscribe_many(texts)
    expected = judge.match_batch(drawn.events)
    assert [sorted(ids) for ids in loaded.match_batch(drawn.events).ids] == [sorted(ids) for ids in expected.ids]
    assert sum(expected.counts) > 10


def test_a_new_engine_does_not_take_a_file_with_subscriptions(algorithm: str, file: str) -> None:
    engine = Engine(algorithm=algorithm, database=file)
    engine.subscribe("a", "x = 1")
    with pytest.raises(CapabilityError, match="1 subscriptions of another engine"):
        Engine(algorithm=algorithm, database=file)
    engine.unsubscribe("a")
    del engine
    empty = Engine(algorithm=algorithm, database=file)
    empty.subscribe("b", "x = 1")
    assert empty.match({"x": 1}).ids == ["b"]


def test_an_engine_and_a_file_that_disagree_are_an_error(algorithm: str, file: str, tmp_path: Path) -> None:
    engine = Engine(algorithm=algorithm, database=file)
    engine.subscribe_many([("a", "x = 1"), ("b", "x > 1")])
    engine.save(tmp_path / "engine")
    engine.unsubscribe("a")
    del engine
    with pytest.raises(SegmentError, match="changed after the engine was saved"):
        Engine.load(tmp_path / "engine", database=file)
    removed(file)
    assert Engine.load(tmp_path / "engine", database=file).match({"x": 1}).ids == ["a"]


def test_a_failure_of_a_match_costs_no_row_and_one_of_a_change_fills_again(algorithm: str, file: str) -> None:
    engine = Engine(algorithm=algorithm, database=file)
    engine.subscribe_many([("a", "x = 1"), ("b", "x > 1")])
    matcher: Any = engine._live.matcher
    with pytest.raises(StoreUnavailableError), matcher._session.guarded() as database:
        database.run("SELECT * FROM nothing_of_this_name")
    assert engine.match({"x": 1}).ids == ["a"]
    assert stored(engine, "SELECT sequence FROM harken_rows") == 1
    matcher._session.database.run(f"DROP TABLE {matcher.tables[0]}")
    with pytest.raises(StoreUnavailableError):
        engine.subscribe("c", "x = 1 AND y = 2")
    assert engine.match({"x": 1, "y": 2}).ids == ["a"]
    engine.subscribe("c", "x = 1 AND y = 2")
    assert sorted(engine.match({"x": 1, "y": 2}).ids) == ["a", "c"]


def test_columns_of_domains_come_back(file: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA, encoding="utf-8")
    schema = load_schema(path)
    engine = Engine(schema, algorithm="relational_anchored", database=file)
    engine.subscribe("warm", "size >= 'm'")
    engine.save(tmp_path / "engine")
    del engine
    loaded = Engine.load(tmp_path / "engine", database=file)
    loaded.subscribe("large", "size = 'l'")
    assert sorted(loaded.match({"size": "l"}).ids) == ["large", "warm"]
    assert loaded.match({"size": "s"}).ids == []
