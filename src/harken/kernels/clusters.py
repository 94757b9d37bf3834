"""Keyed clusters as they lie in memory (Le Subscribe's equality-preferred algorithm with quarantine, sections 4.3 and
4.4, generalised to any key and to a range within it).

The slots of a cluster are sorted by the code of the key and, under one key, by the bound of the range. So an event's
key leads to a run of slots, and its value on the range attribute cuts that run short. What the cluster asks beyond
that is compared 64 slots at a time. A run with nothing to compare is not read: its ids are copied.

Where all rows of a cluster ask for one value in other columns besides the key's, and few events have one of the
combinations that occur, the cluster has a filter: a bit for each combination, located by hashing. An event
without its bit is not looked up at all.

Without a key all events search the same bounds. A copy of every 64th bound stands behind them, where the search begins.

Without a range, the slots of one key are sorted by what they ask of one column that is compared: those with an upper
end by that, and then the others by their lower end. Where nothing else is compared, and all intervals have one end,
the slots that hold for an event follow each other. In a run of at most 64 slots this is noticed: they are a run, too.

A cluster that no cache holds has a sketch: tiles of 64 slots, in which every column that is compared takes one byte a
slot, or two, of the upper bits of its codes. These settle nearly all slots; only where the upper bits of an event's
code are those of a bound are the bounds themselves read. An event then reads a quarter of the bytes, all contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel
from harken.kernels.frozen import Grid

# The fields of a cluster.
(
    MASK_START,
    MASK_COUNT,
    KEY_COLUMN,
    KEY_START,
    KEY_COUNT,
    HASH_START,
    HASH_BITS,
    RANGE_COLUMN,
    RANGE_CLASS,
    BOUND_START,
    BOUND_WIDE,
    SLOT_START,
    SLOT_COUNT,
    REST_START,
    REST_COUNT,
    LIST_START,
    RANGE_SPAN,
    TILE_START,
    TILE_BYTES,
    FILTER_START,
    FILTER_BITS,
    FILTER_COLUMNS,
    FILTER_COUNT,
) = range(23)
CLUSTER_FIELDS = 23
# The fields of a column that is compared: the column of the event, whether it is wide, where its low codes and spans
# stand, where its bytes stand in a tile, and by how many bits codes are shifted there. Where all intervals of a column
# have one end there are no spans: in place of a low code stands twice the highest code that is admitted or, of an
# interval without a high end, twice the code before the lowest, and one more.
REST_COLUMN, REST_WIDE, REST_LOW, REST_SPAN, REST_PLANE, REST_SHIFT = range(6)
REST_FIELDS = 6
NONE = -1
# Multiplying by this and keeping the upper bits spreads codes over a table (Fibonacci hashing).
_SCATTER = np.uint64(2654435769)
_WORD = np.uint64(0xFFFF_FFFF)
WORD_BITS = 32
_DOWN = np.uint64(15)
_LOW_BITS = 0xFFFF_FFFF
_NARROW = 0xFFFF


class Clusters(NamedTuple):
    """All clusters of a segment, as arrays."""

    clusters: Grid[np.int64]
    """A row of fields for each cluster."""
    masks: NDArray[np.int32]
    """The columns in which an event has to have a value, and those of filters."""
    starts: NDArray[np.int32]
    """By key: where its slots start, from the cluster's first slot. One more than there are keys."""
    hashed: NDArray[np.uint32]
    """Open addressing: pairs of a key's code and its place; a code of 0 is an empty place."""
    narrow: NDArray[np.uint16]
    wide: NDArray[np.uint32]
    """Bounds of ranges, and low codes and spans of what is compared, by the width of their column's codes."""
    rest: Grid[np.int64]
    """What is compared, a row of fields for each column."""
    tiles: NDArray[np.uint8]
    """The sketches."""
    filters: NDArray[np.uint64]
    """2**bits bits for each cluster that has a filter, and at least a word."""
    list_starts: NDArray[np.int32]
    list_columns: NDArray[np.int32]
    list_low: NDArray[np.uint32]
    list_span: NDArray[np.uint32]
    """Where rows of a cluster ask for unlike attributes: their predicates, row by row."""


@inner
def rest_interval(rest, i, slot, narrow, wide, top):
    """The lowest and the highest code that a slot admits in a column that is compared; the low one is above the high
    one where the interval is wrapped.
    """
    width, low = np.int64(_NARROW), np.int64(0)
    if rest[i, REST_WIDE]:
        width, low = np.int64(_LOW_BITS), np.int64(wide[rest[i, REST_LOW] + slot])
    else:
        low = np.int64(narrow[rest[i, REST_LOW] + slot])
    if rest[i, REST_SPAN] == NONE:
        return ((low >> 1) + 1, np.int64(top)) if low & 1 else (np.int64(1), low >> 1)
    span = np.int64(wide[rest[i, REST_SPAN] + slot] if rest[i, REST_WIDE] else narrow[rest[i, REST_SPAN] + slot])
    return low, (low + span) & width


@inner
def mixed_with(mixed, code):
    """Mix a code into a number of 32 bits, so that its upper bits are spread evenly.

    They are folded into the lower ones: otherwise evenly spaced codes would collide.
    """
    mixed = (mixed + np.uint64(code) & _WORD) * _SCATTER & _WORD
    return mixed ^ mixed >> _DOWN


@kernel
def mix(mixed, codes):
    """Mix a code into each of these numbers."""
    for i in range(mixed.size):
        mixed[i] = mixed_with(mixed[i], codes[i])


@kernel
def hashed_place(hashed, start, bits, code):
    """The place of a key in its cluster's table, or -1."""
    mask = (np.int64(1) << bits) - 1
    at = np.int64((np.uint64(code) * _SCATTER & _WORD) >> np.uint64(WORD_BITS - bits))
    while True:
        there = hashed[start + 2 * at]
        if there == code:
            return np.int64(hashed[start + 2 * at + 1])
        if there == 0:
            return np.int64(-1)
        at = (at + 1) & mask


@kernel
def fill_table(keys, bits, table):
    """Enter every key with its place into an empty table of 2**bits pairs."""
    mask = (np.int64(1) << bits) - 1
    for place in range(keys.size):
        at = np.int64((np.uint64(keys[place]) * _SCATTER & _WORD) >> np.uint64(WORD_BITS - bits))
        while table[2 * at] != 0:
            at = (at + 1) & mask
        table[2 * at] = keys[place]
        table[2 * at + 1] = place
