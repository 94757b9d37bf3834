"""Indexes of XPath subscriptions on disk: saved, mapped into memory, followed, cut and joined."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from harken import Engine
from harken.errors import OutdatedError, SegmentError
from harken.internals import join_engines
from harken.matchers.documents import saving
from harken.matchers.documents.matcher import XPathMatcher

TEXTS = {
    "paper": "/a//b[.//c/d/text() = 'v1' and p//q/text() = 'v2']/x[@y = 'v3']//z/text() = 'v4'",
    "number": "/a/@n > 5",
    "equal": "/a/@n = 7",
    "differs": "//z != 'v4'",
    "never": "not(//zzz)",
    "spaced": "declare namespace p = 'urn:p'; //p:é[. = 'ü']",
    "any": "//*[@*]/text()",
    "either": "/a[@n = 1 or .//z = 'v5' and not(@m)]",
}
DOCUMENTS = [
    b"<a n='7'><b><c><d>v1</d></c><p><q>v2</q></p><x y='v3'><z>v4</z></x></b></a>",
    b"<a n='1'><z>v5</z></a>",
    "<a n='x'><p:é xmlns:p='urn:p'>ü</p:é><zzz m='1'>t</zzz></a>".encode(),
    b"<b/>",
]


def made(texts: dict[str, str] = TEXTS) -> Engine:
    engine = Engine()
    for id, text in texts.items():
        engine.subscribe(id, text, language="xpath")
    return engine


def answers(engine: Engine) -> list[list[str]]:
    return [sorted(ids) for ids in engine.match_batch(DOCUMENTS).ids]


def matcher_of(engine: Engine) -> XPathMatcher:
    found = engine._live.index.matchers()["documents"]
    assert isinstance(found, XPathMatcher)
    return found


EXPECTED = [
    ["equal", "never", "number", "paper"],
    ["differs", "either", "never"],
    ["any", "spaced"],
    ["never"],
]


def test_saved_and_loaded(tmp_path: Path) -> None:
    engine = made()
    assert answers(engine) == EXPECTED
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert answers(loaded) == EXPECTED
    assert loaded.subscription("paper").language == "xpath"
    assert loaded.stats()["documents"]["subscriptions"] == len(TEXTS)
    assert loaded.internals.document_paths() == (("document",),)
    assert [loaded.match(each).ids for each in DOCUMENTS[3:]] == [["never"]]
    before, after = matcher_of(engine).snapshot().index, matcher_of(loaded).snapshot().index
    assert before.segments[0].index.postings.code.tolist() == after.segments[0].index.postings.code.tolist()


def test_a_loaded_engine_takes_more_and_lets_go(tmp_path: Path) -> None:
    made().save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    loaded.subscribe("more", "/a/@n = 'x' and //zzz/@m = 1", language="xpath")
    loaded.subscribe("longer", "//z = 'a value that is longer than all before'", language="xpath")
    loaded.unsubscribe("never")
    loaded.subscribe("any", "//b/c", language="xpath", replace=True)
    expected = [["any", "equal", "number", "paper"], ["differs", "either"], ["more", "spaced"], []]
    assert answers(loaded) == expected
    assert sorted(loaded.match(b"<z>a value that is longer than all before</z>").ids) == ["differs", "longer"]
    loaded.save(tmp_path / "engine")
    assert answers(Engine.load(tmp_path / "engine")) == expected
    loaded.merge()
    assert answers(loaded) == expected


def test_followed(tmp_path: Path) -> None:
    engine = made()
    engine.save(tmp_path / "engine")
    follower = Engine.load(tmp_path / "engine", follow=True)
    assert answers(follower) == EXPECTED
    engine.unsubscribe("never")
    engine.subscribe("b", "/b", language="xpath")
    engine.save(tmp_path / "engine")
    assert answers(follower)[3] == ["b"]
    assert follower.match(b"<b/>").ids == ["b"]
    for id in [*TEXTS, "b"]:
        if id in engine:
            engine.unsubscribe(id)
    engine.subscribe("flat", "n = 1")
    engine.save(tmp_path / "engine")
    assert answers(follower) == [[], [], [], []]
    assert follower.match({"n": 1}).ids == ["flat"]
    engine.subscribe("again", "/b", language="xpath")
    engine.save(tmp_path / "engine")
    assert answers(follower) == [[], [], [], ["again"]]


def test_cut_and_joined() -> None:
    texts = TEXTS | {f"many{number}": f"/a[@n >= {number} and not(q{number})]" for number in range(12)}
    engine = made(texts)
    engine.subscribe("flat", "n = 1")
    engine.subscribe("program", "xpath_boolean(doc, '/a')")
    expected = answers(engine)
    parts = engine.internals.cut(3)
    assert [sorted(chain.from_iterable(each)) for each in zip(*map(answers, parts), strict=True)] == expected
    assert sum(part.stats().get("documents", {"subscriptions": 0})["subscriptions"] for part in parts) == len(texts)
    joined, twice = join_engines(parts)
    assert not twice
    assert answers(joined) == expected
    assert sorted(joined.match({"n": 1, "doc": "<a/>"}).ids) == ["flat", "program"]
    joined.subscribe("more", "/b", language="xpath")
    joined.unsubscribe("never")
    assert answers(joined)[3] == ["more"]


def test_joined_engines_keep_the_first_of_an_id() -> None:
    left, right = made({"x": "/b", "l": "/a"}), made({"x": "/a", "r": "//z"})
    joined, twice = join_engines([left, right])
    assert twice == ["x"]
    assert answers(joined) == [["l", "r"], ["l", "r"], ["l"], ["x"]]


def test_what_was_learnt_is_kept(tmp_path: Path) -> None:
    engine = Engine()
    texts = ((f"{number}", f"/a[@b = 'often' and c/@d = 'v{number}' and @e > 0]") for number in range(300))
    engine.subscribe_many({"id": id, "where": text, "language": "xpath"} for id, text in texts)
    documents = [f"<a b='often' e='1'><c d='v{number}'/></a>".encode() for number in range(400)]
    engine.learn(documents)
    learnt = matcher_of(engine)._tally.frequencies
    assert learnt.documents >= 400
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    again = matcher_of(loaded)._tally.frequencies
    assert again.documents == learnt.documents
    assert sorted(again.values.tolist()) == sorted(learnt.values.tolist())
    assert sorted(again.keys.tolist()) == sorted(learnt.keys.tolist())
    found = loaded.match_batch(documents)
    assert max(found.candidates) == 1
    assert found.counts == [1] * 300 + [0] * 100
    (half, _) = loaded.internals.cut(2)
    assert matcher_of(half)._tally.frequencies.documents >= learnt.documents


def test_an_empty_index_of_documents_is_saved(tmp_path: Path) -> None:
    engine = made({"a": "/a"})
    engine.unsubscribe("a")
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert answers(loaded) == [[], [], [], []]
    loaded.subscribe("a", "/b", language="xpath")
    assert answers(loaded) == [[], [], [], ["a"]]


def saved_in_layout(layout: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(saving, "LAYOUT", layout)
        made().save(path)


def test_an_index_of_a_later_layout_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved_in_layout(saving.LAYOUT + 1, tmp_path / "engine", monkeypatch)
    for options in ({}, {"rebuild": False}):
        with pytest.raises(SegmentError, match=f"layout {saving.LAYOUT + 1}") as caught:
            Engine.load(tmp_path / "engine", **options)
        assert not isinstance(caught.value, OutdatedError)


def test_an_index_of_an_earlier_layout_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved_in_layout(saving.LAYOUT - 1, tmp_path / "engine", monkeypatch)
    assert answers(Engine.load(tmp_path / "engine")) == EXPECTED
    with pytest.raises(OutdatedError):
        Engine.load(tmp_path / "engine", rebuild=False)


@pytest.mark.parametrize("algorithm", ["naive", "counting_lists", "matching_tree"])
def test_with_other_algorithms(algorithm: str, tmp_path: Path) -> None:
    engine = Engine(algorithm=algorithm)
    for id, text in TEXTS.items():
        engine.subscribe(id, text, language="xpath")
    engine.subscribe("flat", "n = 1")
    assert answers(engine) == EXPECTED
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert loaded.algorithm == algorithm
    assert answers(loaded) == EXPECTED
    assert loaded.match({"n": 1}).ids == ["flat"]


def test_a_damaged_file_is_rejected(tmp_path: Path) -> None:
    made().save(tmp_path / "engine")
    files = [path for path in (tmp_path / "engine").rglob("*") if path.is_file() and "documents" in path.name]
    assert files
    for path in files:
        data: Any = bytearray(path.read_bytes())
        path.write_bytes(data[: len(data) // 2])
    with pytest.raises(SegmentError):
        Engine.load(tmp_path / "engine")
