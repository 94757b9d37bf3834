"""What is asked of a DataFrame before Spark runs anything: its columns, their types, and whether it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from harken.errors import SourceError, did_you_mean
from harken.events.arrow_cells import fields
from harken.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from harken.schema import Path

    Step = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


USUAL_IDS = ("event_id", "id")
"""Columns that are taken for the id of events where none is named."""


def refuse_stream(frame: DataFrame, doing: str) -> None:
    """Raise SourceError if rows keep coming, for what needs to see them all."""
    if frame.isStreaming:
        hint = "read the same data in batch, or do it for each batch, in foreachBatch"
        raise SourceError(f"{doing} needs a DataFrame that ends, and this is a stream", hint=hint)


def require_column(frame: DataFrame, name: str, what: str) -> None:
    """Raise SourceError if a DataFrame has no column of this name. `what` says what its rows are."""
    if name not in frame.columns:
        hint = did_you_mean(name, frame.columns) or f"there are {', '.join(frame.columns[:12])}"
        raise SourceError(f"the {what} have no column `{name}`", hint=hint)


def refuse_column(frame: DataFrame, name: str, option: str) -> None:
    """Raise SourceError if a column that is to be added is there already. `option` gives it another name."""
    is_exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    if name in frame.columns or (not is_exact and name.lower() in map(str.lower, frame.columns)):
        hint = f"pass {option}= another name, or rename the column"
        raise SourceError(f"the DataFrame has a column `{name}` of its own", hint=hint)


def require_events(columns: StructType, limits: Limits) -> None:
    """Raise SourceError if a column is of a type that no event can hold, or two have one name."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        arrow = to_arrow_schema(columns, timezone="UTC")
    except PySparkException as error:
        hint = "drop the column, or cast it to a number, a string, a boolean, a timestamp or a date"
        raise SourceError(f"Spark cannot hand the columns to Python: {error}", hint=hint) from error
    fields(arrow, (), limits, 2)


def leaves(kind: StructType, path: Path = ()) -> Iterator[tuple[Path, DataType]]:
    """The attributes that rows of this type may have, through structs and arrays, with their types."""
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
    """`mapInArrow` for columns of any name: PySpark's own takes a dot in one for the path to a field."""
    names = rows.columns

    def named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return step(batch.rename_columns(names) for batch in batches)

    named.__name__ = step.__name__
    return rows.toDF(*(f"_{place}" for place in range(len(names)))).mapInArrow(named, answer)


def column(name: str) -> Column:
    """The column of exactly this name, dots and backticks included."""
    from pyspark.sql.functions import col

    return col("`" + name.replace("`", "``") + "`")
