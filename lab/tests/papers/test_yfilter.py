"""The automaton of shared prefixes: what is shared, which states documents reach, and that nothing is left behind."""

from __future__ import annotations

from typing import Any

import pytest

from harken import Engine
from harken.language.xpath.linear import LinearPath
from harken.matchers.document_algorithms import DOCUMENT_ALGORITHMS
from harken_lab.papers import yfilter
from harken_lab.papers.path_automaton import PathAutomaton
from harken_lab.papers.yfilter import YFilter


@pytest.fixture(autouse=True)
def _announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DOCUMENT_ALGORITHMS, "yfilter", "harken_lab.papers.yfilter:YFilter")


def engine_of(*texts: str) -> Engine:
    engine = Engine(documents="yfilter")
    for number, text in enumerate(texts):
        engine.subscribe(f"s{number}", text, language="xpath")
    return engine


def matches(engine: Engine, *documents: bytes) -> list[list[str]]:
    return [sorted(ids) for ids in engine.match_batch(documents).ids]


def stats(engine: Engine) -> dict[str, Any]:
    told: dict[str, Any] = engine.stats()["documents"]
    return told


# The automaton


def test_paths_share_the_steps_that_they_begin_with() -> None:
    automaton = PathAutomaton()
    ends = [automaton.add(LinearPath.parse(text)) for text in ("/a/b/c", "/a/b/d", "/a/b", "/a//c", "/a/*", "/a/b/c")]
    assert automaton.live_states == 1 + 2 + 2 + 2 + 1
    assert ends[0] == ends[5]
    assert len(set(ends)) == 5


def test_a_path_takes_its_own_states_with_it_and_their_numbers_are_given_again() -> None:
    automaton = PathAutomaton()
    first, second, again = (automaton.add(LinearPath.parse(text)) for text in ("/a/b/c", "/a/b//d", "/a/b/c"))
    automaton.remove(first)
    assert automaton.live_states == 6
    automaton.remove(again)
    assert automaton.live_states == 5
    states = automaton.states
    automaton.add(LinearPath.parse("/x"))
    assert automaton.states == states
    automaton.remove(second)
    assert automaton.live_states == 2


def test_loops_are_the_states_behind_double_slashes() -> None:
    automaton = PathAutomaton()
    automaton.add(LinearPath.parse("/a//b//@*"))
    assert automaton.arrays.loops.sum() == 2


# Candidates


def test_candidates_are_the_subscriptions_whose_paths_a_document_has() -> None:
    engine = engine_of("/a/b = 1", "/a/b = 2", "/a/c = 1", "/a[b = 1 and c = 1]", "not(/a/b = 1)", "/a/b = 7 or /a/d")
    assert matches(engine, b"<a><b>1</b></a>") == [["s0"]]
    assert stats(engine)["seen_programs"] == 4, "s0, s1, s5 by its first alternative, and s4, which has no path"
    assert matches(engine, b"<a><d/></a>", b"<x/>") == [["s4", "s5"], ["s4"]]


def test_branches_have_to_meet() -> None:
    engine = engine_of("/a/b[c = 1 and d = 2]")
    apart, together = b"<a><b><c>1</c></b><b><d>2</d></b></a>", b"<a><b><c>1</c><d>2</d></b></a>"
    assert matches(engine, apart, together) == [[], ["s0"]]
    assert stats(engine)["seen_programs"] == 1


def test_steps_of_all_sorts() -> None:
    engine = engine_of("//b", "/a//b", "/*/b", "//@k", "/a/@*", "//text() = 'x'", "/a//c//b", "/")
    assert matches(engine, b"<a k='1'><b>x</b></a>") == [["s0", "s1", "s2", "s3", "s4", "s5", "s7"]]
    assert matches(engine, b"<a><c><c><b/></c></c></a>") == [["s0", "s1", "s6", "s7"]]
    assert matches(engine, b"<b/>") == [["s0", "s7"]]


def test_deep_documents_and_many_active_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yfilter, "_LEAST_STACK", 8)
    monkeypatch.setattr(yfilter, "_LEAST_DEPTH", 2)
    engine = engine_of(*("/" + "/".join(["", *"a" * depth]) for depth in range(1, 30)), "//a//a//a//b")
    deep = b"<a>" * 60 + b"<b/>" + b"</a>" * 60
    assert len(matches(engine, deep)[0]) == 30
    assert stats(engine)["nodes"] >= 61


def test_subscriptions_come_and_go() -> None:
    engine = engine_of("/a/b", "/a/c")
    document = b"<a><b/><c/></a>"
    assert matches(engine, document) == [["s0", "s1"]]
    engine.unsubscribe("s0")
    engine.subscribe("s1", "/a/d", language="xpath", replace=True)
    engine.subscribe("s2", "//c", language="xpath")
    assert matches(engine, document, b"<a><d/></a>") == [["s2"], ["s1"]]
    for id in ("s1", "s2"):
        engine.unsubscribe(id)
    assert matches(engine, document) == [[]]
    assert stats(engine)["states"] == 1


def test_an_empty_matcher() -> None:
    matcher = YFilter()
    assert matcher.stats()["subscriptions"] == len(matcher) == 0
    assert matcher.document_paths() == ()
