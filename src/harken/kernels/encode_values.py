"""Values to codes: 2r + 2 is the constant of rank r, 2r + 1 the gap before it; see harken/codes/dictionary.py.

Dense integers are looked up in a table (ToPSS, section 3.1), others by binary search, strings by their hash. `valid`
has a bit for each value, from bit number `bit` on, and is empty if none is missing. A missing value has the code 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, inner, kernel
from harken.kernels.vector import borrowed

# A slot of the index of strings: hash × 2^32 + rank + 1; 0 is free. All arithmetic stays within int64, so that
# kernels compute the same when they are not compiled.
_RANK_BITS = 32
_RANK_MASK = (1 << _RANK_BITS) - 1
_HASH_MASK = (1 << 31) - 1
_MULTIPLIER = 0x45D9F3B

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.uint32]
Bytes = NDArray[np.uint8]


@kernel
def fill_table(constants: Integers, first: int, table: Codes) -> None:
    """Write the codes of all integers from the first constant to the last."""
    for rank in range(constants.size):
        place = constants[rank] - first
        table[place] = 2 * rank + 2
        if rank + 1 < constants.size:
            table[place + 1 : constants[rank + 1] - first] = 2 * rank + 3


@inlined
def _is_missing(valid: Bytes, at: int) -> Any:
    return valid.size > 0 and not valid[at >> 3] >> (at & 7) & 1


@kernel
def encode_by_table(
    values: Integers, valid: Bytes, bit: int, first: int, last: int, table: Codes, top: int, codes: Codes
) -> None:
    for i in range(values.size):
        value = values[i]
        if _is_missing(valid, bit + i):
            codes[i] = 0
        elif value < first:
            codes[i] = 1
        elif value > last:
            codes[i] = top
        else:
            codes[i] = table[value - first]


@kernel
def encode_by_search(values: Integers, valid: Bytes, bit: int, constants: Integers, codes: Codes) -> None:
    count = constants.size
    for i in range(values.size):
        if _is_missing(valid, bit + i):
            codes[i] = 0
            continue
        value = values[i]
        rank = 0
        left = count
        while left > 1:  # no branch: which half it is would be unpredictable
            half = left >> 1
            rank += half * (constants[rank + half - 1] < value)
            left -= half
        if count and constants[rank] < value:
            rank += 1
        codes[i] = 2 * rank + 1 + (rank < count and constants[rank] == value)


@kernel
def encode_pairs(wholes: Integers, parts: Floats, constants: Integers, constant_parts: Floats, codes: Codes) -> None:
    """Encode numbers, as pairs of a whole and a part in lexicographic order, by binary search."""
    count = constants.size
    for i in range(wholes.size):
        whole = wholes[i]
        part = parts[i]
        low = 0
        high = count
        while low < high:
            middle = (low + high) >> 1
            constant = constants[middle]
            if constant < whole or (constant == whole and constant_parts[middle] < part):
                low = middle + 1
            else:
                high = middle
        codes[i] = 2 * low + 1 + (low < count and constants[low] == whole and constant_parts[low] == part)


@kernel
def move_off_constants(parts: Floats, codes: Codes) -> None:
    """Where the constants have no parts, a number with one lies in the gap beside the constant of its whole."""
    for i in range(parts.size):
        if parts[i] != 0.0 and codes[i] % 2 == 0:
            codes[i] = codes[i] + 1 if parts[i] > 0.0 else codes[i] - 1


@kernel
def hash_of(data: Bytes, start: int, stop: int) -> Any:
    """31 bits that depend on every byte of a string."""
    mixed = np.int64(stop - start)
    at = start
    while at + 4 <= stop:
        low = np.int64(data[at]) | np.int64(data[at + 1]) << 8
        high = np.int64(data[at + 2]) | np.int64(data[at + 3]) << 8
        mixed = (mixed ^ low ^ high << 16) * _MULTIPLIER
        mixed = (mixed ^ (mixed >> 31)) & _HASH_MASK
        at += 4
    while at < stop:
        mixed = (mixed ^ np.int64(data[at])) * _MULTIPLIER
        mixed = (mixed ^ (mixed >> 31)) & _HASH_MASK
        at += 1
    mixed *= _MULTIPLIER
    return (mixed ^ (mixed >> 31)) & _HASH_MASK


@kernel
def fill_index(data: Bytes, offsets: Integers, index: Integers) -> int:
    """Enter the rank of every string. Returns the greatest distance of a string from the slot that it hashes to."""
    mask = index.size - 1
    farthest = 0
    for rank in range(offsets.size - 1):
        mixed = hash_of(data, offsets[rank], offsets[rank + 1])
        slot = mixed & mask
        steps = 0
        while index[slot] != 0:
            slot = (slot + 1) & mask
            steps += 1
        index[slot] = mixed << _RANK_BITS | (rank + 1)
        farthest = max(farthest, steps)
    return farthest


@inner
def _rank_by_hash(data: Bytes, start: int, stop: int, constants: Bytes, ends: Integers, index: Integers) -> Any:
    """The rank of the constant that is equal, or -1."""
    mask = index.size - 1
    mixed = hash_of(data, start, stop)
    slot = mixed & mask
    while index[slot] != 0:
        if index[slot] >> _RANK_BITS == mixed:
            rank = (index[slot] & _RANK_MASK) - 1
            begin = ends[rank]
            length = ends[rank + 1] - begin
            if length == stop - start:
                same = 0
                while same < length and constants[begin + same] == data[start + same]:
                    same += 1
                if same == length:
                    return rank
        slot = (slot + 1) & mask
    return -1


@inner
def _code_by_search(data: Bytes, start: int, stop: int, constants: Bytes, ends: Integers) -> int:
    """The code by binary search. In UTF-8 the order of bytes is that of the code points."""
    low = 0
    high = ends.size - 1
    while low < high:
        middle = (low + high) >> 1
        begin = ends[middle]
        length = ends[middle + 1] - begin
        shorter = min(length, stop - start)
        same = 0
        while same < shorter and constants[begin + same] == data[start + same]:
            same += 1
        if same == shorter:
            if length == stop - start:
                return 2 * middle + 2
            before = length < stop - start
        else:
            before = constants[begin + same] < data[start + same]
        if before:
            low = middle + 1
        else:
            high = middle
    return 2 * low + 1


@kernel
def encode_strings(
    data: Bytes,
    offsets: Integers,
    valid: Bytes,
    bit: int,
    constants: Bytes,
    ends: Integers,
    index: Integers,
    ordered: bool,
    codes: Codes,
) -> None:
    """Encode strings by hash. The gap of a string that is no constant is searched for only where the order matters.

    If `index` is empty, all strings are searched for.
    """
    # Calls with owned arrays count references, and threads that encode at once would contend for the counters.
    data, constants, ends, index = borrowed(data), borrowed(constants), borrowed(ends), borrowed(index)
    for i in range(offsets.size - 1):
        if _is_missing(valid, bit + i):
            codes[i] = 0
            continue
        # 64 bits, whatever the type of the offsets: so the kernels that are called are compiled once.
        start = np.int64(offsets[i])
        stop = np.int64(offsets[i + 1])
        rank = _rank_by_hash(data, start, stop, constants, ends, index) if index.size else -1
        if rank >= 0:
            codes[i] = 2 * rank + 2
        elif ordered or index.size == 0:
            codes[i] = _code_by_search(data, start, stop, constants, ends)
        else:
            codes[i] = 1


@kernel
def place_codes(rows: NDArray[np.int32], codes: Codes, of_events: Codes, apart: NDArray[np.bool_]) -> None:
    """Give each event its code in a column, and mark those that have several. The rows are ascending."""
    for i in range(rows.size):
        of_events[rows[i]] = codes[i]
        if i and rows[i] == rows[i - 1]:
            apart[rows[i]] = True
