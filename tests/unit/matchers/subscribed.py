"""A matcher by its protocol, with the forms that an engine would keep for it."""

from __future__ import annotations

from typing import Any

from harken.events import Event, EventBatch
from harken.language import Compiler
from harken.language.normal_form import NormalForm
from harken.matchers import Entry, create_matcher
from harken.schema import Schema


def batch(*events: dict[str, Any]) -> EventBatch:
    return EventBatch.of(tuple(map(Event.of, events)), tuple(range(len(events))))


class Subscribed:
    """Subscriptions by number, and how many pairs were verified."""

    def __init__(self, algorithm: str, *texts: str, schema: Schema | None = None, **options: Any) -> None:
        self.matcher: Any = create_matcher(algorithm, **options)
        self.compiler = Compiler(schema)
        self.forms: dict[int, NormalForm] = {}
        self.verified = 0
        self.add(dict(enumerate(texts)))

    @property
    def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = self.matcher.stats()
        return found

    def add(self, texts: dict[int, str]) -> None:
        entries = [Entry(number, self.compiler.compile(text)) for number, text in texts.items()]
        self.matcher.add(entries)
        self.forms.update((entry.number, entry.compiled.normal_form) for entry in entries)

    def remove(self, *numbers: int) -> None:
        self.matcher.remove(numbers)
        for number in numbers:
            del self.forms[number]

    def form_of(self, number: int) -> NormalForm:
        self.verified += 1
        return self.forms[number]

    def match(self, *events: dict[str, Any]) -> list[list[int]]:
        return [sorted(found) for found in self.matcher.match(batch(*events), self.form_of).by_event()]

    def candidates(self, *events: dict[str, Any]) -> list[int]:
        found: list[int] = self.matcher.match(batch(*events), self.form_of).candidates.tolist()
        return found
