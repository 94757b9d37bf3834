"""The paper's plans on every database: its own example, changes, what no table can say, and a database that is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harken import Engine
from harken.errors import CapabilityError, StoreUnavailableError
from harken_lab.experiments.documents import model_of, streams
from services.postgres import Postgres

PLANS = ["xpath_shared", "xpath_buckets", "xpath_unrolled"]
# Figures 3.2 and 3.5, with the relative paths that XPath 1.0 asks for.
SUBSCRIPTION = "/a//b[.//c/d/text() = 'v1' and p//q/text() = 'v2']/x[@y = 'v3']//z/text() = 'v4'"
MESSAGE = (
    b"<a><b><c><d>v1</d></c><p><p2><q>v2</q></p2></p><x y='v3'><z>v4</z><z>v5</z></x></b><b><b><x y='v4'/></b></b></a>"
)
TAG_PATHS = ("/a/b/c/d/text()", "/a/b/p/p2/q/text()", "/a/b/x/@y", "/a/b/x/z/text()", "/a/b/b/x/@y")
"""Figure 3.7."""
ELSEWHERE = MESSAGE.replace(b"<x y='v3'>", b"</b><b><x y='v3'>")
"""The same values, where the branches do not meet."""


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def matcher_of(engine: Engine) -> Any:
    return engine._live.index.others()["documents"]


def rows_of(engine: Engine, query: str) -> list[Any]:
    found: list[Any] = matcher_of(engine)._session.database.integers(query).tolist()
    return found


def subscribed(texts: dict[str, str], plan: str, database: str) -> Engine:
    engine = Engine(documents=plan, **({} if plan == "xpath" else {"database": database}))
    report = engine.subscribe_many({"id": id, "where": text, "language": "xpath"} for id, text in texts.items())
    assert not report.faults
    return engine


def answers(engine: Engine, documents: list[bytes]) -> list[list[str]]:
    found = engine.match_batch(documents)
    assert not found.rejected
    return [sorted(ids) for ids in found.ids]


def test_the_papers_example(plan: str, database: str) -> None:
    engine = subscribed({"5": SUBSCRIPTION}, plan, database)
    assert answers(engine, [MESSAGE, ELSEWHERE, b"<a/>"]) == [["5"], [], []]
    # Figure 3.8, with the paths that subscriptions ask for, and the one that every document has.
    # Tag paths that other documents of this process have brought do not count.
    known = "SELECT tagpath_id FROM tagpath_map WHERE tagpath IN ({})".format(", ".join(map("'{}'".format, TAG_PATHS)))
    assert rows_of(engine, f"SELECT count(*) FROM pathmatch WHERE tagpath_id IN ({known})") == [[5]]
    assert rows_of(engine, "SELECT tagpath_id FROM pathmatch WHERE linearpath_id = 0") == [[0]]
    # Figure 3.11, but for {2,4} of /a/b/b/x/@y, which is wrong: x is no child of the first b.
    found = rows_of(engine, f"SELECT way, branchpoint, position FROM tagpath_brinfo WHERE tagpath_id IN ({known})")
    assert sorted(map(tuple, found)) == sorted([(0, 1, 2)] * 4 + [(0, 2, 3)] * 2 + [(0, 1, 3), (0, 2, 4)])
    assert engine.explain("5", MESSAGE).matched


def test_subscriptions_that_begin_alike_share_rows(database: str) -> None:
    texts = {f"s{n}": f"/a[b = 'x' and c = 'y' and d > {n}]" for n in range(10)}
    engine = subscribed(texts, "xpath_shared", database)
    assert rows_of(engine, "SELECT count(*), sum(final) FROM query_predicate") == [[12, 10]]
    assert answers(engine, [b"<a><b>x</b><c>y</c><d>5</d></a>"]) == [[f"s{n}" for n in range(5)]]
    for id in list(texts)[1:]:
        engine.unsubscribe(id)
    assert rows_of(engine, "SELECT count(*), sum(final) FROM query_predicate") == [[3, 1]]
    engine.unsubscribe("s0")
    assert rows_of(engine, "SELECT count(*) FROM query_predicate") == [[0]]
    assert rows_of(engine, "SELECT count(*) FROM query_branchpoint") == [[0]]


def test_inequalities_go_into_about_twenty_buckets(database: str) -> None:
    texts = {f"s{n}": f"/a[b = 'x' and c > {n} and d < {500 - n}]" for n in range(500)}
    engine = subscribed(texts, "xpath_buckets", database)
    plain = subscribed(texts, "xpath_shared", database)
    documents = [f"<a><b>x</b><c>{n}</c><d>{d}</d></a>".encode() for n in (0, 7, 250, 499) for d in (3, 90, 499)]
    assert answers(engine, documents) == answers(plain, documents)
    ((bounds,),) = rows_of(engine, "SELECT count(DISTINCT number) FROM query_predicate WHERE final = 0 AND op = '>'")
    assert 15 < bounds <= 20
    ((plain_bounds,),) = rows_of(
        plain, "SELECT count(DISTINCT number) FROM query_predicate WHERE final = 0 AND op = '>'"
    )
    assert plain_bounds == 500


def test_long_subscriptions_go_on_as_chains(database: str) -> None:
    wanted = " and ".join(f"b{n} = '{n}'" for n in range(9))
    engine = subscribed({"long": f"/a[{wanted}]", "short": "/a/b1"}, "xpath_unrolled", database)
    assert rows_of(engine, "SELECT count(*), sum(final) FROM predicate_unroll") == [[2, 1]]
    assert rows_of(engine, "SELECT count(*) FROM query_predicate") == [[4]]
    whole = "<a>" + "".join(f"<b{n}>{n}</b{n}>" for n in range(9)) + "</a>"
    assert answers(engine, [whole.encode(), whole.replace("<b8>8", "<b8>7").encode()]) == [["long", "short"], ["short"]]
    engine.unsubscribe("long")
    assert rows_of(engine, "SELECT count(*) FROM query_predicate") == [[0]]


def test_values_compare_as_in_xpath(plan: str, database: str) -> None:
    texts = {
        text: text
        for text in (
            *("/a = '5'", "/a = 5", "/a != '5'", "/a != 5", "/a < 6", "/a >= '5'", "/a < 'x'", "/a", "/a/@b = 5"),
            *("//text() = ' 5 '", "/a = -0", "/a = ''", f"/a = '{'é' * 3000}'", f"/a != '{'é' * 3000}'"),
            *('/a = "\'; DROP TABLE query_predicate; --"', "/a = 'NULL'", "/a = '%'", "//* > 1e0", "/a > 1"),
        )
        if "1e0" not in text
    }
    values = [
        "5",
        " 5 ",
        "5.0",
        "x",
        "",
        "-0",
        "0",
        "6",
        "é" * 3000,
        "é" * 2999 + "e",
        "'; DROP TABLE query_predicate; --",
    ]
    documents = [f"<a b='5.00'>{value}</a>".encode() for value in [*values, "NULL", "%", "9" * 400]]
    engine, judge = subscribed(texts, plan, database), subscribed(texts, "xpath", "duckdb")
    assert answers(engine, documents) == answers(judge, documents)
    assert sum(map(len, answers(judge, documents))) > 60


def test_both_sides_bring_new_paths(plan: str, database: str) -> None:
    engine = subscribed({"1": "/a//c = '1'"}, plan, database)
    documents = [b"<a><c>1</c></a>", b"<a><b><c>1</c></b></a>", b"<a><b><d><c>1</c></d></b></a>"]
    for place, document in enumerate(documents):  # a new tag path each time
        assert answers(engine, [document]) == [["1"]]
        engine.subscribe(f"new {place}", f"/a/{'*/' * place}c[. = 1]", language="xpath")  # and a new linear path
    assert answers(engine, documents) == [["1", "new 0"], ["1", "new 1"], ["1", "new 2"]]
    engine.subscribe("1", "//d[c = '1']", language="xpath", replace=True)
    assert answers(engine, documents) == [["new 0"], ["new 1"], ["1", "new 2"]]


def test_paths_that_nobody_asks_for_are_collected(database: str) -> None:
    engine = subscribed({"kept": "/a/b = '1'"}, "xpath_shared", database)
    assert answers(engine, [b"<a><b>1</b></a>"]) == [["kept"]]
    for first in range(0, 400, 100):
        texts = {f"s{n}": f"/a/b{n}[c = '1' and d = '2']" for n in range(first, first + 100)}
        engine.subscribe_many({"id": id, "where": text, "language": "xpath"} for id, text in texts.items())
        for id in texts:
            engine.unsubscribe(id)
    ((paths,),) = rows_of(engine, "SELECT count(*) FROM query_linear_path")
    ((points,),) = rows_of(engine, "SELECT count(*) FROM linearpath_brinfo")
    assert paths < 400
    assert points < 400
    assert engine.stats()["documents"]["linear_paths"] == 1
    assert answers(engine, [b"<a><b>1</b></a>"]) == [["kept"]]


def test_many_equal_nodes_do_not_multiply(plan: str, database: str) -> None:
    wanted = " and ".join(f"b{n}" for n in range(6))
    engine = subscribed(
        {"all": f"/a[{wanted}]", "deep": f"/a[.//b1/text() = 'x' and {wanted}]/b2 = 'x'"}, plan, database
    )
    many = "".join(f"<b{n}>x</b{n}>" for n in range(6)) * 50  # 50 to the power of 6 choices of rows
    assert answers(engine, [f"<a>{many}</a>".encode()]) == [["all", "deep"]]


def test_not_is_rejected_for_what_it_is_and_the_rest_is_kept(plan: str, database: str) -> None:
    engine = Engine(documents=plan, database=database)
    report = engine.subscribe_many(
        [
            {"id": "1", "where": "/a/b = '1'", "language": "xpath"},
            {"id": "2", "where": "/a[not(b)]", "language": "xpath"},
            {"id": "3", "where": "price < 5"},
        ]
    )
    (fault,) = report.faults
    assert fault.id == "2"
    assert isinstance(fault.error, CapabilityError)
    assert "xpath" in (fault.error.hint or "")
    assert answers(engine, [b"<a><b>1</b></a>"]) == [["1"]]
    assert engine.match({"price": 3}).ids == ["3"]


def test_a_table_that_is_lost_is_filled_again(plan: str, database: str) -> None:
    engine = subscribed({"1": "/a/b = '1'", "2": "/a[b = '1' or c > 2]"}, plan, database)
    documents = [b"<a><b>1</b></a>", b"<a><c>3</c></a>"]
    assert answers(engine, documents) == [["1", "2"], ["2"]]
    matcher_of(engine)._session.database.run("DROP TABLE pathmatch")
    with pytest.raises(StoreUnavailableError, match="failed"):
        engine.match_batch(documents)
    engine.subscribe("3", "/a/c", language="xpath")
    engine.unsubscribe("1")
    assert answers(engine, documents) == [["2"], ["2", "3"]]


@pytest.mark.processes
def test_a_session_that_is_cut_is_made_again(plan: str, url: str, postgres: Postgres) -> None:
    import psycopg

    engine = subscribed({"1": "/a/b = '1'"}, plan, url)
    assert answers(engine, [b"<a><b>1</b></a>"]) == [["1"]]
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(StoreUnavailableError):
        engine.match(b"<a/>")
    assert answers(engine, [b"<a><b>1</b></a>"]) == [["1"]]


def test_saved_and_loaded_it_is_filled_from_the_texts(plan: str, database: str, tmp_path: Path) -> None:
    engine = subscribed({"1": "/a/b = '1'"}, plan, database)
    engine.subscribe("2", "price < 5")
    engine.save(tmp_path / "engine")
    saved = b"".join(path.read_bytes() for path in (tmp_path / "engine").rglob("*") if path.is_file())
    assert b"postgresql://" not in saved
    if "://" in database:
        with pytest.raises(CapabilityError, match="URL"):
            Engine.load(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine", **({"database": database} if "://" in database else {}))
    assert loaded._live.documents.algorithm == plan
    assert answers(loaded, [b"<a><b>1</b></a>"]) == [["1"]]
    assert loaded.match({"price": 1}).ids == ["2"]


def test_both_kinds_share_the_option(database: str) -> None:
    engine = Engine(algorithm="relational_anchored", documents="xpath_unrolled", database=database)
    engine.subscribe("1", "/a = '1'", language="xpath")
    engine.subscribe("2", "price < 5")
    assert engine.match(b"<a>1</a>").ids == ["1"]
    assert engine.match({"price": 1}).ids == ["2"]


def test_a_name_that_is_none_is_told() -> None:
    with pytest.raises(CapabilityError, match="xpath_rolled"):
        Engine(documents="xpath_rolled")
    with pytest.raises(CapabilityError, match="database"):
        Engine(documents="xpath", database="duckdb")


@pytest.mark.seconds
def test_nasa_gives_what_xpath_gives(plan: str, database: str) -> None:
    if "HARKEN_DATA" not in os.environ:
        pytest.skip("HARKEN_DATA is not set")
    model: Any = model_of("nasa")
    documents = model.collection()[:60]
    texts = {f"s{n}": text for n, text in enumerate(model.xpaths().texts(400, streams(3)[0]))}
    engine, judge = subscribed(texts, plan, database), subscribed(texts, "xpath", "duckdb")
    assert answers(engine, documents) == answers(judge, documents)
    for document in documents[:5]:  # a message at a time
        assert sorted(engine.match(document).ids) == sorted(judge.match(document).ids)
