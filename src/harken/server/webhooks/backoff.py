"""How long to wait before another attempt to deliver a webhook, and after which attempt to give up."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from random import Random

_MINUTE, _HOUR = 60.0, 3_600.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """The waits between attempts, in seconds. There is one attempt more than there are waits.

    Each wait is random, up to the share `jitter` shorter or longer, so that receivers that failed together are not
    called again together.
    """

    delays: tuple[float, ...] = (
        5.0,
        30.0,
        2 * _MINUTE,
        10 * _MINUTE,
        30 * _MINUTE,
        1 * _HOUR,
        2 * _HOUR,
        5 * _HOUR,
        10 * _HOUR,
        14 * _HOUR,
        20 * _HOUR,
        24 * _HOUR,
    )
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if not all(isfinite(delay) and delay >= 0 for delay in self.delays):
            raise ValueError(f"waits are numbers of seconds, 0 or more: {self.delays}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"the jitter is a share from 0 to 1: {self.jitter}")

    def delay_before(self, attempt: int, random: Random) -> float | None:
        """Seconds to wait before an attempt, counted from 1; None after the last. The first attempt does not wait."""
        if attempt < 1:
            raise ValueError(f"attempts are counted from 1: {attempt}")
        if attempt == 1:
            return 0.0
        if attempt - 2 >= len(self.delays):
            return None
        return self.delays[attempt - 2] * random.uniform(1 - self.jitter, 1 + self.jitter)
