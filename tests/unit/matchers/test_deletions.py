"""What is deleted from an index: marked at first, compacted once that pays, and never found in either form."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from harken import Engine
from harken.kernels.deletes import COMPACT, MARKED, NONE_DELETED
from harken.matchers.columnar.deletions import Deletions

SIZE = 3_000


def engine_with(compacted_rows: int) -> tuple[Engine, dict[str, tuple[int, int]]]:
    """Long runs behind a key, and runs that are cut short by a range."""
    draw = Random(3)
    asked = {f"{n}": (n % 5, draw.randrange(100)) for n in range(SIZE)}
    engine = Engine(background=False, layouts=["cluster"], settings={"compacted_rows": compacted_rows})
    engine.subscribe_many(
        (id, f"k = {key}" if int(id) % 2 else f"k = {key} AND x < {bound}") for id, (key, bound) in asked.items()
    )
    engine.merge()
    return engine, asked


def expected(asked: dict[str, tuple[int, int]], k: int, x: int) -> list[str]:
    return sorted(id for id, (key, bound) in asked.items() if key == k and (int(id) % 2 or x < bound))


def check(engine: Engine, asked: dict[str, tuple[int, int]]) -> None:
    events = [{"k": k, "x": x} for k in range(6) for x in (-1, 0, 50, 99, 100)]
    wanted = [expected(asked, event["k"], event["x"]) for event in events]
    assert [sorted(engine.match(event).ids) for event in events] == wanted
    assert [sorted(ids) for ids in engine.match_batch(events).ids] == wanted


def deletions(engine: Engine) -> Deletions:
    index = engine._live.matcher._version.base.layer.plain  # type: ignore[attr-defined]
    return index.deletions()  # type: ignore[no-any-return]


def state(engine: Engine) -> int:
    return deletions(engine)._kept[-1].state


@pytest.mark.parametrize("compacted_rows", [0, 1, 100, 1 << 20])
@pytest.mark.parametrize("step", [1, 2, 13, 64, 1_000])
def test_deleted_rows_are_not_found(compacted_rows: int, step: int) -> None:
    engine, asked = engine_with(compacted_rows)
    for first in (0, 1):
        for id in [f"{n}" for n in range(first, SIZE, step) if f"{n}" in asked][: SIZE // 8]:
            engine.unsubscribe(id)
            del asked[id]
        check(engine, asked)
        check(engine, asked)


def test_they_are_compacted_once_enough_events_came() -> None:
    engine, _ = engine_with(100)
    assert state(engine) == NONE_DELETED
    for id in ("1", "2", "999"):
        engine.unsubscribe(id)
        for n in range(SIZE // 100):
            engine.match({"k": 1})
            assert state(engine) == (COMPACT if n == SIZE // 100 - 1 else MARKED)
    engine.unsubscribe("5")
    engine.match_batch([{"k": 1}] * SIZE)
    assert state(engine) == COMPACT, "also for the batch that is the first to see it"


def test_who_has_a_snapshot_sees_what_was_deleted_then() -> None:
    engine, asked = engine_with(1)
    before = deletions(engine)
    engine.unsubscribe("7")
    del asked["7"]
    check(engine, asked)
    assert before._kept[-1].state == NONE_DELETED
    assert deletions(engine) is not before


def test_they_are_saved_and_loaded(tmp_path: Path) -> None:
    engine, asked = engine_with(1)
    for id in list(asked)[::9]:
        engine.unsubscribe(id)
        del asked[id]
    check(engine, asked)
    engine.save(tmp_path / "saved")
    check(Engine.load(tmp_path / "saved"), asked)
    check(Engine.load(tmp_path / "saved", settings={"compacted_rows": 0}), asked)
