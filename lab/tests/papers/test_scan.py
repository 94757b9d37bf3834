"""The naive algorithm in machine code: every row is tested, and there is nothing besides the rows."""

from __future__ import annotations

import pytest

from harken import Engine
from harken.errors import CapabilityError
from harken.matchers import create_matcher


def test_every_row_is_a_candidate_for_every_event() -> None:
    engine = Engine(algorithm="scan")
    for number in range(10):
        engine.subscribe(number, f"x = {number} AND y > 3")
    engine.subscribe("all", "TRUE")
    found = engine.match_batch([{"x": 4, "y": 5}, {"x": 4}, {}])
    assert [sorted(ids) for ids in found.ids] == [["4", "all"], ["all"], ["all"]]
    assert found.candidates == [11, 11, 11]


def test_there_is_nothing_besides_the_rows() -> None:
    engine = Engine(algorithm="scan")
    engine.subscribe("a", "x = 1 OR y = 2")
    stats = engine.stats()["matcher"]
    assert (stats["rows"], stats["predicates"]) == (2, 2)
    assert set(stats["memory"]) == {"rows", "labels"}
    engine.unsubscribe("a")
    assert engine.stats()["matcher"]["rows"] == 0
    assert engine.match({"x": 1}).candidates == 0


def test_more_matches_than_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken_lab.papers.row_matcher._ROOM", 8)
    engine = Engine(algorithm="scan")
    engine.subscribe_many((number, f"x >= {number}") for number in range(100))
    assert engine.match_batch([{"x": x} for x in range(50)]).counts == list(range(1, 51))


def test_it_takes_no_options() -> None:
    with pytest.raises(CapabilityError, match="`scan` does not take the option"):
        create_matcher("scan", compiled=True)
