"""Sixty-four rows at a time: what the kernels build on.

Spreading a word over ids pays only where the processor can compress a vector (AVX-512); elsewhere, and where few bits
are set, it is done bit by bit. With NUMBA_DISABLE_JIT=1 everything runs as Python.

Reading goes in steps of 64 rows: an array that is read here has at least 64 elements of padding behind its last row.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from harken.kernels.compile import IS_PLAIN, kernel

_unit: Any = import_module(f"harken.kernels.{'plain' if IS_PLAIN else 'intrinsics'}")
within_bytes, within_narrow, within_wide = _unit.within_bytes, _unit.within_narrow, _unit.within_wide
unlike_wide = _unit.unlike_wide
at_an_end, admitted_by_end, level_with_end = _unit.at_an_end, _unit.admitted_by_end, _unit.level_with_end
trailing_zeros, ones = _unit.trailing_zeros, _unit.ones
and_bitmaps, fill_block = _unit.and_bitmaps, _unit.fill_block
compressed, borrowed = _unit.compressed, _unit.borrowed
prefetch_read, prefetch_write = _unit.prefetch_read, _unit.prefetch_write
stream_line, line_offset = _unit.stream_line, _unit.line_offset
copy_16, copy_ids = _unit.copy_16, _unit.copy_ids
CAN_COMPRESS: bool = _unit.can_compress()

ROWS = 64
_LANES = 16
_FEW_BITS = 6
"""With as few bits as this, going from bit to bit is quicker than compressing four vectors."""
NO_BITS = np.uint64(0)
ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
ONE_BIT = np.uint64(1)


@kernel
def first_bits(count):
    """A word with the lowest `count` bits set: none if there are less than one, at most all."""
    if count <= 0:
        return NO_BITS
    return ALL_BITS if count >= ROWS else (ONE_BIT << np.uint64(count)) - ONE_BIT


@kernel
def spread(ids, at, word, out, end, limit):
    """Append `ids[at + i]` to out[end:] for every bit i of the word. Nothing from `limit` on is touched."""
    if CAN_COMPRESS and end + ROWS <= limit and ones(word) > _FEW_BITS:
        return compressed(ids, at, word, out, end)
    while word != NO_BITS:
        out[end] = ids[at + trailing_zeros(word)]
        end += 1
        word &= word - ONE_BIT
    return end


@kernel
def write_run(source, start, length, out, end, streaming):
    """out[end:end + length] = source[start:start + length].

    Streaming, whole lines go past the cache: a line that is written completely need not be read first, and what does
    not fit into the cache anyway does not drive out what is needed there.
    """
    if not streaming or length < 2 * _LANES:
        copy_ids(source, start, out, end, length)
        return
    done = (_LANES - line_offset(out, end)) & (_LANES - 1)
    for i in range(done):
        out[end + i] = source[start + i]
    while done + _LANES <= length:
        stream_line(source, start + done, out, end + done)
        done += _LANES
    for i in range(done, length):
        out[end + i] = source[start + i]
