"""Plots: they are drawn from what there is, as SVG and PNG."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harken.errors import MissingExtraError, SourceError
from harken_lab.bench.bench_plots import draw, growth_plot, memory_plot, time_plot
from harken_lab.bench.figures import BenchResult, Key
from harken_lab.bench.peers import Peer
from harken_lab.harness.charts import require_altair


def result(*sizes: int) -> BenchResult:
    made = BenchResult({}, {})
    for size in sizes:
        for matcher, scale in (("columnar", 1.0), ("counting_lists", 50.0)):
            made.add(Key("match", "stock", size, matcher), [scale * size / 1e5, scale * size / 9e4])
            made.add(Key("index_bytes", "stock", size, matcher), 30.0)
            made.add(Key("dictionary_bytes", "stock", size, matcher), 5.0)
    return made


def test_three_plots_are_drawn(tmp_path: Path) -> None:
    peers = [Peer("be-tree (C)", "stock", 1_000, 8.2), Peer("another size", "stock", 7, 1.0)]
    paths = draw(result(100, 1_000), tmp_path / "plots", peers)
    assert sorted(path.name for path in paths) == [
        f"matching_{name}.{format}" for name in ("growth", "memory", "time") for format in ("png", "svg")
    ]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths if path.suffix == ".png")
    time = (tmp_path / "plots" / "matching_time.svg").read_text(encoding="utf-8")
    for text in ("Matching one event", "µs per event", "be-tree (C)", "measured elsewhere", "counting_lists", "8.2"):
        assert text in time, text
    assert "another size" not in time
    assert "bytes per subscription" in (tmp_path / "plots" / "matching_memory.svg").read_text(encoding="utf-8")


def test_what_there_are_no_figures_for_is_not_drawn() -> None:
    assert growth_plot(result(100)) is None
    assert time_plot(result(100), []) is not None
    assert memory_plot(BenchResult({}, {})) is None
    assert time_plot(BenchResult({}, {}), []) is None


def test_without_altair_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError) as caught:
        require_altair()
    assert caught.value.hint == "pip install 'harken-lab[plots]'"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="cannot be written to"):
        draw(result(100), tmp_path / "file" / "plots")
