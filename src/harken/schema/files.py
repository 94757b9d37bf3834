"""Schemas as TOML files: read, check and write."""

from __future__ import annotations

import pathlib
import re
import tomllib
from collections.abc import Mapping

import tomli_w

from harken.errors import Place, SchemaError, SourceError, caret_excerpt, did_you_mean
from harken.schema.domain_tables import domain_from_table, domain_to_table
from harken.schema.domains import StringDomain
from harken.schema.event_types import EventType, Rule
from harken.schema.extensions import Draft
from harken.schema.faults import first_of
from harken.schema.model import Schema
from harken.schema.paths import Path, format_path, parse_path
from harken.schema.positions import key_positions

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
_TOML_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

Keys = tuple[str, ...]


def load_schema(source: str | pathlib.Path) -> Schema:
    """The schema in a file. Raises SourceError if it cannot be read, SchemaError if what it says is wrong."""
    try:
        with pathlib.Path(source).open("rb") as file:
            content = file.read(MAX_SCHEMA_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"cannot read the schema file {source}: {reason}") from error
    if len(content) > MAX_SCHEMA_BYTES:
        raise SourceError(f"the schema file {source} has more than {MAX_SCHEMA_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"the schema file {source} is not UTF-8: byte {error.start} is wrong") from error
    return parse_schema(text, str(source))


def parse_schema(text: str, source_name: str | None = None) -> Schema:
    """The schema that a TOML text describes. Raises SchemaError: the first fault, and how many there are."""
    schema, faults = check_schema(text, source_name)
    if schema is None:
        raise first_of(faults)
    return schema


def check_schema(text: str, source_name: str | None = None) -> tuple[Schema | None, list[SchemaError]]:
    """The schema that a TOML text describes, or None and all that is wrong with the text, in the order of its lines."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return None, [_syntax_fault(text, source_name, error)]
    reader = _Reader(text, source_name)
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


def _syntax_fault(text: str, source_name: str | None, error: Exception) -> SchemaError:
    if isinstance(error, RecursionError):
        return SchemaError("the schema nests too deeply to be read")
    message = str(error)
    found = _TOML_POSITION.search(message)
    fault = SchemaError(f"the schema is not TOML: {_TOML_POSITION.sub('', message)}")
    if found is None:
        return fault
    lines = text.split("\n")
    line = int(found[1]) if found[1] else len(lines)
    column = int(found[2]) if found[2] else len(lines[-1]) + 1
    return fault.at(Place(line, column, source_name), text)


class _Reader:
    """Reads a parsed TOML document, and collects every fault with its place."""

    def __init__(self, text: str, source_name: str | None) -> None:
        self.faults: list[SchemaError] = []
        self._text = text
        self._lines = text.split("\n")
        self._source_name = source_name
        self._positions: dict[Keys, tuple[int, int]] | None = None
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
        """Keep a fault, at the place of the key or, if it is not found, of the table around it."""
        if self._positions is None:
            self._positions = key_positions(self._text)
        for length in range(len(keys), 0, -1):
            position = self._positions.get(keys[:length])
            if position is not None:
                line, column = position
                fault.at(Place(line, column, self._source_name))
                fault.excerpt = caret_excerpt(self._lines[line - 1], 1, column)
                break
        self.faults.append(fault)
