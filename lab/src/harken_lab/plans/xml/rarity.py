"""The order in which predicates are tested: those that few documents are expected to satisfy come first (section 3.2).

Equalities come before all other predicates. A constant that many subscriptions have is assumed to occur in many
documents, so the equality with the rarest constant comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harken_lab.plans.xml.path_predicates import ANY, EQUAL, PlacedPredicate

_RANKS = {EQUAL: 0, "!=": 2, "number!=": 2, ANY: 3}
"""By operator; 1 for ranges. Nearly all documents satisfy predicates of the last ranks."""


class Rarity:
    """Counts how many equalities have each value."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def learn(self, predicates: Iterable[PlacedPredicate]) -> list[str]:
        """Count the equalities among the predicates of a subscription. Returns their values."""
        values = [each.value for each, _ in predicates if each.op == EQUAL and each.value is not None]
        self._counts.update(values)
        return values

    def forget(self, values: Iterable[str]) -> None:
        """Undo `learn`, which returned these values."""
        for value in values:
            self._counts[value] -= 1
            if not self._counts[value]:
                del self._counts[value]

    def ordered(self, predicates: list[PlacedPredicate]) -> list[PlacedPredicate]:
        """The predicates of a subscription, the most selective first."""
        return sorted(predicates, key=self._rank)

    def _rank(self, placed: PlacedPredicate) -> tuple[int, int]:
        predicate, _ = placed
        return _RANKS.get(predicate.op, 1), self._counts[predicate.value or ""] if predicate.op == EQUAL else 0
