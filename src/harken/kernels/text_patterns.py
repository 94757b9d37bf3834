"""Finds which of many patterns a text fits, in one pass over its bytes.

Every pattern has a *needle*, the longest run of plain bytes in it. Four bytes of the needle, fewer where it is
shorter, are its *gram*. The grams of all patterns of all columns are in one hash table. Reading a text, the last four
bytes are looked up at each place, first in a filter of single bits, so that most places cost one look. Where a gram is
found, the needle is compared, and then the rest of the pattern. The table is as large as the patterns are; an automaton
over a hundred thousand of them would take gigabytes.

Texts are UTF-8. A needle never matches from the middle of a character: no character's bytes are inside another's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, inner, kernel

CONTAINS, STARTS, ENDS, GLOB = 0, 1, 2, 3
"""What has to be true of a text in which the needle of a pattern was found."""
ANY, ONE = 256, 257
"""In a glob: any characters, and any one character. All else are bytes."""
GRAM = 4
_SALT = np.uint32(0x85EBCA6B)
_MULTIPLIER = np.uint32(0x9E3779B1)
PADDING = 8


class Patterns(NamedTuple):
    """The patterns of an index, and the hash table of their grams."""

    kind: NDArray[np.uint8]
    column: NDArray[np.int32]
    """The column of texts that a pattern is about."""
    needles: NDArray[np.uint8]
    """The needles behind each other."""
    needle_at: NDArray[np.int64]
    anchor: NDArray[np.int32]
    """Where in the needle its gram begins."""
    size: NDArray[np.uint8]
    """The bytes of the gram; 0 for a pattern without a needle."""
    gram: NDArray[np.uint32]
    globs: NDArray[np.int16]
    glob_at: NDArray[np.int64]
    filter: NDArray[np.uint64]
    """A bit a hash: whether some gram has it."""
    filter_bits: int
    bucket_at: NDArray[np.int64]
    buckets: NDArray[np.int32]
    """The patterns by the first bits of their hashes."""
    bucket_bits: int
    sizes: NDArray[np.uint8]
    """By column: a bit for each size of a gram that occurs."""
    loose_at: NDArray[np.int64]
    """By column: where its patterns without a needle begin in `loose`."""
    loose: NDArray[np.int32]


@inlined
def _hash(gram, column, size):
    """32 bits of a gram, of texts of a column."""
    mixed = (gram ^ (np.uint32(column * 8 + size) * _SALT)) * _MULTIPLIER
    return mixed ^ (mixed >> np.uint32(15))


@kernel
def place_grams(needles, needle_at, column, use, anchor, size, gram):
    """Choose the gram of each needle: the one that the fewest others share. `use` is space for counting, in zeros."""
    mask = np.uint32(len(use) - 1)
    for turn in range(2):
        for place in range(len(column)):
            start, end = needle_at[place], needle_at[place + 1]
            length = min(end - start, GRAM)
            if length == 0:
                continue
            least = np.int64(1) << 60
            for at in range(start, end - length + 1):
                packed = np.uint32(0)
                for step in range(length):
                    packed |= np.uint32(needles[at + step]) << np.uint32(8 * step)
                slot = _hash(packed, column[place], length) & mask
                if turn == 0:
                    use[slot] += 1
                elif use[slot] < least:
                    least = use[slot]
                    anchor[place], size[place], gram[place] = at - start, length, packed


@kernel
def hash_grams(column, size, gram, hashes):
    """Write the hash of each pattern's gram."""
    for place in range(len(column)):
        hashes[place] = _hash(gram[place], column[place], size[place])


@inner
def fits_glob(data, begin, end, globs, first, last):
    """Whether a text fits a glob: the last ANY is given more of the text whenever what follows it does not fit."""
    at, piece = begin, first
    retry, resume = np.int64(-1), np.int64(0)
    while at < end:
        if piece < last and globs[piece] == ANY:
            retry, resume = piece, at
            piece += 1
        elif piece < last and globs[piece] == ONE:
            at += 1
            while at < end and data[at] & 0xC0 == 0x80:  # the rest of the character
                at += 1
            piece += 1
        elif piece < last and globs[piece] == data[at]:
            at += 1
            piece += 1
        elif retry >= 0:
            resume += 1
            at, piece = resume, retry + 1
        else:
            return False
    while piece < last and globs[piece] == ANY:
        piece += 1
    return piece == last


@inlined
def _fits(patterns, pattern, data, begin, end, gram_at, text_stamp, tried):
    """Whether a text fits a pattern, whose gram occurs in it."""
    needle = patterns.needle_at[pattern]
    length = patterns.needle_at[pattern + 1] - needle
    start = gram_at - patterns.anchor[pattern]
    kind = patterns.kind[pattern]
    is_fit = start >= begin and start + length <= end
    if kind == STARTS:
        is_fit = is_fit and start == begin
    elif kind == ENDS:
        is_fit = is_fit and start + length == end
    if is_fit:
        same = np.int64(0)
        while same < length and data[start + same] == patterns.needles[needle + same]:
            same += 1
        is_fit = same == length
    if is_fit and kind == GLOB:
        is_fit = tried[pattern] != text_stamp
        if is_fit:
            tried[pattern] = text_stamp
            is_fit = fits_glob(
                data, begin, end, patterns.globs, patterns.glob_at[pattern], patterns.glob_at[pattern + 1]
            )
    return is_fit


@inlined
def scan(patterns, column, data, begin, end, stamp, text_stamp, fitting, tried, fitted, fits):
    """Append the patterns of a column that a text fits, and that no text of the same stamp has fitted before.

    Returns the new number of patterns in `fitted`.
    """
    mask = np.uint32((1 << patterns.filter_bits) - 1)
    shift = np.uint32(patterns.filter_bits - patterns.bucket_bits)
    sizes = np.int64(patterns.sizes[column])
    for size in range(1, GRAM + 1):
        if not sizes >> (size - 1) & 1:
            continue
        unread = np.uint32(32 - 8 * size)
        gram = np.uint32(0)
        for at in range(begin, min(begin + size - 1, end)):
            gram = (gram >> np.uint32(8)) | (np.uint32(data[at]) << np.uint32(24))
        for at in range(begin + size - 1, end):
            gram = (gram >> np.uint32(8)) | (np.uint32(data[at]) << np.uint32(24))
            last_bytes = gram >> unread
            hashed = _hash(last_bytes, column, size) & mask
            if not patterns.filter[hashed >> np.uint32(6)] >> np.uint64(hashed & np.uint32(63)) & np.uint64(1):
                continue
            bucket = hashed >> shift
            for entry in range(patterns.bucket_at[bucket], patterns.bucket_at[bucket + np.uint32(1)]):
                pattern = patterns.buckets[entry]
                if (
                    patterns.gram[pattern] == last_bytes
                    and fitting[pattern] != stamp
                    and patterns.column[pattern] == column
                    and patterns.size[pattern] == size
                    and _fits(patterns, pattern, data, begin, end, at - size + 1, text_stamp, tried)
                ):
                    fitting[pattern] = stamp
                    fitted[fits] = pattern
                    fits += 1
    for entry in range(patterns.loose_at[column], patterns.loose_at[column + 1]):
        pattern = patterns.loose[entry]
        first, last = patterns.glob_at[pattern], patterns.glob_at[pattern + 1]
        if fitting[pattern] != stamp and fits_glob(data, begin, end, patterns.globs, first, last):
            fitting[pattern] = stamp
            fitted[fits] = pattern
            fits += 1
    return fits
