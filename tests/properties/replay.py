"""What the bulk tests run on: a seed, which HARKEN_SEED may give, and a size that the long run multiplies."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from hypothesis import settings

TIMES = 10 if os.environ.get("HARKEN_LONG") == "1" else 0.05 if os.environ.get("HARKEN_QUICK") == "1" else 0.5
"""The factor by which a bulk test's rounds are multiplied."""

many_examples = settings(max_examples=max(30 if TIMES < 0.1 else 150, settings.default.max_examples))
"""For Hypothesis, where an example takes no time."""

Case = TypeVar("Case")

SEED = int(os.environ.get("HARKEN_SEED") or 1)
"""`make test-long` draws one, and prints it."""


def some(cases: Iterable[Case], count: int) -> list[Case]:
    """All cases of a product in the long run; else a sample of this size."""
    every = list(cases)
    return every if TIMES > 1 or len(every) <= count else Random(SEED).sample(every, count)


@dataclass
class Bulk:
    """One bulk test: where its random choices come from, and how many (event, subscription) pairs it has compared."""

    name: str
    seed: int = SEED
    pairs: int = 0

    def rounds(self, count: int) -> list[Random]:
        """A generator for each round. A round depends on the seed, the test and its number alone."""
        return [Random(f"{self.seed} {self.name} {number}") for number in range(max(1, int(count * TIMES)))]
