"""The whole benchmark, tiny: it runs, and every figure is there or said to be missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harken.engine import Engine
from harken_lab.bench import bench_run as run
from harken_lab.bench import child, processes, threads
from harken_lab.bench.bench_run import BenchSettings
from harken_lab.bench.child import in_child, pack, peak_mib
from harken_lab.bench.engines import engines_of, live_of, reject_wrong_engine, reject_wrong_live
from harken_lab.bench.figures import MEANINGS, BenchResult, Figure, Key, read_result
from harken_lab.bench.threads import alu_gain, measure_threads
from harken_lab.bench.trials import CONTESTANTS, prepare
from harken_lab.bench.updates import Updater, measure_updates, settle
from harken_lab.harness.contestants import SAMPLE, sample_of
from harken_lab.harness.live import LiveMatcher
from harken_lab.harness.result_files import Unavailable, WrongAnswerError
from harken_lab.workloads import generate

pytestmark = [pytest.mark.seconds, pytest.mark.together]

SETTINGS = BenchSettings(
    workloads=("stock", "mixed"),
    sizes=(200, 400),
    more_sizes=(("stock", 600),),
    events=8,
    rounds=2,
    builds=1,
    engine_size=200,
    engine_rounds=1,
    window=0.05,
    all_peaks=False,
    steps=1_000,
)


@pytest.fixture(scope="module")
def result() -> BenchResult:
    """One run. What takes a process of its own is done in this one, and is quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "in_child", lambda task, matcher, folder: child.TASKS[task](matcher, folder))
        patch.setattr(run, "measure_encoding", lambda result, size, seed, rounds: real(result, size, seed, rounds, 64))
        return run.run(SETTINGS)


real = run.measure_encoding


def keys(result: BenchResult) -> dict[Key, Figure | str]:
    return {figure.key: figure for figure in result.figures} | {each.key: each.reason for each in result.not_measured}


def test_every_figure_is_there_or_said_to_be_missing(result: BenchResult) -> None:
    found = keys(result)
    assert len(found) == len(result.figures) + len(result.not_measured), "some figure is there twice"
    by_size = ("copy", "write", "encode", "arrow_ints", "arrow_strings")
    by_matcher = (
        *("match", "to_copy", "matches", "candidates", "index_bytes", "dictionary_bytes", "bytes", "build", "load"),
        *("insert", "insert_cpu", "delete", "delete_cpu", "under_updates"),
    )
    for workload, sizes in {"stock": (200, 400, 600), "mixed": (200, 400)}.items():
        for size in sizes:
            assert Key("speedup", workload, size, "columnar") in found
            assert all(Key(name, workload, size) in found for name in by_size)
            for matcher in ("columnar", "counting_lists"):
                missing = [name for name in by_matcher if Key(name, workload, size, matcher) not in found]
                assert not missing, (workload, size, matcher)
                for part in ("low level", "engine"):
                    assert Key("latency_p99", workload, size, matcher, part) in found
        for matcher in ("columnar", "counting_lists"):
            assert Key("growth", workload, 400, matcher, "from 200") in found
            for name in ("peak_rss", "start_rss", "batch", "thread_gain", "thread_share"):
                assert Key(name, workload, sizes[-1], matcher) in found
    assert Key("to_alone", "mixed", 400, "columnar", "le-subscribe") in found
    assert Key("first_match", matcher="columnar", part="engine") in found
    assert Key("to_codes", "w4", part="JSON lines") in found
    assert {key.name for key in found} == set(MEANINGS)


def test_nothing_is_reported_as_zero(result: BenchResult) -> None:
    """But for the matches of few events, and differences that are too small for the clock."""
    assert not [str(each.key) for each in result.figures if each.median <= 0 and each.key.name not in {"matches"}]


def test_rounds_are_kept(result: BenchResult) -> None:
    figure = result.find(Key("match", "stock", 600, "columnar"))
    assert figure is not None
    assert len(figure.values) == SETTINGS.rounds
    ratio, slow = (result.find(Key(name, "stock", 600, "columnar")) for name in ("speedup", "to_copy"))
    assert ratio is not None
    assert slow is not None
    assert len(ratio.values) == len(slow.values) == SETTINGS.rounds


def test_larger_engines_are_left_out_where_loading_would_parse_all_texts() -> None:
    matchers = ["naive", "counting_lists", "columnar"]
    found = engines_of(generate("stock", 400, 8), sample_of("stock", 0).events, matchers, 200)
    assert "gets 200 subscriptions at most" in str(found["naive"])
    assert "gets 200 subscriptions at most" in str(found["counting_lists"])
    assert isinstance(found["columnar"], Engine), "its index is saved"


def test_settings_and_environment_stand_beside_the_figures(result: BenchResult, tmp_path: Path) -> None:
    assert result.settings["sizes"] == [200, 400]
    assert result.settings["events"] == {"stock": 8, "mixed": 8}
    assert result.settings["seed"] == 0
    assert "numba" in result.environment["packages"]
    path = tmp_path / "result.json"
    path.write_text(result.to_json(), encoding="utf-8")
    assert read_result(path) == result


def test_what_a_plain_run_measures() -> None:
    settings = BenchSettings()
    assert settings.events_of("w4") >= 64
    assert settings.events_of("stock") >= 200
    assert settings.sizes_of("w4") == [10, 1_000, 10_000, 100_000, 1_000_000]
    assert BenchSettings(more_sizes=(("le-subscribe", 5_000_000),)).sizes_of("le-subscribe")[-1] == 5_000_000


def test_plans_go_by_other_events() -> None:
    for name in ("w4", "stock"):
        sample, measured = sample_of(name, 0).events, generate(name, 10, 1_024).events
        assert sample.num_rows == SAMPLE
        assert not set(map(str, sample.to_pylist())) & set(map(str, measured.to_pylist()))


def test_a_mixture_is_planned_by_as_many_events_of_each_kind() -> None:
    assert [part.events.num_rows for part in sample_of("mixed", 0).parts.values()] == [SAMPLE] * 4


def test_there_must_be_events() -> None:
    with pytest.raises(ValueError, match="no events"):
        prepare(generate("w4", 10, 0), sample_of("w4", 0).events, {})


# Processes


def test_a_child_measures_its_own_memory(tmp_path: Path) -> None:
    held = np.ones(60_000_000, np.uint8)  # which must not count as the child's
    workload = generate("stock", 100, 4)
    pack(tmp_path, 100, workload.predicates, workload.events)
    found = in_child("peak", "counting_lists", tmp_path)
    assert 20 < found["start"] <= found["peak"] < 2_000
    assert peak_mib() > held.nbytes / 2**20


def test_a_child_that_fails_is_fatal(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="No such file"):
        in_child("peak", "counting_lists", tmp_path)


# Changes


W4 = generate("w4", 300, 8)


@pytest.fixture(params=["columnar", "counting_lists"])
def live(request: pytest.FixtureRequest) -> LiveMatcher:
    return live_of(request.param, W4, sample_of("w4", 0).events, 1_000)


def test_changes_leave_all_as_it_was(live: LiveMatcher) -> None:
    before = live.answers(W4.events)
    result = BenchResult({}, {})
    measure_updates(result, Key("insert", "w4", 300, "x"), live, 300, W4.events, 2)
    assert {figure.key.name for figure in result.figures} == {"insert", "insert_cpu", "delete", "delete_cpu"}
    updater = Updater(live, rate=5_000)
    updater.start()
    while updater.done < 101 and updater.error is None:
        settle(live, W4.events)
    updater.stop()
    assert live.answers(W4.events) == before
    reject_wrong_live(live, W4.events, before)


def test_a_matcher_that_lost_a_subscription_is_found_out(live: LiveMatcher) -> None:
    expected = live.answers(W4.events)
    event = int(np.argmax(np.diff(expected.offsets)))
    lost = expected.of(event)[:1].tolist()
    assert lost, "no event matches"
    live.matcher.remove(lost)
    with pytest.raises(WrongAnswerError, match="other answers"):
        reject_wrong_live(live, W4.events, expected)


def test_an_engine_that_lost_a_subscription_is_found_out() -> None:
    workload = generate("w4", 50, 8)
    (engine,) = engines_of(workload, sample_of("w4", 0).events, ["counting_lists"], 100).values()
    assert isinstance(engine, Engine)
    matcher = prepare(workload, sample_of("w4", 0).events, CONTESTANTS).matchers["columnar"]
    reject_wrong_engine(engine, workload.events, matcher.answers())
    engine.unsubscribe(f"s{matcher.answers().of(0)[0]}")
    with pytest.raises(WrongAnswerError, match="event 0"):
        reject_wrong_engine(engine, workload.events, matcher.answers())


def test_an_updater_that_fails_is_not_silent() -> None:
    live = live_of("counting_lists", W4, W4.events, 1_000)
    live.matcher.remove([live.entries[0].number])
    settle(live, W4.events)
    updater = Updater(live)
    updater.start()
    with pytest.raises(KeyError):
        updater.stop()


# Threads


def test_the_gain_of_a_loop() -> None:
    assert all(0 < gain < 4 for gain in alu_gain(2, 10_000))


def test_the_gain_of_match_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST_GAIN", 0.0)
    workload = generate("stock", 100, 8)
    (engine,) = engines_of(workload, workload.events, ["columnar"], 100).values()
    result, key = BenchResult({}, {}), Key("batch", "stock", 100, "columnar")
    measure_threads(result, key, engine, workload.events, 1, 1_000)
    assert [figure.key.name for figure in result.figures] == [
        "batch",
        "thread_gain",
        "thread_share",
        "thread_share_quickest",
    ]
    monkeypatch.setattr(threads, "LEAST_GAIN", 9.0)
    busy = BenchResult({}, {})
    measure_threads(busy, key, engine, workload.events, 1, 1_000)
    assert [figure.key.name for figure in busy.figures] == ["batch"]
    assert [each.key.name for each in busy.not_measured] == ["thread_gain", "thread_share", "thread_share_quickest"]
    assert "busy" in busy.not_measured[0].reason
    with pytest.raises(Unavailable, match="no engine"):
        measure_threads(result, key, Unavailable("no engine"), workload.events, 1, 1)
