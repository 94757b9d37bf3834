"""Chooses the columns of a source that does not declare them, by its data and its subscriptions.

Spark infers STRING for a column of numbers with a single value of another type; its numbers would then match no
comparison with a number. So a column whose type may not fit every value is *loose*: it is read value by value, and
matching gets each value that does not fit as an exact value (`exact_values`).
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
    """Counts of values in a column: numbers, 64-bit integers (which are numbers, too), and booleans."""

    numbers: int = 0
    integers: int = 0
    booleans: int = 0


NO_TALLY = TypeTally()


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of events."""

    types: StructType
    loose: tuple[str, ...] = ()
    """Columns with values that may not fit their types."""
    doubtful: Mapping[str, Kind | None] = field(default_factory=dict)
    """By loose column of strings that subscriptions compare with numbers or booleans: the kind that `resolved` may give
    it, depending on its values, or None if it stays STRING."""
    mixed: tuple[str, ...] = ()
    """Columns with values of several types that subscriptions compare with. They are no mismatches."""

    def as_read(self, loose_type: DataType) -> StructType:
        """The columns as Spark has to read them: loose ones with `loose_type`, which holds any value."""
        from pyspark.sql.types import StructField, StructType

        return StructType(
            [StructField(each.name, loose_type if each.name in self.loose else each.dataType) for each in self.types]
        )

    def resolved(self, tallies: Mapping[str, TypeTally]) -> Self:
        """Decide the types of doubtful columns by the counts of their values.

        A column without any value of the kind that subscriptions compare with stays STRING, which is a mismatch.
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
        """The columns as JSON, to store in a checkpoint."""
        return json.dumps(
            {"format": _FORMAT, "types": self.types.jsonValue(), "loose": self.loose, "mixed": self.mixed}
        )

    @classmethod
    def from_text(cls, text: bytes, place: str) -> Self:
        """The columns in the text that `to_text` returned. Raises SegmentError for any other text."""
        from pyspark.sql.types import StructType

        try:
            content = json.loads(text)
            if content["format"] != _FORMAT:
                raise ValueError("this version of Harken does not know its format")
            types = StructType.fromJson(content["types"])
            return cls(types, tuple(content["loose"]), mixed=tuple(content["mixed"]))
        except (ValueError, TypeError, KeyError) as error:
            raise SegmentError(f"{place} cannot be understood: {error}") from error


def json_columns(
    inferred: StructType, used: UsedAttributes, protected: Collection[str], is_stream: bool
) -> SourceColumns:
    """The columns of JSON. A batch has only the values from which `inferred` comes; a stream may get any others.

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
    """The columns of CSV, where every cell is text.

    If all subscriptions compare a column with numbers, or all with booleans, cells that look like one become one.
    """
    only_kind = used.of_one_kind()

    def is_loose(name: str, kind: DataType) -> bool:
        if kind.typeName() == "string":
            return name not in protected and only_kind.get((name,)) in _TYPES
        return is_stream and kind.typeName() in (*_SURE, "double")

    return _decided(inferred, used, protected, is_loose)


# Types that Spark infers only if all values have them, and types that it also infers for values of several types.
_SURE = ("boolean", "integer", "long")
_UNSURE = ("decimal", "double", "string")
_NESTED = ("struct", "array")
_TYPES = (Kind.NUMBER, Kind.BOOLEAN)
"""Kinds that decide the type of a column if all subscriptions compare it with values of that kind."""


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
            elif kind.typeName() == "integer":  # later files may have larger integers
                kind = LongType()
        fields.append(StructField(name, kind))
    return SourceColumns(StructType(fields), tuple(loose), doubtful, tuple(mixed))


def _is_nested_conflict(name: str, kind: DataType, used: UsedAttributes) -> bool:
    """Whether Spark inferred STRING for a field inside a column that subscriptions compare with numbers or booleans."""
    from pyspark.sql.types import StructField, StructType

    inside: dict[Path, Any] = dict(leaves(StructType([StructField(name, kind)])))
    return any(
        path in inside and inside[path].typeName() == "string" and not kinds.isdisjoint(_TYPES)
        for path, kinds in used.kinds.items()
    )
