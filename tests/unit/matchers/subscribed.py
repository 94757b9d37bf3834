"""A matcher by its protocol, with the forms that an engine would keep for it."""

from __future__ import annotations

from typing import Any

from harken.events import Event, EventBatch
from harken.language import Compiler
from harken.language.normal_form import NormalForm
from harken.matchers import Entry, create_matcher
from harken.schema import Schema


def batch(*events: dict[str, Any]) -> EventBatch:
    return EventBatch(tuple(map(Event.of, events)), tuple(range(len(events))))


class Subscribed:
    """Subscriptions by number."""

    def __init__(self, algorithm: str, *texts: str, schema: Schema | None = None, **options: Any) -> None:
        self.matcher: Any = create_matcher(algorithm, **options)
        self.compiler = Compiler(schema)
        self.forms: dict[int, NormalForm] = {}
        self.add(dict(enumerate(texts)))

    def add(self, texts: dict[int, str]) -> None:
        entries = [Entry(number, self.compiler.compile(text)) for number, text in texts.items()]
        self.matcher.add(entries)
        self.forms.update((entry.number, entry.compiled.normal_form) for entry in entries)

    def remove(self, *numbers: int) -> None:
        self.matcher.remove(numbers)
        for number in numbers:
            del self.forms[number]

    def match(self, *events: dict[str, Any]) -> list[list[int]]:
        return [sorted(found) for found in self.matcher.match(batch(*events), self.forms.__getitem__).by_event()]
