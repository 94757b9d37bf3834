"""The layouts that there are for rows, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

CLUSTER, LIST, POOL, SKETCH = LAYOUTS = 0, 1, 2, 3
LAYOUT_NAMES = ("cluster", "list", "pool", "sketch")
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


DEFAULT_COSTS = Costs()
