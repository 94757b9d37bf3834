"""Strings by number, out of an Arrow array, which may be memory-mapped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.events.utf8 import utf8_of
from harken.kernels.strings import PADDING, pick_bytes, pick_ends

_MOST_BYTES = 2**31 - 1


def picked(strings: pa.Array, numbers: NDArray[np.int32]) -> pa.Array:
    """The strings of these numbers, none of which is null, with offsets of 32 bits. Raises OverflowError if too long.

    It does what `take` and a cast do, in about half the time.
    """
    data, offsets = utf8_of(strings)
    ends = np.empty(len(numbers) + 1, np.int32)
    size = pick_ends(offsets, numbers, ends)
    if size > _MOST_BYTES:
        raise OverflowError(f"{len(numbers):,} strings have {size:,} bytes, which is more than an Arrow array can hold")
    copied = np.empty(size + PADDING, np.uint8)
    pick_bytes(data, offsets, numbers, ends, copied)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(copied[:size]))
