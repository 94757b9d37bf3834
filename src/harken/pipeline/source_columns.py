"""The columns of a source that does not declare them: types from the data, and from what subscriptions ask.

Spark's inference makes a column STRING as soon as one value is of another type, and then no number in it compares with
numbers any more. So a column that subscriptions look at is *loose* where its type may not fit every value: it is read
value by value, and what does not fit travels beside the columns (`exact.py`): matching sees each value as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from harken.errors import SegmentError
from harken.pipeline.asked import Asked
from harken.schema import Kind, Path
from harken.spark.frames import leaves

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Tally:
    """How many values of a column are numbers, integers of 64 bits among them, and booleans."""

    numbers: int = 0
    integers: int = 0
    booleans: int = 0


NO_TALLY = Tally()


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of events, and which of them are loose."""

    types: StructType
    loose: tuple[str, ...] = ()
    doubtful: Mapping[str, Kind | None] = field(default_factory=dict)
    """Loose columns of strings in which subscriptions look for numbers or booleans, with the kind that should give the
    column its type, if one should. `resolved` tells what they hold."""
    mixed: tuple[str, ...] = ()
    """Columns of several types that subscriptions ask for: to compare with their one type says nothing of them."""

    def as_read(self, loose_type: DataType) -> StructType:
        """The columns as Spark has to read them: loose ones as a type that takes every value."""
        from pyspark.sql.types import StructField, StructType

        return StructType(
            [StructField(each.name, loose_type if each.name in self.loose else each.dataType) for each in self.types]
        )

    def resolved(self, tallies: Mapping[str, Tally]) -> Self:
        """The same, with nothing doubtful, given what these columns hold.

        One that has no value of the kind that is asked for stays a STRING: there the subscriptions are at fault.
        """
        from pyspark.sql.types import BooleanType, DoubleType, LongType, StructField, StructType

        fields, mixed = [], []
        for each in self.types:
            tally = tallies.get(each.name, NO_TALLY)
            kind = each.dataType
            match self.doubtful.get(each.name):
                case Kind.NUMBER if tally.numbers:
                    kind = LongType() if tally.numbers == tally.integers else DoubleType()
                case Kind.BOOLEAN if tally.booleans:
                    kind = BooleanType()
                case None if tally.numbers or tally.booleans:
                    mixed.append(each.name)
            fields.append(StructField(each.name, kind))
        return replace(self, types=StructType(fields), doubtful={}, mixed=(*self.mixed, *mixed))

    def to_text(self) -> str:
        """The columns as JSON, to be kept with a stream."""
        return json.dumps(
            {"format": _FORMAT, "types": self.types.jsonValue(), "loose": self.loose, "mixed": self.mixed}
        )

    @classmethod
    def from_text(cls, text: bytes, place: str) -> Self:
        """The columns that `to_text` wrote. Raises SegmentError for another text."""
        from pyspark.sql.types import StructType

        try:
            plain = json.loads(text)
            if plain["format"] != _FORMAT:
                raise ValueError("it is of a format that this Harken does not know")
            types = StructType.fromJson(plain["types"])
            return cls(types, tuple(plain["loose"]), mixed=tuple(plain["mixed"]))
        except (ValueError, TypeError, KeyError) as error:
            raise SegmentError(f"{place} cannot be understood: {error}") from error


def json_columns(inferred: StructType, asked: Asked, protected: Collection[str], is_stream: bool) -> SourceColumns:
    """The columns of JSON. Of a batch all values were seen; in a stream others may come, so every column may be asked.

    The types of `protected` columns stay as they are inferred: ids, times and keys of joins keep all their values.
    """

    def is_loose(name: str, kind: DataType) -> bool:
        if not (is_stream or asked.looks_at(name)):
            return False
        if kind.typeName() in _NESTED:
            return _is_nested_conflict(name, kind, asked)
        return kind.typeName() in (*_UNSURE, *(_SURE if is_stream else ()))

    return _decided(inferred, asked, protected, is_loose)


def csv_columns(inferred: StructType, asked: Asked, protected: Collection[str], is_stream: bool) -> SourceColumns:
    """The columns of CSV, where each value is a text: what reads as a number is one, where subscriptions ask for it."""
    agreed = asked.agreed()

    def is_loose(name: str, kind: DataType) -> bool:
        if kind.typeName() == "string":
            return name not in protected and agreed.get((name,)) in _TYPES
        return is_stream and kind.typeName() in (*_SURE, "double")

    return _decided(inferred, asked, protected, is_loose)


# What Spark infers only if every value is of that type, and what it also infers for a mixture of types.
_SURE = ("boolean", "integer", "long")
_UNSURE = ("decimal", "double", "string")
_NESTED = ("struct", "array")
_TYPES = (Kind.NUMBER, Kind.BOOLEAN)
"""Kinds that give a column its type where all subscriptions ask for them."""


def _decided(
    inferred: StructType, asked: Asked, protected: Collection[str], is_loose: Callable[[str, DataType], bool]
) -> SourceColumns:
    from pyspark.sql.types import DoubleType, LongType, StructField, StructType

    fields, loose, mixed = [], [], []
    doubtful: dict[str, Kind | None] = {}
    for each in inferred:
        name, kind = each.name, each.dataType
        if is_loose(name, kind):
            loose.append(name)
            kinds = asked.kinds.get((name,), frozenset())
            if kind.typeName() in _NESTED:
                mixed.append(name)
            elif kind.typeName() == "string" and not kinds.isdisjoint(_TYPES):
                doubtful[name] = next(iter(kinds)) if len(kinds) == 1 and name not in protected else None
            elif kind.typeName() == "decimal" and name not in protected:
                kind = DoubleType()
            elif kind.typeName() == "integer":  # later files may have larger ones
                kind = LongType()
        fields.append(StructField(name, kind))
    return SourceColumns(StructType(fields), tuple(loose), doubtful, tuple(mixed))


def _is_nested_conflict(name: str, kind: DataType, asked: Asked) -> bool:
    """Whether numbers or booleans are asked for inside a column where Spark found strings."""
    from pyspark.sql.types import StructField, StructType

    inside: dict[Path, Any] = dict(leaves(StructType([StructField(name, kind)])))
    return any(
        path in inside and inside[path].typeName() == "string" and not kinds.isdisjoint(_TYPES)
        for path, kinds in asked.kinds.items()
    )
