"""Faults that a review found. Each of these failed when it was written."""

from __future__ import annotations

import gc
import os
import shutil
import weakref
from pathlib import Path
from typing import Any

import pytest

from harken import Engine, Limits
from harken.errors import CapabilityError, StoreUnavailableError
from harken.relational.xml import branches
from unit.relational.xml.test_plans import matcher_of, subscribed

ITEM = "/o/i[s = 'x' and q > 1 and p < 5]"


@pytest.mark.parametrize("plan", ["xpath_shared", "xpath_unrolled"])
def test_many_equal_branching_points_do_not_multiply(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    meet = branches.branches_meet

    def counted(bounds: Any) -> bool:
        nonlocal calls
        calls += 1
        return meet(bounds)

    monkeypatch.setattr(branches, "branches_meet", counted)
    engine = subscribed({"1": ITEM}, plan, "sqlite")
    items = 12
    assert engine.match(b"<o>" + b"<i><s>x</s><q>2</q><p>3</p></i>" * items + b"</o>").ids == ["1"]
    assert calls <= items**2  # it is items ** 3: 80 items take half a minute


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
    matcher_of(engine)._session.database.run("DROP TABLE query_branchpoint")
    return engine


def test_a_replacement_that_fails_leaves_the_one_before() -> None:
    engine = Engine(documents="xpath_shared", database="sqlite")
    engine.subscribe("1", "price > 5")
    broken(engine)
    with pytest.raises(StoreUnavailableError):
        engine.subscribe("1", "/a", language="xpath", replace=True)
    assert engine.subscription("1").where == "price > 5"
    assert engine.match({"price": 6}).ids == ["1"]


def test_subscriptions_that_were_not_taken_do_not_match() -> None:
    engine = broken(Engine(documents="xpath_shared", database="sqlite"))
    with pytest.raises(StoreUnavailableError):
        engine.subscribe_many([{"id": "1", "where": "price > 5"}, {"id": "2", "where": "/a", "language": "xpath"}])
    assert "1" not in engine
    assert engine.match({"price": 6}).ids == []


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


def test_a_later_version_may_match_documents_in_another_way(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    engine = subscribed({"1": "/a"}, "xpath_shared", "sqlite")
    engine.save(folder)
    follower = Engine.load(folder)
    shutil.rmtree(folder)
    other = Engine()
    for id in ("2", "3"):
        other.subscribe(id, "/a", language="xpath")
        other.save(folder)
    follower.refresh()
    assert sorted(follower.match(b"<a/>").ids) == ["2", "3"]


def test_constants_of_subscriptions_that_left_are_forgotten() -> None:
    engine = Engine(documents="xpath_shared", database="sqlite")
    for first in range(0, 2_000, 500):
        ids = [str(number) for number in range(first, first + 500)]
        engine.subscribe_many({"id": id, "where": f"/a = 'constant {id}'", "language": "xpath"} for id in ids)
        for id in ids:
            engine.unsubscribe(id)
    assert len(matcher_of(engine)._rarity._counts) < 1_000


def test_a_database_that_there_is_not_is_told_at_once() -> None:
    with pytest.raises(CapabilityError, match="database"):
        Engine(algorithm="relational_anchored", database="duckbd")
    with pytest.raises(CapabilityError, match="database"):
        Engine(documents="xpath_shared", database="duckbd")
