"""The layouts of rows, and the costs of their steps."""

from __future__ import annotations

from dataclasses import dataclass

CLUSTER, LIST, POOL, SKETCH, SIEVE = LAYOUTS = 0, 1, 2, 3, 4
LAYOUT_NAMES = ("cluster", "list", "pool", "sketch", "sieve")
BITS_A_ROW = 16
"""Minimum number of filter bits per row. At most about one in this many events passes by mistake."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds per step, measured on one core of a server of 2023. Only their ratios matter."""

    cluster: float = 0.5
    """A cluster that does not apply to the event."""
    look_up: float = 16.0
    """Finding the run of a cluster that applies."""
    slot: float = 0.08
    """Comparing one slot in one column."""
    within_slot: float = 0.5
    """The same if slots are sorted by intervals with two ends: passing slots are scattered, outside the cache."""
    passed: float = 20.0
    """Recording one slot that passes such a comparison."""
    sketched: float = 0.03
    """Comparing one slot in one column of a sketch."""
    line: float = 6.0
    """Fetching a cache line of a cluster that is larger than the cache."""
    list_slot: float = 12.0
    """Testing the predicates of one slot of a list."""
    cell: float = 4.0
    """Looking up one cell of a directory."""
    block: float = 14.0
    """Examining a block of a pool, apart from its bitmaps."""
    bitmap: float = 1.6
    """Reading one bitmap of a block of a pool."""
    bucket: float = 30.0
    """Finding the bucket of a code, in a sieve."""
    sieve_block: float = 30.0
    """Examining a block of a sieve, apart from its bitmaps."""
    sieve_bitmap: float = 4.0
    """Reading one bitmap of a block of a sieve."""
    sieved: float = 50.0
    """Testing the predicates of one slot that the bitmaps of a sieve leave."""
    least_sieved: float = 0.02
    """Minimum cost of a row in a sieve. Rows that cost less elsewhere are not considered for one."""


DEFAULT_COSTS = Costs()
