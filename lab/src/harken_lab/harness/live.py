"""A full matcher to which subscriptions are added and removed one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from harken.events import validate
from harken.language.compiled import Form
from harken.matchers import Entry, MatchResult
from harken_lab.harness.contestants import FilledMatcher
from harken_lab.harness.verified_answers import Answers


class LiveMatcher:
    """A matcher, and compiled subscriptions to add to it or to remove from it."""

    def __init__(self, filled: FilledMatcher, entries: Sequence[Entry]) -> None:
        self.matcher = filled.matcher
        self.entries = entries
        self._filled = filled
        self._forms = {entry.number: entry.compiled.normal_form for entry in entries}

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.matcher.add([entry])

    def remove(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.matcher.remove([entry.number])

    def match(self, events: pa.Table) -> MatchResult:
        result: MatchResult = self.matcher.match(validate(events).batch, self._form_of)
        return result

    def answers(self, events: pa.Table) -> Answers:
        result = self.match(events)
        return Answers(result.numbers, result.offsets)

    def _form_of(self, number: int) -> Form:
        """The normal form of a subscription, as verifying needs it for those that were added one by one."""
        form = self._forms.get(number)
        return self._filled.form_of(number) if form is None else form
