"""Tables of documents in files: opened again as they were, rejected if they do not fit, larger than the memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harken import Engine
from harken.errors import CapabilityError, SegmentError, StoreUnavailableError
from harken_lab.plans.xml import plan_matcher
from plans.xml.random_documents import drawn_documents, drawn_texts
from plans.xml.test_plan_options import OPTIONS, engine_of
from plans.xml.test_plans import answers, matcher_of, rows_of

TEXTS = {f"s{n}": f"/a[b = 'x{n % 3}' and c > {n} and d != 'q']" for n in range(12)}
DOCUMENTS = [f"<a><b>x{n}</b><c>{4 * n}</c><d>p</d></a>".encode() for n in range(3)]


@pytest.fixture(params=["duckdb", "sqlite"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a file."""
    return f"{request.param}:///{tmp_path}/tables.db"


def removed(url: str) -> None:
    path = Path(url.partition(":///")[2])
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


@pytest.mark.parametrize("options", OPTIONS[1:5], ids=lambda each: " ".join(map(str, each.values())))
def test_an_engine_goes_on_where_it_was(options: dict[str, Any], file: str, tmp_path: Path) -> None:
    texts = {f"s{place}": text for place, text in enumerate(dict.fromkeys(drawn_texts(60, 3)))}
    more = {f"t{place}": text for place, text in enumerate(drawn_texts(30, 4))}
    documents = drawn_documents(20, 5)
    engine, judge = engine_of(texts, **options, database=file), engine_of(texts, documents="xpath")
    expected = answers(judge, documents)
    assert answers(engine, documents) == expected
    before = engine.stats()["documents"]
    engine.save(tmp_path / "engine")
    del engine
    loaded = Engine.load(tmp_path / "engine", database=file)
    sizes = ("subscriptions", "rows", "linear_paths", "tag_paths")
    assert {name: loaded.stats()["documents"][name] for name in sizes} == {name: before[name] for name in sizes}
    (filled,) = rows_of(loaded, "SELECT sequence, subscriptions FROM harken_documents")
    assert filled == [1, len(texts)], "nothing was filled again"
    assert answers(loaded, documents) == expected
    for each in (loaded, judge):
        each.subscribe_many({"id": id, "where": text, "language": "xpath"} for id, text in more.items())
        for id in list(texts)[::8]:
            each.unsubscribe(id)
    expected = answers(judge, documents)
    assert answers(loaded, documents) == expected
    loaded.save(tmp_path / "engine")
    del loaded
    assert answers(Engine.load(tmp_path / "engine", database=file), documents) == expected


def test_a_new_engine_does_not_take_a_file_with_subscriptions(file: str) -> None:
    engine = engine_of(TEXTS, documents="xpath_shared", database=file)
    for plan in ("xpath_shared", "xpath_unrolled"):
        with pytest.raises(CapabilityError, match="12 subscriptions of another engine") as caught:
            Engine(documents=plan, database=file)
        assert "delete the file" in (caught.value.hint or "")
    for id in TEXTS:
        engine.unsubscribe(id)
    del engine
    empty = Engine(documents="xpath_unrolled", database=file)  # there is nothing to mix with
    empty.subscribe("1", "/a", language="xpath")
    assert answers(empty, DOCUMENTS[:1]) == [["1"]]


def test_an_engine_and_a_file_that_disagree_are_an_error(file: str, tmp_path: Path) -> None:
    engine = engine_of(TEXTS, documents="xpath_shared", database=file)
    expected = answers(engine, DOCUMENTS)
    engine.save(tmp_path / "engine")
    engine.subscribe("later", "/a", language="xpath")  # and not saved
    del engine
    with pytest.raises(SegmentError, match="changed after the engine was saved") as caught:
        Engine.load(tmp_path / "engine", database=file)
    assert "delete the file" in (caught.value.hint or "")
    removed(file)
    filled = Engine.load(tmp_path / "engine", database=file)
    assert answers(filled, DOCUMENTS) == expected
    del filled
    removed(file)
    with pytest.raises(CapabilityError, match="URL"):
        Engine.load(tmp_path / "engine")
    elsewhere = Engine.load(tmp_path / "engine", database="sqlite")
    assert answers(elsewhere, DOCUMENTS) == expected


def test_options_that_make_other_rows_do_not_fit(file: str, tmp_path: Path) -> None:
    engine = engine_of(TEXTS, documents="xpath_unrolled", k=3, database=file)
    engine.save(tmp_path / "engine")
    expected = answers(engine, DOCUMENTS)
    del engine
    with pytest.raises(SegmentError):
        Engine.load(tmp_path / "engine", k=4, database=file)
    assert answers(Engine.load(tmp_path / "engine", crossed=True, database=file), DOCUMENTS) == expected


def test_after_a_failure_a_file_is_used_as_it_is(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(TEXTS, documents="xpath_shared", database=file)
    expected = answers(engine, DOCUMENTS)
    database = matcher_of(engine)._session.database
    database.run("DROP TABLE sax_parse_result")  # temporary: the session is gone
    with pytest.raises(StoreUnavailableError):
        answers(engine, DOCUMENTS)
    assert answers(engine, DOCUMENTS) == expected
    assert rows_of(engine, "SELECT sequence FROM harken_documents") == [[1]], "nothing was filled again"
    database.run("DROP TABLE query_predicate")
    engine.subscribe("new", "/a/b", language="xpath")  # fails, and holds all the same
    assert answers(engine, DOCUMENTS) == [sorted([*ids, "new"]) for ids in expected]
    assert rows_of(engine, "SELECT subscriptions FROM harken_documents") == [[13]]


def test_a_file_that_another_process_changed_is_an_error(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tables.db"  # DuckDB lets one process open a file
    engine = engine_of(TEXTS, documents="xpath_shared", database=url)
    engine.save(tmp_path / "engine")
    other = Engine.load(tmp_path / "engine", database=url)
    other.unsubscribe("s1")
    with pytest.raises(CapabilityError, match="changed by another engine"):
        engine.match(DOCUMENTS[0])


def test_attributes_and_documents_share_a_file(file: str, tmp_path: Path) -> None:
    engine = Engine(algorithm="relational_anchored", documents="xpath_unrolled", database=file)
    engine.subscribe("1", "/a = '1'", language="xpath")
    engine.subscribe("2", "price < 5")
    engine.save(tmp_path / "engine")
    del engine
    loaded = Engine.load(tmp_path / "engine", database=file)
    assert loaded.match(b"<a>1</a>").ids == ["1"]
    assert loaded.match({"price": 1}).ids == ["2"]


@pytest.mark.parametrize("url", ["sqlite:///", "duckdb:////no/such/folder/x.db", "sqlite:///."])
def test_a_url_without_a_file_is_an_error(url: str) -> None:
    with pytest.raises(CapabilityError, match="no file") as caught:
        Engine(documents="xpath_shared", database=url)
    assert "folder" in (caught.value.hint or "")


def test_settings_of_duckdb_follow_a_question_mark(tmp_path: Path) -> None:
    engine = engine_of(TEXTS, documents="xpath_shared", database=f"duckdb:///{tmp_path}/t.db?memory_limit=300MB")
    ((limit,),) = matcher_of(engine)._session.database.rows("SELECT current_setting('memory_limit')")
    assert limit.startswith("28"), limit  # mebibytes
    assert (tmp_path / "t.db").exists()


COUNT = 3_000
WITHIN_LIMIT = """
import resource, sys
from harken import Engine
folder, database, allowed = sys.argv[1], sys.argv[2], int(sys.argv[3])
warm = Engine(documents="xpath_unrolled", database="sqlite")
warm.subscribe("1", "/a[b = 'x' and c > 1]", language="xpath")
document = b"<a><b>x7</b><c>9999</c><d>p</d></a>"
assert warm.match(b"<a><b>x</b><c>2</c></a>").ids == ["1"]
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + allowed
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
print(len(Engine.load(folder, database=database).match(document).ids))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is read from /proc")
def test_more_subscriptions_than_the_memory_admits(tmp_path: Path) -> None:
    """In a process that may take few more bytes, a file is matched; tables in memory are not even filled."""
    url = f"sqlite:///{tmp_path}/tables.db"
    engine = Engine(documents="xpath_unrolled", database=url)
    texts = (f"/a[b = 'x{n % 100}' and c > {n} and d != 'a constant that is not short: {n:080}']" for n in range(COUNT))
    engine.subscribe_many({"id": str(n), "where": text, "language": "xpath"} for n, text in enumerate(texts))
    engine.save(tmp_path / "engine")
    del engine
    allowed = 9 << 20

    def run(database: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHIN_LIMIT, str(tmp_path / "engine"), database, str(allowed)]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)

    on_disk = run(url)
    assert on_disk.stdout == f"{COUNT // 100}\n", on_disk.stderr
    in_memory = run("sqlite")
    assert in_memory.returncode != 0
    assert "emory" in in_memory.stderr, in_memory.stderr


def test_a_file_that_was_filled_in_part_is_filled_again(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(TEXTS, documents="xpath_shared", database=file)
    expected = answers(engine, DOCUMENTS)
    matcher = matcher_of(engine)
    matcher._session.database.run("DROP TABLE query_predicate")
    engine.unsubscribe("s11")
    with monkeypatch.context() as patched:
        patched.setattr(plan_matcher, "_AT_ONCE", 4)
        work = matcher._insert

        def failing(database: Any, forms: Any) -> None:
            work(database, forms)
            if 6 in forms:
                database.run("SELECT * FROM nothing_of_this_name")

        patched.setattr(matcher, "_insert", failing)
        with pytest.raises(StoreUnavailableError):
            answers(engine, DOCUMENTS)
    assert answers(engine, DOCUMENTS) == [[id for id in ids if id != "s11"] for ids in expected]
    assert rows_of(engine, "SELECT subscriptions FROM harken_documents") == [[11]]
