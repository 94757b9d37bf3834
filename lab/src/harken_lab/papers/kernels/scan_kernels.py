"""Test all rows against all events: the baseline for every index."""

from __future__ import annotations

from harken.kernels.compile import kernel
from harken_lab.papers.kernels.row_table import row_holds


@kernel
def scan(table, alive, codes, first, out, offsets, examined):
    """Test every row against each event from `first` on. Returns the first event without room, or the end."""
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if out.size - end < alive.size:
            return event
        for i in range(alive.size):
            row = alive[i]
            if row_holds(table, row, codes, event):
                out[end] = row
                end += 1
        offsets[event + 1] = end
        examined[event] = alive.size
    return codes.shape[1]
