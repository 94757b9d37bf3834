"""The relational matchers on every database: matches, odd values and names, and a lost database."""

from __future__ import annotations

import os
from typing import Any

import pytest

from drawn import generate, needs_laboratory
from harken import Engine
from harken.errors import CapabilityError, StoreUnavailableError
from harken.matchers import ALGORITHMS
from services.postgres import Postgres

NAMES = [name for name in ALGORITHMS if name in {"sequential_search", "predicate_grouping", "relational_anchored"}]
TEXTS = {
    "toy": "category = 'Toy' AND price < 5",
    "between": "price BETWEEN 3 AND 7",
    "not between": "price NOT BETWEEN 3 AND 7 AND category <> 'Lamp'",
    "in": "category IN ('Toy', 'Book') OR price = 30",
    "like": "name LIKE '%lamp%'",
    "mixed": "price = 'three' OR price = TRUE",
    "null": "name IS NULL",
    "attributes": "price < cost",
    "items": "items.price > 3 AND items.qty = 2",
    "large": "number = 9007199254740993",
    "larger": "number > 9007199254740992",
    "not large": "number <> 9007199254740993",
    "after a": "name > 'a' AND name <= 'b'",
    "day": "day >= DATE '2026-01-02'",
}
EVENTS: list[dict[str, Any]] = [
    {"category": "Toy", "price": 3.5, "cost": 4},
    {"category": "Lamp", "price": 30, "name": "a lamp", "cost": 3},
    {"category": ["Toy", "Lamp"], "price": 7, "name": "a"},
    {"price": "three"},
    {"price": True, "name": "b"},
    {"items": [{"price": 4, "qty": 1}, {"price": 2, "qty": 2}]},
    {"items": [{"price": 4, "qty": 2}]},
    {"number": 9007199254740993, "name": "a\0b"},
    {"number": 9007199254740992, "name": "a\1"},
    {"number": float("inf"), "price": -0.0, "name": "é" * 3_000},
    {"number": -1.5, "price": 3, "name": "\U0010ffff"},
]


def answers(engine: Engine, events: list[dict[str, Any]]) -> list[list[str]]:
    matches = engine.match_batch(events)
    assert not matches.rejected
    assert not matches.errors
    return [sorted(ids) for ids in matches.ids]


def test_it_finds_what_the_naive_matcher_finds(algorithm: str, database: str) -> None:
    engine, judge = Engine(algorithm=algorithm, database=database), Engine(algorithm="naive")
    for each in (engine, judge):
        each.subscribe_many(TEXTS.items())
    assert answers(engine, EVENTS) == answers(judge, EVENTS)
    assert sum(map(len, answers(judge, EVENTS))) > 20
    for each in (engine, judge):
        each.unsubscribe("toy")
        each.subscribe("between", "price > 29", replace=True)
        each.subscribe("more", "colour = 'red' OR weight <> 3")
    more = [*EVENTS, {"colour": "red"}, {"weight": 3}, {"weight": 4}]
    assert answers(engine, more) == answers(judge, more)


def test_a_workload_is_matched_as_the_default_does(algorithm: str, database: str) -> None:
    drawn = generate("le-subscribe", 400, 60, 3)
    texts = [(str(place), text) for place, text in enumerate(drawn.texts().to_pylist())]
    engine, judge = Engine(algorithm=algorithm, database=database), Engine(algorithm="columnar")
    for each in (engine, judge):
        each.subscribe_many(texts)
    matches, expected = engine.match_batch(drawn.events), judge.match_batch(drawn.events)
    assert [sorted(ids) for ids in matches.ids] == [sorted(ids) for ids in expected.ids]
    assert sum(expected.counts) > 60


HOSTILE = ["'; DROP TABLE subs; --", 'a"b', "x' OR '1'='1", "$1", "?1", "%s", "a\\'b", "é\n;", "\0", "--", "subs", "c1"]


def test_names_ids_and_values_are_never_sql(algorithm: str, database: str) -> None:
    engine = Engine(algorithm=algorithm, database=database)
    for place, text in enumerate(HOSTILE):
        name, value = f"`{text.replace('`', '``')}`", text.replace("'", "''")
        engine.subscribe(f"{text}{place}", f"{name} = '{value}'")
        engine.subscribe(f"other {place}", f"v = '{value}' AND {name} >= 'a'")
    for place, text in enumerate(HOSTILE):
        assert engine.match({text: text, "v": "none"}).ids == [f"{text}{place}"]
        assert engine.match({text: "b", "v": text}).ids == [f"other {place}"]
        assert engine.match({"v": text}).ids == []
    for place, text in enumerate(HOSTILE):
        engine.unsubscribe(f"{text}{place}")
    assert engine.match({HOSTILE[0]: HOSTILE[0]}).ids == []
    assert len(engine) == len(HOSTILE)


def test_attributes_beyond_the_columns_are_verified(database: str) -> None:
    engine = Engine(algorithm="relational_anchored", database=database)
    engine.subscribe_many([(str(place), f"a{place} = {place} AND z < {place}") for place in range(300)])
    assert engine.match({"a299": 299, "z": 1, "a5": 5}).ids in (["299", "5"], ["5", "299"])
    assert engine.match({"a299": 298, "z": 1}).ids == []


@needs_laboratory
def test_equal_predicates_are_stored_once_and_their_ids_recycled() -> None:
    from harken_lab.plans.predicate_grouping import PredicateGrouping

    engine = Engine(algorithm="predicate_grouping", database="sqlite")
    matcher = engine._live.matcher
    assert isinstance(matcher, PredicateGrouping)
    engine.subscribe("a", "x = 1 AND y < 2")
    engine.subscribe("b", "x = 1 AND y < 3")

    def stored() -> list[int]:
        return sorted(pid for (pid,) in matcher._session.database.integers("SELECT pid FROM preds").tolist())

    assert stored() == [1, 2, 3]
    engine.unsubscribe("a")
    assert len(stored()) == 2
    engine.subscribe("c", "z = 5")
    assert stored() == [1, 2, 3]
    assert engine.match({"x": 1, "y": 2.5, "z": 5}).ids in (["b", "c"], ["c", "b"])


def test_an_anchored_row_is_found_by_its_key() -> None:
    engine = Engine(algorithm="relational_anchored", database="sqlite")
    engine.subscribe_many([(str(place), f"kind = 'k' AND symbol = 's{place}'") for place in range(50)])
    matches = engine.match({"kind": "k", "symbol": "s7"})
    assert (matches.ids, matches.candidates) == (["7"], 1)
    rows = engine._live.matcher._session.database.integers(
        "SELECT anchor, count(*) FROM anchored GROUP BY anchor"
    ).tolist()
    assert [count for _, count in rows] == [50], "all are anchored on the attribute with many values"


# A database that is lost


@pytest.mark.parametrize("change", ["match", "subscribe", "unsubscribe"])
def test_a_dropped_table_is_an_error_and_is_created_again(algorithm: str, database: str, change: str) -> None:
    engine = Engine(algorithm=algorithm, database=database)
    engine.subscribe_many([("a", "x = 1"), ("b", "x > 1"), ("gone", "y = 1")])
    assert engine.match({"x": 1, "y": 1}).candidates == 2
    matcher: Any = engine._live.matcher
    for table in matcher.tables:
        matcher._session.database.run(f"DROP TABLE {table}")
    calls = {
        "match": lambda: engine.match({"x": 1}),
        "subscribe": lambda: engine.subscribe("c", "x = 1"),
        "unsubscribe": lambda: engine.unsubscribe("gone"),
    }
    with pytest.raises(StoreUnavailableError, match="database of the matcher") as caught:
        calls[change]()
    assert caught.value.hint is not None
    assert sorted(engine.match({"x": 1, "y": 1}).ids) == ["a", "gone"]
    engine.subscribe("c", "x = 1")
    engine.unsubscribe("gone")
    assert sorted(engine.match({"x": 1, "y": 1}).ids) == ["a", "c"]


def test_changes_after_a_loss_wait_for_the_next_match(algorithm: str) -> None:
    engine = Engine(algorithm=algorithm, database="sqlite")
    engine.subscribe_many([("a", "x = 1"), ("b", "x = 2")])
    matcher: Any = engine._live.matcher
    matcher._session.database.run(f"DROP TABLE {matcher.tables[0]}")
    with pytest.raises(StoreUnavailableError):
        engine.match({"x": 1})
    engine.subscribe("c", "x = 1")
    engine.unsubscribe("a")
    assert engine.match({"x": 1}).ids == ["c"]


@pytest.mark.processes
def test_a_cut_connection_is_an_error_and_is_opened_again(algorithm: str, url: str, postgres: Postgres) -> None:
    engine = Engine(algorithm=algorithm, database=url)
    engine.subscribe("a", "x = 1")
    assert engine.match({"x": 1}).ids == ["a"]
    postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(StoreUnavailableError):
        engine.match({"x": 1})
    assert engine.match({"x": 1}).ids == ["a"]


@pytest.mark.processes
def test_two_engines_share_a_server(url: str) -> None:
    engines = [Engine(algorithm="relational_anchored", database=url) for _ in range(2)]
    for place, engine in enumerate(engines):
        engine.subscribe(f"of {place}", "x = 1")
    assert [engine.match({"x": 1}).ids for engine in engines] == [["of 0"], ["of 1"]]


def test_the_error_for_an_unreachable_server_does_not_show_the_password() -> None:
    engine = Engine(algorithm="relational_anchored", database="postgresql://harken:secret@127.0.0.1:9/none")
    with pytest.raises(StoreUnavailableError) as caught:
        engine.subscribe("a", "x = 1")
    assert "secret" not in str(caught.value)
    assert len(engine) == 0


@pytest.mark.parametrize("name", ["duckdbs", "mysql://harken:secret@host/base", "", 3, None])
@pytest.mark.parametrize("algorithm", NAMES)
def test_an_unknown_database_is_an_error(algorithm: str, name: object) -> None:
    with pytest.raises(CapabilityError, match="database") as caught:
        Engine(algorithm=algorithm, database=name)
    assert "secret" not in str(caught.value)
    assert "duckdb" in (caught.value.hint or "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_fork_has_a_database_of_its_own() -> None:
    engine = Engine(algorithm="relational_anchored", database="sqlite")
    engine.subscribe_many([("a", "x = 1"), ("b", "x = 2")])
    child = os.fork()
    if child == 0:
        try:
            engine.subscribe("c", "x = 1")
            os._exit(0 if sorted(engine.match({"x": 1}).ids) == ["a", "c"] else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engine.match({"x": 1}).ids == ["a"]
