"""Targets, peers and comparisons: what the committed files say, and what is made of a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken.errors import SourceError
from harken_lab.bench.bench_run import BenchSettings
from harken_lab.bench.comparison import FigureChange, compare
from harken_lab.bench.figures import MEANINGS, BenchResult, Figure, Key
from harken_lab.bench.peers import Peer, read_peers
from harken_lab.bench.targets import Target, judge, read_targets, targets_from

SPEEDUP = Key("speedup", "w4", 1_000_000, "columnar")


def result(**values: float) -> BenchResult:
    made = BenchResult({"rounds": 1}, {"cores": 2})
    for name, value in values.items():
        made.add(SPEEDUP._replace(name=name), value)
    return made


def test_the_committed_targets_speak_of_what_a_plain_run_measures() -> None:
    targets = read_targets()
    assert len(targets) > 40
    settings = BenchSettings()
    for target in targets:
        assert target.key.name in MEANINGS
        assert target.key.size in {None, *settings.sizes}
        assert target.key.matcher in {None, *settings.matchers}
    wanted = {target.key: (target.bound, target.value) for target in targets}
    assert wanted[SPEEDUP] == ("at_least", 20)
    assert wanted[Key("to_copy", "le-subscribe", 1_000_000, "columnar")] == ("at_most", 5)
    assert wanted[Key("under_updates", "stock", 1_000_000, "columnar")] == ("at_most", 2)


@pytest.mark.parametrize(
    ("bound", "reached", "missed"),
    [("at_least", 20, 19.9), ("at_most", 20, 20.1), ("below", 19.9, 20), ("near", 21, 23)],
)
def test_bounds(bound: str, reached: float, missed: float) -> None:
    target = Target("w4", SPEEDUP, bound, 20.0, within=0.1)
    assert target.is_reached(Figure(SPEEDUP, (reached,)))
    assert not target.is_reached(Figure(SPEEDUP, (missed,)))
    assert not target.is_reached(None)


def test_verdicts_go_by_the_median_and_tell_what_is_missing() -> None:
    found = BenchResult({}, {})
    found.add(SPEEDUP, [1.0, 25.0, 26.0])
    targets = [Target("a", SPEEDUP, "at_least", 20.0), Target("b", Key("bytes", "w4"), "at_most", 40.0)]
    first, second = judge(found, targets)
    assert first.to_dict() == {"target": "a", "wanted": "≥ 20", "reached": 25.0, "yes": True, "reason": None}
    assert second.to_dict() == {
        "target": "b",
        "wanted": "≤ 40",
        "reached": None,
        "yes": False,
        "reason": "this run did not include it",
    }


def test_the_quickest_peer_is_the_one_to_beat() -> None:
    peers = [
        Peer("slow", "w4", 1_000, 9.0),
        Peer("quick", "w4", 1_000, 3.0),
        Peer("elsewhere", "w4", None, 1.0),
        Peer("prototype", "w4", 1_000, 1.0, prototype=True),
    ]
    (target,) = targets_from(peers)
    assert (target.key, target.bound, target.value) == (Key("match", "w4", 1_000, "columnar"), "below", 3.0)
    assert "quick" in target.text


def test_the_committed_peers() -> None:
    peers = read_peers()
    assert {peer.workload for peer in peers} == {"w4", "le-subscribe", "stock", "gryphon"}
    be_tree = {(peer.workload, peer.size): peer.us_per_event for peer in peers if peer.peer == "be-tree (C)"}
    assert be_tree["stock", 1_000_000] == 33.6
    assert len(targets_from(peers)) == 8


@pytest.mark.parametrize("read", [read_targets, read_peers])
def test_other_files_are_rejected(read: object, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"targets": [{}], "peers": [{}]}', encoding="utf-8")
    with pytest.raises(SourceError, match="does not hold"):
        read(path)  # type: ignore[operator]


# Comparing


@pytest.mark.parametrize(
    ("name", "old", "new", "verdict"),
    [
        ("match", (1.0, 1.2), (1.1, 1.3), ""),
        ("match", (1.0, 1.2), (1.3, 1.4), "worse"),
        ("match", (1.3, 1.4), (1.0, 1.2), "better"),
        ("speedup", (1.0, 1.2), (1.3, 1.4), "better"),
        ("speedup", (1.3, 1.4), (1.0, 1.2), "worse"),
        ("bytes", (10.0,), (10.1,), ""),
        ("bytes", (10.0,), (10.5,), "worse"),
        ("matches", (10.0,), (9.0,), "different"),
    ],
)
def test_what_lies_beyond_the_spread(name: str, old: tuple[float, ...], new: tuple[float, ...], verdict: str) -> None:
    key = SPEEDUP._replace(name=name)
    assert FigureChange(Figure(key, old), Figure(key, new)).verdict == verdict


def test_results_are_compared_figure_by_figure() -> None:
    old, new = result(match=2.0, build=1.0), result(match=3.0, load=1.0)
    new.environment["cores"] = 4
    found = compare(old, new)
    assert [(change.new.key.name, change.ratio, change.verdict) for change in found.changes] == [
        ("match", 1.5, "worse")
    ]
    assert found.only_old == ["build w4 1,000,000 columnar"]
    assert found.only_new == ["load w4 1,000,000 columnar"]
    assert found.differences == ["cores: 2 → 4"]


def test_a_ratio_to_nothing_is_none() -> None:
    change = FigureChange(Figure(SPEEDUP, (0.0,)), Figure(SPEEDUP, (1.0,)))
    assert change.to_dict()["ratio"] is None


# The page


def test_the_page_names_every_figure() -> None:
    page = (Path(__file__).parents[3] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name, meaning in MEANINGS.items():
        assert f"| `{name}` | {meaning.unit} | {meaning.text} | {meaning.better} |" in page
