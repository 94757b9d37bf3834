"""Many texts taken part by part: the same engine and the same report as with an object for each, in less memory."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest

from drawn import needs_laboratory
from harken.engine import Engine
from harken.limits import Limits
from harken.live import loading
from harken.schema import BUILT_IN, NewAttribute, Schema

pytestmark = pytest.mark.seconds

EVENTS = [
    {"a": n % 7, "b": f"x{n % 5}", "tags": [f"t{n % 3}"], "document": f"<r><n>{n % 4}</n></r>"} for n in range(60)
]


def given(rng: Random, count: int) -> list[Any]:
    """Records of all sorts: rows, patterns, documents, faults, warnings, fields, and ids that come again."""
    texts = (
        "a = {n}",
        "a = {n} AND b = 'x{n}'",
        "a < {n} OR b = 'x{n}'",
        "tags CONTAINS 't{n}'",
        "b LIKE '%{n}'",
        "a >= {n} OR a < {n} OR a IS NULL",
        "a = {n} AND a > {n}",
        "a = ",
        "b RLIKE '[{n}]$' AND a = 1",
    )
    records: list[Any] = []
    for _ in range(count):
        id, where = f"s{rng.randrange(count)}", rng.choice(texts).format(n=rng.randrange(7))
        fields = rng.choice(({}, {}, {"owner": "Ann", "level": 3}, {"at": (1, 2)}, {"ratio": float("inf")}))
        if rng.random() < 0.1:
            records.append({"id": id, "where": f"/r/n = {rng.randrange(4)}", "language": "xpath", **fields})
        elif rng.random() < 0.05:
            records.append(rng.choice(({"id": id}, {"id": "", "where": where}, "no record")))
        else:
            records.append({"id": id, "where": where, **fields} if fields else (id, where))
    return records


def told(report: Any) -> Any:
    faults = [(each.position, each.id, type(each.error), each.error.message, each.line) for each in report.faults]
    return report.accepted, faults, sorted(report.warnings)


def state(engine: Engine) -> Any:
    subscriptions = sorted((each.id, each.where, each.language, dict(each.fields), each.warnings) for each in engine)
    return subscriptions, [sorted(ids) for ids in engine.match_batch(EVENTS).ids], engine.attributes()


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("algorithm", ["columnar", "counting_lists"])
def test_in_parts_as_at_once(algorithm: str, replace: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(12):
        outcomes = []
        for part in (10**9, 16):
            monkeypatch.setattr(loading, "_PART", part)
            rng = Random(seed)
            engine = Engine(algorithm=algorithm, **({"background": False} if algorithm == "columnar" else {}))
            engine.subscribe_many(given(rng, 12))
            first = told(engine.subscribe_many(given(rng, 150), replace=replace))
            engine.subscribe_many(given(rng, 40), replace=True)
            outcomes.append((first, state(engine)))
        assert outcomes[0] == outcomes[1]


def test_texts_become_rows_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_PART", 10)
    seen: list[int] = []
    monkeypatch.setattr(loading, "_STEP", 20)
    engine = Engine(background=False)
    texts = [(f"s{n}", f"a = {n % 7}") for n in range(95)]
    assert engine.subscribe_many(iter(texts), progress=seen.append).accepted == 95
    assert seen == [20, 40, 60, 80]
    assert sorted(engine.match({"a": 3}).ids) == sorted(f"s{n}" for n in range(95) if n % 7 == 3)
    engine.unsubscribe("s3")
    engine.subscribe("s10", "a = 4", replace=True)
    assert sorted(engine.match({"a": 3}).ids) == sorted(f"s{n}" for n in range(95) if n % 7 == 3 and n not in (3, 10))
    assert "s10" in engine.match({"a": 4}).ids


@needs_laboratory
def test_an_index_without_room_takes_what_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = []
    for part in (10**9, 8):
        monkeypatch.setattr(loading, "_PART", part)
        engine = Engine(algorithm="counting_bits", limits=Limits(), index="table")
        report = engine.subscribe_many([(f"s{n}", f"a = {n * 1_000_000_007} AND b < {n}") for n in range(60)])
        outcomes.append((told(report), sorted(each.id for each in engine)))
    assert outcomes[0] == outcomes[1]


def test_a_schema_that_is_extended_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_PART", 10)
    engine = Engine(Schema(attributes={("a",): BUILT_IN["integer"]}), background=False)

    def texts() -> Any:
        for n in range(40):
            if n == 35:
                engine.extend_schema(NewAttribute(("b",), "integer"))
            yield f"s{n}", f"a = {n % 3}"

    assert engine.subscribe_many(texts()).accepted == 40
    assert len(engine.match({"a": 1}).ids) == 13


def test_a_text_takes_little_memory_while_it_is_taken() -> None:
    texts = [(f"s{n}", f"category = 'c{n % 1_000}' AND price < {n % 500}") for n in range(60_000)]
    engine = Engine(background=False)
    engine.subscribe_many([("first", "category = 'c1' AND price < 1")])
    tracemalloc.start()
    try:
        engine.subscribe_many(texts)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept / len(texts) < 60
    assert most / len(texts) < 900, "at once it would be 2,000"
