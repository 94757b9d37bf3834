"""The layouts that there are for rows, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

CLUSTER, LIST, POOL, SKETCH, SIEVE = LAYOUTS = 0, 1, 2, 3, 4
LAYOUT_NAMES = ("cluster", "list", "pool", "sketch", "sieve")
BITS_A_ROW = 16
"""Bits of a filter for each row, at least: about one in so many events passes by mistake, or fewer."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds, measured on one core of a server of 2023. Only their ratios matter."""

    cluster: float = 0.5
    """A cluster that does not apply to the event."""
    look_up: float = 16.0
    """Finding the run of a cluster that does."""
    slot: float = 0.08
    """Comparing one slot in one column."""
    within_slot: float = 0.5
    """The same where slots are sorted by intervals with two ends: what passes is scattered, and in no cache."""
    passed: float = 20.0
    """Keeping one slot that passes there."""
    sketched: float = 0.03
    """The same, in a sketch."""
    line: float = 6.0
    """Fetching a line of a cluster that no cache holds."""
    list_slot: float = 12.0
    """Testing the predicates of one slot of a list."""
    cell: float = 4.0
    """Looking up one cell of a directory."""
    block: float = 14.0
    """Looking at a block, apart from its bitmaps."""
    bitmap: float = 1.6
    """One bitmap of a block."""
    bucket: float = 30.0
    """Finding the bucket of a code, in a sieve."""
    sieve_block: float = 30.0
    """Looking at a block of a sieve, apart from its bitmaps."""
    sieve_bitmap: float = 4.0
    """One bitmap of such a block."""
    sieved: float = 50.0
    """Testing the predicates of one slot that is left in it."""
    least_sieved: float = 0.02
    """Rows that cost less elsewhere, each, are not taken into a sieve: none costs less there."""


DEFAULT_COSTS = Costs()
