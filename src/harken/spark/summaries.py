"""Summaries of events that can be merged: counts, extremes, distinct and frequent values, and a sample.

Each task makes a summary of its events. Merging these, in any order, gives the summary of all events.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from heapq import nlargest
from math import inf, log, sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.events.arrow_columns import STRINGS, is_one_of, values_at
from harken.schema import Path, Value

COUNTERS = 256
"""Values with a counter. A count is too small by at most 1/257 of all values."""

_INDEX_BITS = 12
_HASH_BITS = 64 - _INDEX_BITS
_REGISTERS = 1 << _INDEX_BITS
_TIME = pa.timestamp("us", "UTC")
_ENDS_OF_TIME = {
    _TIME: (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    pa.date32(): (date.min, date.max),
}

Batches = Iterable[pa.RecordBatch]
Step = Callable[[Batches], Iterator[pa.RecordBatch]]


class Distinct:
    """The number of distinct values, by HyperLogLog with 4,096 registers: a standard error of 1.6 %.

    The estimator is Ertl's, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), which needs no
    corrections from zero to billions.
    """

    def __init__(self) -> None:
        self.registers = np.zeros(_REGISTERS, np.uint8)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        rest = (hashes & np.uint64((1 << _HASH_BITS) - 1)).astype(np.float64)  # exact: it has 52 bits
        _, length = np.frexp(rest)
        places = (hashes >> np.uint64(_HASH_BITS)).astype(np.intp)
        np.maximum.at(self.registers, places, (_HASH_BITS + 1 - length).astype(np.uint8))

    def merge(self, other: Distinct) -> None:
        np.maximum(self.registers, other.registers, out=self.registers)

    def estimate(self) -> float:
        counts = np.bincount(self.registers, minlength=_HASH_BITS + 2).tolist()
        total = _REGISTERS * _tau(1 - counts[-1] / _REGISTERS)
        for count in reversed(counts[1:-1]):
            total = (total + count) / 2
        total += _REGISTERS * _sigma(counts[0] / _REGISTERS)
        return _REGISTERS * _REGISTERS / (2 * log(2) * total)


class Frequent:
    """The most frequent values, by the counters of Misra and Gries, which Agarwal et al. showed to be mergeable.

    Counts are exact while there are no more distinct values than counters.
    """

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}
        self.error = 0
        """The most by which a count is too small."""

    def add(self, values: pa.Array, counts: NDArray[np.int64]) -> None:
        """Add distinct values with their counts."""
        if len(values) > COUNTERS:
            least = int(np.partition(counts, -COUNTERS - 1)[-COUNTERS - 1])
            kept = np.flatnonzero(counts > least)
            values, counts = values.take(pa.array(kept)), counts[kept] - least
            self.error += least
        self._count(zip(values.to_pylist(), counts.tolist(), strict=True))

    def merge(self, other: Frequent) -> None:
        self.error += other.error
        self._count(other.counts.items())

    def _count(self, counted: Iterable[tuple[Any, int]]) -> None:
        for value, count in counted:
            self.counts[value] = self.counts.get(value, 0) + count
        if len(self.counts) > COUNTERS:
            least = nlargest(COUNTERS + 1, self.counts.values())[-1]
            self.counts = {value: count - least for value, count in self.counts.items() if count > least}
            self.error += least


@dataclass(slots=True)
class AttributeSummary:
    """The summary of one attribute."""

    present: int = 0
    """Events that have a value of the attribute."""
    values: int = 0
    low: Any = None
    high: Any = None
    distinct: Distinct = field(default_factory=Distinct)
    frequent: Frequent = field(default_factory=Frequent)

    def add(self, rows: NDArray[np.int32], array: pa.Array) -> None:
        """Add the values of a batch, which may be null, with their rows."""
        rows, array = _countable(rows, array)
        if not len(rows):
            return
        self.present += 1 + int(np.count_nonzero(np.diff(rows)))
        self.values += len(rows)
        if pa.types.is_nested(array.type):  # a map, whose keys are data
            return
        ends = pc.min_max(array).as_py()
        self._widen(ends["min"], ends["max"])
        counted = pc.value_counts(array)
        self.distinct.add(_hashes(counted.field(0)))
        self.frequent.add(counted.field(0), counted.field(1).to_numpy())

    def merge(self, other: AttributeSummary) -> None:
        self.present += other.present
        self.values += other.values
        self._widen(other.low, other.high)
        self.distinct.merge(other.distinct)
        self.frequent.merge(other.frequent)

    def _widen(self, low: Any, high: Any) -> None:
        if low is not None:
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)


class EventSample:
    """A uniform sample of whole events: every event gets a random number, and the smallest numbers are sampled."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._bound = 2**63 - 1
        self._numbers: list[NDArray[np.int64]] = []
        self._events: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, numbers: NDArray[np.int64], events: pa.RecordBatch) -> None:
        chosen = np.flatnonzero(numbers <= self._bound) if self._size else np.empty(0, np.intp)
        if len(chosen):
            self._numbers.append(numbers[chosen])
            self._events.append(events.take(pa.array(chosen)))
            self._count += len(chosen)
        if self._count > 2 * self._size:
            self.cut()

    def merge(self, other: EventSample) -> None:
        for numbers, events in zip(other._numbers, other._events, strict=True):
            self.add(numbers, events)

    def table(self) -> pa.Table | None:
        """The events, in no particular order; None if there are none."""
        self.cut()
        return pa.Table.from_batches(self._events) if self._events else None

    def cut(self) -> None:
        """Drop events beyond the size of the sample."""
        if not self._count:
            return
        numbers = np.concatenate(self._numbers)
        chosen = np.argsort(numbers, kind="stable")[: self._size]
        events = pa.Table.from_batches(self._events).combine_chunks().to_batches()[0]
        self._numbers, self._events = [numbers[chosen]], [events.take(pa.array(chosen))]
        self._count = len(chosen)
        if self._count == self._size:
            self._bound = int(self._numbers[0][-1])


class EventSummary:
    """The summary of all events of a task, or of several."""

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        self.events = 0
        self.summaries = {path: AttributeSummary() for path in paths}
        self.sample = EventSample(size)

    def add(self, batch: pa.RecordBatch, draw: np.random.Generator) -> None:
        self.events += batch.num_rows
        rows = np.arange(batch.num_rows, dtype=np.int32)
        for path, summary in self.summaries.items():
            summary.add(*values_at(batch.column(path[0]), path[1:], rows))
        self.sample.add(draw.integers(2**63, size=batch.num_rows, dtype=np.int64), batch)

    def merge(self, other: EventSummary) -> None:
        self.events += other.events
        for path, summary in self.summaries.items():
            summary.merge(other.summaries[path])
        self.sample.merge(other.sample)


def summarising(paths: Sequence[Path], size: int, seed: int) -> Step:
    """The function for `mapInArrow` that summarises the events of a task."""

    def harken_profile(batches: Batches) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        draw = np.random.default_rng([seed, 0 if context is None else context.partitionId()])
        summary = EventSummary(paths, size)
        for batch in batches:
            summary.add(batch, draw)
        if summary.events:
            yield _packed(summary)

    return harken_profile


def merging() -> Step:
    """The function for `mapInArrow` that merges the summaries of several tasks."""

    def harken_profile_merge(batches: Batches) -> Iterator[pa.RecordBatch]:
        summary: EventSummary | None = None
        for packed in (cell for batch in batches for cell in batch.column(0)):
            other = unpacked(packed.as_py())
            if summary is None:
                summary = other
            else:
                summary.merge(other)
        if summary is not None:
            yield _packed(summary)

    return harken_profile_merge


def unpacked(data: bytes) -> EventSummary:
    """A summary that a task packed."""
    summary = pickle.loads(data)
    assert isinstance(summary, EventSummary)
    return summary


def canonical(value: Any) -> Value:
    """A value of Arrow in the form that events have."""
    if isinstance(value, Decimal):
        return float(value)
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _packed(summary: EventSummary) -> pa.RecordBatch:
    summary.sample.cut()
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(summary)], pa.binary())], ["summary"])


def _countable(rows: NDArray[np.int32], array: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """The values in one type for each kind, without nulls, NaNs and times that no event can hold."""
    if pa.types.is_timestamp(array.type):
        array = array.view(_TIME)
    elif pa.types.is_floating(array.type):
        array = pc.add(array.cast(pa.float64()), 0.0)  # -0.0 is 0.0
    valid = pc.invert(pc.is_null(array, nan_is_null=True))
    if array.type in _ENDS_OF_TIME:
        first, last = (pa.scalar(end, array.type) for end in _ENDS_OF_TIME[array.type])
        within = pc.and_(pc.greater_equal(array, first), pc.less_equal(array, last))
        valid = pc.and_(valid, pc.fill_null(within, False))
    if pc.all(valid).as_py():
        return rows, array
    return rows[valid.to_numpy(zero_copy_only=False)], array.filter(valid)


def _hashes(values: pa.Array) -> NDArray[np.uint64]:
    """A 64-bit hash of each value, the same in every process."""
    from pandas.util import hash_array  # type: ignore[import-untyped]

    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())
    if is_one_of(STRINGS, values.type):
        plain = values.to_numpy(zero_copy_only=False)
    elif pa.types.is_floating(values.type):
        plain = values.to_numpy()
    else:
        plain = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64()).to_numpy().astype(np.int64)
    hashes: NDArray[np.uint64] = hash_array(plain, categorize=False)
    return hashes


def _sigma(x: float) -> float:
    if x == 1:
        return inf
    factor, total, before = 1.0, x, -1.0
    while total != before:
        x *= x
        before, total, factor = total, total + x * factor, 2 * factor
    return total


def _tau(x: float) -> float:
    if x in (0, 1):
        return 0.0
    factor, total, before = 1.0, 1 - x, -1.0
    while total != before:
        x = sqrt(x)
        factor /= 2
        before, total = total, total - (1 - x) ** 2 * factor
    return total / 3
