"""Tables of a TOML file, read by what dataclasses say of their fields; every fault is kept with its place.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Source:
        format: Annotated[str, Key(OneOf(("json", "socket")), required=True)]
        port: Annotated[int | None, Key(Whole(1, 65_535), required=True, only={"format": ("socket",)})] = None

Fields are read in their order: what `only` names comes before those that depend on it. A key that is misspelt is read
as the one that was meant, once the fault is kept, lest it make others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Protocol, get_type_hints

from harken.errors import ConfigError, HarkenError, did_you_mean
from harken.pipeline.environment import expanded
from harken.pipeline.hidden import Secret, has_secret, is_secret
from harken.schema.positions import Keys
from harken.schema.toml_text import TomlText


class Kind(Protocol):
    """What a key may hold."""

    def read(self, value: object, spot: Spot) -> Any:
        """The value as Harken keeps it; None, and faults told to the spot, if it is wrong."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a field's key holds and where it belongs: `only` has what other keys have to say. `written` is its name."""

    kind: Kind
    required: bool = False
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    written: str | None = None


@cache
def keys_of(section: type) -> dict[str, tuple[str, Key]]:
    """Every key of a table, with the field that holds it."""
    hints = get_type_hints(section, include_extras=True)
    found: dict[str, tuple[str, Key]] = {}
    for each in fields(section):
        for key in getattr(hints[each.name], "__metadata__", ()):
            found[key.written or each.name] = each.name, key
    return found


class Document:
    """A file that is read: where it is, the environment that it is read in, and what is wrong with it."""

    def __init__(self, toml: TomlText, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._toml = toml
        self._environment = environment
        self._faults: list[tuple[int, ConfigError]] = []

    @property
    def faults(self) -> list[ConfigError]:
        """All faults, in the order of the lines."""
        return [fault for _, fault in sorted(self._faults, key=lambda each: each[0])]

    def fault(self, keys: Keys, message: str, hint: str | None = None, *, into: tuple[str, int] | None = None) -> None:
        """Keep a fault, at a key, or at an offset `into` the string that it holds."""
        fault = ConfigError(message, hint=hint)
        self._toml.point(fault, keys) if into is None else self._toml.point_into(fault, keys, *into)
        self._keep(fault)

    def foreign_fault(self, keys: Keys, error: HarkenError) -> None:
        """Keep what is wrong with another file, which a key names."""
        here = ConfigError("")
        self._toml.point(here, keys)
        fault = ConfigError(error.message, place=error.place, excerpt=error.excerpt, hint=error.hint)
        if fault.place is None:
            fault.place, fault.excerpt = here.place, here.excerpt
        self._faults.append((here.place.line if here.place else 0, fault))

    def _keep(self, fault: ConfigError) -> None:
        if fault.place is None:
            self._toml.point_at_start(fault)
        if fault.excerpt is not None and has_secret(fault.excerpt):
            fault.excerpt = None
        self._faults.append((fault.place.line if fault.place else 0, fault))

    def expand(self, value: object, keys: Keys) -> object:
        """The value with the variables that its strings name; None, and faults, if one of them is not there."""
        count = len(self._faults)
        filled = self._filled(value, keys)
        return filled if len(self._faults) == count else None

    def _filled(self, value: object, keys: Keys) -> object:
        if isinstance(value, str):
            return expanded(
                value, self._environment, lambda *wrong: self.fault(keys, *wrong[:2], into=(value, wrong[2]))
            )
        if isinstance(value, list):
            return [self._filled(each, (*keys, place)) for place, each in enumerate(value)]
        if isinstance(value, dict):
            return {name: self._filled(each, (*keys, name)) for name, each in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a value stands: what a kind needs to know, and whom it tells what is wrong."""

    document: Document
    keys: Keys
    name: str
    """The key as it should be spelt."""
    table: Table

    def fault(self, message: str, hint: str | None = None, *, within: Keys = ()) -> None:
        """Something is wrong with the value, or with what is `within` it."""
        self.document.fault((*self.keys, *within), message, hint)

    def fault_at(self, text: str, offset: int, message: str, hint: str | None = None) -> None:
        """Something is wrong at an offset into the text."""
        self.document.fault(self.keys, message, hint, into=(text, offset))


class Table:
    """A table that is read: the values that are right, by the names of their fields, and the keys that are there."""

    def __init__(self, document: Document, keys: Keys, section: type, around: Table | None = None) -> None:
        self.document = document
        self.keys = keys
        self.section = section
        self.values: dict[str, Any] = {}
        self._around = around
        self._spelt: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        """Whether the key is there, be its value right or wrong."""
        return name in self._spelt

    def __getitem__(self, name: str) -> Any:
        """What a field holds: the value of its key, or else its default; None if that is not known."""
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
    def says(self) -> str:
        """What messages call it."""
        if not self.keys:
            return "the configuration"
        name, *place = self.keys
        return f"[[{name}]] number {int(place[0]) + 1}" if place else f"[{name}]"

    def fault(self, name: str | None, message: str, hint: str | None = None, *, within: Keys = ()) -> None:
        """Keep a fault, at one of the keys or at the table as a whole."""
        keys = self.keys if name is None else (*self.keys, self._spelt.get(name, name))
        self.document.fault((*keys, *within), message, hint)

    def inner(self, name: str) -> Table:
        """An empty table, for one that is left out."""
        kind = keys_of(self.section)[name][1].kind
        assert isinstance(kind, TableOf)
        return Table(self.document, (*self.keys, name), kind.section, self)

    def spot(self, name: str) -> Spot:
        """Where the value of a key stands."""
        return Spot(self.document, (*self.keys, self._spelt.get(name, name)), name, self)

    def read(self, raw: Mapping[str, object]) -> Table:
        known = keys_of(self.section)
        self._spell(raw, known)
        for name, (own, key) in known.items():
            elsewhere = self._belongs_elsewhere(name, key)
            if name not in self:
                if key.required and elsewhere == "":
                    self.fault(None, f"{self.says} has no `{name}`", _how_to_write(name, key.kind))
            elif elsewhere:
                if self._spelt[name] == name:
                    self.fault(name, elsewhere)
            else:
                self._read_value(name, own, key, raw[self._spelt[name]])
        return self

    def _read_value(self, name: str, own: str, key: Key, raw: object) -> None:
        spot = self.spot(name)
        # What stands in tables is filled in there, when it is known to be wanted.
        value = raw if isinstance(key.kind, (TableOf, TablesOf)) else self.document.expand(raw, spot.keys)
        if value is not None:
            value = key.kind.read(value, spot)
        if value is not None:
            self.values[own] = Secret(value) if is_secret(name) else value

    def _spell(self, raw: Mapping[str, object], known: Mapping[str, object]) -> None:
        self._spelt = {name: name for name in raw if name in known}
        for name in raw:
            if name in known:
                continue
            hint = did_you_mean(name, known) or f"it has {', '.join(known)}"
            self.document.fault((*self.keys, name), f"{self.says} has no `{name}`", hint)
            for meant in get_close_matches(name, known, n=1):
                self._spelt.setdefault(meant, name)

    def _belongs_elsewhere(self, name: str, key: Key) -> str | None:
        """Empty if the key belongs here; why not, if it does not; None if that cannot be told."""
        told: str | None = ""
        for other, words in key.only.items():
            here = self.choice(other)
            if here is None:
                told = None
            elif here not in words:
                return f"`{name}` belongs to {other} {_either(words)}, not to {here}"
        return told

    def choice(self, name: str) -> str | None:
        """What this table, or the one around it, says that `name` is; None if it says nothing right."""
        table: Table = self
        while name not in keys_of(table.section) and table._around is not None:
            table = table._around
        found = table[name]
        return found if isinstance(found, str) else None

    def build(self) -> Any:
        """The dataclass that the table describes. There must be no faults."""
        return self.section(**{name: _built(value) for name, value in self.values.items()})


def _built(value: object) -> object:
    if isinstance(value, Table):
        return value.build()
    if isinstance(value, list):
        return tuple(map(_built, value))
    return value


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table, `[source]`, that a dataclass describes."""

    section: type

    def read(self, value: object, spot: Spot) -> Table | None:
        if isinstance(value, dict):
            return Table(spot.document, spot.keys, self.section, spot.table).read(value)
        hint = f"write [{spot.name}] once" if isinstance(value, list) else f"write [{spot.name}]"
        spot.fault(f"`{spot.name}` is not a table", hint)
        return None


@dataclass(frozen=True, slots=True)
class TablesOf:
    """A list of tables, `[[sink]]`, that a dataclass describes."""

    section: type

    def read(self, value: object, spot: Spot) -> list[Table] | None:
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            return list(self._tables(value, spot))
        spot.fault(f"`{spot.name}` is not a list of tables", f"write [[{spot.name}]]")
        return None

    def _tables(self, value: Sequence[dict[str, object]], spot: Spot) -> Iterator[Table]:
        for place, each in enumerate(value):
            yield Table(spot.document, (*spot.keys, place), self.section, spot.table).read(each)


def _how_to_write(name: str, kind: Kind) -> str | None:
    if isinstance(kind, TablesOf):
        return f"write [[{name}]]"
    return f"write [{name}]" if isinstance(kind, TableOf) else None


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
