"""The columns of a source that does not declare them: types from the data, and from the subscriptions.

Spark's inference makes a column STRING as soon as one value is of another type; then its numbers compare with numbers
no more. So a column that subscriptions use is *loose* where its type may not fit every value: it is read value by
value, and a value that does not fit travels beside the columns (`exact_values`), so that matching sees it as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from harken.errors import SegmentError
from harken.pipeline.used_attributes import UsedAttributes
from harken.schema import Kind, Path
from harken.spark.frames import leaves

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class TypeTally:
    """How many values of a column are numbers, 64-bit integers (also counted as numbers), and booleans."""

    numbers: int = 0
    integers: int = 0
    booleans: int = 0


NO_TALLY = TypeTally()


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of events, and which of them are loose."""

    types: StructType
    loose: tuple[str, ...] = ()
    doubtful: Mapping[str, Kind | None] = field(default_factory=dict)
    """Loose columns that Spark read as strings and subscriptions compare with numbers or booleans, each with the kind
    that may give it its type, or None. `resolved` decides by what they hold."""
    mixed: tuple[str, ...] = ()
    """Columns with values of several types that subscriptions compare with. They never mismatch."""

    def as_read(self, loose_type: DataType) -> StructType:
        """The columns as Spark has to read them: loose ones in a type that holds any value."""
        from pyspark.sql.types import StructField, StructType

        return StructType(
            [StructField(each.name, loose_type if each.name in self.loose else each.dataType) for each in self.types]
        )

    def resolved(self, tallies: Mapping[str, TypeTally]) -> Self:
        """The columns with the doubtful types decided by the tallies.

        A column without any value of the kind that subscriptions compare with stays STRING: they are at fault.
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
        """The columns as JSON, to be stored with a stream."""
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


def json_columns(
    inferred: StructType, used: UsedAttributes, protected: Collection[str], is_stream: bool
) -> SourceColumns:
    """The columns of JSON. In a batch all values were seen; in a stream, later ones may be of any type.

    `protected` columns keep their inferred types: ids, times and join keys must not lose values.
    """

    def is_loose(name: str, kind: DataType) -> bool:
        if not (is_stream or used.has_column(name)):
            return False
        if kind.typeName() in _NESTED:
            return _is_nested_conflict(name, kind, used)
        return kind.typeName() in (*_UNSURE, *(_SURE if is_stream else ()))

    return _decided(inferred, used, protected, is_loose)


def csv_columns(
    inferred: StructType, used: UsedAttributes, protected: Collection[str], is_stream: bool
) -> SourceColumns:
    """The columns of CSV, where every value is text: it is a number or boolean if it reads as the kind that is used."""
    agreed = used.of_one_kind()

    def is_loose(name: str, kind: DataType) -> bool:
        if kind.typeName() == "string":
            return name not in protected and agreed.get((name,)) in _TYPES
        return is_stream and kind.typeName() in (*_SURE, "double")

    return _decided(inferred, used, protected, is_loose)


# Types that Spark infers only if every value has them, and those that it also infers for a mixture.
_SURE = ("boolean", "integer", "long")
_UNSURE = ("decimal", "double", "string")
_NESTED = ("struct", "array")
_TYPES = (Kind.NUMBER, Kind.BOOLEAN)
"""Kinds that give a column its type if all subscriptions compare it with them."""


def _decided(
    inferred: StructType, used: UsedAttributes, protected: Collection[str], is_loose: Callable[[str, DataType], bool]
) -> SourceColumns:
    from pyspark.sql.types import DoubleType, LongType, StructField, StructType

    fields, loose, mixed = [], [], []
    doubtful: dict[str, Kind | None] = {}
    for each in inferred:
        name, kind = each.name, each.dataType
        if is_loose(name, kind):
            loose.append(name)
            kinds = used.kinds.get((name,), frozenset())
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


def _is_nested_conflict(name: str, kind: DataType, used: UsedAttributes) -> bool:
    """Whether subscriptions compare with numbers or booleans inside a column where Spark found strings."""
    from pyspark.sql.types import StructField, StructType

    inside: dict[Path, Any] = dict(leaves(StructType([StructField(name, kind)])))
    return any(
        path in inside and inside[path].typeName() == "string" and not kinds.isdisjoint(_TYPES)
        for path, kinds in used.kinds.items()
    )
