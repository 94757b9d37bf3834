"""Finds out why a line does not fit the columns. Spark only reports that it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harken.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


def json_reason(line: Column, columns: StructType) -> Column:
    """Why a line of JSON does not fit the columns. The row must have the values that Spark could read."""
    from pyspark.sql import functions as f

    wrong = [
        f.when(column(each.name).isNull() & _json_value(line, each.name).isNotNull(), _misfit(each.name, each.dataType))
        for each in columns
        if not set(each.name) & set("'[]\\")
    ]
    is_json = f.get_json_object(line, "$").isNotNull()
    return f.coalesce(
        f.when(line.isNull(), f.lit("there is no text")),
        f.when(~is_json, f.lit("the text is not JSON")),
        f.when(~f.trim(line).startswith("{"), f.lit("the text is not a JSON object")),
        *wrong,
        f.lit("a nested value is not of the type that `columns` declares"),
    )


def csv_reason(line: Column, columns: StructType, options: Mapping[str, str]) -> Column:
    """Why a line of CSV does not fit the columns. The row must have the values that Spark could read."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    texts = StructType([StructField(f"c{index}", StringType()) for index in range(len(columns))])
    cell_options = {name: value for name, value in options.items() if name.lower() not in ("header", "enforceschema")}
    cells = f.from_csv(line, f.lit(texts.simpleString()[len("struct<") : -1].replace(":", " ")), cell_options)
    wrong = [
        f.when(column(each.name).isNull() & cells[f"c{index}"].isNotNull(), _misfit(each.name, each.dataType))
        for index, each in enumerate(columns)
    ]
    return f.coalesce(*wrong, f.lit(f"the line does not have {len(columns)} cells"))


def _json_value(line: Column, name: str) -> Column:
    from pyspark.sql import functions as f

    return f.get_json_object(line, f"$['{name}']")


def _misfit(name: str, kind: DataType) -> Column:
    from pyspark.sql import functions as f

    if kind.typeName() == "variant":
        return f.lit(f"`{name}` has a key twice, or is too large")
    return f.lit(f"`{name}` is not of type {kind.simpleString().upper()}")
