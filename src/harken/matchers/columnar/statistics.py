"""How often events have which code: what the cost model goes by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harken.kernels.rows import cumulate, share_together
from harken.matchers.columnar.coded_rows import CodedRows

_PRIOR_EVENTS = 8.0
"""What is assumed without looking weighs as much as this many events that were seen."""
_MOST_TOGETHER = 1_024
"""Of more events than this it is not looked at which attributes they have together."""
_PRIOR_ON_CONSTANTS = 0.9
"""Before any event was seen: how often a value is one of the constants. The rest falls between them."""
_NOTHING_SEEN = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How often each code was seen, and which columns were seen together."""

    starts: NDArray[np.int64]
    cumulative: NDArray[np.float32]
    """By column, the share of events below each code: those with codes low:high+1 are at high + 1 less at low."""
    events: int
    has_value: NDArray[np.uint64]
    """By column, a bit for each of so many events that has a value: attributes often come together, or never do."""

    def present(self) -> NDArray[np.float32]:
        """By column, the share of events that have a value."""
        return 1 - self.cumulative[self.starts[:-1] + 1]

    def of(self, column: int) -> NDArray[np.float32]:
        """The share of events that have each code of a column."""
        return np.diff(self.cumulative[self.starts[column] : self.starts[column + 1]])

    def together(self, rows: CodedRows, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """For each of these rows the share of events that have a value in all of its columns."""
        found = np.empty(len(chosen), np.float32)
        share_together(rows.starts, rows.columns, chosen, self.has_value, self.events, _PRIOR_EVENTS, found)
        return found


def frequencies(tops: NDArray[np.int64], sample: NDArray[np.uint32] | None) -> Frequencies:
    """The frequencies of codes in a sample of encoded events, columns by events, or without one what is likely."""
    starts = np.zeros(len(tops) + 1, np.int64)
    np.cumsum(tops + 2, out=starts[1:])
    cumulative = np.empty(starts[-1], np.float32)
    for column, top in enumerate(tops.tolist()):
        # The sample may be older than the column.
        seen = _NOTHING_SEEN if sample is None or column >= len(sample) else np.sort(sample[column])
        part = cumulative[starts[column] : starts[column + 1]]
        cumulate(seen, _PRIOR_EVENTS, *_prior(top), part)
    return Frequencies(starts, cumulative, *_presence(len(tops), sample))


def _presence(columns: int, sample: NDArray[np.uint32] | None) -> tuple[int, NDArray[np.uint64]]:
    """Of some events, evenly taken, how many these are, and which have a value in each column."""
    if sample is None or not sample.shape[1]:
        return 0, np.empty((columns, 0), np.uint64)
    some = sample[:columns, :: -(-sample.shape[1] // _MOST_TOGETHER)]
    has_value = np.ones((columns, -(-some.shape[1] // 64) * 64), np.bool_)
    has_value[: len(some), : some.shape[1]] = some != 0
    has_value[:, some.shape[1] :] = False
    return some.shape[1], np.packbits(has_value, axis=1, bitorder="little").view(np.uint64)


def _prior(top: int) -> tuple[float, float]:
    """How often a value is taken to be each constant, and to be in each gap, without looking."""
    constants = top // 2
    if not constants:
        return 0.0, 1.0
    return _PRIOR_ON_CONSTANTS / constants, (1 - _PRIOR_ON_CONSTANTS) / (constants + 1)
