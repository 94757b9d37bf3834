"""Every subscription is tested against every event (Le Subscribe, figure 1): the baseline that filters nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from harken.errors import HarkenError
from harken.events import EventBatch
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Capability, Entry, MatchResult
from harken.matchers.verify import is_match


class Naive:
    """Tests all subscriptions one by one. It can do all that the language can say."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._forms: dict[int, NormalForm] = {}

    def add(self, entries: Iterable[Entry]) -> None:
        self._forms.update((entry.number, entry.compiled.normal_form) for entry in entries)

    def remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self._forms[number]

    def match(self, batch: EventBatch) -> MatchResult:
        forms = list(self._forms.items())  # a snapshot: others may add and remove meanwhile
        matches: list[Sequence[int]] = []
        errors: list[tuple[int, int, HarkenError]] = []
        for index, event in enumerate(batch):
            found: list[int] = []
            for number, form in forms:
                try:
                    if is_match(form, event, self._limits):
                        found.append(number)
                except HarkenError as error:
                    errors.append((index, number, error))
            matches.append(found)
        return MatchResult(matches, [len(forms)] * len(batch), errors)

    def stats(self) -> dict[str, Any]:
        return {
            "subscriptions": len(self._forms),
            "conjunctions": sum(len(form.conjunctions) for form in self._forms.values()),
        }
