"""The matchers as they are timed: codes of a batch in, ids of every match in a buffer that is used again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.codes.columns import ColumnPredicates
from harken.codes.conjunctions import Conjunctions, code
from harken.codes.encode import EncodedBatch, encode
from harken.codes.growing import LAST_LABEL
from harken.errors import CapabilityError
from harken.events import validate
from harken.kernels.papers.counting import count_by_lists
from harken.kernels.papers.row_table import RowTable
from harken.matchers.columnar.buffers import Buffers
from harken.matchers.columnar.index import Finder, build
from harken.matchers.columnar.plan import plan
from harken.matchers.columnar.rows import rows_of
from harken.matchers.columnar.statistics import frequencies
from harken.matchers.papers.counting import CountedLists

Codes = NDArray[np.uint32]
Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]


class Contestant(Protocol):
    """An index that is ready, and what one thread needs to match with it."""

    def find(self, encoded: EncodedBatch, offsets: Offsets) -> Ids:
        """The ids of all events behind each other, valid until the next call; `offsets` gets where each event's end."""

    @property
    def nbytes(self) -> int:
        """The bytes of the index, besides dictionaries."""

    def candidates(self, encoded: EncodedBatch) -> float | None:
        """How many slots were looked at for an event, on average; None where that is not counted."""


Factory = Callable[[Conjunctions, Codes], Contestant]
"""Makes a contestant from conjunctions and the codes of a sample of other events."""


class ColumnarContestant:
    """The columnar index."""

    def __init__(self, conjunctions: Conjunctions, sample: Codes) -> None:
        rows = rows_of(conjunctions)
        known = frequencies(rows.tops, sample)
        self._index = build(rows, conjunctions.numbers, plan(rows, known))
        self._finder = Finder(self._index, len(conjunctions.columns))
        self._buffers = Buffers()

    @property
    def nbytes(self) -> int:
        return self._index.nbytes

    def find(self, encoded: EncodedBatch, offsets: Offsets) -> Ids:
        return self._found(encoded, offsets)[0]

    def candidates(self, encoded: EncodedBatch) -> float | None:
        _, candidates = self._found(encoded, np.zeros(encoded.codes.shape[1] + 1, np.int64))
        return float(candidates.mean())

    def _found(self, encoded: EncodedBatch, offsets: Offsets) -> tuple[Ids, NDArray[np.int64]]:
        return self._finder.find(encoded, np.zeros(encoded.codes.shape[1], np.bool_), offsets, self._buffers)


class CountingContestant:
    """The lists of the counting algorithm."""

    def __init__(self, conjunctions: Conjunctions, sample: Codes) -> None:
        table = row_table(conjunctions)
        self._rows = len(conjunctions)
        self._lists = CountedLists("lists")
        self._lists.insert(np.arange(self._rows, dtype=np.int32), table, [0] * len(conjunctions.columns))
        self._lists.needs.relabel(conjunctions.numbers)
        self._ids = np.empty(max(1 << 18, self._rows), np.int32)

    @property
    def nbytes(self) -> int:
        return sum(self._lists.memory.values())

    def find(self, encoded: EncodedBatch, offsets: Offsets) -> Ids:
        codes, counted, space = encoded.codes, self._lists.counted, self._lists.space()
        examined = np.zeros(codes.shape[1], np.int64)
        offsets[0] = done = 0
        while True:
            done = count_by_lists(counted, self._rows, codes, done, space, self._ids, offsets, examined)
            if done == codes.shape[1]:
                return self._ids[: offsets[-1]]
            larger = np.empty(2 * len(self._ids), np.int32)
            larger[: offsets[done]] = self._ids[: offsets[done]]
            self._ids = larger

    def candidates(self, encoded: EncodedBatch) -> float | None:
        return None


def row_table(conjunctions: Conjunctions) -> RowTable:
    """Rows of codes one behind another, with the open end that labels have in place of the greatest code."""
    sizes = np.zeros(len(conjunctions), np.int32)
    for each in conjunctions.predicates:
        sizes[each.rows] += 1
    starts = np.cumsum(sizes, dtype=np.int64) - sizes
    count = int(sizes.sum())
    table = RowTable(starts, sizes, np.empty(count, np.int32), np.empty(count, np.uint32), np.empty(count, np.uint32))
    at = starts.copy()
    for column, each in enumerate(conjunctions.predicates):
        places = at[each.rows]
        table.columns[places], table.low[places] = column, each.low
        table.high[places] = np.where((each.high == each.top) & (each.low <= each.high), LAST_LABEL, each.high)
        at[each.rows] += 1
    return table


CONTESTANTS: dict[str, Factory] = {"columnar": ColumnarContestant, "counting_lists": CountingContestant}
"""By the names that the algorithms have in the registry. The first is measured, the last is what it is measured by."""
BASELINE = "counting_lists"


def ready(
    factory: Factory, predicates: list[ColumnPredicates], size: int, sample: pa.Table
) -> tuple[Conjunctions, Contestant]:
    """All the way from normalised arrays to an index that is ready to match."""
    conjunctions = code(np.arange(size, dtype=np.int32), predicates)
    return conjunctions, factory(conjunctions, encode_table(sample, conjunctions).codes)


def encode_table(events: pa.Table, conjunctions: Conjunctions) -> EncodedBatch:
    """All the way from an Arrow table to codes. Raises CapabilityError for events that an index alone cannot judge."""
    encoded = encode(validate(events).batch, conjunctions.columns, conjunctions.dictionaries)
    if len(encoded.several):
        raise CapabilityError("events with arrays have to be verified, which an index alone does not")
    return encoded


def dictionary_bytes(conjunctions: Conjunctions) -> int:
    """The bytes of the arrays of all dictionaries."""
    arrays = [getattr(each, part.name) for each in conjunctions.dictionaries for part in fields(each)]
    return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))
