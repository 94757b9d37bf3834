"""Tables of a configuration file, read as the fields of dataclasses declare; every fault is kept with its place.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Source:
        format: Annotated[str, Key(OneOf(("json", "socket")), required=True)]
        port: Annotated[int | None, Key(Whole(1, 65_535), required=True, only={"format": ("socket",)})] = None

Fields are read in their order: a key that `only` names stands before the keys that depend on it. A misspelt key is
reported once, and then read as the key that was meant.
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
    """What a key may hold."""

    def read(self, value: object, spot: Spot) -> Any:
        """The value as Harken keeps it; None, with faults reported to the spot, if it is wrong."""


@dataclass(frozen=True, slots=True)
class FieldKey:
    """What a field's key holds and where it belongs."""

    type: ValueType
    required: bool = False
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values that other keys must have for this one to belong in the table."""
    written: str | None = None
    """The key in the file, where it differs from the field's name."""


@cache
def keys_of(section: type) -> dict[str, tuple[str, FieldKey]]:
    """Every key of a table, with the field that holds it."""
    hints = get_type_hints(section, include_extras=True)
    found: dict[str, tuple[str, FieldKey]] = {}
    for each in fields(section):
        for key in getattr(hints[each.name], "__metadata__", ()):
            found[key.written or each.name] = each.name, key
    return found


class ConfigDocument(Document[ConfigError]):
    """A configuration file under reading: its folder, the environment that fills in `${NAME}`, and its faults."""

    def __init__(self, text: str, source_name: str | None, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        super().__init__(text, ConfigError, "configuration", source_name)

    def keep(self, fault: ConfigError, line: int | None = None) -> None:
        """Keep a fault, at the first line if it has no place, and without its excerpt if that may show a secret."""
        if fault.place is None and line is None:
            self.point_at_start(fault)
        if fault.excerpt is not None and has_secret(fault.excerpt):
            fault.excerpt = None
        super().keep(fault, line)

    def foreign_fault(self, keys: Keys, error: HarkenError) -> None:
        """Keep a fault of another file, which a key names. It is listed by the line of that key."""
        here = self.point(ConfigError(""), keys)
        fault = ConfigError(error.message, place=error.place, excerpt=error.excerpt, hint=error.hint)
        if fault.place is None:
            fault.place, fault.excerpt = here.place, here.excerpt
        super().keep(fault, line=here.place.line if here.place else 0)

    def expand(self, value: object, keys: Keys) -> object:
        """The value with its `${NAME}`s filled in; None, with faults kept, if a variable is not set."""
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
    """Where a value stands: what reading it needs to know, and where its faults are reported."""

    document: ConfigDocument
    keys: Keys
    name: str
    """The key as it should be spelt."""
    table: ConfigTable

    def fault(self, message: str, hint: str | None = None, *, within: Keys = ()) -> None:
        """Report a fault of the value, or of what is `within` it."""
        self.document.fault((*self.keys, *within), message, hint)

    def fault_at(self, text: str, offset: int, message: str, hint: str | None = None) -> None:
        """Report a fault at an offset into the text."""
        self.document.fault(self.keys, message, hint, into=(text, offset))


class ConfigTable:
    """A table of the file: the values that are right, by the names of their fields, and the keys that are there."""

    def __init__(self, document: ConfigDocument, keys: Keys, section: type, around: ConfigTable | None = None) -> None:
        self.document = document
        self.keys = keys
        self.section = section
        self.values: dict[str, Any] = {}
        self._around = around
        self._spelt: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        """Whether the key is there, whether its value is right or wrong."""
        return name in self._spelt

    def __getitem__(self, name: str) -> Any:
        """The value of a field's key, or its default if the key is left out; None if the value is wrong."""
        if name in self.values:
            return self.values[name]
        written = next(key for key, (own, _) in keys_of(self.section).items() if own == name)
        if written in self:
            return None
        default = next(each for each in fields(self.section) if each.name == name)
        if default.default_factory is not MISSING:
            return default.default_factory()
        return None if default.default is MISSING else default.default

    @property
    def names(self) -> set[str]:
        """The keys that are there."""
        return set(self._spelt)

    @property
    def title(self) -> str:
        """What messages call the table."""
        if not self.keys:
            return "the configuration"
        name, *index = self.keys
        return f"[[{name}]] number {int(index[0]) + 1}" if index else f"[{name}]"

    def fault(self, name: str | None, message: str, hint: str | None = None, *, within: Keys = ()) -> None:
        """Keep a fault, at one of the keys or at the table as a whole."""
        keys = self.keys if name is None else (*self.keys, self._spelt.get(name, name))
        self.document.fault((*keys, *within), message, hint)

    def inner(self, name: str) -> ConfigTable:
        """An empty table, for one that is left out."""
        table = keys_of(self.section)[name][1].type
        assert isinstance(table, TableOf)
        return ConfigTable(self.document, (*self.keys, name), table.section, self)

    def spot(self, name: str) -> Spot:
        """Where the value of a key stands."""
        return Spot(self.document, (*self.keys, self._spelt.get(name, name)), name, self)

    def read(self, raw: Mapping[str, object]) -> ConfigTable:
        known = keys_of(self.section)
        self._spell(raw, known)
        for name, (own, key) in known.items():
            elsewhere = self._belongs_elsewhere(name, key)
            if name not in self:
                if key.required and elsewhere == "":
                    self.fault(None, needs_key(self.title, name), _how_to_write(name, key.type))
            elif elsewhere:
                if self._spelt[name] == name:
                    self.fault(name, elsewhere)
            else:
                self._read_value(name, own, key, raw[self._spelt[name]])
        return self

    def _read_value(self, name: str, own: str, key: FieldKey, raw: object) -> None:
        spot = self.spot(name)
        # Tables fill in their own values, after they know which keys belong.
        value = raw if isinstance(key.type, (TableOf, TablesOf)) else self.document.expand(raw, spot.keys)
        if value is not None:
            value = key.type.read(value, spot)
        if value is not None:
            self.values[own] = Secret(value) if is_secret(name) else value

    def _spell(self, raw: Mapping[str, object], known: Mapping[str, object]) -> None:
        self._spelt = {name: name for name in raw if name in known}
        for name in self.document.refuse_unknown(raw, known, self.title, self.keys, lists_known=True):
            for meant in get_close_matches(name, known, n=1):
                self._spelt.setdefault(meant, name)

    def _belongs_elsewhere(self, name: str, key: FieldKey) -> str | None:
        """Empty if the key belongs here, else the reason why not; None if a key it depends on is wrong."""
        reason: str | None = ""
        for other, words in key.only.items():
            here = self.choice(other)
            if here is None:
                reason = None
            elif here not in words:
                return f"`{name}` belongs to {other} {_either(words)}, not to {here}"
        return reason

    def choice(self, name: str) -> str | None:
        """The word that a key of this table or the one around it holds; None if it holds none, or a wrong one."""
        table: ConfigTable = self
        while name not in keys_of(table.section) and table._around is not None:
            table = table._around
        found = table[name]
        return found if isinstance(found, str) else None

    def build(self) -> Any:
        """The dataclass that the table describes. There must be no faults."""
        return self.section(**{name: _built(value) for name, value in self.values.items()})


def _built(value: object) -> object:
    if isinstance(value, ConfigTable):
        return value.build()
    if isinstance(value, list):
        return tuple(map(_built, value))
    return value


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table, `[source]`, that a dataclass describes."""

    section: type

    def read(self, value: object, spot: Spot) -> ConfigTable | None:
        if isinstance(value, dict):
            return ConfigTable(spot.document, spot.keys, self.section, spot.table).read(value)
        hint = f"write [{spot.name}] once" if isinstance(value, list) else f"write [{spot.name}]"
        spot.fault(f"`{spot.name}` is not a table", hint)
        return None


@dataclass(frozen=True, slots=True)
class TablesOf:
    """A list of tables, `[[sink]]`, that a dataclass describes."""

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
