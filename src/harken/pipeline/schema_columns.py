"""Derives the columns of events from a schema, for sources that do not declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harken.schema import (
    EVENT_TYPE,
    BooleanDomain,
    DateDomain,
    Domain,
    FloatDomain,
    IntegerDomain,
    Path,
    Schema,
    TimestampDomain,
)

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def schema_columns(schema: Schema, event_id: str | None = None, event_time: str | None = None) -> StructType:
    """A column for each attribute, in structs for dotted paths, and for the id and time if they are no attributes.

    An attribute is an array if every event type that has it allows several values; without event types, none is.
    """
    from pyspark.sql.types import StringType, TimestampType

    tree: dict[str, Any] = {EVENT_TYPE[0]: StringType()} if schema.event_types else {}
    for path, domain in schema.attributes.items():
        struct = tree
        for key in path[:-1]:
            struct = struct.setdefault(key, {})
        struct[path[-1]] = _type_of(domain, _is_multiple(schema, path))
    for name, kind in ((event_id, StringType()), (event_time, TimestampType())):
        if name is not None:
            tree.setdefault(name, kind)
    return _struct(tree)


def _is_multiple(schema: Schema, path: Path) -> bool:
    """Whether every event type that has an attribute allows several values of it."""
    rules = [kind.rules[path] for kind in schema.event_types.values() if path in kind.rules]
    return bool(rules) and all(rule.multiple for rule in rules)


def _type_of(domain: Domain, multiple: bool) -> DataType:
    from pyspark.sql import types

    kinds: dict[type[Domain], DataType] = {
        BooleanDomain: types.BooleanType(),
        DateDomain: types.DateType(),
        FloatDomain: types.DoubleType(),
        IntegerDomain: types.LongType(),
        TimestampDomain: types.TimestampType(),
    }
    kind = kinds.get(type(domain), types.StringType())
    return types.ArrayType(kind) if multiple else kind


def _struct(tree: dict[str, Any]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(name, _struct(each) if isinstance(each, dict) else each) for name, each in tree.items()]
    )
