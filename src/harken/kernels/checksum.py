"""A checksum of files, quick enough to check all of a file whenever it is opened.

Every word of 64 bits is mixed with its place (by the finaliser of SplitMix64; Steele, Lea and Flood, "Fast Splittable
Pseudorandom Number Generators", section 4), and the mixtures are added up.

At one place, different words have different mixtures. So damage within one word (a bit, a byte) is always detected.
Other damage (several words changed, swapped or moved, pages of zeros, an older file's contents) goes undetected once in
about 2^64 cases. The checksum does not protect against deliberate changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import IS_PLAIN, kernel

LINE = 64
"""Bytes in a line. The last line is padded with zeros."""
_WORD = 8
_STEP = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST, _SECOND = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
_BY_30, _BY_27, _BY_31 = np.uint64(30), np.uint64(27), np.uint64(31)
_PIECE = 1 << 14


@kernel
def sum_of_mixtures(words, first):
    """The sum of the mixtures of words, the first of which is at the place `first`."""
    total = np.uint64(0)
    for i in range(words.size):
        mixed = words[i] ^ (np.uint64(first + i + 1) * _STEP)
        mixed = (mixed ^ (mixed >> _BY_30)) * _FIRST
        mixed = (mixed ^ (mixed >> _BY_27)) * _SECOND
        total += mixed ^ (mixed >> _BY_31)
    return total


def sum_of_mixtures_plain(words: NDArray[np.uint64], first: int) -> int:
    """`sum_of_mixtures` on NumPy arrays, because NumPy scalars warn of overflow."""
    total = 0
    for start in range(0, len(words), _PIECE):
        piece = words[start : start + _PIECE]
        mixed = piece ^ ((np.arange(len(piece), dtype=np.uint64) + np.uint64(first + start + 1)) * _STEP)
        mixed = (mixed ^ (mixed >> _BY_30)) * _FIRST
        mixed = (mixed ^ (mixed >> _BY_27)) * _SECOND
        total += int((mixed ^ (mixed >> _BY_31)).sum())
    return total


_sum = sum_of_mixtures_plain if IS_PLAIN else sum_of_mixtures


def checksum(data: NDArray[np.uint8]) -> int:
    """The checksum of bytes, which begin at a multiple of 8 in memory."""
    whole = len(data) // LINE * LINE
    total = int(_sum(_words(data[:whole]), 0))
    if whole < len(data):
        last = np.zeros(LINE, np.uint8)
        last[: len(data) - whole] = data[whole:]
        total += int(_sum(_words(last), whole // _WORD))
    return total & 0xFFFF_FFFF_FFFF_FFFF


def _words(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    words = data.view(np.uint64)
    words.flags.writeable = False  # some arrays are read-only: if all are, Numba compiles once
    return words
