"""The grid: its cells, their targets, and one tiny run of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harken_lab.bench import grid
from harken_lab.bench.grid import GridSettings, expected_cost, run_grid
from harken_lab.bench.grid_cells import SHAPES, SIZES, STATES, Cell, cells
from harken_lab.bench.grid_plot import draw_grid, grid_plot
from harken_lab.bench.grid_result import GridResult, MeasuredCell, Spread, read_grid
from harken_lab.harness.closures import ClosureLoop
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.workloads import WORKLOADS

pytestmark = [pytest.mark.seconds, pytest.mark.together]

SETTINGS = GridSettings(("stock", "orders", "text"), (30,), rounds=2, turn=0.001, longest_call=0.01, closures=20)


def test_the_selection_has_every_shape_size_call_form_and_state() -> None:
    every = list(cells())
    assert len(set(every)) == len(every)
    for place, wanted in enumerate((set(SHAPES), None, set(STATES), {1, 100, 10_000}, {"dicts", "JSON", "Arrow"})):
        found = {cell[place] for cell in every}
        assert found == wanted if wanted else set(SIZES) <= found
    assert {cell.wanted for cell in every} == {"ids", "numbers"}
    assert 500 < len(every) < 1_000
    assert len(list(cells(quick=True))) < len(every) / 4
    assert set(SHAPES) <= set(WORKLOADS)


@pytest.mark.parametrize(
    ("call", "size", "harken", "is_met"),
    [
        (1, 10, 41.0, True),
        (1, 10, 42.0, False),
        (1, 999, 41.0, True),
        (1, 1_000, 1.5, True),
        (1, 1_000, 1.6, False),
        (100, 99, 3.0, True),
        (100, 99, 3.1, False),
        (100, 100, 1.5, True),
        (10_000, 100, 1.6, False),
    ],
)
def test_the_targets(call: int, size: int, harken: float, is_met: bool) -> None:
    cell = Cell("stock", size, "fresh", call, "dicts", "ids")
    assert cell.meets_target(harken, 1.5) is is_met
    assert "closures" in cell.target()


@pytest.fixture(scope="module")
def result() -> GridResult:
    return run_grid(SETTINGS)


def test_every_cell_is_measured(result: GridResult) -> None:
    assert Counter(each.cell for each in result.cells) == Counter(SETTINGS.cells())
    assert not result.not_measured
    for each in result.cells:
        assert 0 < each.harken.least <= each.harken.median <= each.harken.most
        assert each.closures.median > 0
        assert each.scan is not None
        assert each.expected is not None
        assert 1 <= each.events <= each.cell.call
        assert each.closures_run <= 20


def test_a_result_is_read_again(result: GridResult, tmp_path: Path) -> None:
    path = tmp_path / "grid.json"
    path.write_text(result.to_json(), encoding="utf-8")
    again = read_grid(path)
    assert again.to_json() == result.to_json()
    assert again.settings == result.settings


def test_what_is_rejected_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = grid.generate("text", 10, 0)
    texts = [*broken.texts().to_pylist()[:9], "title LIKE"]
    real = grid.generate

    def generate(name: str, subscriptions: int, events: int, seed: int) -> object:
        drawn = real(name, subscriptions, events, seed)
        return grid.replace(drawn, written=texts) if subscriptions else drawn

    monkeypatch.setattr(grid, "generate", generate)
    told: list[str] = []
    found = run_grid(GridSettings(("text",), (10,)).quick(), told.append)
    assert not found.cells
    assert "1 subscriptions are rejected" in found.not_measured[0]["reason"]
    assert any("cannot be measured" in text for text in told)


def test_a_wrong_answer_is_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClosureLoop, "match", lambda self, event: ["s1"])
    with pytest.raises(WrongAnswerError, match="the engine finds"):
        run_grid(GridSettings(("stock",), (10,)).quick())


def test_expected_costs_are_added_up() -> None:
    assert expected_cost({"a": [{"expected_ns": 500}, {"b": {"expected_ns": 250.0, "c": 1}}]}) == 0.75
    assert expected_cost({"a": 1}) is None


def test_the_picture(tmp_path: Path) -> None:
    def measured(call: int, size: int, harken: float) -> MeasuredCell:
        cell, loop = Cell("stock", size, "fresh", call, "dicts", "ids"), Spread(10.0, 9.0, 11.0)
        return MeasuredCell(cell, call, 1.0, Spread(harken, harken, harken), loop, size, None, None, 1.0)

    found = GridResult({}, {}, [measured(1, 10, 35.0), measured(100, 1_000, 0.5), measured(100, 10_000, 30.0)])
    (svg,) = (path for path in draw_grid(found, tmp_path) if path.suffix == ".svg")
    text = svg.read_text(encoding="utf-8")
    for shown in ("one event a call", "100 events a call", "stock", ">0.29<", ">20<", ">0.33<"):
        assert shown in text, shown
    assert grid_plot(GridResult({}, {})) is None
