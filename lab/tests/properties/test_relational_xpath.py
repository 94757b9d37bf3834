"""The paper's plans in databases inside the process against the reference, while subscriptions come and go."""

from __future__ import annotations

import pytest

from harken import Engine
from harken.errors import CapabilityError, LimitError
from harken.language.xpath.parser import parse
from harken.reference.documents import holds, read
from properties.replay import Bulk
from properties.xpaths import random_document, random_expression


@pytest.mark.seconds
@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
@pytest.mark.parametrize("plan", ["xpath_shared", "xpath_buckets", "xpath_unrolled"])
def test_plans_agree_with_the_reference(plan: str, database: str, bulk: Bulk) -> None:
    found_true = 0
    for rng in bulk.rounds(12):
        sources = [random_document(rng) for _ in range(6)]
        roots = [read(source) for source in sources]
        engine, texts = Engine(documents=plan, database=database), dict[str, str]()
        for number in range(40):
            text = random_expression(rng, sources)
            try:
                engine.subscribe(f"s{number}", text, language="xpath")
            except (CapabilityError, LimitError):
                continue
            texts[f"s{number}"] = text
        for id in rng.sample(sorted(texts), len(texts) // 4):
            engine.unsubscribe(id)
            del texts[id]
        for source, root, ids in zip(sources, roots, engine.match_batch(sources).ids, strict=True):
            expected = {id for id, text in texts.items() if holds(parse(text), root)}
            wrong = expected.symmetric_difference(ids)
            assert not wrong, f"{source!r}\n" + "\n".join(f"{id in expected} {texts[id]}" for id in wrong)
            found_true += len(ids)
            bulk.pairs += len(texts)
    assert found_true * 8 >= bulk.pairs
