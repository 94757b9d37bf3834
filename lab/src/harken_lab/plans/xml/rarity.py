"""In which order predicates are tried: those that few documents are expected to meet come first (section 3.2).

Equalities come before all else. A constant that many subscriptions ask for is taken to be one that many documents
have: what is rare among constants leads to few candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harken_lab.plans.xml.path_predicates import ANY, EQUAL, Placed

_RANKS = {EQUAL: 0, "!=": 2, "number!=": 2, ANY: 3}
"""Ranges are between equalities and what nearly everything meets."""


class Rarity:
    """How often equalities ask for each value."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def learn(self, predicates: Iterable[Placed]) -> list[str]:
        """Take the predicates of a subscription into account. Returns the values that it asks for."""
        found = [each.value for each, _ in predicates if each.op == EQUAL and each.value is not None]
        self._counts.update(found)
        return found

    def forget(self, values: Iterable[str]) -> None:
        """Let go of values that a subscription asked for."""
        for value in values:
            self._counts[value] -= 1
            if not self._counts[value]:
                del self._counts[value]

    def ordered(self, predicates: list[Placed]) -> list[Placed]:
        """The predicates of a subscription, the most selective first."""
        return sorted(predicates, key=self._rank)

    def _rank(self, placed: Placed) -> tuple[int, int]:
        predicate, _ = placed
        return _RANKS.get(predicate.op, 1), self._counts[predicate.value or ""] if predicate.op == EQUAL else 0
