"""The integrated event schema (Le Subscribe, section 2.1): domains, attributes and event types, as one value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from harken.errors import EventError, EventTypeError, SchemaError, did_you_mean
from harken.schema.coded import EnumeratedDomain
from harken.schema.consistency import Examination
from harken.schema.domains import Domain
from harken.schema.event_columns import EventColumns, SparkStruct
from harken.schema.event_types import EVENT_TYPE, EventType, Rule, View
from harken.schema.extensions import Extension, SchemaDraft
from harken.schema.faults import first_of
from harken.schema.paths import Path, format_path
from harken.schema.values import Value

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Schema:
    """What events may hold. Immutable: `extend` returns a new schema.

    `domains` has the declared domains only; the built-in ones are always known. With event types the schema is closed:
    an event names its types and has their attributes, no others (rules R1 to R3). Without any it is open, as ToPSS's
    publication types are: every attribute is optional and may have several values, `event_type` is not needed, and
    attributes that the schema does not declare pass as they are. The first event type closes an open schema.

    Schemas with the same definitions are equal, whatever their versions and the order of the definitions.
    """

    domains: Mapping[str, Domain] = field(default_factory=dict)
    attributes: Mapping[Path, Domain] = field(default_factory=dict)
    event_types: Mapping[str, EventType] = field(default_factory=dict)
    version: int = field(default=1, compare=False)
    _event_type_domain: EnumeratedDomain | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.version < 1:
            raise SchemaError(f"versions count from 1, this one is {self.version}")
        draft = SchemaDraft()
        for name, domain in self.domains.items():
            _check_name("domain", name, domain.name)
            draft.add_domain(domain)
        for path, domain in self.attributes.items():
            draft.add_attribute(path, domain.name)
            if draft.attributes[path] != domain:
                raise SchemaError(f"attribute `{format_path(path)}` has another domain `{domain.name}` than the schema")
        for name, event_type in self.event_types.items():
            _check_name("event type", name, event_type.name)
            draft.add_event_type(event_type)
        object.__setattr__(self, "domains", draft.domains)
        object.__setattr__(self, "attributes", draft.attributes)
        object.__setattr__(self, "event_types", draft.event_types)
        # In the order of declaration, so that extensions only append codes.
        names = tuple(self.event_types)
        object.__setattr__(self, "_event_type_domain", EnumeratedDomain("event_type", names) if names else None)

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Self:
        """The open schema of Arrow tables with these columns: an attribute a column, by its path if it is nested.

        So `Engine(Schema.from_arrow(table.schema))` rejects a subscription that uses another name, or compares with
        a value of another type. Left out are types that no subscription can read by name (binary, durations, maps),
        columns that only hold nulls, and `event_type`, which belongs to event types.
        """
        return cls._of_columns(EventColumns.from_arrow(schema))

    @classmethod
    def from_spark(cls, schema: SparkStruct) -> Self:
        """As `from_arrow`, of Spark's DataFrames: `Schema.from_spark(events.schema)`. VARIANT is left out too."""
        return cls._of_columns(EventColumns.from_spark(schema))

    @classmethod
    def _of_columns(cls, columns: EventColumns) -> Self:
        domains = ((path, leaf.domain) for path, leaf in columns.leaves() if path != EVENT_TYPE and "" not in path)
        return cls(attributes={path: domain for path, domain in domains if domain is not None})

    def __hash__(self) -> int:
        return hash((frozenset(self.domains), frozenset(self.attributes), frozenset(self.event_types)))

    def domain_of(self, path: Path) -> Domain | None:
        """The domain of an attribute; None if the schema does not declare it."""
        return self._event_type_domain if path == EVENT_TYPE else self.attributes.get(path)

    def view(self, event_types: Iterable[str], carried: Collection[Path]) -> View:
        """The rules for an event of these types that carries these attributes. Raises EventTypeError.

        A mandatory attribute of one of the types is in the view; an optional one only when the event carries it.
        """
        names = dict.fromkeys(event_types)
        rules: dict[Path, Rule] = {}
        for name in names:
            event_type = self.event_types.get(name)
            if event_type is None:
                problem = f"there is no event type `{name}`"
                raise EventTypeError(problem, hint=did_you_mean(name, self.event_types))
            for path, rule in event_type.rules.items():
                earlier = rules.get(path)
                rules[path] = rule if earlier is None else rule.merged(earlier)
        applicable = {path: rule for path, rule in rules.items() if rule.mandatory or path in carried}
        return View(frozenset(names), applicable)

    def validate(self, attributes: Mapping[Path, Sequence[object]]) -> dict[Path, tuple[Value, ...]]:
        """The event's values as its domains read them, or its first fault raised.

        The event comes as a flat mapping of paths to raw values, without nulls and NaNs; an attribute with no values is
        missing. Values keep their number and order, so that those of one array element stay together. Attributes
        that an open schema does not declare pass unread.
        """
        examination = Examination.of(self, attributes)
        if examination.faults:
            raise first_of(examination.faults)
        return examination.values

    def faults(self, attributes: Mapping[Path, Sequence[object]]) -> list[EventError]:
        """Every fault of an event; see `validate`."""
        return Examination.of(self, attributes).faults

    def extend(self, *extensions: Extension) -> Schema:
        """The schema with these extensions, applied in order. Raises SchemaError.

        Adding an existing definition again changes nothing; if nothing changes, `self` is returned.
        """
        draft = SchemaDraft(dict(self.domains), dict(self.attributes), dict(self.event_types))
        for extension in extensions:
            extension.apply(draft)
        if not draft.changed:
            return self
        return Schema(draft.domains, draft.attributes, draft.event_types, self.version + 1)


def _check_name(what: str, key: str, name: str) -> None:
    if key != name:
        raise SchemaError(f"{what} `{name}` has the key `{key}`")
