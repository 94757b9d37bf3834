"""Keeps exact values: values of an event that do not fit the types of their columns.

The column `EXACT` holds them in a JSON object: `{"delta":"lots"}` if `delta` is a column of BIGINT, or an integer
beyond 2^53 if it is one of DOUBLE. Matching uses them in place of the values in the columns.
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
"""Matches integers that a DOUBLE may not hold exactly."""
_CSV_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


def with_exact_values(rows: DataFrame, columns: SourceColumns, is_csv: bool = False) -> DataFrame:
    """Cast loose columns to their types, and add the column `EXACT`. Rows without loose columns are unchanged."""
    from pyspark.sql import functions as f

    if not columns.loose:
        return rows
    texts = {name: f"{_JSON}{index}" for index, name in enumerate(columns.loose)}
    with_json = rows.withColumns({text: _as_json(name, is_csv) for name, text in texts.items()})
    values, misfits = {}, []
    for name, text in texts.items():
        value, fits = _value(column(text), column(name), columns.types[name].dataType)
        is_present = column(text).isNotNull() & (column(text) != "null")
        values[name] = f.when(is_present, value)
        pair = f.concat(f.lit(f"{json.dumps(name, ensure_ascii=False)}:"), column(text))
        misfits.append(f.when(is_present & ~f.coalesce(fits, f.lit(False)), pair))
    pairs = f.concat_ws(",", *misfits)
    values[EXACT] = f.when(pairs != "", f.concat(f.lit("{"), pairs, f.lit("}")))
    return with_json.withColumns(values).drop(*texts.values())


def type_tallies(rows: DataFrame, names: Collection[str], is_csv: bool = False) -> dict[str, TypeTally]:
    """Count the values of each type in loose columns. This reads the rows."""
    from pyspark.sql import functions as f

    def counts(name: str) -> Column:
        text = _as_json(name, is_csv)
        is_number = text.rlike(_NUMBER)
        is_integer = is_number & text.try_cast("bigint").isNotNull()
        return f.array(*map(f.count_if, (is_number, is_integer, text.isin("true", "false"))))

    row = rows.agg(*map(counts, names)).first()
    assert row is not None, "an aggregate has a row"
    return {name: TypeTally(*column_counts) for name, column_counts in zip(names, row, strict=True)}


def whole_event(names: list[str], options: dict[str, str], has_exact: bool) -> Column:
    """An event as JSON: the values of its columns or, where it has them, its exact values."""
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
    """The value of a loose column as JSON. A cell of CSV that looks like a number or a boolean becomes one."""
    from pyspark.sql import functions as f

    value = column(name)
    if not is_csv:
        return f.to_json(value)
    quoted = f.to_json(f.array(value))
    is_plain = value.rlike(_CSV_NUMBER) | f.lower(value).isin("true", "false")
    text = f.when(is_plain, f.lower(value)).otherwise(quoted.substr(f.lit(2), f.length(quoted) - 2))
    return f.when(value.isNotNull(), text)


def _value(text: Column, raw: Column, kind: DataType) -> tuple[Column, Column]:
    """A value cast to the type of its column, and whether the cast is exact. `text` is the value as JSON."""
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
        case _:  # a struct or an array with values of several types inside
            return f.from_json(text, f.lit(kind.simpleString())), f.lit(False)
