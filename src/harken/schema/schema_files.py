"""Schemas as TOML files: read, check and write."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import tomli_w

from harken.errors import SchemaError
from harken.schema.domain_tables import domain_from_table, domain_to_table
from harken.schema.domains import StringDomain
from harken.schema.event_types import EventType, Rule
from harken.schema.extensions import SchemaDraft
from harken.schema.faults import first_of
from harken.schema.model import Schema
from harken.schema.paths import Path, format_path, parse_path
from harken.toml.document import Document, read_text

MAX_SCHEMA_BYTES = 16_777_216

_TOP_LEVEL = ("version", "domains", "attributes", "event_types")
_RULES = {
    "mandatory": Rule(mandatory=True),
    "mandatory unique": Rule(mandatory=True),
    "mandatory multiple": Rule(mandatory=True, multiple=True),
    "optional": Rule(),
    "optional unique": Rule(),
    "optional multiple": Rule(multiple=True),
}

Keys = tuple[str, ...]


def load_schema(source: str | pathlib.Path) -> Schema:
    """The schema in a file. Raises SourceError if it cannot be read, SchemaError if it has a fault."""
    text = read_text(source, "schema", MAX_SCHEMA_BYTES)
    return parse_schema(text, str(source))


def parse_schema(text: str, source_name: str | None = None) -> Schema:
    """The schema that a TOML text describes. Raises SchemaError: the first fault, and how many there are."""
    schema, faults = check_schema(text, source_name)
    if schema is None:
        raise first_of(faults)
    return schema


def check_schema(text: str, source_name: str | None = None) -> tuple[Schema | None, list[SchemaError]]:
    """The schema that a TOML text describes, or None with all faults, in the order of the lines."""
    document = Document(text, SchemaError, "schema", source_name)
    if document.faults:
        return None, document.faults
    return _Reader(document).schema(), document.faults


def parse_rule(words: object, name: str) -> Rule:
    """The rule that words such as `optional multiple` stand for. Raises SchemaError."""
    rule = _RULES.get(" ".join(words.split())) if isinstance(words, str) else None
    if rule is None:
        hint = "write `mandatory` or `optional`, and after it `multiple` if it may have several values"
        raise SchemaError(f"unknown rule for attribute `{name}`", hint=hint)
    return rule


def format_schema(schema: Schema) -> str:
    """The schema as TOML. `parse_schema` reads it back."""
    document: dict[str, object] = {"version": schema.version}
    if schema.domains:
        document["domains"] = {name: domain_to_table(domain) for name, domain in schema.domains.items()}
    if schema.attributes:
        document["attributes"] = {format_path(path): domain.name for path, domain in schema.attributes.items()}
    if schema.event_types:
        document["event_types"] = {
            name: {format_path(path): str(rule) for path, rule in event_type.rules.items()}
            for name, event_type in schema.event_types.items()
        }
    return tomli_w.dumps(document)


class _Reader:
    """Builds a schema from a document, which collects the faults."""

    def __init__(self, document: Document[SchemaError]) -> None:
        self._document = document
        self._draft = SchemaDraft()

    def schema(self) -> Schema | None:
        """The schema; None if the document has faults."""
        content = self._document.content
        self._document.reject_unknown(content, _TOP_LEVEL, "the schema")
        version = content.get("version", 1)
        if type(version) is not int or version < 1:
            self._document.fault(("version",), "`version` is an integer from 1")
            version = 1
        for name, table in self._table("domains").items():
            self._read_domain(name, table)
        for name, domain_name in self._table("attributes").items():
            self._read_attribute(name, domain_name)
        for name, rules in self._table("event_types").items():
            self._read_event_type(name, rules)
        if self._document.faults:
            return None
        draft = self._draft
        return Schema(draft.domains, draft.attributes, draft.event_types, version)

    def _read_domain(self, name: str, table: object) -> None:
        keys = ("domains", name)
        if not isinstance(table, dict):
            self._document.fault(keys, f"domain `{name}` is not a table", f"write [domains.{name}]")
            domain = None
        else:
            domain, faults = domain_from_table(name, table)
            for key, fault in faults:
                self._fault((*keys, key) if key else keys, fault)
        try:
            # A faulty domain is declared all the same, so that attributes of it are not reported too.
            self._draft.add_domain(domain or StringDomain(name))
        except SchemaError as fault:
            self._fault(keys, fault)

    def _read_attribute(self, name: str, domain_name: object) -> None:
        keys = ("attributes", name)
        path = self._path(keys, domain_name)
        if path is None:
            return
        if path in self._draft.attributes:
            self._document.fault(keys, f"attribute `{format_path(path)}` is defined twice")
            return
        try:
            if not isinstance(domain_name, str):
                raise SchemaError(f"attribute `{name}` needs the name of a domain", hint=f'write {name} = "float"')
            self._draft.add_attribute(path, domain_name)
        except SchemaError as fault:
            self._fault(keys, fault)
            self._draft.attributes[path] = StringDomain("string")

    def _read_event_type(self, name: str, table: object) -> None:
        keys = ("event_types", name)
        if not isinstance(table, dict):
            self._document.fault(keys, f"event type `{name}` is not a table", f"write [event_types.{name}]")
            return
        rules: dict[Path, Rule] = {}
        for attribute, words in table.items():
            self._read_rule((*keys, attribute), words, rules)
        try:
            self._draft.add_event_type(EventType(name, rules))
        except SchemaError as fault:
            self._fault(keys, fault)

    def _read_rule(self, keys: Keys, words: object, rules: dict[Path, Rule]) -> None:
        path = self._path(keys, words)
        if path is None:
            return
        name = format_path(path)
        try:
            rule = parse_rule(words, name)
            if path in rules:
                raise SchemaError(f"event type `{keys[1]}` has attribute `{name}` twice")
            self._draft.check_attribute(path)
            rules[path] = rule
        except SchemaError as fault:
            self._fault(keys, fault)

    def _path(self, keys: Keys, value: object) -> Path | None:
        """The path that the last key spells; None if it is no path, which is recorded as a fault."""
        name = keys[-1]
        try:
            path = parse_path(name)
        except ValueError as error:
            self._document.fault(keys, str(error))
            return None
        if isinstance(value, dict) and value:
            # TOML reads `seller.country = …` as a table `seller`.
            dotted = f'"{name}.{next(iter(value))}"'
            self._document.fault(keys, f"`{name}` is a table", f"put a dotted path in quotes: {dotted}")
            return None
        return path

    def _table(self, key: str) -> Mapping[str, object]:
        table = self._document.content.get(key, {})
        if isinstance(table, dict):
            return table
        self._document.fault((key,), f"`{key}` is not a table", f"write [{key}]")
        return {}

    def _fault(self, keys: Keys, fault: SchemaError) -> None:
        self._document.keep(self._document.point(fault, keys))
