"""XPath expressions inside SQL: those on one column of documents are decided together, once per batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.events import EventBatch
from harken.language.xpath.parser import parse_accepted
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.documents import XPathMatcher
from harken.matchers.programs.patterns import XPATH, PatternTable
from harken.schema.paths import Path


class XPathPatterns:
    """The XPath expressions among patterns, by column."""

    def __init__(self, table: PatternTable, texts: tuple[Path, ...]) -> None:
        self._matchers: dict[Path, XPathMatcher] = {}
        places = np.flatnonzero(table.kind == XPATH)
        for column in np.unique(table.column[places]).tolist():
            patterns = places[table.column[places] == column].tolist()
            matcher = self._matchers[texts[column]] = XPathMatcher()
            matcher.add_expressions({place: parse_accepted(table.text(place)) for place in patterns})

    def __bool__(self) -> bool:
        return bool(self._matchers)

    def paths(self) -> tuple[Path, ...]:
        """The attributes that are read as documents."""
        return tuple(self._matchers)

    def fitting(
        self, batch: EventBatch, limits: Limits = DEFAULT_LIMITS
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Pairs of an event and a pattern that matches its document."""
        events, patterns = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for path, matcher in self._matchers.items():
            documents = batch.documents(path, limits)
            counts, matches, _ = matcher.find(documents)
            events.append(np.repeat(documents.owner.astype(np.int64), np.diff(counts)))
            patterns.append(matches)
        return np.concatenate(events), np.concatenate(patterns)
