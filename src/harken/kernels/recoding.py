"""Predicates in the codes of a dictionary that lacks some of their constants."""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import kernel


@kernel
def admitted(first, last, low_side, high_side, is_same, top, ordered):
    """The lowest and the highest code that a predicate admits, and whether that is exactly what it admits.

    `first` and `last` are the codes of its constants, -1 for none: even for a constant of the dictionary, else odd, of
    the gap that it lies in. An end in a gap admits the whole gap. A predicate that excludes part of a gap, or lies
    between two constants of one gap, admits all codes. Where gaps have no order, so does any predicate but = and <>
    (`is_same`: both ends have the same constant).
    """
    exact = (first < 0 or first & 1 == 0) and (last < 0 or last & 1 == 0)
    vague = False
    if first >= 0 and last >= 0 and not exact:
        vague = first > last or (first == last and not (is_same and low_side == 0))
    if not ordered and (first >= 0 or last >= 0):
        vague |= not (is_same and low_side != high_side)
    if vague:
        return 1, top, False
    low = 1 if first < 0 else first + low_side if first & 1 == 0 else first
    high = top if last < 0 else last - 1 + high_side if last & 1 == 0 else last
    return low, high, exact


@kernel
def recode(codes, low, low_side, high, high_side, top, ordered, lows, highs, exact):
    """`admitted` for many predicates on one column. `low` and `high` are the constants' places in `codes`, or -1."""
    for i in range(low.size):
        first = np.int64(-1) if low[i] < 0 else codes[low[i]]
        last = np.int64(-1) if high[i] < 0 else codes[high[i]]
        is_same = low[i] == high[i] and low[i] >= 0
        lows[i], highs[i], exact[i] = admitted(
            first, last, np.int64(low_side[i]), np.int64(high_side[i]), is_same, np.int64(top), ordered
        )
