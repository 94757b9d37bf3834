"""The index of XPath subscriptions against the reference and against lxml, in every state that an engine can be in."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from harken import Engine
from harken.errors import ContradictionError
from harken.internals import join_engines
from harken.language.xpath.parser import parse
from harken.reference.documents import holds, read
from properties.replay import Bulk
from properties.test_xpath_reference import deviates, lxml_boolean
from properties.wide_xpaths import random_wide_expression
from properties.xpaths import random_document, random_expression

etree = pytest.importorskip("lxml.etree")


def drawn(rng: Random, documents: int, texts: int) -> tuple[list[bytes], dict[str, str]]:
    """Documents, and texts by id that libxml2 judges as XPath 1.0 does."""
    every = [random_document(rng) for _ in range(documents)]
    kept = [each for each in every if not deviates(each.decode())] or [b"<a/>"]
    found = (random_expression(rng, kept) for _ in range(texts))
    return kept, {f"s{number}": text for number, text in enumerate(found) if not deviates(text)}


def subscribed(texts: dict[str, str]) -> Engine:
    engine = Engine()
    add(engine, texts)
    return engine


def add(engine: Engine, texts: dict[str, str]) -> None:
    report = engine.subscribe_many({"id": id, "where": text, "language": "xpath"} for id, text in texts.items())
    assert not report.faults


def check(engine: Engine, texts: dict[str, str], documents: list[bytes]) -> int:
    """Match all documents, and tell how often a text was true."""
    found = engine.match_batch(documents)
    assert not found.rejected
    true = 0
    for source, ids in zip(documents, found.ids, strict=True):
        root = read(source)
        expected = {id for id, text in texts.items() if holds(parse(text), root)}
        assert len(ids) == len(set(ids))
        wrong = expected.symmetric_difference(ids)
        assert not wrong, f"{source!r}\n" + "\n".join(f"{id in expected} {texts[id]}" for id in wrong)
        true += len(ids)
    return true


@pytest.mark.seconds
def test_the_matcher_agrees_with_lxml(bulk: Bulk):
    found_true = 0
    for rng in bulk.rounds(160):
        documents, texts = drawn(rng, 12, 64)
        engine = subscribed(texts)
        judges = {id: lxml_boolean(text) for id, text in texts.items()}
        for source, ids in zip(documents, engine.match_batch(documents).ids, strict=True):
            tree = etree.ElementTree(etree.fromstring(source))
            expected = {id for id, judge in judges.items() if judge(tree)}
            wrong = expected.symmetric_difference(ids)
            assert not wrong, f"{source!r}\n" + "\n".join(f"{id in expected} {texts[id]}" for id in wrong)
            found_true += len(ids)
            bulk.pairs += len(texts)
    assert found_true * 5 >= bulk.pairs


@pytest.mark.seconds
def test_the_matcher_agrees_with_the_reference_while_it_changes(bulk: Bulk, tmp_path: Path):
    for number, rng in enumerate(bulk.rounds(25)):
        documents, texts = drawn(rng, 6, 40)
        engine = Engine()
        there: dict[str, str] = {}
        for id, text in texts.items():
            engine.subscribe(id, text, language="xpath")
            there[id] = text
            if rng.random() < 0.3:
                gone = rng.choice(list(there))
                engine.unsubscribe(gone)
                del there[gone]
            if rng.random() < 0.15:
                check(engine, there, [rng.choice(documents)])
            if there and rng.random() < 0.1:
                again = rng.choice(list(there))
                there[again] = rng.choice(list(texts.values()))
                engine.subscribe(again, there[again], language="xpath", replace=True)
        check(engine, there, documents)
        alone = [sorted(engine.match(document).ids) for document in documents]
        assert alone == [sorted(ids) for ids in engine.match_batch(documents).ids]
        engine.merge()
        check(engine, there, documents)
        engine.save(tmp_path / str(number))
        loaded = Engine.load(tmp_path / str(number))
        check(loaded, there, documents)
        more, texts = drawn(rng, 3, 10)
        add(loaded, {f"more {id}": text for id, text in texts.items()})
        there |= {f"more {id}": text for id, text in texts.items()}
        check(loaded, there, [*documents, *more])
        joined, twice = join_engines(loaded.internals.cut(3))
        assert not twice
        check(joined, there, [*more, *documents])
        bulk.pairs += 5 * len(there) * len(documents)


@pytest.mark.seconds
def test_the_whole_language_agrees_with_the_reference(bulk: Bulk, tmp_path: Path):
    for number, rng in enumerate(bulk.rounds(12)):
        documents = [random_document(rng) for _ in range(8)]
        engine, there = Engine(), {}
        for place in range(30):
            draw = random_expression if place % 3 == 0 else random_wide_expression
            text = draw(rng, documents)
            try:
                engine.subscribe(f"s{place}", text, language="xpath")
                there[f"s{place}"] = text
            except ContradictionError:
                assert not any(holds(parse(text), document) for document in documents)
            if there and rng.random() < 0.2:
                gone = rng.choice(list(there))
                engine.unsubscribe(gone)
                del there[gone]
            if rng.random() < 0.1:
                check(engine, there, documents[:2])
        check(engine, there, documents)
        in_sql = Engine(algorithm=rng.choice(("columnar", "naive")))
        for id, text in there.items():
            in_sql.subscribe(id, "xpath_boolean(doc, '" + text.replace("'", "''") + "')")
        found = in_sql.match_batch([{"doc": document.decode()} for document in documents])
        assert list(map(sorted, found.ids)) == list(map(sorted, engine.match_batch(documents).ids))
        engine.save(tmp_path / str(number))
        joined, _ = join_engines(Engine.load(tmp_path / str(number)).internals.cut(2))
        check(joined, there, documents)
        bulk.pairs += 4 * len(there) * len(documents)


@pytest.mark.seconds
def test_what_is_learnt_changes_no_answer(bulk: Bulk):
    for rng in bulk.rounds(6):
        documents, texts = drawn(rng, 150, 60)
        engine = subscribed(texts)
        before = check(engine, texts, documents)
        engine.learn(documents)
        assert check(engine, texts, documents) == before
        assert engine.stats()["documents"]["documents"] >= len(documents)
        bulk.pairs += 2 * len(documents) * len(texts)
