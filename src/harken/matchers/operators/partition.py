"""Divides subscriptions into parts of equal size that share few predicates, so that few are evaluated in several parts.

A predicate costs an evaluation in each part that needs it. So a subscription goes where most of the cost of its
predicates is paid already, less where a part is almost full (linear deterministic greedy). One pass is enough: once
parts are full, a subscription could only go back to where it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SLACK = 1.05
"""How many times the size of a part a part could have before a full one attracts nothing."""


def balanced_shares(
    starts: NDArray[np.int64], predicates: NDArray[np.int64], costs: NDArray[np.float64], parts: int
) -> NDArray[np.int64]:
    """The part of each subscription. Its predicates are `predicates[starts[n]:starts[n + 1]]`, each once."""
    count = len(starts) - 1
    most = -(-count // parts)
    share, sizes = np.zeros(count, np.int64), np.zeros(parts)
    users = np.zeros((len(costs), parts), np.bool_)
    for number in range(count):
        needed = predicates[starts[number] : starts[number + 1]]
        worth = (costs[needed] @ users[needed]) * (1.0 - sizes / (most * _SLACK))
        # Among equals the smallest part; a full one never.
        part = int(np.lexsort((sizes, -worth, sizes >= most))[0])
        share[number] = part
        users[needed, part] = True
        sizes[part] += 1
    return share
