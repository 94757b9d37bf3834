"""The schedule of attempts: about three days, spread at random, with an end."""

from __future__ import annotations

import math
from random import Random

import pytest

from harken.server.webhooks.backoff import Schedule

DAY = 86_400.0


def test_first_attempt_does_not_wait() -> None:
    assert Schedule().delay_before(1, Random(1)) == 0.0


def test_waits_grow_and_end_after_about_three_days() -> None:
    steady = Schedule(jitter=0.0)
    waits = [steady.delay_before(attempt, Random(1)) for attempt in range(2, 14)]
    assert waits == list(steady.delays)
    assert waits == sorted(steady.delays)
    assert 3 * DAY < sum(steady.delays) < 3.5 * DAY
    assert steady.delay_before(14, Random(1)) is None
    assert steady.delay_before(1_000, Random(1)) is None


def test_waits_are_spread_around_their_length() -> None:
    schedule, random = Schedule(delays=(100.0,), jitter=0.5), Random(5)
    waits = [schedule.delay_before(2, random) or 0.0 for _ in range(2_000)]
    assert 50 <= min(waits) < 55
    assert 145 < max(waits) <= 150
    assert 97 < sum(waits) / len(waits) < 103


def test_short_schedule() -> None:
    schedule = Schedule(delays=(0.1, 0.2), jitter=0.0)
    assert [schedule.delay_before(attempt, Random(1)) for attempt in (1, 2, 3, 4)] == [0.0, 0.1, 0.2, None]
    assert Schedule(delays=()).delay_before(2, Random(1)) is None


@pytest.mark.parametrize("attempt", [0, -1])
def test_attempts_are_counted_from_1(attempt: int) -> None:
    with pytest.raises(ValueError, match="from 1"):
        Schedule().delay_before(attempt, Random(1))


@pytest.mark.parametrize(("delays", "jitter"), [((-1.0,), 0.5), ((math.inf,), 0.5), ((math.nan,), 0.5), ((1.0,), 1.1)])
def test_wrong_schedule_is_an_error(delays: tuple[float, ...], jitter: float) -> None:
    with pytest.raises(ValueError, match=r"seconds|share"):
        Schedule(delays, jitter)
