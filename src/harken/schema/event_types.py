"""Event types, the rules that they set for attributes, and views over several of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harken.schema.paths import Path

EVENT_TYPE: Path = ("event_type",)
"""The distinguished attribute: the set of an event's types. Every schema with event types has it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Whether an attribute must be there, and whether it may have several values."""

    mandatory: bool = False
    multiple: bool = False

    def merged(self, other: Rule) -> Rule:
        """What holds under both: mandatory wins over optional, and multiple over unique."""
        return Rule(self.mandatory or other.mandatory, self.multiple or other.multiple)

    def __str__(self) -> str:
        return ("mandatory" if self.mandatory else "optional") + (" multiple" if self.multiple else "")


@dataclass(frozen=True, slots=True)
class EventType:
    """A name, and the attributes that events of this type have."""

    name: str
    rules: Mapping[Path, Rule] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", dict(self.rules))


@dataclass(frozen=True, slots=True)
class View:
    """The rules that an event of several types obeys.

    It has every attribute that is mandatory in one of the types, and no attribute that none of the types has. Each has
    one rule, in which mandatory wins over optional, and multiple over unique.
    """

    event_types: frozenset[str]
    rules: Mapping[Path, Rule] = field(hash=False)
