"""Tallies of matches: counts by subscription and period, and a few matches of each subscription as examples.

Each task tallies while it matches, so that the stored result stays small, however many matches there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.live.notifications import SUBSCRIPTION_ID

SUBSCRIPTION, PERIOD, WHEN, EVENT, MATCHES = SUBSCRIPTION_ID, "period", "when", "event", "matches"
"""Columns: `period` is the truncated time of the event, `when` its time in microseconds, `event` the whole event."""
TALLIED = (SUBSCRIPTION, PERIOD, WHEN, MATCHES, EVENT)

_MOST_BUFFERED = 100_000
"""Rows of counts or of examples that a task buffers before it emits them and starts again."""
_EARLIEST = np.iinfo(np.int64).min

Batches = Iterable[pa.RecordBatch]


def tallying(examples: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` that tallies. Rows of counts have no `event`, rows of examples no `matches`."""

    def harken_tally(batches: Batches) -> Iterator[pa.RecordBatch]:
        counts = _ReducedRows(_summed)
        latest = _ReducedRows(lambda batch: batch.take(_latest(batch, examples)))
        for batch in batches:
            counts.add(_counted(batch))
            latest.add(batch)
            for buffer in (counts, latest):
                if buffer.rows > _MOST_BUFFERED:
                    yield from buffer.emitted(batch.schema)
        for buffer in (counts, latest):
            if buffer.rows:
                yield from buffer.emitted(batch.schema)

    return harken_tally


class _ReducedRows:
    """A buffer of rows that a function reduces when many were added."""

    def __init__(self, reduce: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        self._reduce = reduce
        self._batches: list[pa.RecordBatch] = []
        self._least = 0
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(self._reduce(batch))
        self.rows += self._batches[-1].num_rows
        if self.rows > 2 * self._least + 1_000:  # reduce only after enough new rows
            self._join()

    def emitted(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Empty the buffer, and return its rows with nulls in the columns that they lack."""
        self._join()
        for batch in self._batches:
            kinds = {MATCHES: pa.int64(), WHEN: pa.int64(), EVENT: schema.field(EVENT).type}
            columns = [
                batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, kinds[name])
                for name in TALLIED
            ]
            yield pa.RecordBatch.from_arrays(columns, list(TALLIED))
        self._batches, self._least, self.rows = [], 0, 0

    def _join(self) -> None:
        whole = pa.Table.from_batches(self._batches).combine_chunks().to_batches()
        self._batches = [self._reduce(batch) for batch in whole]
        self._least = self.rows = sum(batch.num_rows for batch in self._batches)


def _counted(batch: pa.RecordBatch) -> pa.RecordBatch:
    ones = pa.array(np.ones(batch.num_rows, np.int64))
    return pa.RecordBatch.from_arrays(
        [batch.column(SUBSCRIPTION), batch.column(PERIOD), ones], [SUBSCRIPTION, PERIOD, MATCHES]
    )


def _summed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The counts, summed by subscription and period."""
    keys = [SUBSCRIPTION, PERIOD]
    summed = pa.Table.from_batches([batch]).group_by(keys).aggregate([(MATCHES, "sum")]).combine_chunks()
    columns = [summed.column(name).combine_chunks() for name in (*keys, f"{MATCHES}_sum")]
    return pa.RecordBatch.from_arrays(columns, [*keys, MATCHES])


def _latest(batch: pa.RecordBatch, most: int) -> pa.Array:
    """The positions of the latest `most` rows of each subscription; among equal times, the earlier rows."""
    groups = batch.column(SUBSCRIPTION).dictionary_encode().indices.to_numpy()
    when: NDArray[np.int64] = batch.column(WHEN).fill_null(_EARLIEST).to_numpy()
    order = np.lexsort((-np.arange(len(when)), when, groups))[::-1]
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return pa.array(np.sort(order[rank < most]))
