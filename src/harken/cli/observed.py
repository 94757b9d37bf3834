"""The attributes of checked events, to warn of subscriptions that use others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harken.cli.asked_in_vain import ABOUT_DOCUMENTS, without_documents
from harken.errors import did_you_mean
from harken.events import Event
from harken.language.compiled import Compiled
from harken.language.normal_form import Conjunction, ValueSet
from harken.language.xpath.document_plan import DocumentPlan
from harken.schema import Kind, Path, format_path
from harken.schema.derived import place_of
from harken.schema.paths import DOCUMENT
from harken.schema.values import KINDS

_MOST_FOR_A_HINT = 1_000


class Observed:
    """Collects the paths of all events, with the kinds of their values."""

    def __init__(self) -> None:
        self.events = 0
        self._kinds: dict[Path, set[Kind]] = {}

    def add(self, event: Event) -> None:
        self.events += 1
        self._walk(event.attributes, ())

    def doubts(self, compiled: Compiled) -> Iterator[tuple[str, str | None]]:
        """Warnings about a subscription, compared with the events: messages, each with a hint or None."""
        reported: set[Path] = set()
        if isinstance(compiled.plan, DocumentPlan):
            if DOCUMENT not in self._kinds:
                yield without_documents(self.events), ABOUT_DOCUMENTS
            return
        for path in (path for item in compiled.normal_form.conjunctions for path in item.paths()):
            if path not in self._kinds and path not in reported:
                reported.add(path)
                name = format_path(path)
                names = [format_path(each) for each in self._kinds] if len(self._kinds) <= _MOST_FOR_A_HINT else []
                hint = did_you_mean(name, names) or f"if a string is meant, it is written in single quotes: '{name}'"
                yield f"none of the {self.events:,} events has `{name}`", hint
        for item in compiled.normal_form.conjunctions:
            yield from ((message, None) for message in self._unlike(item))

    def _unlike(self, item: Conjunction) -> Iterator[str]:
        for path, constraint in item.constraints:
            place = place_of(path)
            kinds = self._kinds.get(place)
            if kinds and isinstance(constraint, ValueSet):
                wanted = [kind for kind, _ in constraint.parts]
                if not kinds & {*wanted, *([Kind.STRING] if place != path else [])}:
                    has = " or ".join(f"a {kind}" for kind in sorted(kinds))
                    asks = " or ".join(f"a {kind}" for kind in wanted)
                    yield f"`{format_path(path)}` is {has} in all events, which does not compare with {asks}"

    def _walk(self, value: Any, path: Path) -> None:
        if type(value) is list:
            for element in value:
                self._walk(element, path)
            return
        kinds = self._kinds.setdefault(path, set()) if path else set()
        if type(value) is dict:
            for key, inner in value.items():
                self._walk(inner, (*path, key))
        else:
            kinds.add(KINDS[type(value)])
