"""How often events have which code: what the cost model goes by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_PRIOR_EVENTS = 8.0
"""What is assumed without looking weighs as much as this many events that were seen."""
_PRIOR_ON_CONSTANTS = 0.9
"""Before any event was seen: how often a value is one of the constants. The rest falls between them."""


@dataclass(frozen=True, slots=True)
class Frequencies:
    """By column, the share of events below each code: those with codes low:high+1 are at high + 1 less at low."""

    starts: NDArray[np.int64]
    cumulative: NDArray[np.float32]

    def present(self) -> NDArray[np.float32]:
        """By column, the share of events that have a value."""
        return 1 - self.cumulative[self.starts[:-1] + 1]

    def of(self, column: int) -> NDArray[np.float32]:
        """The share of events that have each code of a column."""
        return np.diff(self.cumulative[self.starts[column] : self.starts[column + 1]])


def frequencies(tops: NDArray[np.int64], sample: NDArray[np.uint32] | None) -> Frequencies:
    """The frequencies of codes in a sample of encoded events, columns by events, or without one what is likely."""
    starts = np.zeros(len(tops) + 1, np.int64)
    np.cumsum(tops + 2, out=starts[1:])
    cumulative = np.empty(starts[-1], np.float32)
    for column, top in enumerate(tops):
        shares = _prior(int(top))
        if sample is not None and sample.shape[1] and column < len(sample):  # it may be older than the column
            seen = np.bincount(sample[column], minlength=top + 1)
            shares = (shares * _PRIOR_EVENTS + seen) / (_PRIOR_EVENTS + sample.shape[1])
        at = starts[column]
        cumulative[at] = 0
        cumulative[at + 1 : starts[column + 1]] = np.cumsum(shares)
    return Frequencies(starts, cumulative)


def _prior(top: int) -> NDArray[np.float64]:
    shares = np.zeros(top + 1)
    constants = top // 2
    shares[2::2] = (_PRIOR_ON_CONSTANTS if constants else 0) / max(constants, 1)
    shares[1::2] = (1 - _PRIOR_ON_CONSTANTS if constants else 1) / (constants + 1)
    return shares
