"""XPath inside SQL: `xpath_boolean` in the index of programs, with every algorithm beside it."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from harken import Engine, Limits
from harken.errors import DecodeError, LimitError
from harken.internals import join_engines
from harken.language import Compiler
from harken.matchers import ALGORITHMS

TEXTS = {
    "plain": "xpath_boolean(doc, '/order[total > 100]')",
    "and": "region = 'EU' AND xpath_boolean(doc, '/order[total > 100]')",
    "or": "region = 'US' OR xpath_boolean(doc, '//item = ''toy''')",
    "not": "region = 'EU' AND NOT xpath_boolean(doc, '//item = ''toy''')",
    "two": "xpath_boolean(doc, '//item') AND NOT xpath_boolean(doc, '//item[@sku = 7]')",
    "other": "xpath_boolean(note, '/n') AND xpath_boolean(doc, '/order')",
    "like": "doc LIKE '%toy%' AND xpath_boolean(doc, '/order/total < 100') AND region RLIKE '^[EU]'",
    "flat": "region = 'EU'",
}
EVENTS: list[dict[str, Any]] = [
    {"region": "EU", "doc": "<order><total>250</total><item sku='7'>lamp</item></order>", "note": "<n/>"},
    {"region": "EU", "doc": "<order><total>50</total><item>toy</item></order>"},
    {"region": "US", "doc": "<order/>", "note": "<m/>"},
    {"region": "US"},
    {"region": "EU", "doc": ["<order><total>101</total></order>", "<order><total>1</total><item>toy</item></order>"]},
    {"region": "EU", "doc": 5, "note": "<n/>"},
]
EXPECTED = [
    ["and", "flat", "not", "other", "plain"],
    ["flat", "like", "or", "two"],
    ["or"],
    ["or"],
    ["and", "flat", "like", "not", "or", "plain", "two"],
    ["flat"],
]


def made(algorithm: str = "columnar", texts: dict[str, str] = TEXTS, **options: Any) -> Engine:
    engine = Engine(algorithm=algorithm, **options)
    assert not engine.subscribe_many(texts.items()).faults
    return engine


def answers(engine: Engine) -> list[list[str]]:
    found = engine.match_batch(EVENTS)
    assert not found.rejected
    assert not found.errors
    return [sorted(ids) for ids in found.ids]


@pytest.mark.parametrize("text", list(TEXTS.values())[:-1])
def test_they_go_to_programs(text: str) -> None:
    plan = Compiler().compile(text).plan
    assert plan.kind == "programs"


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_every_algorithm_finds_the_same(algorithm: str) -> None:
    engine = made(algorithm)
    assert answers(engine) == EXPECTED
    assert [sorted(engine.match(event).ids) for event in EVENTS] == EXPECTED
    assert engine.stats()["programs"]["subscriptions"] == 7
    assert set(engine.internals.document_paths()) == {("doc",), ("note",)}


def test_the_same_document_is_read_for_several() -> None:
    engine = made(texts={f"{number}": f"xpath_boolean(doc, '/a/b > {number}') AND n < 5" for number in range(50)})
    engine.subscribe("direct", "/a/b > 20", language="xpath")
    assert len(engine.match({"doc": "<a><b>30</b></a>", "n": 1}).ids) == 30
    assert len(engine.match({"doc": "<a><b>30</b></a>", "document": "<a><b>30</b></a>", "n": 1}).ids) == 31
    assert engine.match({"document": "<a><b>30</b></a>", "n": 1}).ids == ["direct"]


def test_the_documents_attribute_may_be_asked_in_both_languages() -> None:
    engine = Engine()
    engine.subscribe("sql", "xpath_boolean(document, '/a')")
    engine.subscribe("xpath", "/a", language="xpath")
    assert sorted(engine.match(b"<a/>").ids) == ["sql", "xpath"]
    assert [sorted(ids) for ids in engine.match_batch([b"<a/>", b"<b/>"]).ids] == [["sql", "xpath"], []]
    found = engine.match_batch([{"document": "<a>"}, {"document": "<a/>"}])
    assert [sorted(ids) for ids in found.ids] == [[], ["sql", "xpath"]]
    assert len(found.rejected) == 1


@pytest.mark.parametrize("algorithm", ["columnar", "naive", "hanson"])
def test_saved_loaded_and_followed(algorithm: str, tmp_path: Path) -> None:
    engine = made(algorithm)
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine", follow=True)
    assert answers(loaded) == EXPECTED
    engine.unsubscribe("flat")
    engine.subscribe("more", "xpath_boolean(doc, '/order[not(*)]')")
    engine.save(tmp_path / "engine")
    expected = [[id for id in ids if id != "flat"] for ids in EXPECTED]
    expected[2] = ["more", "or"]
    assert answers(loaded) == answers(engine) == expected


def test_a_loaded_engine_takes_more(tmp_path: Path) -> None:
    made().save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    loaded.subscribe("more", "region = 'US' AND xpath_boolean(doc, '/order')")
    loaded.unsubscribe("or")
    loaded.merge()
    assert answers(loaded)[2:4] == [["more"], []]


@pytest.mark.parametrize("algorithm", ["columnar", "scan"])
def test_cut_and_joined(algorithm: str) -> None:
    engine = made(algorithm, TEXTS | {f"more{n}": f"xpath_boolean(doc, '//total > {n}')" for n in range(9)})
    expected = answers(engine)
    assert len(expected[0]) == len(EXPECTED[0]) + 9
    if algorithm == "columnar":
        parts = engine.internals.cut(3)
        assert [sorted(chain.from_iterable(each)) for each in zip(*map(answers, parts), strict=True)] == expected
        joined, twice = join_engines(parts)
        assert not twice
        assert answers(joined) == expected


def test_replaced_and_unsubscribed() -> None:
    engine = made()
    engine.subscribe("plain", "region = 'EU'", replace=True)
    engine.subscribe("flat", "xpath_boolean(note, '/m')", replace=True)
    engine.subscribe("and", "xpath_boolean(doc, '/order/@none')", replace=True)
    engine.unsubscribe("or")
    expected = [
        ["not", "other", "plain"],
        ["like", "plain", "two"],
        ["flat"],
        [],
        ["like", "not", "plain", "two"],
        ["plain"],
    ]
    assert answers(engine) == expected
    engine.merge()
    assert answers(engine) == expected
    for id in TEXTS:
        if id in engine:
            engine.unsubscribe(id)
    assert answers(engine) == [[]] * 6
    engine.merge()
    assert engine.internals.document_paths() == ()
    assert engine.match({"doc": "<no document"}).ids == []


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_malformed_document_is_rejected_and_the_rest_goes_on(algorithm: str) -> None:
    engine = made(algorithm)
    bad = [
        {"region": "EU", "doc": "<order>"},
        {"region": "EU", "doc": "<!DOCTYPE order><order/>"},
        {"region": "EU", "doc": ["<order/>", "no document"]},
        {"region": "EU", "doc": "<order/>", "note": ""},
        {"region": "EU", "doc": "<a>" * 100 + "</a>" * 100},
    ]
    found = engine.match_batch([EVENTS[0], *bad[:2], EVENTS[1], *bad[2:], EVENTS[2]])
    assert [sorted(ids) for ids in found.ids] == [EXPECTED[0], [], [], EXPECTED[1], [], [], [], EXPECTED[2]]
    assert [each.position for each in found.rejected] == [1, 2, 4, 5, 6]
    assert [type(each.error) for each in found.rejected] == [DecodeError] * 4 + [LimitError]
    assert "DOCTYPE" in found.rejected[1].error.message
    assert not found.errors
    with pytest.raises(DecodeError):
        engine.match(bad[0])


def test_a_document_that_nobody_reads_is_not_looked_at() -> None:
    engine = made(texts={"flat": "region = 'EU'", "like": "doc LIKE '%order%'"})
    assert sorted(engine.match({"region": "EU", "doc": "<order>"}).ids) == ["flat", "like"]


@pytest.mark.parametrize("algorithm", ["columnar", "naive"])
def test_the_limits_of_the_engine_hold_for_arrays_of_documents_too(algorithm: str) -> None:
    engine = made(algorithm, {"deep": "xpath_boolean(doc, '//a = ''x''')"}, limits=Limits(max_event_depth=100))
    deep = "<a>" * 80 + "x" + "</a>" * 80
    assert engine.match({"doc": deep}).ids == ["deep"]
    found = engine.match_batch([{"doc": [deep, "<b/>"]}, {"doc": ["<b/>", "<c/>"]}])
    assert not found.errors
    assert found.ids == [["deep"], []]


@pytest.mark.parametrize(
    ("limits", "xpath"),
    [
        (Limits(max_values=3), "/a[b = 1 or b = 2 or b = 3 or b = 4]"),
        (Limits(max_nesting=3), "/a[(((((b or c) and d) or e) and f) or g) and h]"),
        (Limits(), "a[" * 101 + "b" + "]" * 101),
    ],
    ids=["values", "nesting", "steps"],
)
def test_the_limits_of_the_engine_hold_inside_a_string(limits: Limits, xpath: str) -> None:
    """As they do for the same text on its own, and as the same error."""
    for text, language in ((xpath, "xpath"), (f"xpath_boolean(doc, '{xpath}')", "sql")):
        with pytest.raises(LimitError):
            Engine(limits=limits).subscribe("s", text, language=language)


def test_changes_while_matching() -> None:
    engine = made()
    problems: list[Any] = []
    stop = False

    def match() -> None:
        while not stop:
            try:
                found = [set(ids) for ids in engine.match_batch(EVENTS[:3]).ids]
            except BaseException as problem:
                problems.append(problem)
                return
            for ids, expected in zip(found, EXPECTED, strict=False):
                if not set(expected) <= ids <= {*expected, "coming"}:
                    problems.append(ids)

    threads = [Thread(target=match) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(40):
        engine.subscribe("coming", f"xpath_boolean(doc, '//total >= {turn}')")
        engine.unsubscribe("coming")
    stop = True
    for thread in threads:
        thread.join()
    assert not problems


def test_explain() -> None:
    engine = made()
    assert engine.explain("and", EVENTS[0]).matched
    explained = engine.explain("and", EVENTS[1])
    assert not explained.matched
    assert "xpath_boolean" in str(explained)
    assert not engine.explain("plain", EVENTS[3]).matched
