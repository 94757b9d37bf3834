"""Schemas as TOML files: read, check and write."""

from __future__ import annotations

import pathlib
import tomllib
from collections.abc import Mapping

import tomli_w

from harken.errors import SchemaError, did_you_mean
from harken.schema.domain_tables import domain_from_table, domain_to_table
from harken.schema.domains import StringDomain
from harken.schema.event_types import EventType, Rule
from harken.schema.extensions import Draft
from harken.schema.faults import first_of
from harken.schema.model import Schema
from harken.schema.paths import Path, format_path, parse_path
from harken.schema.toml_text import TomlText, read_text

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
    """The schema in a file. Raises SourceError if it cannot be read, SchemaError if what it says is wrong."""
    text = read_text(source, "schema", MAX_SCHEMA_BYTES)
    return parse_schema(text, str(source))


def parse_schema(text: str, source_name: str | None = None) -> Schema:
    """The schema that a TOML text describes. Raises SchemaError: the first fault, and how many there are."""
    schema, faults = check_schema(text, source_name)
    if schema is None:
        raise first_of(faults)
    return schema


def check_schema(text: str, source_name: str | None = None) -> tuple[Schema | None, list[SchemaError]]:
    """The schema that a TOML text describes, or None and all that is wrong with the text, in the order of its lines."""
    toml = TomlText(text, source_name)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return None, [toml.syntax_fault(SchemaError, "schema", error)]
    reader = _Reader(toml)
    schema = reader.schema(document)
    reader.faults.sort(key=lambda fault: fault.place.line if fault.place else 0)
    return (None, reader.faults) if reader.faults else (schema, [])


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
    """Reads a parsed TOML document, and collects every fault with its place."""

    def __init__(self, toml: TomlText) -> None:
        self.faults: list[SchemaError] = []
        self._toml = toml
        self._draft = Draft()

    def schema(self, document: Mapping[str, object]) -> Schema | None:
        for key in (key for key in document if key not in _TOP_LEVEL):
            self._fault((key,), SchemaError(f"a schema has no `{key}`", hint=did_you_mean(key, _TOP_LEVEL)))
        version = document.get("version", 1)
        if type(version) is not int or version < 1:
            self._fault(("version",), SchemaError("`version` is an integer from 1"))
            version = 1
        for name, table in self._table(document, "domains").items():
            self._read_domain(name, table)
        for name, domain_name in self._table(document, "attributes").items():
            self._read_attribute(name, domain_name)
        for name, rules in self._table(document, "event_types").items():
            self._read_event_type(name, rules)
        if self.faults:
            return None
        draft = self._draft
        return Schema(draft.domains, draft.attributes, draft.event_types, version)

    def _read_domain(self, name: str, table: object) -> None:
        keys = ("domains", name)
        if not isinstance(table, dict):
            self._fault(keys, SchemaError(f"domain `{name}` is not a table", hint=f"write [domains.{name}]"))
            domain = None
        else:
            domain, faults = domain_from_table(name, table)
            for key, fault in faults:
                self._fault((*keys, key) if key else keys, fault)
        try:
            # One that is wrong still has its name, lest all that use it be called wrong too.
            self._draft.add_domain(domain or StringDomain(name))
        except SchemaError as fault:
            self._fault(keys, fault)

    def _read_attribute(self, name: str, domain_name: object) -> None:
        keys = ("attributes", name)
        path = self._path(keys, domain_name)
        if path is None:
            return
        if path in self._draft.attributes:
            self._fault(keys, SchemaError(f"attribute `{format_path(path)}` is there twice"))
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
            self._fault(keys, SchemaError(f"event type `{name}` is not a table", hint=f"write [event_types.{name}]"))
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
        rule = _RULES.get(" ".join(words.split())) if isinstance(words, str) else None
        try:
            if rule is None:
                hint = "write `mandatory` or `optional`, and after it `multiple` if it may have several values"
                raise SchemaError(f"the rule for attribute `{name}` is not one", hint=hint)
            if path in rules:
                raise SchemaError(f"event type `{keys[1]}` has attribute `{name}` twice")
            self._draft.check_attribute(path)
            rules[path] = rule
        except SchemaError as fault:
            self._fault(keys, fault)

    def _path(self, keys: Keys, value: object) -> Path | None:
        """The path that the last key writes; None, and a fault, if it writes none."""
        name = keys[-1]
        try:
            path = parse_path(name)
        except ValueError as error:
            self._fault(keys, SchemaError(str(error)))
            return None
        if isinstance(value, dict) and value:
            # TOML reads `seller.country = …` as a table `seller`.
            dotted = f'"{name}.{next(iter(value))}"'
            self._fault(keys, SchemaError(f"`{name}` is a table", hint=f"put a dotted path in quotes: {dotted}"))
            return None
        return path

    def _table(self, document: Mapping[str, object], key: str) -> Mapping[str, object]:
        table = document.get(key, {})
        if isinstance(table, dict):
            return table
        self._fault((key,), SchemaError(f"`{key}` is not a table", hint=f"write [{key}]"))
        return {}

    def _fault(self, keys: Keys, fault: SchemaError) -> None:
        self.faults.append(self._toml.point(fault, keys))
