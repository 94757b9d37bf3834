"""The types of values in a configuration. Each reads a value, or reports a fault that says what it should be."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from harken.databases.connection import is_postgres
from harken.errors import did_you_mean
from harken.pipeline.config.config_tables import Spot
from harken.pipeline.config.ddl import read_ddl
from harken.pipeline.config.secrets import Secret, SecretUrl, is_secret
from harken.schema.domains import shortened
from harken.versions.files import local_path

_NUMBER_AND_UNIT = re.compile(r"(\d{1,9})\s+([a-z]+?)s?", re.IGNORECASE)
_SECONDS = {"millisecond": 0.001, "second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_LONGEST_SECONDS = 100 * 366 * 86_400
_OPERATOR = re.compile(r"[A-Za-z_][\w.\-]*(:[A-Za-z_]\w*)?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def seconds_of(duration: str) -> float:
    """The length of a duration such as "10 minutes", in seconds."""
    number, unit = duration.split()
    return int(number) * _SECONDS[unit.removesuffix("s")]


@dataclass(frozen=True, slots=True)
class TextType:
    """A text that is not blank and matches the pattern, if there is one. Messages call it `title`."""

    title: str = "a text"
    pattern: str | None = None
    hint: str | None = None

    def read(self, value: object, spot: Spot) -> str | None:
        text = _text(value, spot, self.title)
        if text is not None and self.pattern is not None and not re.fullmatch(self.pattern, text):
            spot.fault(f"`{spot.name}` is {self.title}, not {shortened(text)}", self.hint)
            return None
        return text


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a fixed set of words."""

    words: tuple[str, ...]

    def read(self, value: object, spot: Spot) -> str | None:
        title = f"one of {', '.join(self.words)}"
        text = _text(value, spot, title)
        if text is None or text in self.words:
            return text
        spot.fault(f"`{spot.name}` is {title}, not {shortened(text)}", did_you_mean(text, self.words))
        return None


@dataclass(frozen=True, slots=True)
class WholeType:
    """A whole number within bounds, both included."""

    least: int
    most: int

    def read(self, value: object, spot: Spot) -> int | None:
        if type(value) is int and self.least <= value <= self.most:
            return value
        title = f"a whole number from {self.least}" + (f" to {self.most:,}" if self.most < 2**31 - 1 else "")
        spot.fault(f"`{spot.name}` is {title}, not {_what(value)}")
        return None


@dataclass(frozen=True, slots=True)
class Duration:
    """A number and a unit of time, as in Spark's intervals, or one of `words`. The least is `least` of any unit."""

    least: int = 1
    words: tuple[str, ...] = ()

    def read(self, value: object, spot: Spot) -> str | None:
        title = " or ".join([*map(repr, self.words), "a number and a unit of time"])
        text = _text(value, spot, title)
        if text is None or text in self.words:
            return text
        parts = _NUMBER_AND_UNIT.fullmatch(text)
        unit = parts[2].lower() if parts is not None else ""
        if parts is None or unit not in _SECONDS:
            word = text.split()[-1] if text.split() else ""
            hint = did_you_mean(word, [*self.words, *(f"{each}s" for each in _SECONDS)])
            usual = f"""write "10 seconds"; the units are {", ".join(f"{each}s" for each in _SECONDS)}"""
            spot.fault(f"`{spot.name}` is {title}, not {shortened(text)}", hint or usual)
            return None
        number = int(parts[1])
        if not self.least <= number or number * _SECONDS[unit] > _LONGEST_SECONDS:
            spot.fault(f"`{spot.name}` is from {self.least} {unit} to 100 years, not {shortened(text)}")
            return None
        return f"{number} {unit}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class LocationType:
    """A path, relative to the folder of the configuration, or, if not `local`, an address such as s3://…."""

    local: bool = False

    def read(self, value: object, spot: Spot) -> str | None:
        title = "a path on this machine" if self.local else "a path, or an address such as s3://bucket/folder"
        text = _text(value, spot, title)
        if text is None:
            return None
        if "\0" in text:
            spot.fault(f"`{spot.name}` is {title}: it has a null character")
            return None
        if not _SCHEME.match(text):
            return os.path.abspath(spot.document.folder / text)
        if text.startswith("file:") and not text.startswith("file:/"):
            spot.fault(f"`{spot.name}` is {title}: what follows file: is not absolute", "leave out file:")
            return None
        if self.local:
            path = local_path(text)
            if path is not None:
                return str(path)
            spot.fault(f"`{spot.name}` is {title}, not {shortened(text)}")
            return None
        return text


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """A store: a path, relative to the folder of the configuration, or a URL of PostgreSQL, maybe with a password."""

    def read(self, value: object, spot: Spot) -> str | None:
        title = "a path, or a URL such as postgresql://host/database"
        text = _text(value, spot, title)
        if text is None:
            return None
        if is_postgres(text):
            return SecretUrl(text)
        if _SCHEME.match(text) and not text.startswith("file:"):
            spot.fault(f"`{spot.name}` is {title}")  # the text is not quoted: it may contain a password
            return None
        return LocationType(local=True).read(text, spot)


@dataclass(frozen=True, slots=True)
class ColumnName:
    """The name of a column, not a path into one."""

    def read(self, value: object, spot: Spot) -> str | None:
        text = _text(value, spot, "the name of a column")
        return text if text is not None and _is_column_name(text, spot, ()) else None


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """A list of different names of columns."""

    def read(self, value: object, spot: Spot) -> tuple[str, ...] | None:
        names: list[str] = []
        if not isinstance(value, list) or not value:
            spot.fault(
                f"`{spot.name}` is a list of names of columns, not {_what(value)}", f'write {spot.name} = ["price"]'
            )
            return None
        for index, name in enumerate(value):
            if not isinstance(name, str):
                spot.fault(f"`{spot.name}` is a list of names of columns: this is {_what(name)}", within=(index,))
            elif name in names:
                spot.fault(f"`{spot.name}` has column `{name}` twice", within=(index,))
            elif _is_column_name(name, spot, (index,)):
                names.append(name)
        return tuple(names) if len(names) == len(value) else None


@dataclass(frozen=True, slots=True)
class OperatorNames:
    """A list of operators to import, each as "module:name" or the name of an entry point."""

    def read(self, value: object, spot: Spot) -> tuple[str, ...] | None:
        written = f'write {spot.name} = ["package.module:name"]'
        if not isinstance(value, list) or not value:
            spot.fault(f"`{spot.name}` is a list of operators, not {_what(value)}", written)
            return None
        for index, name in enumerate(value):
            if not isinstance(name, str) or not _OPERATOR.fullmatch(name):
                spot.fault(f"`{spot.name}` is a list of operators: this is {_what(name)}", written, within=(index,))
                return None
        return tuple(value)


@dataclass(frozen=True, slots=True)
class ColumnsType:
    """Columns with their types, in Spark's DDL."""

    def read(self, value: object, spot: Spot) -> str | None:
        text = _text(value, spot, "a list of columns such as 'id STRING, price DOUBLE'")
        if text is None:
            return None
        _, faults = read_ddl(text)
        for each in faults:
            spot.fault_at(text, each.offset, f"`{spot.name}`: {each.message}", each.hint)
        return None if faults else text


@dataclass(frozen=True, slots=True)
class Options:
    """A table of strings, numbers and booleans, read as the strings that Spark takes."""

    own_keys: Mapping[str, str] = field(default_factory=dict)
    """By option, in lower case, that a key of the configuration sets: that key. Such options are faults."""
    prefix: str = ""
    """The beginning that the names of all options must have."""

    def read(self, value: object, spot: Spot) -> dict[str, str] | None:
        if not isinstance(value, dict):
            spot.fault(f"`{spot.name}` is a table, not {_what(value)}", f'write {spot.name} = {{ key = "value" }}')
            return None
        options = {name: self._option(name, each, spot) for name, each in value.items()}
        valid = {name: each for name, each in options.items() if each is not None}
        return valid if len(valid) == len(options) else None

    def _option(self, name: str, value: object, spot: Spot) -> str | None:
        key = self.own_keys.get(name.lower())
        if key is not None:
            spot.fault(f"`{name}` is set by the key `{key}`", within=(name,))
        elif isinstance(value, dict) and value:
            # TOML reads the unquoted key `spark.sql.x = …` as a table `spark`.
            dotted = f'"{name}.{next(iter(value))}…"'
            spot.fault(f"`{name}` is a table", f"put a name with points in quotes: {dotted}", within=(name,))
        elif not name.startswith(self.prefix):
            spot.fault(f"`{name}` does not begin with `{self.prefix}`", within=(name,))
        elif isinstance(value, bool):
            return "true" if value else "false"
        elif isinstance(value, (str, int, float)):
            return Secret(value) if is_secret(name) else str(value)
        else:
            spot.fault(f"`{name}` is a string, a number or a boolean, not {_what(value)}", within=(name,))
        return None


def _text(value: object, spot: Spot, title: str) -> str | None:
    if isinstance(value, str) and value.strip():
        return value
    spot.fault(f"`{spot.name}` is {title}, not {_what(value)}")
    return None


def _is_column_name(name: str, spot: Spot, within: tuple[int, ...]) -> bool:
    if not name.strip():
        spot.fault(f"`{spot.name}` has an empty name", within=within)
    elif "." in name or "`" in name:
        spot.fault(f"`{spot.name}` is the name of a column, not a path into one: {shortened(name)}", within=within)
    else:
        return True
    return False


def _what(value: object) -> str:
    """A value of a wrong type in the words of a message. Texts are not quoted: they may be secret."""
    if isinstance(value, str):
        return "a text" if value.strip() else "an empty text"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return shortened(value)
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a table" if isinstance(value, dict) else "a date or a time"
