"""XPath expressions inside SQL: those on one column of documents are decided together, once per batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.events import EventBatch
from harken.language.xpath.parser import parse_accepted
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.documents import XPathMatcher
from harken.matchers.programs.patterns import XPATH, PatternTable
from harken.schema.paths import Path


class FittingXPaths(NamedTuple):
    """Pairs of an event and a pattern that matches its document."""

    events: NDArray[np.int64]
    patterns: NDArray[np.int32]
    unsure: set[int]
    """Events for which some pattern exceeded a limit."""


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

    def fitting(self, batch: EventBatch, limits: Limits = DEFAULT_LIMITS) -> FittingXPaths:
        """The patterns that match the documents of each event."""
        events, patterns = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        unsure: set[int] = set()
        for path, matcher in self._matchers.items():
            documents = batch.documents(path, limits)
            matches = matcher.find(documents, limits)
            events.append(np.repeat(documents.owner.astype(np.int64), np.diff(matches.offsets)))
            patterns.append(matches.numbers)
            unsure.update(int(documents.owner[document]) for document, _, _ in matches.errors)
        return FittingXPaths(np.concatenate(events), np.concatenate(patterns), unsure)
