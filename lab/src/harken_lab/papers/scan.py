"""Every row is tested against every event, in machine code: the naive algorithm without the interpreter.

This is `naive` (Le Subscribe, figure 1) on the rows that the papers' other algorithms have too, so that what these gain
over `scan` is due to their indexes alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.kernels.scan_kernels import scan
from harken_lab.papers.row_matcher import RowMatcher, RowSearch


class Scan(RowMatcher):
    """A matcher without an index."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)

    def _insert(self, rows: NDArray[np.int32]) -> None:
        pass

    def _delete(self, rows: NDArray[np.int32]) -> None:
        pass

    def _clear(self) -> None:
        pass

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        done: int = scan(self.rows.table, self.rows.alive(), codes, first, out, offsets, examined)
        return done

    def _memory(self) -> dict[str, int]:
        return {}
