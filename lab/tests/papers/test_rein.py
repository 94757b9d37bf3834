"""REIN: rows that fail are marked, and those that stay unmarked match."""

from __future__ import annotations

from random import Random

import pytest

from harken import Engine


def test_what_is_passed_is_what_fails() -> None:
    engine = Engine(algorithm="rein")
    engine.subscribe_many((number, f"x BETWEEN {number} AND {number + 9}") for number in range(1_000))
    found = engine.match({"x": 500})
    assert sorted(map(int, found.ids)) == list(range(491, 501))
    assert found.candidates == 990
    assert engine.match({}).ids == []
    assert engine.match({}).candidates == 1_000, "all that ask for a missing attribute fail"


def test_rows_come_and_go() -> None:
    rng = Random(2)
    rein, scan = Engine(algorithm="rein"), Engine(algorithm="scan")
    living: list[str] = []
    for turn in range(60):
        count = rng.choice([1, 5, 400])
        added = []
        for number in range(count):
            low = rng.randrange(100)
            asked = rng.choice([f"a <> {low}", f"a >= {low}", f"a < {low}", f"a BETWEEN {low} AND {low + 30}", "TRUE"])
            other = f"{rng.choice('abc')} NOT BETWEEN {low} AND {low + rng.randrange(5)}"
            added.append((f"{turn}-{number}", f"{asked} AND {other} OR c = {low}"))
        rng.shuffle(living)
        gone, living = living[: len(living) // 4], living[len(living) // 4 :]
        for engine in (rein, scan):
            engine.subscribe_many(added)
            for id in gone:
                engine.unsubscribe(id)
        living += [id for id, _ in added]
        events = [{name: rng.randrange(110) for name in "abc" if rng.random() < 0.8} for _ in range(20)]
        expected = [sorted(ids) for ids in scan.match_batch(events).ids]
        assert [sorted(ids) for ids in rein.match_batch(events).ids] == expected
    stats = rein.stats()["matcher"]
    assert set(stats["memory"]) == {"bounds", "bits", "rows", "labels"}
    assert 0 < stats["latest_rows"] <= 256


def test_more_matches_than_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken_lab.papers.row_matcher._ROOM", 8)
    engine = Engine(algorithm="rein")
    engine.subscribe_many((number, f"x >= {number}") for number in range(300))
    for number in range(100, 299):
        engine.unsubscribe(str(number))
    assert engine.match_batch([{"x": x} for x in range(100)]).counts == list(range(1, 101))
    assert len(engine.match({"x": 999}).ids) == 101
