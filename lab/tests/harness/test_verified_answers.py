"""Verification: a matcher with wrong answers never gets a figure, whoever agrees with it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine
from harken.errors import CapabilityError
from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.bench import bench_matching as matching
from harken_lab.bench.bench_matching import arrow_ints, arrow_strings, ids_of, measure_matching
from harken_lab.bench.figures import BenchResult, Key
from harken_lab.bench.mixture import measure_mixture
from harken_lab.bench.trials import CONTESTANTS, Trial, prepare
from harken_lab.harness.contestants import Contestant, FilledMatcher, sample_of
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.harness.verified_answers import Answers, Numbers, Offsets, true_subscriptions, verify, verify_arrow
from harken_lab.workloads import WORKLOADS, generate
from harken_lab.workloads.workload import Workload

COUNTING = CONTESTANTS["counting_lists"]


class LosesOne(FilledMatcher):
    """Loses the last answer of all events."""

    def find(self) -> tuple[Offsets, Numbers]:
        offsets, numbers = super().find()
        offsets[-1] -= 1
        return offsets, numbers[:-1]


class SwapsOne(FilledMatcher):
    """Finds as many, but another one."""

    def find(self) -> tuple[Offsets, Numbers]:
        offsets, numbers = super().find()
        first = set(numbers[: offsets[1]].tolist())
        numbers[0] = next(each for each in range(10_000) if each not in first)
        return offsets, numbers


class Wrong(Contestant):
    """Counting lists with wrong answers."""

    def __init__(self, filled: type[FilledMatcher]) -> None:
        super().__init__("wrong", COUNTING.algorithm)
        self.__dict__["filled"] = filled

    def fill(self, workload: Workload, sample: pa.Table | None, limits: Limits = DEFAULT_LIMITS) -> FilledMatcher:
        right = super().fill(workload, sample, limits)
        return self.__dict__["filled"](right.matcher, right.fill_seconds, right.form_of)


class Failing(Contestant):
    """Cannot be filled."""

    def __init__(self, error: Exception) -> None:
        super().__init__("failing", "none", {"error": error})

    def fill(self, workload: Workload, sample: pa.Table | None, limits: Limits = DEFAULT_LIMITS) -> FilledMatcher:
        raise self.options["error"]


def trial_of(name: str, contestants: dict[str, Contestant], size: int = 2_000, events: int = 8) -> Trial:
    return prepare(generate(name, size, events), sample_of(name, 0).events, contestants)


@pytest.mark.parametrize("name", [name for name, each in WORKLOADS.items() if each.has_table and name != "orders"])
def test_the_matchers_agree_with_plain_evaluation(name: str) -> None:
    trial = trial_of(name, CONTESTANTS)
    assert set(trial.matchers) == set(CONTESTANTS)
    verify(trial.workload, trial.matchers)


def test_an_index_alone_does_not_tell_the_elements_of_arrays() -> None:
    trial = trial_of("orders", CONTESTANTS)
    assert set(trial.unable) == set(CONTESTANTS)


@pytest.mark.parametrize("name", ["le-subscribe", "orders"])
def test_plain_evaluation_agrees_with_an_engine(name: str) -> None:
    workload = generate(name, 300, 4)
    engine = Engine(algorithm="naive")
    engine.subscribe_many(zip(map(str, range(300)), workload.texts().to_pylist(), strict=True))
    found = engine.match_batch(workload.events).ids
    assert any(found)
    true = [true_subscriptions(workload, event).tolist() for event in range(4)]
    assert true == [sorted(map(int, ids)) for ids in found]


@pytest.mark.parametrize("wrong", [LosesOne, SwapsOne])
def test_a_wrong_matcher_is_found_out(wrong: type[FilledMatcher]) -> None:
    result = BenchResult({}, {})
    trial = trial_of("w4", {"wrong": Wrong(wrong), "counting_lists": COUNTING})
    with pytest.raises(WrongAnswerError, match="w4 with 2,000 subscriptions, event"):
        measure_matching(result, [trial], 1)
    assert result.figures == []


def test_two_that_are_wrong_alike_are_found_out() -> None:
    trial = trial_of("w4", {"one": Wrong(SwapsOne), "two": Wrong(SwapsOne)})
    with pytest.raises(WrongAnswerError, match="event 0: one finds"):
        verify(trial.workload, trial.matchers)


def test_one_that_is_wrong_in_the_mixture_is_found_out() -> None:
    sample = sample_of("mixed", 0)
    trial = prepare(generate("mixed", 400, 16), sample.events, {"wrong": Wrong(SwapsOne)})
    with pytest.raises(WrongAnswerError, match="match other subscriptions in the mixture"):
        measure_mixture(BenchResult({}, {}), trial, sample, {"wrong": COUNTING}, 1)


def test_one_that_cannot_do_a_workload_says_so() -> None:
    result, unable = BenchResult({}, {}), Failing(CapabilityError("strings are beyond it"))
    measure_matching(result, [trial_of("stock", {"unable": unable, "counting_lists": COUNTING})], 1)
    key = Key("match", "stock", 2_000, "unable")
    assert result.find(key) is None
    assert result.missing_reason(key) == "strings are beyond it"
    assert result.find(key._replace(matcher="counting_lists")) is not None


def test_whatever_else_fails_is_fatal() -> None:
    with pytest.raises(RuntimeError, match="it is not set up"):
        trial_of("stock", {"broken": Failing(RuntimeError("it is not set up"))})


def test_answers_are_in_order() -> None:
    answers = Answers(np.array([3, 1, 2, 9, 0], np.int32), np.array([0, 3, 3, 5]))
    assert [answers.of(event).tolist() for event in range(3)] == [[1, 2, 3], [], [0, 9]]
    other = Answers(np.array([3, 1, 2, 9, 1], np.int32), np.array([0, 3, 3, 5]))
    assert answers != other
    assert answers.first_difference(other) == 2


@pytest.mark.parametrize(("most", "expected"), [(0, 1), (1_200, 3), (1 << 22, 8)])
def test_the_answers_of_some_events_become_arrow(most: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def arrow(numbers: Numbers, offsets: Offsets) -> pa.ListArray:
        made.append(len(offsets) - 1)
        return arrow_ints(numbers, offsets)

    monkeypatch.setattr(matching, "_MATCHES_AS_ARROW", most)
    monkeypatch.setattr(matching, "arrow_ints", arrow)
    trial = trial_of("w4", {"counting_lists": COUNTING})
    offsets = next(iter(trial.matchers.values())).answers().offsets
    assert most == 0 or offsets[expected] <= most
    assert expected == 8 or offsets[expected + 1] > most
    measure_matching(BenchResult({}, {}), [trial], 1)
    assert set(made) == {expected}


def test_arrow_results() -> None:
    ids, offsets = np.array([2, 0, 1], np.int32), np.array([0, 1, 1, 3])
    ints, strings = arrow_ints(ids, offsets), arrow_strings(ids, offsets, ids_of(3))
    assert (ints.type, strings.type) == (pa.list_(pa.int32()), pa.list_(pa.string()))
    assert ints.to_pylist() == [[2], [], [0, 1]]
    assert strings.to_pylist() == [["s2"], [], ["s0", "s1"]]
    verify_arrow(ids, offsets, ints)
    verify_arrow(ids, offsets, strings)
    with pytest.raises(WrongAnswerError, match="Arrow result"):
        verify_arrow(ids[::-1], offsets, ints)
