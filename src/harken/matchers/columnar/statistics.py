"""Frequencies of codes among events, for the cost model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harken.kernels.rows import cumulate, share_together
from harken.matchers.columnar.coded_rows import CodedRows

_PRIOR_EVENTS = 8.0
"""Weight of the prior, in events."""
_MOST_TOGETHER = 1_024
"""Maximum number of sampled events for which it is recorded which attributes occur together."""
_PRIOR_ON_CONSTANTS = 0.9
"""Prior share of values that are constants. The rest falls between them."""
_NO_CODES = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The share of events that have each code, and which columns occur together."""

    starts: NDArray[np.int64]
    cumulative: NDArray[np.float32]
    """By column, the share of events below each code: that of low..high is [high + 1] - [low]."""
    events: int
    has_value: NDArray[np.uint64]
    """By column, a bitmap of the events that have a value: attributes often come together, or never do."""

    def present(self) -> NDArray[np.float32]:
        """The share of events that have a value, by column."""
        return 1 - self.cumulative[self.starts[:-1] + 1]

    def of(self, column: int) -> NDArray[np.float32]:
        """The share of events that have each code of a column."""
        return np.diff(self.cumulative[self.starts[column] : self.starts[column + 1]])

    def together(self, rows: CodedRows, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """For each of these rows, the share of events that have a value in all of its columns."""
        shares = np.empty(len(chosen), np.float32)
        share_together(rows.starts, rows.columns, chosen, self.has_value, self.events, _PRIOR_EVENTS, shares)
        return shares


def frequencies(tops: NDArray[np.int64], sample: NDArray[np.uint32] | None) -> Frequencies:
    """The frequencies of codes in a sample of encoded events, columns by events; without a sample, the prior."""
    starts = np.zeros(len(tops) + 1, np.int64)
    np.cumsum(tops + 2, out=starts[1:])
    cumulative = np.empty(starts[-1], np.float32)
    for column, top in enumerate(tops.tolist()):
        # The sample may be older than the column.
        seen = _NO_CODES if sample is None or column >= len(sample) else np.sort(sample[column])
        part = cumulative[starts[column] : starts[column + 1]]
        cumulate(seen, _PRIOR_EVENTS, *_prior(top), part)
    return Frequencies(starts, cumulative, *_presence(len(tops), sample))


def _presence(columns: int, sample: NDArray[np.uint32] | None) -> tuple[int, NDArray[np.uint64]]:
    """The number of some evenly sampled events, and a bitmap per column of those that have a value."""
    if sample is None or not sample.shape[1]:
        return 0, np.empty((columns, 0), np.uint64)
    codes = sample[:columns, :: -(-sample.shape[1] // _MOST_TOGETHER)]
    has_value = np.ones((columns, -(-codes.shape[1] // 64) * 64), np.bool_)
    has_value[: len(codes), : codes.shape[1]] = codes != 0
    has_value[:, codes.shape[1] :] = False
    return codes.shape[1], np.packbits(has_value, axis=1, bitorder="little").view(np.uint64)


def _prior(top: int) -> tuple[float, float]:
    """The prior share of each constant and of each gap."""
    constants = top // 2
    if not constants:
        return 0.0, 1.0
    return _PRIOR_ON_CONSTANTS / constants, (1 - _PRIOR_ON_CONSTANTS) / (constants + 1)
