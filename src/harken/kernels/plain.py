"""The intrinsics as plain Python: the definition of their meaning, and their code where nothing is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROWS = 64
_LANES = 16
_ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_WEIGHTS = np.uint64(1) << np.arange(_ROWS, dtype=np.uint64)


def within(columns: Any, low_at: int, span_at: int, code: int) -> Any:
    low, span = columns[low_at : low_at + _ROWS], columns[span_at : span_at + _ROWS]
    return _WEIGHTS[(np.full(_ROWS, code, columns.dtype) - low) <= span].sum(dtype=np.uint64)


def unlike(columns: Any, at: int, _: int, code: int) -> Any:
    """Whether the element is not the code."""
    return _WEIGHTS[columns.ravel()[at : at + _ROWS] != code].sum(dtype=np.uint64)


def below(columns: Any, at: int, _: int, code: int) -> Any:
    """Whether the element is less than the code."""
    return _WEIGHTS[columns[at : at + _ROWS] < code].sum(dtype=np.uint64)


def at_an_end(columns: Any, low_at: int, span_at: int, code: int) -> Any:
    """Whether the code is the first or the last of the interval."""
    low, span = columns[low_at : low_at + _ROWS], columns[span_at : span_at + _ROWS]
    ahead = np.full(_ROWS, code, columns.dtype) - low
    return _WEIGHTS[(ahead == 0) | (ahead == span)].sum(dtype=np.uint64)


def admitted_by_end(columns: Any, at: int, _: int, code: int) -> Any:
    """Whether an interval with one end admits a code, given doubled. An upper end is stored as twice its code, a lower
    one as twice the code before it, plus one.
    """
    end = columns[at : at + _ROWS]
    return _WEIGHTS[(code <= end) ^ (end & 1 == 1)].sum(dtype=np.uint64)


def level_with_end(columns: Any, at: int, _: int, code: int) -> Any:
    """Whether the code, given doubled, is the one stored for the end."""
    return _WEIGHTS[columns[at : at + _ROWS] | 1 == code | 1].sum(dtype=np.uint64)


def trailing_zeros(word: Any) -> int:
    return (int(word) & -int(word)).bit_length() - 1


def ones(word: Any) -> int:
    return int(word).bit_count()


def compressed(ids: Any, at: int, word: Any, out: Any, end: int) -> int:
    raise AssertionError("without compilation words are spread bit by bit")


def compressed_piece(ids: Any, at: int, piece: Any, out: Any, end: int) -> int:
    raise AssertionError("without compilation pieces are spread bit by bit")


def compressed_pieces(words: Any, number: int, pieces: Any, end: int) -> int:
    raise AssertionError("without compilation pieces are kept one by one")


def borrowed(array: Any) -> Any:
    return array


def pointer(array: Any) -> Any:
    return array


def row_pointer(array: Any, row: int) -> Any:
    return array[row]


def and_bitmaps(words: Any, bitmaps: Any, places: Any, columns: Any, chosen: Any, begin: int, end: int) -> int:
    for at, column in zip(places[begin:end], columns[begin:end], strict=True):
        words[:8] &= bitmaps[at + chosen[column] : at + chosen[column] + 8]
    return sum(map(ones, words[:8]))


def prefetch_read(array: Any, at: int) -> None:
    pass


prefetch_later = prefetch_read


def stream_line(source: Any, at: int, target: Any, to: int) -> None:
    target[to : to + _LANES] = source[at : at + _LANES]


copy_16 = copy_line = stream_line


def line_offset(array: Any, at: int) -> int:
    return int(array.ctypes.data // 4 + at) % _LANES


def fill_block(words: Any) -> None:
    words[:8] = _ALL_BITS


def can_compress() -> bool:
    return False
