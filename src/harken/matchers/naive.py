"""Every subscription is tested against every event (Le Subscribe, figure 1): the baseline that filters nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from harken.errors import HarkenError
from harken.events import EventBatch
from harken.language.capabilities import Capability
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Snapshot, Trait
from harken.matchers.verify import is_match
from harken.schema.derived import reading
from harken.schema.paths import Path


class Naive:
    """Tests all subscriptions one by one. Supports the whole language."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._forms: dict[int, NormalForm] = {}
        self._readings: set[Path] = set()
        """Time readings that subscriptions test, including removed subscriptions."""

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        new = {entry.number: entry.compiled.normal_form for entry in entries}
        paths = {path for form in new.values() for conjunction in form.conjunctions for path in conjunction.asked()}
        self._readings |= {path for path in paths if reading(path) is not None}
        if replaced:  # in one assignment, because other threads may match meanwhile
            removed = set(replaced)
            self._forms = {number: form for number, form in self._forms.items() if number not in removed} | new
        else:
            self._forms.update(new)

    def remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self._forms[number]

    def match(self, batch: EventBatch, form_of: FormOf | None = None) -> MatchResult:
        return self.snapshot().match(batch, form_of)

    def snapshot(self) -> NaiveSnapshot:
        return NaiveSnapshot(list(self._forms.items()), list(self._readings), self._limits)

    def stats(self) -> dict[str, Any]:
        return {
            "subscriptions": len(self._forms),
            "conjunctions": sum(len(form.conjunctions) for form in self._forms.values()),
        }


@dataclass(frozen=True, slots=True)
class NaiveSnapshot(Snapshot):
    """All subscriptions at one moment."""

    forms: list[tuple[int, NormalForm]]
    readings: list[Path]
    limits: Limits

    def match(self, batch: EventBatch, form_of: FormOf | None = None) -> MatchResult:
        for path in self.readings:
            batch.cells(path)  # counts the strings that are no timestamps
        offsets = np.zeros(len(batch) + 1, np.int64)
        matches: list[int] = []
        errors: list[tuple[int, int, HarkenError]] = []
        for index, event in enumerate(batch):
            for number, form in self.forms:
                try:
                    if is_match(form, event, self.limits):
                        matches.append(number)
                except HarkenError as error:
                    errors.append((index, number, error))
            offsets[index + 1] = len(matches)
        candidates = np.full(len(batch), len(self.forms), np.int64)
        return MatchResult(offsets, np.array(matches, np.int32), candidates, errors)
