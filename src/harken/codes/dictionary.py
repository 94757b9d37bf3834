"""The constants of a column in order, and the codes of values among them.

With n constants a value's code is 0 if it is missing, 2r + 2 if it is the constant of rank r, 2r + 1 if it lies in the
gap before that, and 2n + 1 if it lies after the last. So every set of values between two cuts is an interval of codes.
A dictionary consists of arrays, which may be memory-mapped.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.constants import Constants, Pairs, constants_of
from harken.concurrency.caching import cached_property
from harken.events.arrow_columns import DenseColumn
from harken.events.cells import Cells, as_integer, whole_and_part
from harken.events.utf8 import utf8_of
from harken.kernels import encode_values as kernels
from harken.schema import Kind

# Most entries of a table of codes: per constant, and in any case.
_TABLE_PLACES = 4
_SMALL_TABLE = 1_024
# A string this far from the slot that it hashes to means strings chosen to collide: search instead of hashing.
_FARTHEST = 256

_FEW = 16_384
"""Most constants that are also kept as Python objects, for single events: a look-up takes a tenth of the time."""

_NO_TABLE = np.empty(0, np.uint32)
_NO_INDEX = np.empty(0, np.int64)
_ALL_VALID = np.empty(0, np.uint8)


@dataclass(frozen=True)
class Numbers:
    """Constants as integers in ascending order, numbers with the part that an integer does not hold (see events.cells).

    Booleans, dates, timestamps and places in a coded domain are integers too.
    """

    whole: NDArray[np.int64]
    part: NDArray[np.float64] | None
    """None if there are only integers."""
    table: NDArray[np.uint32]
    """The codes of all integers from the first constant to the last, if these are dense enough; else empty."""

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def constants(self) -> Constants:
        """The constants in order."""
        return Pairs(self.whole, self.part)

    @cached_property
    def _pairs(self) -> list[tuple[int, float]]:
        """The constants as Python numbers, made when a single event is first encoded."""
        parts = [0.0] * len(self.whole) if self.part is None else self.part.tolist()
        return list(zip(self.whole.tolist(), parts, strict=True))

    @cached_property
    def _integers(self) -> list[int] | None:
        """The constants as Python integers, if they are few and have no fractions; else None."""
        return self.whole.tolist() if self.part is None and len(self.whole) <= _FEW else None

    @cached_property
    def _tabled(self) -> tuple[int, int] | None:
        """The first integer of the table and its length, if single events are encoded by it; else None."""
        return (int(self.whole[0]), len(self.table)) if len(self.whole) > _FEW and len(self.table) else None

    def code_of(self, whole: int, part: float = 0.0) -> int:
        """The code of one value, in less time than `encode` takes."""
        integers = self._integers
        if integers is not None and not part:
            rank = bisect_left(integers, whole)
            return 2 * rank + 1 + (rank < len(integers) and integers[rank] == whole)
        if self._tabled is not None:
            first, size = self._tabled
            at = whole - first
            code: int = self.table.item(at) if 0 <= at < size else 1 if at < 0 else 2 * len(self.whole) + 1
            return code + (1 if part > 0 else -1) if part and code & 1 == 0 else code
        if len(self.whole) <= _FEW:
            value = whole, part
            rank = bisect_left(self._pairs, value)
            return 2 * rank + 1 + (rank < len(self._pairs) and self._pairs[rank] == value)
        if self.part is not None:
            begin, behind = self.whole.searchsorted(whole), self.whole.searchsorted(whole, "right")
            place = int(begin + self.part[begin:behind].searchsorted(part))
            return 2 * place + 1 + bool(place < behind and self.part[place] == part)
        rank = int(self.whole.searchsorted(whole))
        code = 2 * rank + 1 + bool(rank < len(self.whole) and self.whole[rank] == whole)
        return code + (1 if part > 0 else -1) if part and code & 1 == 0 else code

    def encode(self, cells: Cells) -> NDArray[np.uint32]:
        """The code of every value."""
        values = np.asarray(cells.values)
        codes = np.empty(len(values), np.uint32)
        if self.part is not None:
            parts = np.zeros(len(values)) if cells.part is None else cells.part
            kernels.encode_pairs(values, parts, self.whole, self.part, codes)
            return codes
        self._encode(values, _ALL_VALID, 0, codes)
        if cells.part is not None:
            kernels.move_off_constants(cells.part, codes)
        return codes

    def every_code(self) -> NDArray[np.uint32]:
        """All codes that a value may have."""
        return np.arange(1, 2 * len(self) + 2, dtype=np.uint32)

    def encode_dense(self, column: DenseColumn, codes: NDArray[np.uint32]) -> bool:
        """Write the code of every event's value, 0 if it is missing. Returns False if only cells allow that."""
        if self.part is None:
            self._encode(column.values, column.valid, column.bit, codes)
        return self.part is None

    def _encode(self, values: NDArray[np.int64], valid: NDArray[np.uint8], bit: int, codes: NDArray[np.uint32]) -> None:
        if len(self.table):
            first, last, top = self.whole[0], self.whole[-1], 2 * len(self) + 1
            kernels.encode_by_table(values, valid, bit, first, last, self.table, top, codes)
        else:
            kernels.encode_by_search(values, valid, bit, self.whole, codes)


@dataclass(frozen=True)
class Strings:
    """Constants as UTF-8 bytes, in the order of their code points."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    index: NDArray[np.int64]
    """Open addressing by hash; empty if the constants were chosen so that they collide."""
    ordered: bool
    """Whether some predicate needs more than equality. If none does, all gaps have one code."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def constants(self) -> Constants:
        """The constants in order."""
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(self.offsets), pa.py_buffer(self.data))

    @cached_property
    def _texts(self) -> list[str]:
        """The constants in order, made when a single event is first encoded."""
        constants: Any = self.constants
        texts: list[str] = constants.to_pylist()
        return texts

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {text: 2 * rank + 2 for rank, text in enumerate(self._texts)}

    def code_of(self, text: str) -> int:
        """The code of one value."""
        if len(self) <= _FEW:
            code = self._codes.get(text)
            if code is None:  # Python orders strings by code point, too
                code = 2 * bisect_left(self._texts, text) + 1 if self.ordered or not len(self.index) else 1
            return code
        utf8 = np.frombuffer(bytearray(text, "utf-8"), np.uint8)  # an array over `bytes` would be read-only
        codes = np.empty(1, np.uint32)
        self._encode(utf8, np.array([0, len(utf8)]), _ALL_VALID, 0, codes)
        return int(codes[0])

    def encode(self, cells: Cells) -> NDArray[np.uint32]:
        """The code of every value."""
        codes = np.empty(len(cells.values), np.uint32)
        self._encode(*utf8_of(cells.values), _ALL_VALID, 0, codes)
        return codes

    def every_code(self) -> NDArray[np.uint32]:
        """All codes that a value may have."""
        return np.arange(1, 2 * len(self) + 2, dtype=np.uint32)

    def encode_dense(self, column: DenseColumn, codes: NDArray[np.uint32]) -> bool:
        """Write the code of every event's value, 0 if it is missing. Returns True."""
        self._encode(*utf8_of(column.values), column.valid, column.bit, codes)
        return True

    def _encode(
        self,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        valid: NDArray[np.uint8],
        bit: int,
        codes: NDArray[np.uint32],
    ) -> None:
        kernels.encode_strings(data, offsets, valid, bit, self.data, self.offsets, self.index, self.ordered, codes)


Dictionary = Numbers | Strings


def code_of(dictionary: Dictionary, kind: Kind, value: Any) -> int:
    """The code of one value of a kind."""
    if isinstance(dictionary, Strings):
        return dictionary.code_of(value)
    if type(value) is int:
        return dictionary.code_of(value)
    pair = whole_and_part(value) if kind is Kind.NUMBER else (as_integer(kind, value), 0.0)
    return dictionary.code_of(*pair)


def dictionary_of(column: Column, constants: Any, ordered: bool = True) -> tuple[Dictionary, NDArray[np.int64]]:
    """The dictionary of a column's constants, and the rank of each. Equal constants have one rank."""
    given = constants_of(column, constants)
    if not isinstance(given, Pairs):
        return _strings(given, ordered)
    whole, part = given.whole, given.part
    order = np.argsort(whole, kind="stable") if part is None else np.lexsort((part, whole))
    whole, part = whole[order], None if part is None else part[order]
    is_new = np.ones(len(whole), np.bool_)
    is_new[1:] = whole[1:] != whole[:-1]
    if part is not None:
        is_new[1:] |= part[1:] != part[:-1]
    kept = whole[is_new]
    parts = None if part is None or not part.any() else part[is_new]
    return Numbers(kept, parts, _NO_TABLE if parts is not None else _table(kept)), _ranks(order, is_new)


def _table(constants: NDArray[np.int64]) -> NDArray[np.uint32]:
    if not len(constants):
        return _NO_TABLE
    first, last = int(constants[0]), int(constants[-1])
    if last - first + 1 > max(_SMALL_TABLE, _TABLE_PLACES * len(constants)):
        return _NO_TABLE
    table = np.empty(last - first + 1, np.uint32)
    kernels.fill_table(constants, first, table)
    return table


def _strings(strings: pa.LargeStringArray, ordered: bool) -> tuple[Strings, NDArray[np.int64]]:
    order = np.asarray(pc.sort_indices(strings)).astype(np.int64)
    in_order = strings.take(pa.array(order))
    is_new = np.ones(len(strings), np.bool_)
    if len(strings) > 1:
        is_new[1:] = pc.not_equal(in_order[1:], in_order[:-1]).to_numpy(zero_copy_only=False)
    data, offsets = utf8_of(in_order.filter(pa.array(is_new)))
    index = np.zeros(1 << (4 * len(offsets) // 3).bit_length(), np.int64)
    if kernels.fill_index(data, offsets, index) > _FARTHEST:
        index = _NO_INDEX
    return Strings(data, offsets, index, ordered), _ranks(order, is_new)


def _ranks(order: NDArray[np.int64], is_new: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rank of each constant. `order` has the places of the constants in ascending order."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_new) - 1
    return ranks
