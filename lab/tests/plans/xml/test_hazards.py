"""What must not happen: rows that multiply, indexes out of step, sessions and memory that are left behind."""

from __future__ import annotations

import gc
import os
import weakref

import pytest

from harken import Engine, Limits
from harken.errors import CapabilityError, StoreUnavailableError
from plans.xml.test_plans import matcher_of, subscribed
from unit.deadline import without_hanging

ITEM = "/o/i[s = 'x' and q > 1 and p < 5]"


@pytest.mark.parametrize("plan", ["xpath_shared", "xpath_unrolled"])
@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_many_equal_branching_points_do_not_multiply(plan: str, database: str) -> None:
    deep = "//a[@x]//a[@x]//a[@x]/b"
    engine = subscribed({"1": ITEM, "2": deep}, plan, database)
    items = b"<i><s>x</s><q>2</q><p>3</p></i>" * 400  # 400 to the power of 3 choices of rows
    nested = b"<a x='1'>" * 25 + b"<b/>" + b"</a>" * 25
    apart = b"<i><s>x</s></i><i><q>2</q><p>3</p></i>" * 400
    assert [sorted(ids) for ids in engine.match_batch([b"<o>%s</o>" % each for each in (items, apart)]).ids] == [
        ["1"],
        [],
    ]
    assert engine.match(nested).ids == ["2"]


def test_tag_paths_of_documents_that_others_match_do_not_count() -> None:
    """Branching points lie in a tag path of 400 equal names in ten million ways."""
    other = Engine(limits=Limits(max_event_depth=500))
    other.subscribe("any", "/z", language="xpath")
    other.match(b"<a>" * 400 + b"</a>" * 400)
    engine = subscribed({"1": "//a[@x]//a[@x]//a[@x]/b"}, "xpath_shared", "sqlite")
    with without_hanging():
        assert engine.match(b"<a x='1'><a x='1'><a x='1'><b/></a></a></a>").ids == ["1"]
    assert matcher_of(engine).stats()["tag_paths"] <= 10


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_an_engine_that_is_gone_leaves_nothing_behind(database: str) -> None:
    engine = subscribed({"1": ITEM}, "xpath_shared", database)
    engine.match(b"<o/>")
    matcher = weakref.ref(matcher_of(engine))
    del engine
    gc.collect()
    assert matcher() is None


def broken(engine: Engine) -> Engine:
    """Its database fails at the next change."""
    engine.subscribe("any", "/z", language="xpath")
    matcher_of(engine)._session.database.run("DROP TABLE query_predicate")
    return engine


def test_a_change_is_made_in_all_indexes_also_while_the_database_fails(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(documents="xpath_shared", database="sqlite")
    engine.subscribe("1", "price > 5")
    broken(engine)
    engine.subscribe("1", "/a", language="xpath", replace=True)
    assert "the next match fills the tables" in caplog.text
    assert engine.match({"price": 6}).ids == []
    assert engine.match(b"<a/>").ids == ["1"]
    broken(engine := Engine(documents="xpath_shared", database="sqlite"))
    engine.subscribe_many([{"id": "1", "where": "price > 5"}, {"id": "2", "where": "/a", "language": "xpath"}])
    assert engine.match({"price": 6}).ids == ["1"]
    assert engine.match(b"<a/>").ids == ["2"]


def test_what_cannot_be_reached_is_told_by_the_match() -> None:
    engine = Engine(documents="xpath_shared", database="postgresql://user:hidden@127.0.0.1:1/none")
    engine.subscribe("1", "/a", language="xpath")
    with pytest.raises(StoreUnavailableError) as caught:
        engine.match(b"<a/>")
    assert "hidden" not in str(caught.value)


@pytest.mark.seconds
def test_documents_of_more_than_a_million_nodes() -> None:
    engine = Engine(
        documents="xpath_shared",
        database="sqlite",
        limits=Limits(max_document_nodes=2_000_000, max_event_bytes=1 << 26),
    )
    engine.subscribe("1", "/a/c[p = '1' and q = '2']", language="xpath")
    apart = b"<c><p>1</p></c><c><q>2</q></c>"
    assert engine.match(b"<a>" + b"<x/>" * (16**5 + 40) + apart + b"</a>").ids == []


@pytest.mark.processes
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_constant_that_postgres_cannot_hold(is_lost: bool, url: str) -> None:
    engine = subscribed({"1": "/a/b = '1'"}, "xpath_shared", url)
    if is_lost:
        matcher_of(engine)._session.database.run("DROP TABLE pathmatch")
        with pytest.raises(StoreUnavailableError):
            engine.match(b"<a/>")
    engine.subscribe_many(
        [
            {"id": "2", "where": "/a = '\0'", "language": "xpath"},
            {"id": "3", "where": "/a", "language": "xpath"},
        ]
    )
    assert sorted(engine.match(b"<a><b>1</b></a>").ids) == ["1", "3"]


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_leaves_the_session_of_its_parent_alone(url: str) -> None:
    engine = subscribed({"1": "/a/b = '1'"}, "xpath_shared", url)
    document = b"<a><b>1</b></a>"
    assert engine.match(document).ids == ["1"]
    child = os.fork()
    if not child:
        try:
            os._exit(0 if engine.match(document).ids == ["1"] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engine.match(document).ids == ["1"]  # the server has closed the connection


def test_constants_of_subscriptions_that_left_are_forgotten() -> None:
    engine = Engine(documents="xpath_shared", database="sqlite")
    for first in range(0, 2_000, 500):
        ids = [str(number) for number in range(first, first + 500)]
        engine.subscribe_many({"id": id, "where": f"/a = 'constant {id}'", "language": "xpath"} for id in ids)
        for id in ids:
            engine.unsubscribe(id)
    assert matcher_of(engine)._session.database.rows("SELECT count(*) FROM query_value") == [(0,)]


def test_a_database_that_there_is_not_is_told_at_once() -> None:
    with pytest.raises(CapabilityError, match="database"):
        Engine(algorithm="relational_anchored", database="duckbd")
    with pytest.raises(CapabilityError, match="database"):
        Engine(documents="xpath_shared", database="duckbd")
