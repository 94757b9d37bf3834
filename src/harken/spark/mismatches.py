"""Mismatches between an index and the columns of events, checked before Spark runs anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harken.errors import SourceError
from harken.live.mismatch import IGNORE, NO_MISMATCHES, Mismatches, may_mismatch, tell, tell_of_fields
from harken.schema import EventColumns, Kind, format_path
from harken.spark.index_versions import IndexVersion
from harken.spark.local import opened
from harken.spark.task import OWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def columns_of(events: Any) -> EventColumns:
    """The columns of a DataFrame (without Harken's own), of a Spark StructType, or of an Arrow table or schema.

    Raises SourceError for anything else.
    """
    import pyarrow

    schema = getattr(events, "schema", events)
    if isinstance(schema, pyarrow.Schema):
        return EventColumns.from_arrow(schema)
    if hasattr(schema, "typeName"):
        columns = EventColumns.from_spark(schema)
        return columns.only(name for name in columns if not name.startswith(OWN))
    hint = "pass a DataFrame, its schema, or an Arrow table or schema"
    raise SourceError(f"a {type(events).__name__} has no columns of events", hint=hint)


def mismatches_of(version: IndexVersion, columns: EventColumns, spark: SparkSession | None = None) -> Mismatches:
    """The mismatches between the subscriptions of an index and events with these columns.

    The index is opened only if the facts of its version do not rule out mismatches.
    """
    if version.asks is not None:
        asks = [(path, None if kind is None else Kind(kind)) for path, kind in version.asks]
        if not may_mismatch(asks, columns):
            return NO_MISMATCHES
    return opened(version, spark=spark).mismatches(columns)


def compare(
    version: IndexVersion,
    columns: EventColumns,
    on_mismatch: str,
    spark: SparkSession,
    fields: Sequence[str] = (),
) -> None:
    """Warn of mismatches between subscriptions and columns, and of `fields` that no subscription has.

    Warnings point at the caller's caller. If `on_mismatch` is "fail", raises MismatchError instead.
    """
    if on_mismatch == IGNORE:
        return
    tell(mismatches_of(version, columns, spark), on_mismatch, stacklevel=3)
    if fields and version.subscriptions:
        tell_of_fields(opened(version, spark=spark).internals.unknown_fields(fields), on_mismatch, stacklevel=3)


def reject_unreadable(version: IndexVersion, columns: EventColumns, spark: SparkSession) -> None:
    """Raise SourceError if a column that is sent to Python has a type that no event can hold."""
    needed = version.attributes if version.validated is None else version.validated
    for path, leaf in columns.only(columns if needed is None else needed).unreadable():
        others = columns.only(name for name in columns if name != path[0])
        missing = [each for each in opened(version, spark=spark).mismatches(others) if each.root == path[0]]
        user = f": the subscription {missing[0].ids[0]!r:.60} asks for `{missing[0].attribute}`" if missing else ""
        raise SourceError(
            f"the column `{format_path(path)}` is of type {leaf.type}, which an event cannot hold{user}",
            hint="drop the column, or cast it to a number, a string, a boolean, a timestamp or a date",
        )
