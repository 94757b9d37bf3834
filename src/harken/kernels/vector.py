"""Operations on 64 rows at a time, on which the kernels build.

Where the processor can compress a vector (AVX-512), a word is spread over ids by that; elsewhere bit by bit. With
NUMBA_DISABLE_JIT=1 everything runs as Python.

Reading goes in steps of 64 rows: an array that is read here has at least 64 elements of padding behind its last row, or
comes in whole steps, as tiles do.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import IS_PLAIN, kernel

_unit: Any = import_module(f"harken.kernels.{'plain' if IS_PLAIN else 'intrinsics'}")
within, unlike, below = _unit.within, _unit.unlike, _unit.below
at_an_end, admitted_by_end, level_with_end = _unit.at_an_end, _unit.admitted_by_end, _unit.level_with_end
trailing_zeros, ones = _unit.trailing_zeros, _unit.ones
and_bitmaps, fill_block = _unit.and_bitmaps, _unit.fill_block
compressed, borrowed = _unit.compressed, _unit.borrowed
pointer, row_pointer = _unit.pointer, _unit.row_pointer
compressed_pieces, compressed_piece = _unit.compressed_pieces, _unit.compressed_piece
prefetch_read, prefetch_later = _unit.prefetch_read, _unit.prefetch_later
stream_line, line_offset = _unit.stream_line, _unit.line_offset
copy_16, copy_line = _unit.copy_16, _unit.copy_line
CAN_COMPRESS: bool = _unit.can_compress()

ROWS = 64
LANES = 16
_LINE = 64
_FEW_BITS = 6
"""Most bits for which going from bit to bit is quicker than compressing four vectors."""
NO_BITS = np.uint64(0)
ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
ONE_BIT = np.uint64(1)


def aligned(size: int, kind: Any) -> NDArray[Any]:
    """Space for an array that starts where a line of the cache does: vectors that are read from it lie in one line."""
    item = np.dtype(kind).itemsize
    space = np.empty(size * item + _LINE, np.uint8)
    start = -space.ctypes.data % _LINE
    return space[start : start + size * item].view(kind)


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
def spread_word(ids, at, word, out, end):
    """`spread` with room for 64 elements behind `end`, where the number of bits is unpredictable."""
    if CAN_COMPRESS:
        return compressed(ids, at, word, out, end)
    return spread(ids, at, word, out, end, end)


@kernel
def keep_pieces(words, number, pieces, end):
    """Append 8 words to pieces[end:], as pieces of 16 bits without the empty ones. Returns the new end.

    A piece is its bits and, above these, its number; the first one's is given. Up to 32 elements are overwritten.
    """
    if CAN_COMPRESS:
        return compressed_pieces(words, number, pieces, end)
    for i in range(8 * ROWS // LANES):
        bits = np.uint32(words[i >> 2] >> np.uint64((i & 3) * LANES) & np.uint64(0xFFFF))
        if bits:
            pieces[end] = bits | np.uint32((number + i) << LANES)
            end += 1
    return end


@kernel
def spread_pieces(ids, base, pieces, begin, stop, out, end):
    """Append the ids of the bits of pieces[begin:stop] to out[end:], piece 0 being ids[base:base + 16].

    Returns their end. Up to 16 elements behind it are overwritten.
    """
    for i in range(begin, stop):
        at = base + np.int64(pieces[i] >> np.uint32(LANES)) * LANES
        if CAN_COMPRESS:
            end = compressed_piece(ids, at, pieces[i], out, end)
        else:
            end = spread(ids, at, np.uint64(pieces[i] & np.uint32(0xFFFF)), out, end, out.size)
    return end


@kernel
def write_lines(source, length, out, end, streaming):
    """Write source[:length] to out[end:] up to where a line of `out` ends. Returns the number of elements.

    When streaming, they go past the cache.
    """
    done = (LANES - line_offset(out, end)) & (LANES - 1)
    if done > length:
        return np.int64(0)
    for i in range(done):
        out[end + i] = source[i]
    while done + LANES <= length:
        if streaming:
            stream_line(source, done, out, end + done)
        else:
            copy_line(source, done, out, end + done)
        done += LANES
    return done
