"""Regular expressions, by RE2: all expressions on a column at once, each distinct text once per batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.matchers.programs.patterns import PatternTable

_TOGETHER = 10_000
"""Maximum number of expressions in one filter. RE2 prefilters by their literals, within bounded memory."""


class Regexes:
    """The regular expressions that an index matches against every text, by column."""

    def __init__(self, table: PatternTable, places: NDArray[np.int64]) -> None:
        self._filters: dict[int, list[tuple[Any, list[int]]]] = {}
        """By column: filters of RE2, each with the patterns of its expressions."""
        for column in np.unique(table.column[places]).tolist():
            patterns = places[table.column[places] == column].tolist()
            for first in range(0, len(patterns), _TOGETHER):
                part = patterns[first : first + _TOGETHER]
                self._filters.setdefault(column, []).append((_filter([table.text(place) for place in part]), part))

    def __bool__(self) -> bool:
        return bool(self._filters)

    def columns(self) -> list[int]:
        """The text columns with regular expressions."""
        return list(self._filters)

    def fitting(self, column: int, text: bytes) -> list[int]:
        """The patterns of a column that match a text."""
        patterns: list[int] = []
        for expressions, places in self._filters[column]:
            patterns += [places[each] for each in expressions.Match(text) or ()]
        return patterns


def _filter(patterns: list[str]) -> Any:
    import re2

    made = re2.Filter()
    options = re2.Options()
    options.log_errors = False
    for pattern in patterns:
        made.Add(pattern, options)
    made.Compile()
    return made
