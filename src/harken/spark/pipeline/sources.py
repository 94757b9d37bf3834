"""Where events come from: a DataFrame, batch or streaming, of decoded events, with what cannot be decoded among them.

A line that does not fit the columns is a row like the others, with what is wrong with it. Nothing is dropped here but
empty lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harken.errors import SourceError
from harken.schema import load_schema
from harken.spark.frames import column, require_column
from harken.spark.pipeline.attributes import columns_of
from harken.spark.pipeline.decoding import csv_reason, json_reason
from harken.spark.pipeline.failures import told
from harken.spark.task import OWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from harken.spark.pipeline.config import Config, Source

ID, RAW, FAULT = f"{OWN}id", f"{OWN}raw", f"{OWN}fault"
_LINE, _EVENT = f"{OWN}line", f"{OWN}event"
_FILES = ("json", "csv", "parquet")
# By position, a column that is new in a file of CSV would move all others: the header is looked at.
_USUAL_OPTIONS = {"csv": {"header": "true", "enforceSchema": "false"}}


def read(config: Config, spark: SparkSession) -> DataFrame:
    """The events of a pipeline's source: their columns and, as strings, `_harken_id`, `_harken_raw` (the line, where it
    is at fault) and `_harken_fault` (what is wrong with it, or null).

    Raises SourceError if the source cannot be read, or lacks a column that the configuration names.
    """
    reading = _Reading(config, spark)
    with told():
        events = {"kafka": reading.kafka, "socket": reading.socket, "rate": reading.rate}.get(
            config.source.format, reading.files
        )()
        return _identified(events, config.source)


def event_columns(events: DataFrame) -> list[str]:
    """The columns of the event, without ours."""
    return [name for name in events.columns if not name.startswith(OWN)]


class _Reading:
    def __init__(self, config: Config, spark: SparkSession) -> None:
        self._config = config
        self._source = config.source
        self._spark = spark
        self._is_stream = config.mode == "stream"

    def files(self) -> DataFrame:
        from pyspark.sql import functions as f

        source = self._source
        options = _USUAL_OPTIONS.get(source.format, {}) | dict(source.options)
        columns = self._columns() or self._inferred(options)
        reader = self._reader(options, maxFilesPerTrigger=source.max_files_per_trigger).format(source.format)
        if source.format == "parquet":
            return _faultless(reader.schema(columns).load(source.path))
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", RAW)
        rows: DataFrame = reader.schema(_with_raw(columns)).load(source.path)
        line = column(RAW)
        reason = csv_reason(line, columns, options) if source.format == "csv" else json_reason(line, columns)
        return rows.withColumn(FAULT, f.when(line.isNotNull(), reason))

    def kafka(self) -> DataFrame:
        from pyspark.sql import functions as f

        source = self._source
        reader = self._reader(source.options, maxOffsetsPerTrigger=source.max_offsets_per_trigger).format("kafka")
        reader = reader.option("kafka.bootstrap.servers", source.servers).option("subscribe", source.topic)
        rows = reader.option("startingOffsets", source.starting_offsets or "earliest").load()
        number = f.concat_ws("/", "topic", "partition", "offset")
        return self._parsed(rows.select(f.col("value").cast("string").alias(_LINE), number.alias(ID)))

    def socket(self) -> DataFrame:
        from pyspark.sql import functions as f

        reader = self._reader(self._source.options).format("socket")
        rows = reader.option("host", self._source.host).option("port", self._source.port).load()
        return self._parsed(rows.select(f.col("value").alias(_LINE)).where(f.trim(_LINE) != ""))

    def rate(self) -> DataFrame:
        reader = self._reader(self._source.options, rowsPerSecond=self._source.rows_per_second)
        return _faultless(reader.format("rate").load())

    def _parsed(self, rows: DataFrame) -> DataFrame:
        """Events from rows that have a JSON text each."""
        from pyspark.sql import functions as f

        columns = self._columns()
        if columns is None and self._is_stream:
            raise SourceError("nothing says which columns the events have", hint="give `columns` in [source]")
        columns = columns or self._inferred(dict(self._source.options), rows)
        options = {**self._source.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW}
        line = column(_LINE)
        parsed = rows.withColumn(_EVENT, f.from_json(line, _with_raw(columns), options))
        values = [column(_EVENT)[each].alias(each) for each in columns.names]
        others = [name for name in rows.columns if name.startswith(OWN)]
        is_wrong = f.trim(f.coalesce(line, f.lit(""))).isin("", "null") | column(_EVENT)[RAW].isNotNull()
        found = parsed.select(*values, *map(column, others), is_wrong.alias(_EVENT))
        reason = f.when(column(_EVENT), json_reason(line, columns))
        raw = f.when(column(_EVENT), line)
        return found.withColumns({RAW: raw, FAULT: reason}).drop(_LINE, _EVENT)

    def _reader(self, options: Mapping[str, str], **of_streams: int | None) -> Any:
        """A reader with the user's options and, for a stream, those of ours that are given."""
        reader: Any = self._spark.readStream if self._is_stream else self._spark.read
        more = {name: str(value) for name, value in of_streams.items() if value is not None and self._is_stream}
        return reader.options(**{**options, **more})

    def _columns(self) -> StructType | None:
        """The columns that the configuration gives, by itself or by its schema. A file of Parquet has its own."""
        from pyspark.sql.types import StructType

        source = self._source
        if source.columns is not None:
            found: Any = StructType.fromDDL(source.columns)
            return StructType(found.fields)
        if self._config.schema is None or source.format == "parquet":
            return None
        return columns_of(load_schema(self._config.schema), source.event_id, source.event_time)

    def _inferred(self, options: dict[str, str], rows: DataFrame | None = None) -> StructType:
        """The columns that are found by reading all there is."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        source = self._source
        reader = self._spark.read.options(**options).option("columnNameOfCorruptRecord", RAW)
        if rows is not None:
            text = rows.select(f.coalesce(column(_LINE), f.lit("")).alias("value"))
            found = reader.json(text.rdd.map(lambda row: row.value)).schema
        else:
            found = reader.option("inferSchema", "true").format(source.format).load(source.path).schema
        columns = StructType([each for each in found if each.name != RAW])
        if not columns.fields:
            hint = "give `columns` in [source]"
            raise SourceError("there is nothing by which to tell the columns of the events", hint=hint)
        return columns


def _faultless(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    nothing = f.lit(None).cast("string")
    return rows.withColumns({RAW: nothing, FAULT: nothing})


def _with_raw(columns: StructType) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*columns.fields, StructField(RAW, StringType())])


def _identified(events: DataFrame, source: Source) -> DataFrame:
    """The events with their ids as strings. What names an event of Kafka's is where it lies, if nothing else does."""
    from pyspark.sql import functions as f

    name = source.event_id if source.event_id is not None or source.format != "rate" else "value"
    for each, what in ((name, "by which events are named"), (source.event_time, "which is their time")):
        if each is not None:
            require_column(events.select(*map(column, event_columns(events))), each, what)
    if name is not None:
        return events.withColumn(ID, column(name).cast("string"))
    return events if ID in events.columns else events.withColumn(ID, f.lit(None).cast("string"))
