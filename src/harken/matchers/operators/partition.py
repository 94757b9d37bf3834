"""Divides subscriptions into parts of equal size that share few predicates, so that few are evaluated in several parts.

A predicate costs an evaluation in each part that needs it. So a subscription goes where most of the cost of its
predicates is paid already, less where a part is almost full. Further passes move each subscription again, now that all
others have a place (linear deterministic greedy, with restreaming).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_PASSES = 3
"""Between 3 and 10 passes, evaluations change by less than 1 percent."""
_SLACK = 1.05
"""How many times the size of a part a part could have before a full one attracts nothing."""


def balanced_shares(
    starts: NDArray[np.int64], predicates: NDArray[np.int64], costs: NDArray[np.float64], parts: int
) -> NDArray[np.int64]:
    """The part of each subscription. Its predicates are `predicates[starts[n]:starts[n + 1]]`, each once."""
    count = len(starts) - 1
    most = -(-count // parts)
    share, sizes = np.full(count, -1, np.int64), np.zeros(parts)
    users = np.zeros((len(costs), parts), np.int64)
    for _ in range(_PASSES if parts > 1 else 1):
        for number in range(count):
            needed = predicates[starts[number] : starts[number + 1]]
            if share[number] >= 0:
                users[needed, share[number]] -= 1
                sizes[share[number]] -= 1
            paid = costs[needed] @ (users[needed] > 0)
            worth = paid * (1.0 - sizes / (most * _SLACK))
            # Among equals the smallest part; a full one never.
            part = int(np.lexsort((sizes, -worth, sizes >= most))[0])
            share[number] = part
            users[needed, part] += 1
            sizes[part] += 1
    return share
