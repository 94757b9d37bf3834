"""The consistency rules R1, R2 and R3 of an event (Le Subscribe, section 2.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, cast

from harken.errors import (
    AttributeRuleError,
    EventError,
    EventTypeError,
    ExtraAttributeError,
    InvalidValueError,
)
from harken.schema.domains import Domain, shortened
from harken.schema.event_types import EVENT_TYPE, View
from harken.schema.faults import quick_hint
from harken.schema.paths import Path, format_path
from harken.schema.values import Value

if TYPE_CHECKING:
    from harken.schema.model import Schema

# An event may have 100,000 wrong names. Only its first faults get a hint, which is slow to compute.
_MOST_HINTS = 10


@dataclass(slots=True)
class Examination:
    """An event checked against a schema: its values as the domains read them, and all its faults."""

    schema: Schema
    values: dict[Path, tuple[Value, ...]] = field(default_factory=dict)
    faults: list[EventError] = field(default_factory=list)

    @classmethod
    def of(cls, schema: Schema, attributes: Mapping[Path, Sequence[object]]) -> Self:
        examination = cls(schema)
        present = {path: raw for path, raw in attributes.items() if raw}
        if schema.event_types:
            examination._check_types(present)
        else:
            for path, raw in present.items():
                examination._read_open(path, raw)
        return examination

    def _read_open(self, path: Path, raw: Sequence[object]) -> None:
        domain = self.schema.domain_of(path)
        if domain is None:
            self.values[path] = cast("tuple[Value, ...]", tuple(raw))
        else:
            self._read(path, domain, raw)

    def _check_types(self, present: Mapping[Path, Sequence[object]]) -> None:
        names = self._event_types(present.get(EVENT_TYPE, ()))
        all_types_known = not self.faults
        view = self.schema.view(names, present.keys())
        for path, raw in present.items():
            domain = self.schema.domain_of(path)
            if path == EVENT_TYPE:
                continue
            # An unknown event type might have allowed these attributes, so they are no faults.
            if domain is None or (all_types_known and path not in view.rules):
                self._reject_extra(path, names)
                continue
            self._read(path, domain, raw)
            if all_types_known:
                self._check_unique(path, view)
        self._check_mandatory(view, present)

    def _event_types(self, raw: Sequence[object]) -> tuple[str, ...]:
        """Rule R1. The event's types that the schema has; the others become faults."""
        if not raw:
            self.faults.append(EventTypeError("the event has no `event_type`", hint=_choice(self.schema.event_types)))
            return ()
        names: list[str] = []
        for name in raw:
            if isinstance(name, str) and name in self.schema.event_types:
                names.append(name)
                continue
            hint = self._hint(str(name), self.schema.event_types) if isinstance(name, str) else None
            self.faults.append(EventTypeError(f"there is no event type {shortened(name)}", hint=hint))
        self.values[EVENT_TYPE] = tuple(names)
        return tuple(names)

    def _read(self, path: Path, domain: Domain, raw: Sequence[object]) -> None:
        """Rule R2, the part on domains. An attribute has one fault at most: its first wrong value."""
        try:
            self.values[path] = tuple(map(domain.read, raw))
        except InvalidValueError as error:
            problem = f"attribute `{format_path(path)}`: {error.message}"
            self.faults.append(InvalidValueError(problem, hint=error.hint))

    def _check_unique(self, path: Path, view: View) -> None:
        """Rule R2, the part on singletons. The values are a set: duplicates count once."""
        values = self.values.get(path, ())
        if len(values) > 1 and not view.rules[path].multiple and len(set(values)) > 1:
            problem = f"attribute `{format_path(path)}` is unique, but has {len(set(values))} values"
            self.faults.append(AttributeRuleError(f"{problem}: {shortened(list(values))}"))

    def _check_mandatory(self, view: View, present: Mapping[Path, Sequence[object]]) -> None:
        """Rule R2, the part on what must be there."""
        for path, rule in view.rules.items():
            if rule.mandatory and path not in present:
                owner = next(
                    name
                    for name, event_type in self.schema.event_types.items()
                    if name in view.event_types and path in event_type.rules and event_type.rules[path].mandatory
                )
                problem = f"attribute `{format_path(path)}`, mandatory in event type `{owner}`, is missing"
                self.faults.append(AttributeRuleError(problem))

    def _reject_extra(self, path: Path, names: Iterable[str]) -> None:
        """Rule R3."""
        name = format_path(path)
        declared = self.schema.attributes
        if path in declared:
            types = " and ".join(f"`{event_type}`" for event_type in names)
            self.faults.append(ExtraAttributeError(f"attribute `{name}` does not belong to event type {types}"))
        else:
            hint = self._hint(name, [format_path(known) for known in declared])
            self.faults.append(ExtraAttributeError(f"there is no attribute `{name}`", hint=hint))

    def _hint(self, name: str, known: Collection[str]) -> str | None:
        return quick_hint(name, known) if len(self.faults) < _MOST_HINTS else None


def _choice(names: Iterable[str]) -> str:
    shown = list(names)
    return "it is one or more of " + ", ".join(f"`{name}`" for name in shown[:5]) + (", …" if len(shown) > 5 else "")
