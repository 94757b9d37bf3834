"""The automaton against the reference and against `xpath`, while subscriptions come and go."""

from __future__ import annotations

from random import Random

import pytest

from harken import Engine
from harken.errors import HarkenError
from harken.language.xpath.parser import parse
from harken.reference.documents import holds, read
from properties.replay import Bulk
from properties.wide_xpaths import random_wide_expression
from properties.xpaths import random_document, random_expression


@pytest.mark.seconds
def test_the_automaton_agrees_with_the_reference(bulk: Bulk) -> None:
    found_true = 0
    for rng in bulk.rounds(12):
        sources = [random_document(rng) for _ in range(6)]
        roots = [read(source) for source in sources]
        engines = [Engine(documents=each) for each in ("yfilter", "xpath")]
        texts: dict[str, str] = {}
        for step in range(3):
            _change(rng, engines, texts, sources, step)
            answers = [engine.match_batch(sources).ids for engine in engines]
            assert [sorted(ids) for ids in answers[0]] == [sorted(ids) for ids in answers[1]]
            for source, root, ids in zip(sources, roots, answers[0], strict=True):
                expected = {id for id, text in texts.items() if holds(parse(text), root)}
                wrong = expected.symmetric_difference(ids)
                assert not wrong, f"{source!r}\n" + "\n".join(f"{id in expected} {texts[id]}" for id in wrong)
                found_true += len(ids)
                bulk.pairs += len(texts)
    assert found_true * 8 >= bulk.pairs


def _change(rng: Random, engines: list[Engine], texts: dict[str, str], sources: list[bytes], step: int) -> None:
    """Remove half of the subscriptions, and add others."""
    for id in rng.sample(sorted(texts), len(texts) // 2):
        for engine in engines:
            engine.unsubscribe(id)
        del texts[id]
    for number in range(20):
        text = (random_wide_expression if number % 4 == 0 else random_expression)(rng, sources)
        try:
            for engine in engines:
                engine.subscribe(f"{step}.{number}", text, language="xpath")
        except HarkenError:
            continue
        texts[f"{step}.{number}"] = text
