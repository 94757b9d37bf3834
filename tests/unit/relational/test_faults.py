"""What may go wrong in a database: hostile names in every statement, and a server that cuts a session in the middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harken import Engine
from harken.errors import StoreUnavailableError
from services.postgres import Postgres

HOSTILE = [
    "'; DROP TABLE subs; --",
    '"; DROP TABLE anchored; --',
    "x' OR '1'='1",
    "1; SELECT pg_sleep(9)",
    "a\\'b\\",
    "$1",
    "?1",
    ":name",
    "%(x)s",
    "{0}",
    "/* */",
    "é\n;\t",
    "NULL",
    "anchored",
]
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


def quoted(text: str) -> tuple[str, str]:
    """A text as the name of an attribute and as a value."""
    return f"`{text.replace('`', '``')}`", "'" + text.replace("'", "''") + "'"


def subscriptions_with(text: str) -> dict[str, str]:
    """Texts with an equality, a range, its outside, a set and a pattern: each is stored in other columns."""
    name, value = quoted(text)
    return {
        f"{text}: equal": f"{name} = {value}",
        f"{text}: range": f"{name} >= {value} AND {name} < '\U0010ffff'",
        f"{text}: outside": f"{name} <> {value} AND other = {value}",
        f"{text}: set": f"{name} IN ({value}, 'b')",
        f"{text}: pattern": f"other LIKE '%' AND {name} = {value}",
    }


def events_with(text: str) -> list[dict[str, Any]]:
    other = {"other": text}
    return [{text: text}, {text: text, **other}, {text: "b", **other}, other, {text: 3, **other}]


def test_a_hostile_text_is_a_name_an_id_and_a_value_and_never_sql(algorithm: str, database: str) -> None:
    engine, judge = Engine(algorithm=algorithm, database=database), Engine(algorithm="naive")
    events = [event for text in HOSTILE for event in events_with(text)]
    for each in (engine, judge):
        report = each.subscribe_many(pair for text in HOSTILE for pair in subscriptions_with(text).items())
        assert not report.faults
    for _ in range(2):
        matches, expected = engine.match_batch(events), judge.match_batch(events)
        assert [sorted(ids) for ids in matches.ids] == [sorted(ids) for ids in expected.ids]
        assert sum(expected.counts) >= 4 * len(HOSTILE)
        for each in (engine, judge):
            for text in HOSTILE:
                name, value = quoted(text)
                each.unsubscribe(f"{text}: equal")
                each.subscribe(f"{text}: equal", f"{name} = {value} OR other = {value}")


# A session that is cut loses its temporary tables.


class Cut:
    """Cuts the session of an engine's database before the first statement that contains a word."""

    def __init__(self, engine: Engine, postgres: Postgres, word: str) -> None:
        matcher: Any = engine._live.matcher
        self._database, self._postgres, self._word = matcher._session.database, postgres, word
        self.is_cut = False

    def __enter__(self) -> Cut:
        for name in ("run", "run_many", "integers", "insert"):
            setattr(self._database, name, self._watched(getattr(self._database, name)))
        return self

    def __exit__(self, *_: object) -> None:
        for name in ("run", "run_many", "integers", "insert"):
            delattr(self._database, name)

    def _watched(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def watched(statement: str, *more: Any) -> Any:
            if self._word in statement and not self.is_cut:
                self.is_cut = True
                self._postgres.query(CUT)
            return work(statement, *more)

        return watched


TABLES = {"sequential_search": "subs", "predicate_grouping": "preds", "relational_anchored": "anchored"}


@pytest.mark.processes
@pytest.mark.parametrize("change", ["match", "match_batch", "subscribe", "subscribe_many", "unsubscribe", "replace"])
def test_a_session_that_is_cut_in_the_middle(algorithm: str, url: str, postgres: Postgres, change: str) -> None:
    engine = Engine(algorithm=algorithm, database=url)
    engine.subscribe_many([("a", "x = 1"), ("b", "x > 1"), ("gone", "y = 1")])
    assert sorted(engine.match({"x": 1, "y": 1}).ids) == ["a", "gone"]
    calls: dict[str, Callable[[], object]] = {
        "match": lambda: engine.match({"x": 1}),
        "match_batch": lambda: engine.match_batch([{"x": 1}, {"x": 2}]),
        "subscribe": lambda: engine.subscribe("c", "x = 1 AND z < 3"),
        "subscribe_many": lambda: engine.subscribe_many([("c", "x = 1"), ("d", "z BETWEEN 1 AND 2")]),
        "unsubscribe": lambda: engine.unsubscribe("gone"),
        "replace": lambda: engine.subscribe("gone", "x = 1", replace=True),
    }
    with (
        Cut(engine, postgres, TABLES[algorithm]) as cut,
        pytest.raises(StoreUnavailableError, match="postgres") as caught,
    ):
        calls[change]()
    assert cut.is_cut
    assert caught.value.hint is not None
    assert postgres.password not in str(caught.value)
    assert len(engine) == 3, "a change that failed was not made"
    assert sorted(engine.match({"x": 1, "y": 1}).ids) == ["a", "gone"]
    calls[change]()
    assert engine.match({"x": 2}).ids == ["b"]


@pytest.mark.processes
def test_statistics_of_a_session_that_was_cut(algorithm: str, url: str, postgres: Postgres) -> None:
    engine = Engine(algorithm=algorithm, database=url)
    engine.subscribe("a", "x = 1")
    assert engine.stats()["matcher"]["memory"]["tables"] > 0
    postgres.query(CUT)
    assert engine.stats()["matcher"]["memory"] == {}
    assert engine.match({"x": 1}).ids == ["a"]
    assert engine.stats()["matcher"]["memory"]["tables"] > 0


@pytest.mark.parametrize("name", ["duckdb", "sqlite"])
def test_a_table_that_is_dropped_between_two_queries_of_a_batch(algorithm: str, name: str) -> None:
    engine = Engine(algorithm=algorithm, database=name)
    engine.subscribe_many([("a", "x = 1"), ("b", "x > 1")])
    matcher: Any = engine._live.matcher
    database = matcher._session.database
    work, executed = database.integers, []

    def dropped(query: str, values: Any = ()) -> Any:
        executed.append(query)
        if len(executed) == 2:
            database.run(f"DROP TABLE {matcher.tables[0]}")
        return work(query, values)

    batch = [{"x": 1}] * 1_500  # more events than one query takes, for every algorithm
    database.integers = dropped
    with pytest.raises(StoreUnavailableError, match=name):
        engine.match_batch(batch)
    del database.integers
    assert engine.match_batch(batch).ids == [["a"]] * len(batch)
