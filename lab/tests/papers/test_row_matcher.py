"""What all algorithms of the papers have in common: their answers, and that nothing leaves a broken index behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harken import Engine, Limits
from harken.errors import LimitError
from harken.matchers.algorithm_registry import ALGORITHMS
from unit.matchers.subscribed import Subscribed

OF_PAPERS = [name for name, target in ALGORITHMS.items() if target.startswith("harken_lab.papers.")]


@pytest.mark.parametrize("algorithm", OF_PAPERS)
def test_matches_are_numbers_by_event(algorithm: str) -> None:
    found = Subscribed(algorithm, "x = 1", "x = 2", "x < 5 OR y = 1", "TRUE", "x < 9 AND x <> 1", "x <> 1")
    assert found.match({"x": 1}, {"x": 9}, {"x": [1, 2]}, {"y": 1}, {}, {"x": 1, "y": 1}) == [
        [0, 2, 3],
        [3, 5],
        [0, 1, 2, 3, 4, 5],
        [2, 3],
        [3],
        [0, 2, 3],
    ]


@pytest.mark.parametrize("algorithm", OF_PAPERS)
def test_nothing_to_match(algorithm: str) -> None:
    assert Subscribed(algorithm).match({"x": 1}, {}) == [[], []]
    assert Subscribed(algorithm, "x = 1").match() == []


@pytest.mark.parametrize("algorithm", OF_PAPERS)
def test_what_is_interrupted_is_taken_back(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Subscribed(algorithm, "x = 1", "x > 0")
    matcher: Any = found.matcher
    insert = type(matcher)._insert

    def interrupted(self: Any, rows: NDArray[np.int32]) -> None:
        insert(self, rows)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(type(matcher), "_insert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        matcher.add_flat(_flat(found, 2, "x = 1 AND y = 2"))
    assert found.match({"x": 1, "y": 2}) == [[0, 1]]
    found.add({2: "y = 2"})
    found.remove(0)
    assert found.match({"x": 1, "y": 2}) == [[1, 2]]
    assert matcher.stats()["rows"] == 2


def _flat(found: Subscribed, number: int, text: str) -> Any:
    from harken.codes.flat import Flat

    return Flat.of_forms([(number, found.compiler.compile(text).normal_form)])


@pytest.mark.parametrize("algorithm", OF_PAPERS)
def test_numbers_that_nobody_has_are_told(algorithm: str) -> None:
    found = Subscribed(algorithm, "x = 1")
    with pytest.raises(KeyError):
        found.matcher.remove([7])
    found.remove(0)
    with pytest.raises(KeyError):
        found.matcher.remove([0])


@pytest.mark.parametrize("algorithm", OF_PAPERS)
def test_what_was_saved_can_be_loaded_whatever_the_limits(algorithm: str, tmp_path: Path) -> None:
    limits = Limits(max_tree_nodes=900, max_matrix_bytes=6_000)
    options: dict[str, Any] = {"factor": 2} if algorithm == "matching_tree" else {}
    engine = Engine(algorithm=algorithm, limits=limits, **options)
    for number in range(60):
        try:
            engine.subscribe(number, f"a{number % 3} = {number % 7} AND b = {number % 2} AND c < {number}")
        except LimitError:
            break
    assert len(engine) > 5
    engine.save(tmp_path / "saved")
    loaded = Engine.load(tmp_path / "saved")
    event = {"a0": 3, "a1": 1, "a2": 2, "b": 1, "c": 1}
    assert sorted(loaded.match(event).ids) == sorted(engine.match(event).ids)
    assert len(loaded) == len(engine)


def test_a_rejected_first_load_leaves_nothing_chosen() -> None:
    fresh, rejected = (Subscribed("matching_tree", factor=2, limits=Limits(max_tree_nodes=300)) for _ in range(2))
    with pytest.raises(LimitError):
        rejected.add({number: f"z{number} = {number} AND y{number} > {number}" for number in range(400)})
    texts = {number: f"a = {number % 3} AND b = {number % 4} AND c > {number}" for number in range(12)}
    for each in (fresh, rejected):
        each.add(texts)
        assert len(each.matcher._factoring.columns) == 2
    assert rejected.match({"a": 1, "b": 1, "c": 100}) == fresh.match({"a": 1, "b": 1, "c": 100}) != [[]]
