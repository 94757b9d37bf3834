"""`harken bench`: its options, its output, targets and comparisons."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harken_lab.bench import bench_run as whole
from harken_lab.bench import processes
from harken_lab.bench.bench_run import BenchSettings
from harken_lab.bench.figures import BenchResult, Key, read_result
from harken_lab.bench.targets import read_targets
from unit.cli.conftest import Run, lines

pytestmark = pytest.mark.seconds


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[BenchSettings]:
    """The settings of runs, which are recorded and not measured."""
    settings_of_runs: list[BenchSettings] = []

    def measure(settings: BenchSettings, tell: whole.Tell, **given: object) -> BenchResult:
        settings_of_runs.append(settings)
        tell("measuring")
        result = BenchResult(settings.to_dict(), {"cores": 2})
        for matcher, value in (("columnar", 2.0), ("counting_lists", 90.0)):
            result.add(Key("match", "stock", 1_000, matcher), [value, value * 1.1])
        result.add(Key("to_codes", "w4", part="dicts"), 4.0)
        return result

    monkeypatch.setattr(whole, "run", measure)
    return settings_of_runs


def saved(path: Path, **values: float) -> Path:
    result = BenchResult({"rounds": 1}, {"cores": 2})
    for name, value in values.items():
        result.add(Key(name, "w4", 1_000_000, "columnar"), value)
    path.write_text(result.to_json(), encoding="utf-8")
    return path


def test_the_defaults_are_those_of_the_settings(run: Run, recorded: list[BenchSettings]) -> None:
    assert run("bench").exit_code == 0
    assert recorded == [BenchSettings()]


def test_options_reach_the_settings(run: Run, recorded: list[BenchSettings]) -> None:
    options = "--workload stock --workload w4 --size 1000 --size 500 --size stock=5_000 --events 7 --rounds 3 --seed 9"
    assert run("bench", *options.split(), "--matcher", "columnar", "--engine-size", 5).exit_code == 0
    (settings,) = recorded
    assert settings == BenchSettings(
        workloads=("stock", "w4"),
        sizes=(500, 1_000),
        more_sizes=(("stock", 5_000),),
        events=7,
        rounds=3,
        seed=9,
        matchers=("columnar",),
        engine_size=5,
    )


def test_quick_can_be_narrowed(run: Run, recorded: list[BenchSettings]) -> None:
    assert run("bench", "--quick", "--workload", "w4", "--size", 100).exit_code == 0
    (settings,) = recorded
    assert (settings.workloads, settings.sizes, settings.rounds) == (("w4",), (100,), 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--workload w9", "there is no w9"),
        ("--workload text", "there is no text"),
        ("--grid --workload mixed", "there is no mixed"),
        ("--grid --size many", "write a number such as 100000, not many"),
        ("--matcher btree", "there is no btree"),
        ("--size many", "not many"),
        ("--size 0", "not 0"),
        ("--size w1=5", "w1 is not among the workloads"),
        ("--rounds 0", "--rounds"),
    ],
)
def test_wrong_usage(run: Run, recorded: list[BenchSettings], options: str, message: str) -> None:
    result = run("bench", *options.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert not recorded


def test_tables_and_files(run: Run, recorded: list[BenchSettings], tmp_path: Path) -> None:
    output, plots = tmp_path / "result.json", tmp_path / "plots"
    result = run("bench", "--output", output, "--plots", plots)
    assert result.exit_code == 0
    assert "columnar" in result.stdout
    assert "2.1" in result.stdout
    assert "measuring" in result.stderr
    assert read_result(output).settings["rounds"] == 7
    assert (plots / "matching_time.svg").exists()
    again = run("bench", "--show", output)
    assert again.stdout == result.stdout
    assert len(recorded) == 1


def test_json(run: Run, recorded: list[BenchSettings]) -> None:
    result = run("bench", "--json")
    figures = lines(result.stdout)
    assert [each["kind"] for each in figures] == ["figure"] * 3
    assert figures[0]["median"] == 2.1
    assert lines(result.stderr)[0]["kind"] == "progress"


def test_an_output_that_cannot_be_written_is_told_before_measuring(
    run: Run, recorded: list[BenchSettings], tmp_path: Path
) -> None:
    result = run("bench", "--output", tmp_path / "no" / "result.json")
    assert result.exit_code == 3
    assert "cannot be written" in result.stderr
    assert not recorded


def test_a_real_one(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "in_child", lambda *given: {"peak": 2.0, "start": 1.0, "seconds": 0.1})
    output = tmp_path / "result.json"
    given = ["--quick", "--workload", "stock", "--size", 200, "--engine-size", 50, "--rounds", 1, "--output", output]
    result = run("bench", *given)
    assert result.exit_code == 0, result.stderr
    assert "not measured" in result.stdout
    assert read_result(output).find(Key("speedup", "stock", 200, "columnar")) is not None


def test_a_run_that_is_stopped_leaves_what_was_measured(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "in_child", lambda *given: {"peak": 2.0, "start": 1.0, "seconds": 0.1})
    monkeypatch.setattr(whole, "_measure_the_rest", _stop)
    output, so_far = tmp_path / "result.json", tmp_path / "result.json.so-far"
    given = ["--quick", "--workload", "stock", "--size", 200, "--engine-size", 50, "--rounds", 1, "--output", output]
    assert run("bench", *given).exit_code != 0
    assert not output.exists()
    assert read_result(so_far).find(Key("speedup", "stock", 200, "columnar")) is not None
    monkeypatch.setattr(whole, "_measure_the_rest", lambda *given: None)
    assert run("bench", *given).exit_code == 0
    assert output.exists()
    assert not so_far.exists()


def test_there_is_nothing_beside_what_is_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(settings: BenchSettings, tell: whole.Tell, keep: Callable[[BenchResult], None]) -> BenchResult:
        result = BenchResult(settings.to_dict(), {"cores": 2})
        keep(result)
        return result

    monkeypatch.setattr(whole, "run", measure)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert run("bench", "--output", pipe).exit_code == 0
    reader.join()
    assert json.loads(read[0])["settings"]["rounds"] == 7
    assert list(tmp_path.iterdir()) == [pipe]


def _stop(*given: object) -> None:
    raise KeyboardInterrupt


# --check and --compare


def test_check_tells_the_gap(run: Run, tmp_path: Path) -> None:
    result = run("bench", "--check", saved(tmp_path / "r.json", speedup=25.0, to_copy=9.0))
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert "≥ 20 25 yes" in text
    assert "≤ 6 9 no" in text
    assert "not measured no" in text
    assert "this run did not include it" in text
    assert "1 of " in result.stderr


def test_check_with_targets_of_ones_own(run: Run, tmp_path: Path) -> None:
    targets = tmp_path / "targets.json"
    figure = {"name": "speedup", "workload": "w4", "size": 1_000_000, "matcher": "columnar"}
    targets.write_text(json.dumps({"targets": [{"target": "quicker", "figure": figure, "at_least": 20}]}))
    good = saved(tmp_path / "good.json", speedup=25.0)
    result = run("bench", "--check", good, "--targets", targets, "--json")
    assert result.exit_code == 0
    assert lines(result.stdout)[0]["yes"] is True
    assert lines(result.stderr)[0] == {"kind": "summary", "targets": 1, "reached": 1}
    assert run("bench", "--check", saved(tmp_path / "bad.json", speedup=5.0), "--targets", targets).exit_code == 1


def test_every_target_has_a_line(run: Run, tmp_path: Path) -> None:
    result = run("bench", "--check", saved(tmp_path / "r.json", speedup=25.0), "--json")
    assert len(lines(result.stdout)) == len(read_targets()) + 8


def test_compare(run: Run, tmp_path: Path) -> None:
    old, new = saved(tmp_path / "old.json", match=2.0, build=1.0), saved(tmp_path / "new.json", match=3.0, load=1.0)
    result = run("bench", "--compare", old, new)
    assert result.exit_code == 0
    assert "1.50" in result.stdout
    assert "worse" in result.stdout
    assert "only in the old result: build" in result.stderr
    (line,) = lines(run("bench", "--compare", old, new, "--json").stdout)
    assert (line["ratio"], line["verdict"]) == (1.5, "worse")


@pytest.mark.parametrize("options", [["--check"], ["--show"], ["--compare", "nowhere.json"]])
def test_a_missing_file(run: Run, options: list[str]) -> None:
    result = run("bench", *options, "nowhere.json")
    assert result.exit_code == 3
    assert "nowhere.json cannot be read" in result.stderr


def test_the_grid_is_measured_shown_and_judged(run: Run, tmp_path: Path) -> None:
    output, plots = tmp_path / "grid.json", tmp_path / "plots"
    given = ["--quick", "--rounds", 1, "--workload", "stock", "--size", 20]
    result = run("bench", "--grid", *given, "--output", output, "--plots", plots)
    assert result.exit_code in (0, 1)
    for text in ("Harken / closures", "Harken / scan", "expected / measured", "100 dicts", "stock"):
        assert text in result.stdout, text
    assert "of 5 cases" in result.stderr
    assert sorted(path.name for path in plots.iterdir()) == ["grid.png", "grid.svg"]
    again = run("bench", "--grid", "--show", output, "--json")
    assert (again.exit_code, len(lines(again.stdout))) == (result.exit_code, 5)
    assert lines(again.stdout)[0]["shape"] == "stock"
    assert run("bench", "--show", output).exit_code == 3, "it is no result of the other kind"
    assert run("bench", "--grid", "--show", saved(tmp_path / "other.json", speedup=1.0)).exit_code == 3
