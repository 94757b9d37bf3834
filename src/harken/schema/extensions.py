"""The four ways in which a publisher may extend a schema. None changes the meaning of existing definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harken.errors import ExtensionError, SchemaError, did_you_mean
from harken.schema.domains import BUILT_IN, Domain
from harken.schema.event_types import EVENT_TYPE, EventType, Rule
from harken.schema.paths import Path, format_path


@dataclass(slots=True)
class SchemaDraft:
    """A schema under construction, which checks every addition.

    Adding an existing definition again does nothing; `changed` is whether anything was new.
    """

    domains: dict[str, Domain] = field(default_factory=dict)
    attributes: dict[Path, Domain] = field(default_factory=dict)
    event_types: dict[str, EventType] = field(default_factory=dict)
    changed: bool = False

    def domain(self, name: str) -> Domain:
        """The domain of this name. Raises SchemaError."""
        domain = self.domains.get(name) or BUILT_IN.get(name)
        if domain is None:
            raise SchemaError(f"there is no domain `{name}`", hint=did_you_mean(name, [*self.domains, *BUILT_IN]))
        return domain

    def add_domain(self, domain: Domain) -> None:
        name = domain.name
        if not name or name == format_path(EVENT_TYPE):
            raise SchemaError(f"`{name}` cannot be the name of a domain")
        if name in BUILT_IN:
            raise ExtensionError(f"domain `{name}` is built in", hint="give yours another name")
        existing = self.domains.get(name)
        if existing is None:
            self.domains[name] = domain
            self.changed = True
        elif existing != domain:
            raise ExtensionError(f"domain `{name}` already exists, with another definition")

    def add_attribute(self, path: Path, domain_name: str) -> None:
        name = format_path(path)
        if not path or "" in path:
            raise SchemaError(f"`{name}` is not an attribute name: it has an empty key")
        if path == EVENT_TYPE:
            raise SchemaError("attribute `event_type` cannot be defined", hint="declare event types instead")
        domain = self.domain(domain_name)
        existing = self.attributes.get(path)
        if existing is None:
            self.attributes[path] = domain
            self.changed = True
        elif existing != domain:
            raise ExtensionError(f"attribute `{name}` already exists, with domain `{existing.name}`")

    def add_event_type(self, event_type: EventType) -> None:
        name = event_type.name
        if not name:
            raise SchemaError("an event type needs a name")
        existing = self.event_types.get(name)
        if existing is not None:
            if existing != event_type:
                raise ExtensionError(f"event type `{name}` already exists, with other rules")
            return
        for path in event_type.rules:
            self.check_attribute(path)
        self.event_types[name] = event_type
        self.changed = True

    def add_optional_attribute(self, name: str, path: Path, multiple: bool) -> None:
        event_type = self.event_types.get(name)
        if event_type is None:
            raise SchemaError(f"there is no event type `{name}`", hint=did_you_mean(name, self.event_types))
        self.check_attribute(path)
        rule = Rule(mandatory=False, multiple=multiple)
        existing = event_type.rules.get(path)
        if existing is None:
            self.event_types[name] = EventType(name, {**event_type.rules, path: rule})
            self.changed = True
        elif existing != rule:
            raise ExtensionError(f"event type `{name}` already has attribute `{format_path(path)}`, as {existing}")

    def check_attribute(self, path: Path) -> None:
        """Raises SchemaError unless an event type may have a rule for this attribute."""
        name = format_path(path)
        if path == EVENT_TYPE:
            raise SchemaError("attribute `event_type` takes no rule: every event has it")
        if path not in self.attributes:
            hint = did_you_mean(name, map(format_path, self.attributes))
            raise SchemaError(f"there is no attribute `{name}`", hint=hint)


class Extensible(Protocol):
    """The definitions of a schema. (`Schema` itself imports this module.)"""

    @property
    def domains(self) -> Mapping[str, Domain]: ...
    @property
    def attributes(self) -> Mapping[Path, Domain]: ...
    @property
    def event_types(self) -> Mapping[str, EventType]: ...


class Extension(Protocol):
    """One of the four extensions."""

    def apply(self, draft: SchemaDraft) -> None:
        """Add to the draft. Raises SchemaError, or ExtensionError for a conflict with an existing definition."""


@dataclass(frozen=True, slots=True)
class NewDomain:
    """The domain creation rule."""

    domain: Domain

    def apply(self, draft: SchemaDraft) -> None:
        draft.add_domain(self.domain)


@dataclass(frozen=True, slots=True)
class NewAttribute:
    """The attribute creation rule. The domain is a built-in one, or one that the schema already has."""

    path: Path
    domain_name: str

    def apply(self, draft: SchemaDraft) -> None:
        draft.add_attribute(self.path, self.domain_name)


@dataclass(frozen=True, slots=True)
class NewOptionalAttribute:
    """The event schema extension rule. The attribute is optional, so that no event becomes invalid."""

    event_type: str
    path: Path
    multiple: bool = False

    def apply(self, draft: SchemaDraft) -> None:
        draft.add_optional_attribute(self.event_type, self.path, self.multiple)


@dataclass(frozen=True, slots=True)
class NewEventType:
    """The event schema creation rule."""

    event_type: EventType

    def apply(self, draft: SchemaDraft) -> None:
        draft.add_event_type(self.event_type)


def extensions_between(before: Extensible, after: Extensible) -> list[Extension]:
    """The added that turn `before` into `after`, which extends it."""
    added: list[Extension] = [NewDomain(each) for name, each in after.domains.items() if name not in before.domains]
    for path, domain in after.attributes.items():
        if path not in before.attributes:
            added.append(NewAttribute(path, domain.name))
    for name, event_type in after.event_types.items():
        existing = before.event_types.get(name)
        if existing is None:
            added.append(NewEventType(event_type))
            continue
        new = {path: rule for path, rule in event_type.rules.items() if path not in existing.rules}
        added.extend(NewOptionalAttribute(name, path, rule.multiple) for path, rule in new.items())
    return added
