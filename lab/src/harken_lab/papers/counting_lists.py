"""Predicates that hold are counted for the rows on their lists (ToPSS, 3.3; Le Subscribe, 3.1: fair predicate).

This is the baseline of the literature, made as fast as its idea allows: each distinct predicate is stored once, its
list is an array, counters are bytes unless a row has more than 254 predicates, and contiguous lists are walked as one
run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.errors import CapabilityError
from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.counting import CountedLists, Counting
from harken_lab.papers.kernels.counting_kernels import count_by_lists
from harken_lab.papers.row_matcher import RowSearch
from harken_lab.papers.row_predicates import PredicateIndex

GROWTHS = {"double": 0, "constant": 16}
"""How the room of a full list grows: how many cells it gets; 0 doubles it. The paper's constant is not known."""


class CountingLists(Counting):
    """Counting with a list of rows for every predicate. To remove a row, its predicates are read from the row table.

    With `growth="constant"`, as in ToPSS, rows are added one by one, and a full list gets room for 16 more.
    """

    def __init__(
        self, limits: Limits = DEFAULT_LIMITS, index: str = "lists", vector: str = "numbers", growth: str = "double"
    ) -> None:
        if growth not in GROWTHS:
            raise CapabilityError(f"`growth` is one of {', '.join(GROWTHS)}, not {growth!r}")
        super().__init__(limits, index)
        self._counted = CountedLists(index, vector=vector, step=GROWTHS[growth])
        if GROWTHS[growth]:
            self.bulk_share = 0

    @property
    def _predicates(self) -> PredicateIndex:
        return self._counted.predicates

    def _insert(self, rows: NDArray[np.int32]) -> None:
        self._counted.insert(rows, self.rows.table, self.rows.spans)

    def _delete(self, rows: NDArray[np.int32]) -> None:
        self._counted.delete(rows, self.rows.table)

    def _clear(self) -> None:
        self._counted.clear()

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        counted, scratch = self._counted.counted, self._counted.scratch()
        done: int = count_by_lists(counted, self.rows.count, codes, first, scratch, out, offsets, examined)
        return done

    def _memory(self) -> dict[str, int]:
        return self._counted.memory

    def _details(self) -> dict[str, Any]:
        return super()._details() | {"list_entries": int(self._counted.lists.table.sizes.sum())}
