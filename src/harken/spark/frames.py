"""Checks of DataFrames before Spark runs anything, and `mapInArrow` for any columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import signature
from typing import TYPE_CHECKING

from harken.errors import HarkenError, SourceError, did_you_mean
from harken.events.arrow_cells import fields
from harken.limits import Limits
from harken.spark.workers import explaining_missing_modules, workers_with_harken

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from harken.schema import Path
    from harken.spark.workers import Step


USUAL_IDS = ("event_id", "id")
"""Columns that are tried, in order, as the id of events if none is named."""


def reject_stream(frame: DataFrame, doing: str) -> None:
    """Raise SourceError for a stream. `doing` is the task that needs all rows."""
    if frame.isStreaming:
        hint = "read the same data in batch, or do it for each batch, in foreachBatch"
        raise SourceError(f"{doing} needs a DataFrame that ends, and this is a stream", hint=hint)


def require_column(frame: DataFrame, name: str, what: str) -> None:
    """Raise SourceError if a DataFrame has no column of this name. `what` names its rows."""
    if name not in frame.columns:
        hint = did_you_mean(name, frame.columns) or f"there are {', '.join(frame.columns[:12])}"
        raise SourceError(f"the {what} have no column `{name}`", hint=hint)


def require_names(names: object, option: str) -> None:
    """Raise HarkenError for a string in place of a list of names: each letter would be read as a name."""
    if isinstance(names, str):
        raise HarkenError(
            f"`{option}` is a list of names, not the string {names!r:.60}", hint=f"write {option}=[{names!r:.60}]"
        )


def reject_column(frame: DataFrame, name: str, option: str) -> None:
    """Raise SourceError if the DataFrame already has a column with the name of a new one.

    `option` is the argument that renames the new column.
    """
    is_exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    if name in frame.columns or (not is_exact and name.lower() in map(str.lower, frame.columns)):
        hint = f"pass {option}= another name, or rename the column"
        raise SourceError(f"the DataFrame already has a column `{name}`", hint=hint)


def require_events(columns: StructType, limits: Limits, *, documents: bool = False) -> None:
    """Raise SourceError if a column has a type that events cannot hold, or two have the same name.

    With `documents`, binary columns may hold XML documents.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}  # since Spark 4.1
    try:
        arrow = to_arrow_schema(columns, **zone)  # type: ignore[arg-type]
    except PySparkException as error:
        hint = "drop the column, or cast it to a number, a string, a boolean, a timestamp or a date"
        raise SourceError(f"Spark cannot hand the columns to Python: {error}", hint=hint) from error
    fields(arrow, (), limits, 2, of_events=documents)


def leaves(kind: StructType, path: Path = ()) -> Iterator[tuple[Path, DataType]]:
    """The paths of the attributes in rows of this type, inside structs and arrays too, with their types."""
    from pyspark.sql.types import ArrayType, StructType

    for field in kind.fields:
        inner = field.dataType
        while isinstance(inner, ArrayType):
            inner = inner.elementType
        if isinstance(inner, StructType):
            yield from leaves(inner, (*path, field.name))
        else:
            yield (*path, field.name), inner


def mapped(rows: DataFrame, step: Step, answer: StructType | str) -> DataFrame:
    """`mapInArrow` for columns of any name: PySpark's own takes a dot for the path to a field."""
    names = rows.columns

    def named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return step(batch.rename_columns(names) for batch in batches)

    named.__name__ = step.__name__
    renamed = rows.toDF(*(f"_{index}" for index in range(len(names))))
    with workers_with_harken(rows.sparkSession):
        return renamed.mapInArrow(explaining_missing_modules(named), answer)


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame. Before 4.0, Spark only takes rows."""
    from pyspark.sql.pandas.types import from_arrow_schema

    if int(spark.version.split(".")[0]) >= 4:
        return spark.createDataFrame(table)
    rows = list(zip(*(each.to_pylist() for each in table.columns), strict=True))
    return spark.createDataFrame(rows, from_arrow_schema(table.schema))


def column(name: str) -> Column:
    """The column with exactly this name, which may contain dots and backticks."""
    from pyspark.sql.functions import col

    return col("`" + name.replace("`", "``") + "`")
