"""Exact values: what loose columns cannot hold in their types, kept beside them.

The column `EXACT` holds a JSON object of the values that do not fit the columns of an event, such as `{"delta":"lots"}`
where `delta` is BIGINT, or an integer beyond 2^53 where it is DOUBLE. Matching uses these in place of the columns.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from harken.pipeline.source_columns import SourceColumns, TypeTally
from harken.spark.frames import column
from harken.spark.task import OWN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

EXACT = f"{OWN}exact"
_JSON = f"{OWN}json_"
_NUMBER = "^-?[0-9]"
_SMALL_INTEGER = "^-?[0-9]{1,15}$"
_LARGE_INTEGER = "^-?[0-9]{16,}$"
"""An integer that a DOUBLE may not hold exactly."""
_CSV_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


def with_exact_values(rows: DataFrame, columns: SourceColumns, is_csv: bool = False) -> DataFrame:
    """The rows with loose columns cast to their types and a column `EXACT`; unchanged if no column is loose."""
    from pyspark.sql import functions as f

    if not columns.loose:
        return rows
    texts = {name: f"{_JSON}{index}" for index, name in enumerate(columns.loose)}
    read = rows.withColumns({text: _as_json(name, is_csv) for name, text in texts.items()})
    values, misfits = {}, []
    for name, text in texts.items():
        value, fits = _value(column(text), column(name), columns.types[name].dataType)
        is_there = column(text).isNotNull() & (column(text) != "null")
        values[name] = f.when(is_there, value)
        pair = f.concat(f.lit(f"{json.dumps(name, ensure_ascii=False)}:"), column(text))
        misfits.append(f.when(is_there & ~f.coalesce(fits, f.lit(False)), pair))
    pairs = f.concat_ws(",", *misfits)
    values[EXACT] = f.when(pairs != "", f.concat(f.lit("{"), pairs, f.lit("}")))
    return read.withColumns(values).drop(*texts.values())


def tallied(rows: DataFrame, names: Collection[str], is_csv: bool = False) -> dict[str, TypeTally]:
    """Count the kinds of values in loose columns. This reads the rows."""
    from pyspark.sql import functions as f

    def counts(name: str) -> Column:
        text = _as_json(name, is_csv)
        is_number = text.rlike(_NUMBER)
        is_integer = is_number & text.try_cast("bigint").isNotNull()
        return f.array(*map(f.count_if, (is_number, is_integer, text.isin("true", "false"))))

    found = rows.agg(*map(counts, names)).first()
    assert found is not None, "an aggregate has a row"
    return {name: TypeTally(*counted) for name, counted in zip(names, found, strict=True)}


def whole_event(names: list[str], options: dict[str, str], has_exact: bool) -> Column:
    """An event as JSON: its columns, with exact values in place of theirs."""
    from pyspark.sql import functions as f

    plain = f.to_json(f.struct(*map(column, names)), options)
    if not has_exact:
        return plain
    exact = f.from_json(column(EXACT), "map<string,variant>")
    others = [f.when(~f.map_contains_key(exact, f.lit(name)), column(name)).alias(name) for name in names]
    inner = f.regexp_replace(f.to_json(f.struct(*others), options), r"(?s)^\{(.*)\}$", "$1")
    joined = f.concat_ws(",", f.when(inner != "", inner), f.substring(column(EXACT), 2, 2**31 - 1))
    return f.when(column(EXACT).isNull(), plain).otherwise(f.concat(f.lit("{"), joined))


def _as_json(name: str, is_csv: bool) -> Column:
    """A loose value as JSON. A cell of CSV that reads as a number or a boolean is one."""
    from pyspark.sql import functions as f

    value = column(name)
    if not is_csv:
        return f.to_json(value)
    quoted = f.to_json(f.array(value))
    is_plain = value.rlike(_CSV_NUMBER) | f.lower(value).isin("true", "false")
    text = f.when(is_plain, f.lower(value)).otherwise(quoted.substr(f.lit(2), f.length(quoted) - 2))
    return f.when(value.isNotNull(), text)


def _value(text: Column, raw: Column, kind: DataType) -> tuple[Column, Column]:
    """A value, given as JSON and as it was read, in a column's type; and whether that is exact."""
    from pyspark.sql import functions as f

    is_number = text.rlike(_NUMBER)
    match kind.typeName():
        case "string":
            return raw.cast("string"), text.startswith('"')
        case "boolean":
            return f.when(text.isin("true", "false"), text == "true"), text.isin("true", "false")
        case "long":
            value = f.when(is_number, text.try_cast("bigint"))
            return value, value.isNotNull()
        case "double":
            return f.when(is_number, text.try_cast("double")), is_number & ~text.rlike(_LARGE_INTEGER)
        case "decimal":
            return f.when(is_number, text.try_cast(kind)), text.rlike(_SMALL_INTEGER)
        case _:  # a struct or an array that holds values of several types somewhere inside
            return f.from_json(text, f.lit(kind.simpleString())), f.lit(False)
