"""Regular expressions, on RE2 alone: all of a column at once, each text once a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.matchers.programs.patterns import PatternTable

_TOGETHER = 10_000
"""Expressions in one filter: RE2 looks for what is literal in them first, and its memory for that is bounded."""


class Regexes:
    """The regular expressions that an index seeks in every text, by the column that they are on."""

    def __init__(self, table: PatternTable, places: NDArray[np.int64]) -> None:
        self._filters: dict[int, list[tuple[Any, list[int]]]] = {}
        """By column: filters of RE2, and the pattern of each expression in them."""
        for column in np.unique(table.column[places]).tolist():
            own = places[table.column[places] == column].tolist()
            for first in range(0, len(own), _TOGETHER):
                some = own[first : first + _TOGETHER]
                self._filters.setdefault(column, []).append((_filter([table.text(place) for place in some]), some))

    def __bool__(self) -> bool:
        return bool(self._filters)

    def columns(self) -> list[int]:
        """The columns of texts that have any."""
        return list(self._filters)

    def fitting(self, column: int, text: bytes) -> list[int]:
        """The patterns of a column that a text fits."""
        found: list[int] = []
        for expressions, places in self._filters[column]:
            found += [places[each] for each in expressions.Match(text) or ()]
        return found


def _filter(patterns: list[str]) -> Any:
    import re2

    made = re2.Filter()
    options = re2.Options()
    options.log_errors = False
    for pattern in patterns:
        made.Add(pattern, options)
    made.Compile()
    return made
