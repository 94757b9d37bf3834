"""Timing: contestants take turns, the warm-up is thrown away, and rates come from the rounds that count."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harken_lab.harness import rounds
from harken_lab.harness.rounds import Timing, interleaved


class Clock:
    """A clock that only the contestants move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def contestant(self, *seconds: float) -> Callable[[], None]:
        """One that takes this long, run after run."""
        waiting = iter(seconds)

        def run() -> None:
            self.now += next(waiting)

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(rounds, "perf_counter", clock)
    return clock


def test_contestants_take_turns_after_one_warm_up_each() -> None:
    calls: list[str] = []
    interleaved({name: lambda name=name: calls.append(name) for name in "abc"}, 3)
    assert "".join(calls) == "abc" + "abc" * 3


def test_the_warm_up_is_thrown_away(clock: Clock) -> None:
    found = interleaved({"a": clock.contestant(100, 1, 2, 3)}, 3)
    assert found["a"].seconds == (1, 2, 3)


def test_each_is_timed_by_itself(clock: Clock) -> None:
    found = interleaved({"a": clock.contestant(9, 1, 2), "b": clock.contestant(9, 10, 20)}, 2)
    assert {name: timing.seconds for name, timing in found.items()} == {"a": (1, 2), "b": (10, 20)}


def test_what_is_quick_runs_several_times_in_its_turn(clock: Clock) -> None:
    calls: list[str] = []

    def contestant(name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            calls.append(name)
            clock.now += seconds

        return run

    quick, slow, most = contestant("q", 0.25), contestant("s", 2), contestant("m", 0.0)
    found = interleaved({"quick": quick, "slow": slow, "most": most}, 2, least=0.7)
    assert "".join(calls) == "qsm" + 2 * ("qqq" + "s" + "m" * rounds.MOST_RUNS)
    assert found["quick"].seconds == pytest.approx((0.25, 0.25))


def test_the_first_run_of_a_turn_is_kept_apart(clock: Clock) -> None:
    found = interleaved({"a": clock.contestant(1, 5, 1, 6, 2)}, 2, least=1.5)
    assert (found["a"].seconds, found["a"].first) == ((3, 4), (5, 6))


def test_no_rounds_no_seconds(clock: Clock) -> None:
    assert interleaved({"a": clock.contestant(9)}, 0)["a"].seconds == ()


def test_an_error_of_a_contestant_is_not_hidden() -> None:
    def fail() -> None:
        raise RuntimeError("it is not set up")

    with pytest.raises(RuntimeError, match="it is not set up"):
        interleaved({"a": fail}, 3)


def test_median() -> None:
    assert Timing((5.0, 1.0, 2.0)).median == 2.0
    assert Timing((4.0, 1.0, 2.0, 3.0)).median == 2.5


def test_rates_are_items_a_second_and_the_slowest_round_has_the_lowest() -> None:
    assert Timing((2.0, 1.0, 4.0)).rates(100) == {"median": 50.0, "slowest": 25.0, "quickest": 100.0}


def test_rates_are_rounded_to_a_tenth() -> None:
    assert Timing((3.0, 3.0, 3.0)).rates(100) == {"median": 33.3, "slowest": 33.3, "quickest": 33.3}


def test_microseconds_an_item_round_by_round() -> None:
    assert Timing((2.0, 1.0)).microseconds(1_000) == (2_000.0, 1_000.0)


def test_times_pairs_the_rounds() -> None:
    assert Timing((2.0, 9.0)).times(Timing((1.0, 3.0))) == (2.0, 3.0)
    with pytest.raises(ValueError, match="zip"):
        Timing((2.0, 9.0)).times(Timing((1.0,)))
