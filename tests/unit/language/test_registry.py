"""A language is a line in the registry: the engine takes, verifies, explains and saves its texts without knowing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken import Engine
from harken.errors import ParseError, SubscriptionError, UnavailableError
from harken.language import Compiler
from harken.language.capabilities import Capability
from harken.language.registry import LANGUAGES, Language
from harken.matchers import ALGORITHMS

TEXT = "colour? size>3 title/^la/"
EVENT = {"colour": "red", "size": 5, "title": "lamp"}


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "toy", Language("unit.language.toy:ToyFrontEnd", "unit.language.toy:explain_toy"))


def test_a_language_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(UnavailableError, match="the language 'cypher' is not available") as caught:
        Compiler().compile("/a", "cypher")
    assert caught.value.hint == "this version speaks 'sql', 'xpath', 'toy'"


def test_a_language_that_was_mistyped() -> None:
    (fault,) = Compiler().faults("a = 1", "sqll")
    assert fault.hint == "did you mean `sql`?"


@pytest.mark.parametrize("language", [["sql"], {"sql": 1}, 5])
def test_a_language_that_is_no_string_is_a_fault_of_its_record(language: object) -> None:
    report = Engine().subscribe_many([{"id": "a", "where": "a = 1", "language": language}, ("b", "b = 1")])
    assert (report.accepted, [type(fault.error) for fault in report.faults]) == (1, [SubscriptionError])


def test_a_front_end_is_made_when_it_is_first_used_and_kept() -> None:
    compiler = Compiler()
    assert "toys" not in compiler.stats()
    for _ in range(2):
        assert compiler.compile(TEXT, "toy").language == "toy"
    assert compiler.stats() == {"shapes": {"hits": 0, "misses": 0}, "toys": 2}


def test_a_text_goes_to_its_own_front_end() -> None:
    compiler = Compiler()
    assert compiler.compile(TEXT, "toy").capabilities == {Capability.PRESENCE, Capability.RANGE, Capability.PATTERN}
    assert compiler.compile(TEXT, "toy").plan.names() == {"colour", "size", "title"}
    assert compiler.print("a=1", "duckdb") == """"a" = CAST('1' AS BIGINT)"""
    assert compiler.print("a?", "duckdb", "toy") == "duckdb: a?"
    assert [type(each) for each in compiler.faults("!", "toy")] == [ParseError]
    assert compiler.faults("a = 1") == compiler.faults("a?", "toy") == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_engine_takes_it_and_its_residual_is_verified(algorithm: str) -> None:
    engine = Engine(algorithm=algorithm)
    engine.subscribe("sql", "size < 9 AND title LIKE '%m%'")
    engine.subscribe("toy", TEXT, language="toy")
    assert sorted(engine.match(EVENT).ids) == ["sql", "toy"]
    titles = ["lamp", "a lamp", "lark", 5, None, ["bulb", "lamp"]]
    found = engine.match_batch([EVENT | {"title": title} for title in titles]).ids
    assert [sorted(ids) for ids in found] == [["sql", "toy"], ["sql"], ["toy"], [], [], ["sql", "toy"]]
    assert engine.match(EVENT | {"size": 3}).ids == ["sql"]


def test_an_engine_explains_it() -> None:
    engine = Engine()
    engine.subscribe("toy", TEXT, language="toy")
    assert engine.explain("toy", EVENT).tree.text == TEXT
    assert engine.explain("toy", {"other": 1}).matched is False


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    engine = Engine()
    report = engine.subscribe_many([{"id": "toy", "where": TEXT, "language": "toy"}, ("sql", "size = 5")])
    assert report.accepted == 2
    engine.save(tmp_path / "index")
    loaded = Engine.load(tmp_path / "index")
    assert sorted(loaded.match(EVENT).ids) == ["sql", "toy"]
    assert loaded.match(EVENT | {"title": "x"}).ids == ["sql"]
