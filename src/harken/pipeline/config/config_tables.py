"""Reads the tables of a configuration file as the fields of dataclasses declare, and keeps every fault with its place.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Source:
        format: Annotated[str, FieldKey(OneOf(("json", "socket")), required=True)]
        port: Annotated[int | None, FieldKey(WholeType(1, 65_535), required=True, only={"format": ("socket",)})] = None

Fields are read in order: a key that `only` names comes before the keys that depend on it. A misspelt key is reported
once, and then read as the nearest known key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Protocol, get_type_hints

from harken.errors import ConfigError, HarkenError
from harken.pipeline.config.secrets import Secret, has_secret, is_secret
from harken.pipeline.config.variables import expanded
from harken.toml.document import Document, needs_key
from harken.toml.positions import Keys


class ValueType(Protocol):
    """The type of a key's value."""

    def read(self, value: object, spot: Spot) -> Any:
        """The value as the dataclass holds it. If it is wrong, reports faults to the spot and returns None."""


@dataclass(frozen=True, slots=True)
class FieldKey:
    """The key of a field: its type, and when it belongs in the table."""

    type: ValueType
    required: bool = False
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By other key: the values with which this key belongs in the table."""
    written: str | None = None
    """The name of the key in the file, if it is not the field's name."""


@cache
def keys_of(section: type) -> dict[str, tuple[str, FieldKey]]:
    """By key of a table: the name of its field, and the `FieldKey`."""
    hints = get_type_hints(section, include_extras=True)
    keys: dict[str, tuple[str, FieldKey]] = {}
    for each in fields(section):
        for key in getattr(hints[each.name], "__metadata__", ()):
            keys[key.written or each.name] = each.name, key
    return keys


class ConfigDocument(Document[ConfigError]):
    """A configuration file while it is read: its folder, the environment for `${NAME}`, and its faults so far."""

    def __init__(self, text: str, source_name: str | None, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        super().__init__(text, ConfigError, "configuration", source_name)

    def keep(self, fault: ConfigError, line: int | None = None) -> None:
        """Keep a fault: at the first line if it has no place, and without an excerpt that may show a secret."""
        if fault.place is None and line is None:
            self.point_at_start(fault)
        if fault.excerpt is not None and has_secret(fault.excerpt):
            fault.excerpt = None
        super().keep(fault, line)

    def foreign_fault(self, keys: Keys, error: HarkenError) -> None:
        """Keep a fault of another file that a key names. Faults are sorted by line: it gets the line of the key."""
        at_key = self.point(ConfigError(""), keys)
        fault = ConfigError(error.message, place=error.place, excerpt=error.excerpt, hint=error.hint)
        if fault.place is None:
            fault.place, fault.excerpt = at_key.place, at_key.excerpt
        super().keep(fault, line=at_key.place.line if at_key.place else 0)

    def expand(self, value: object, keys: Keys) -> object:
        """Replace each `${NAME}` in a value. If a variable is not set, keeps a fault and returns None."""
        count = len(self._faults)
        filled = self._filled(value, keys)
        return filled if len(self._faults) == count else None

    def _filled(self, value: object, keys: Keys) -> object:
        if isinstance(value, str):

            def report(message: str, hint: str | None, offset: int) -> None:
                self.fault(keys, message, hint, into=(value, offset))

            return expanded(value, self._environment, report)
        if isinstance(value, list):
            return [self._filled(each, (*keys, index)) for index, each in enumerate(value)]
        if isinstance(value, dict):
            return {name: self._filled(each, (*keys, name)) for name, each in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class Spot:
    """The place of a value in the file, for types to report faults of the value."""

    document: ConfigDocument
    keys: Keys
    name: str
    """The key, correctly spelt."""
    table: ConfigTable

    def fault(self, message: str, hint: str | None = None, *, within: Keys = ()) -> None:
        """Report a fault of the value, or of a part of it at the keys `within`."""
        self.document.fault((*self.keys, *within), message, hint)

    def fault_at(self, text: str, offset: int, message: str, hint: str | None = None) -> None:
        """Report a fault at an offset into the text of the value."""
        self.document.fault(self.keys, message, hint, into=(text, offset))


class ConfigTable:
    """A table of the file: its valid values by field name, and the keys that it has."""

    def __init__(self, document: ConfigDocument, keys: Keys, section: type, parent: ConfigTable | None = None) -> None:
        self.document = document
        self.keys = keys
        self.section = section
        self.values: dict[str, Any] = {}
        self._parent = parent
        self._spelt: dict[str, str] = {}
        """By key: how the file spells it."""

    def __contains__(self, name: str) -> bool:
        """Whether the table has a key, be its value valid or not."""
        return name in self._spelt

    def __getitem__(self, name: str) -> Any:
        """The value of a field, or its default if the key is left out; None if the value is invalid."""
        if name in self.values:
            return self.values[name]
        written = next(key for key, (field_name, _) in keys_of(self.section).items() if field_name == name)
        if written in self:
            return None
        default = next(each for each in fields(self.section) if each.name == name)
        if default.default_factory is not MISSING:
            return default.default_factory()
        return None if default.default is MISSING else default.default

    @property
    def names(self) -> set[str]:
        """The keys that the table has."""
        return set(self._spelt)

    @property
    def title(self) -> str:
        """The table's name in messages."""
        if not self.keys:
            return "the configuration"
        name, *index = self.keys
        return f"[[{name}]] number {int(index[0]) + 1}" if index else f"[{name}]"

    def fault(self, name: str | None, message: str, hint: str | None = None, *, within: Keys = ()) -> None:
        """Keep a fault at a key or, without a name, at the table."""
        keys = self.keys if name is None else (*self.keys, self._spelt.get(name, name))
        self.document.fault((*keys, *within), message, hint)

    def inner(self, name: str) -> ConfigTable:
        """An empty table in place of an inner table that the file leaves out."""
        table = keys_of(self.section)[name][1].type
        assert isinstance(table, TableOf)
        return ConfigTable(self.document, (*self.keys, name), table.section, self)

    def spot(self, name: str) -> Spot:
        """The place of a key's value."""
        return Spot(self.document, (*self.keys, self._spelt.get(name, name)), name, self)

    def read(self, raw: Mapping[str, object]) -> ConfigTable:
        """Read the values of the table, and keep its faults."""
        keys = keys_of(self.section)
        self._find_keys(raw, keys)
        for name, (field_name, key) in keys.items():
            elsewhere = self._belongs_elsewhere(name, key)
            if name not in self:
                if key.required and elsewhere == "":
                    self.fault(None, needs_key(self.title, name), _how_to_write(name, key.type))
            elif elsewhere:
                if self._spelt[name] == name:
                    self.fault(name, elsewhere)
            else:
                self._read_value(name, field_name, key, raw[self._spelt[name]])
        return self

    def _read_value(self, name: str, field_name: str, key: FieldKey, raw: object) -> None:
        spot = self.spot(name)
        # A table expands the variables of its values itself, once it knows which keys belong in it.
        value = raw if isinstance(key.type, (TableOf, TablesOf)) else self.document.expand(raw, spot.keys)
        if value is not None:
            value = key.type.read(value, spot)
        if value is not None:
            self.values[field_name] = Secret(value) if is_secret(name) else value

    def _find_keys(self, raw: Mapping[str, object], keys: Mapping[str, object]) -> None:
        """Record the keys of the table and their spelling. Misspelt keys are reported."""
        self._spelt = {name: name for name in raw if name in keys}
        for name in self.document.reject_unknown(raw, keys, self.title, self.keys, lists_known=True):
            for meant in get_close_matches(name, keys, n=1):
                self._spelt.setdefault(meant, name)

    def _belongs_elsewhere(self, name: str, key: FieldKey) -> str | None:
        """Why a key does not belong in this table; empty if it does, None if a key that decides it is invalid."""
        reason: str | None = ""
        for other, words in key.only.items():
            word = self.choice(other)
            if word is None:
                reason = None
            elif word not in words:
                return f"`{name}` belongs to {other} {_either(words)}, not to {word}"
        return reason

    def choice(self, name: str) -> str | None:
        """The text of a key of this table or, if it has no such key, of its parent; None if left out or invalid."""
        table: ConfigTable = self
        while name not in keys_of(table.section) and table._parent is not None:
            table = table._parent
        value = table[name]
        return value if isinstance(value, str) else None

    def build(self) -> Any:
        """Make the dataclass of the table. There must be no faults."""
        return self.section(**{name: _built(value) for name, value in self.values.items()})


def _built(value: object) -> object:
    if isinstance(value, ConfigTable):
        return value.build()
    if isinstance(value, list):
        return tuple(map(_built, value))
    return value


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table such as `[source]`, read into a dataclass."""

    section: type

    def read(self, value: object, spot: Spot) -> ConfigTable | None:
        if isinstance(value, dict):
            return ConfigTable(spot.document, spot.keys, self.section, spot.table).read(value)
        hint = f"write [{spot.name}] once" if isinstance(value, list) else f"write [{spot.name}]"
        spot.fault(f"`{spot.name}` is not a table", hint)
        return None


@dataclass(frozen=True, slots=True)
class TablesOf:
    """A list of tables such as `[[sink]]`, each read into a dataclass."""

    section: type

    def read(self, value: object, spot: Spot) -> list[ConfigTable] | None:
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            return list(self._tables(value, spot))
        spot.fault(f"`{spot.name}` is not a list of tables", f"write [[{spot.name}]]")
        return None

    def _tables(self, value: Sequence[dict[str, object]], spot: Spot) -> Iterator[ConfigTable]:
        for index, each in enumerate(value):
            yield ConfigTable(spot.document, (*spot.keys, index), self.section, spot.table).read(each)


def _how_to_write(name: str, type: ValueType) -> str | None:
    if isinstance(type, TablesOf):
        return f"write [[{name}]]"
    return f"write [{name}]" if isinstance(type, TableOf) else None


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
