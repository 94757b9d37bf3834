"""The lifecycle of segments, shown on a kind that the tests bring: what comes, grows, leaves and is merged."""

from __future__ import annotations

import itertools
import threading
from random import Random

import pytest

from harken import Engine
from harken.language.registry import LANGUAGES, Language
from harken.matchers.algorithm_registry import OTHER_KINDS
from harken.matchers.segmented import GROWTH
from unit.matchers.words import WordMatcher

WORDS = [f"w{n}" for n in range(40)]


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth kind takes a front end and a matcher, and no change elsewhere."""
    monkeypatch.setitem(LANGUAGES, "word", Language("unit.matchers.words:WordFrontEnd", "unit.matchers.words:none"))
    monkeypatch.setitem(OTHER_KINDS, "words", "unit.matchers.words:WordMatcher")


def matcher_of(engine: Engine) -> WordMatcher:
    found = engine._live.index.others()["words"]
    assert isinstance(found, WordMatcher)
    return found


def test_beside_other_kinds() -> None:
    engine = Engine()
    engine.subscribe("word", "lamp", language="word")
    engine.subscribe("flat", "price < 5")
    engine.subscribe("xpath", "/a", language="xpath")
    events = [{"text": "a lamp", "price": 3, "document": "<a/>"}, {"text": "lamps", "price": 7, "document": "<b/>"}]
    assert [sorted(ids) for ids in engine.match_batch(events).ids] == [["flat", "word", "xpath"], []]
    engine.unsubscribe("word")
    assert [sorted(ids) for ids in engine.match_batch(events).ids] == [["flat", "xpath"], []]


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_and_goes_is_found_and_not_found(seed: int) -> None:
    draw, engine = Random(seed), Engine()
    there: dict[str, str] = {}
    for step in range(300):
        id, word = f"s{draw.randrange(80)}", draw.choice(WORDS)
        if draw.random() < 0.35 and there:
            gone = draw.choice(sorted(there))
            engine.unsubscribe(gone)
            del there[gone]
        else:
            engine.subscribe(id, word, language="word", replace=True)
            there[id] = word
        if step % 7 == 0:
            text = " ".join(draw.sample(WORDS, 5))
            assert sorted(engine.match({"text": text}).ids) == sorted(i for i, w in there.items() if w in text.split())
        if step % 90 == 89:
            engine.merge()
            assert matcher_of(engine).stats()["segments"] == [len(there)]
    assert len(matcher_of(engine)) == len(there)


def test_segments_grow_by_a_factor() -> None:
    engine = Engine()
    for n in range(600):
        engine.subscribe(str(n), WORDS[n % 40], language="word")
        engine.match({"text": "w1"})
        sizes = matcher_of(engine).stats()["segments"]
        assert all(before >= GROWTH * after for before, after in itertools.pairwise(sizes))
    assert len(sizes) <= 6


def test_after_most_have_left_all_are_merged() -> None:
    engine = Engine()
    engine.subscribe_many({"id": str(n), "where": WORDS[n % 40], "language": "word"} for n in range(400))
    engine.match({"text": "w1"})
    for n in range(399):
        engine.unsubscribe(str(n))
    assert matcher_of(engine)._removed_count == 399
    engine.subscribe("new", "w0", language="word")
    assert engine.match({"text": "w0 w39"}).ids in (["399", "new"], ["new", "399"])
    assert matcher_of(engine)._removed_count == 0


def test_a_match_goes_on_with_what_it_began_with() -> None:
    engine = Engine()
    engine.subscribe("a", "w1", language="word")
    before = matcher_of(engine).now()
    engine.unsubscribe("a")
    assert (before[0].alive.tolist(), matcher_of(engine).now()) == ([True], ())


def test_threads_match_while_others_come() -> None:
    engine, failed = Engine(), []
    engine.subscribe("first", "w1", language="word")

    def match() -> None:
        for _ in range(300):
            if "first" not in engine.match({"text": "w1"}).ids:
                failed.append(1)

    threads = [threading.Thread(target=match) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(200):
        engine.subscribe(str(n), "w1", language="word")
    for thread in threads:
        thread.join()
    assert not failed
    assert len(engine.match({"text": "w1"}).ids) == 201
