"""The sieve: rows of many ranges, found by bitmaps of buckets and an exact test of what is left."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from harken import Engine

pytestmark = pytest.mark.seconds

NAMES = [f"a{n}" for n in range(8)]
FEW_BUCKETS = {"most_buckets": 3, "least_buckets": 1}
VALUES = 2_000


def condition(rng: Random, name: str) -> str:
    low, high = sorted((rng.randrange(VALUES), rng.randrange(VALUES)))
    return rng.choice(
        [
            f"{name} BETWEEN {low} AND {high}",
            f"{name} BETWEEN {low} AND {low + rng.randrange(1_500)}",
            f"{name} < {high}",
            f"{name} >= {low}",
            f"{name} <> {low}",
            f"{name} NOT BETWEEN {low} AND {low + rng.randrange(20)}",
            f"{name} IS NOT NULL",
        ]
    )


def texts(count: int, seed: int = 3) -> list[str]:
    rng = Random(seed)
    return [" AND ".join(condition(rng, name) for name in rng.sample(NAMES, rng.randrange(1, 7))) for _ in range(count)]


def events(count: int, seed: int = 4) -> list[dict[str, Any]]:
    rng = Random(seed)
    return [{name: rng.randrange(2 * VALUES) / 2 for name in NAMES if rng.random() < 0.9} for _ in range(count)]


def sieved(settings: dict[str, Any] | None = None) -> Engine:
    return Engine(layouts=["sieve"], small_rows=0, background=False, settings=settings or {})


def groups(engine: Engine) -> list[dict[str, Any]]:
    return [group for layer in engine.stats()["matcher"]["layers"] for group in layer["groups"]]


@pytest.mark.parametrize("settings", [{}, FEW_BUCKETS, {"most_visits": 0, "chunk_events": 64}], ids=str)
def test_it_finds_what_a_scan_finds(settings: dict[str, Any]) -> None:
    subscriptions, batch = list(enumerate(texts(3_000))), events(200)
    engine, judge = sieved(settings), Engine(algorithm="naive")
    for each in (engine, judge):
        each.subscribe_many(subscriptions)
    engine.merge()
    assert {group["layout"] for group in groups(engine)} == {"sieve"}
    for gone in (range(0), range(0, 3_000, 3)):
        for number in gone:
            engine.unsubscribe(str(number))
            judge.unsubscribe(str(number))
        expected = [sorted(ids) for ids in judge.match_batch(batch).ids]
        assert sum(map(len, expected)) > 20_000
        assert [sorted(ids) for ids in engine.match_batch(batch).ids] == expected
        assert [sorted(engine.match(event).ids) for event in batch[:50]] == expected[:50]
        engine.merge()
        assert [sorted(ids) for ids in engine.match_batch(batch).ids] == expected


def test_events_with_sets_of_values() -> None:
    subscriptions = list(enumerate(texts(1_200, 5)))
    engine, naive = sieved(FEW_BUCKETS), Engine(algorithm="naive")
    for each in (engine, naive):
        each.subscribe_many(subscriptions)
    engine.merge()
    rng = Random(6)
    batch: list[dict[str, Any]] = [
        {name: [rng.randrange(VALUES) for _ in range(rng.randrange(4))] for name in NAMES} for _ in range(12)
    ]
    expected = [sorted(ids) for ids in naive.match_batch(batch).ids]
    assert [sorted(ids) for ids in engine.match_batch(batch).ids] == expected
    assert sum(map(len, expected)) > 500


def test_strings_and_timestamps() -> None:
    engine, judge = sieved(FEW_BUCKETS), Engine(algorithm="naive")
    rng = Random(7)
    subscriptions = [
        (
            n,
            f"name BETWEEN 'k{rng.randrange(500):03}' AND 'k{rng.randrange(500, 999)}' AND "
            f"at >= TIMESTAMP '2026-01-{rng.randrange(1, 29):02} {rng.randrange(24):02}:00:00' AND x < {rng.random()}",
        )
        for n in range(700)
    ]
    for each in (engine, judge):
        each.subscribe_many(subscriptions)
    engine.merge()
    batch = [
        {"name": f"k{rng.randrange(999):03}", "at": f"2026-01-{rng.randrange(1, 29):02}T12:00:00Z", "x": rng.random()}
        for _ in range(50)
    ]
    expected = [sorted(ids) for ids in judge.match_batch(batch).ids]
    assert [sorted(ids) for ids in engine.match_batch(batch).ids] == expected


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    engine = sieved()
    engine.subscribe_many(enumerate(texts(2_000)))
    engine.merge()
    batch = events(60)
    expected = [sorted(ids) for ids in engine.match_batch(batch).ids]
    engine.save(tmp_path / "saved")
    loaded = Engine.load(tmp_path / "saved")
    assert [sorted(ids) for ids in loaded.match_batch(batch).ids] == expected
    assert groups(loaded)[0]["layout"] == "sieve"
    loaded.unsubscribe("7")
    loaded.merge()
    assert [sorted(ids) for ids in loaded.match_batch(batch).ids] == [
        [id for id in ids if id != "7"] for ids in expected
    ]


def ranges(count: int, width: float = 0.5) -> list[tuple[int, str]]:
    rng = Random(8)
    names = [f"a{n}" for n in range(20)]
    found = []
    for number in range(count):
        lows = {name: rng.randrange(round(1_000_000 * (1 - width))) for name in rng.sample(names, 10)}
        asked = [f"{name} BETWEEN {low} AND {low + round(1_000_000 * width)}" for name, low in lows.items()]
        found.append((number, " AND ".join(asked)))
    return found


@pytest.mark.seconds
def test_rows_of_many_ranges_are_sieved_and_cost_what_is_expected() -> None:
    engine = Engine(small_rows=0, background=False)
    engine.subscribe_many(ranges(6_000))
    rng = Random(9)
    batch = [{f"a{n}": rng.randrange(1_000_000) for n in range(20)} for _ in range(300)]
    engine.learn(batch)
    found = engine.match_batch(batch)
    (group,) = groups(engine)
    assert (group["layout"], group["rows"]) == ("sieve", 6_000)
    assert group["expected_candidates"] == pytest.approx(group["seen_candidates"], rel=0.2)
    assert group["expected_candidates"] < 0.85 * 6_000, "some blocks fail as a whole"
    assert sum(found.counts) / 300 < group["expected_tests"] < 30
    assert 500 < group["expected_ns"] < 6_000


def test_few_rows_are_indexed_where_chains_would_be_long() -> None:
    wide = [(n, f"a > {n} AND b < {n}") for n in range(1_000)]
    keyed = [(n, f"a = {n} AND b < {n}") for n in range(1_000)]
    for subscriptions, layout in ((wide, False), (wide[:60], True), (keyed, True)):
        engine = Engine(background=False)
        engine.subscribe_many(subscriptions)
        engine.merge()
        assert ([group["layout"] for group in groups(engine)] == ["chains"]) is layout
        assert len(engine.match({"a": 50, "b": 5}).ids) == sum(
            (n < 50 if subscriptions is not keyed else n == 50) and n > 5 for n, _ in subscriptions
        )
