"""Joins events with reference tables, by columns or by keys in their documents. No join duplicates an event."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

from harken.errors import DecodeError, SourceError
from harken.events.encodings import text_of
from harken.events.xml.enriching import DocumentKey, element_of, inserted, inserted_in_bytes, require_name
from harken.pipeline.spark_errors import spark_errors
from harken.schema import EventColumns
from harken.schema.event_columns import Fields
from harken.schema.paths import DOCUMENT as _DOCUMENT
from harken.spark.frames import column, require_column
from harken.spark.mismatches import columns_of
from harken.spark.workers import workers_with_harken

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from harken.pipeline.config import EnrichmentConfig

_KEY = "_harken_key_"
(DOCUMENT,) = _DOCUMENT


def enriched(events: DataFrame, enrichments: tuple[EnrichmentConfig, ...]) -> DataFrame:
    """Join events with each table in turn. The tables are read in their current state.

    Raises SourceError if a table has several rows for one key, or a column that the events have already.
    """
    for each in enrichments:
        events = _joined(events, each) if each.document_key is None else _with_elements(events, each)
    return events


def enriched_columns(events: DataFrame, enrichments: tuple[EnrichmentConfig, ...]) -> EventColumns:
    """The columns of the events after all joins, without Harken's own columns. Joins nothing.

    Raises SourceError if a table cannot be read.
    """
    columns = dict(columns_of(events).columns.by_name)
    for each in enrichments:
        if each.document_key is not None:
            continue
        with spark_errors():
            table = columns_of(_reference(each, events)).columns.by_name
        chosen = each.columns or tuple(name for name in table if name not in each.on)
        columns |= {each.prefix + name: table[name] for name in chosen if name in table}
    return EventColumns(Fields(columns))


def _reference(enrichment: EnrichmentConfig, events: DataFrame) -> DataFrame:
    """A reference table in its current state. Keys in CSV, which has no types, get the types of the events' columns."""
    from pyspark.sql.types import StructField, StructType

    spark = events.sparkSession
    if enrichment.table is not None:
        return spark.table(enrichment.table)
    if enrichment.format != "csv":
        return spark.read.format(enrichment.format or "parquet").load(enrichment.path)
    reader = spark.read.format("csv").option("header", "true")
    inferred = reader.option("inferSchema", "true").load(enrichment.path).schema
    keys = {key: events.schema[key].dataType for key in enrichment.on if key in events.columns}
    columns = StructType([StructField(each.name, keys.get(each.name, each.dataType)) for each in inferred])
    return reader.schema(columns).load(enrichment.path)


def _joined(events: DataFrame, enrichment: EnrichmentConfig) -> DataFrame:
    """The events with columns of a table."""
    table = _reference(enrichment, events)
    name = enrichment.table or enrichment.path
    for key in enrichment.on:
        require_column(events, key, f"by which they are joined with {name}")
        require_column(table, key, f"by which {name} is joined with events")
        _require_joinable(key, events.schema[key].dataType, table.schema[key].dataType, name)
    chosen = enrichment.columns or tuple(each for each in table.columns if each not in enrichment.on)
    for each in chosen:
        require_column(table, each, f"which [[enrich]] takes from {name}")
        if enrichment.prefix + each in events.columns:
            hint = "give the added columns a `prefix`, or choose them with `columns`"
            raise SourceError(f"the events have a column `{enrichment.prefix + each}` before {name} adds it", hint=hint)
    _require_unique_keys(table, enrichment.on, name)
    keys = [column(key).alias(f"{_KEY}{index}") for index, key in enumerate(enrichment.on)]
    added = table.select(*keys, *(column(each).alias(enrichment.prefix + each) for each in chosen))
    condition = [column(key) == column(f"{_KEY}{index}") for index, key in enumerate(enrichment.on)]
    names = [f"{_KEY}{index}" for index in range(len(enrichment.on))]
    return events.join(added, condition, enrichment.how).drop(*names)


def _with_elements(events: DataFrame, enrichment: EnrichmentConfig) -> DataFrame:
    """The events with columns of a table as elements of their documents."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import BinaryType, IntegralType, StringType

    table, (key,) = _reference(enrichment, events), enrichment.on
    name = enrichment.table or enrichment.path
    require_column(events, DOCUMENT, "which [[enrich]] adds elements to")
    require_column(table, key, f"by which {name} is joined with documents")
    if not isinstance(events.schema[DOCUMENT].dataType, StringType | BinaryType):
        raise SourceError(f"`{DOCUMENT}` is {events.schema[DOCUMENT].dataType.simpleString().upper()}, not XML")
    if not isinstance(table.schema[key].dataType, StringType | IntegralType):
        kind = table.schema[key].dataType.simpleString().upper()
        hint = "cast it to a string in the reference table"
        raise SourceError(f"`{key}` of {name} is {kind}, which cannot be the key of a document", hint=hint)
    chosen = enrichment.columns or tuple(each for each in table.columns if each != key)
    for each in chosen:
        require_column(table, each, f"which [[enrich]] takes from {name}")
        require_name(each)
    _require_unique_keys(table, enrichment.on, name)
    # `to_json` leaves out nulls.
    values = f.to_json(f.struct(*map(column, chosen)), {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ssXXX"})
    added = table.select(column(key).cast("string").alias(f"{_KEY}0"), values.alias(f"{_KEY}1"))
    assert enrichment.document_key is not None
    path, element = DocumentKey(enrichment.document_key), enrichment.element
    with workers_with_harken(events.sparkSession):
        find = f.udf(lambda document: _key_in(path, document), "string")
        add = f.udf(lambda document, values: _added(element, document, values), events.schema[DOCUMENT].dataType)
        keyed = events.withColumn(f"{_KEY}2", find(column(DOCUMENT)))
        joined = keyed.join(added, column(f"{_KEY}2") == column(f"{_KEY}0"), enrichment.how)
        document = f.when(column(f"{_KEY}1").isNotNull(), add(column(DOCUMENT), column(f"{_KEY}1")))
        with_elements = joined.withColumn(DOCUMENT, f.coalesce(document, column(DOCUMENT)))
        return with_elements.drop(*(f"{_KEY}{index}" for index in range(3)))


def _key_in(key: DocumentKey, document: str | bytes | bytearray | None) -> str | None:
    """The join key in a document; None if it has none."""
    text = _text(document)
    return None if text is None else key(text)


def _added(element: str, document: str | bytes | bytearray | None, values: str | None) -> str | bytes | None:
    """The document with the values of a JSON object in a new element; None if there is nothing to add."""
    text = _text(document)
    if text is None or values is None:
        return None
    added = element_of(element, json.loads(values, parse_float=Decimal))
    if not added:
        return None
    return inserted(text, added) if isinstance(document, str) else inserted_in_bytes(text, added)


def _text(document: str | bytes | bytearray | None) -> str | None:
    """The text of a document; None if it cannot be decoded: matching rejects it with the reason."""
    try:
        return document if document is None or isinstance(document, str) else text_of(bytes(document))
    except DecodeError:
        return None


def _require_joinable(key: str, event_type: DataType, table_type: DataType, name: str | None) -> None:
    from pyspark.sql.types import NumericType

    are_numbers = isinstance(event_type, NumericType) and isinstance(table_type, NumericType)
    if event_type != table_type and not are_numbers:
        kinds = f"{event_type.simpleString().upper()} in events and {table_type.simpleString().upper()} in {name}"
        raise SourceError(f"`{key}` has two types that cannot be joined, {kinds}")


def _require_unique_keys(table: DataFrame, on: tuple[str, ...], name: str | None) -> None:
    """Raise SourceError if several rows have the same key. Rows without a key are ignored: they join no event."""
    from pyspark.sql import functions as f

    keys = [column(key) for key in on]
    complete = table.select(*keys).dropna()
    duplicate = complete.groupBy(*keys).agg(f.count(f.lit(1)).alias("n")).where(f.col("n") > 1).first()
    if duplicate is not None:
        key = ", ".join(f"{each} = {duplicate[each]!r}" for each in on)
        raise SourceError(
            f"{name} has {duplicate['n']:,} rows for {key}: the join would duplicate events",
            hint="keep one row per key in the reference table, or join on more columns",
        )
