"""Which events of a chunk have a value in a column."""

from __future__ import annotations

import numpy as np
import pytest

from harken.kernels.compile import kernel
from harken.kernels.presence import PresentBits, mark_present


@kernel
def _mark_present(codes, has_value, first, events, skipped, presence):
    mark_present(codes, has_value, first, events, skipped, presence)


@pytest.mark.parametrize("events", [1, 63, 64, 65, 200])
def test_which_events_have_a_value(events: int) -> None:
    rng = np.random.default_rng(events)
    codes = rng.integers(0, 3, (5, events + 7), np.uint32)
    skipped = rng.random(events + 7) < 0.2
    codes[1, 7:] = codes[3] = 0
    presence = PresentBits(np.full((6, 4), 12_345, np.uint64), np.ones(5, np.bool_))
    _mark_present(codes, np.array([True, True, True, False, True]), 7, events, skipped, presence)
    bits = np.unpackbits(presence.bits.view(np.uint8), axis=1, bitorder="little")[:, :events].astype(bool)
    assert (bits[5] == ~skipped[7:]).all()
    assert (bits[:5] == ((codes[:, 7:] != 0) & ~skipped[7:])).all()
    assert presence.any_event.tolist() == bits[:5].any(axis=1).tolist()
