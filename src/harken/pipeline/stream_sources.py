"""Reads the source of events into a DataFrame, batch or streaming, of decoded events.

A line that cannot be decoded becomes a row with its fault; only empty lines are dropped. If the columns are not
declared, values that do not fit their columns are kept as exact values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harken.errors import SourceError
from harken.pipeline.decode_faults import csv_reason, json_reason
from harken.pipeline.exact_values import type_tallies, with_exact_values
from harken.pipeline.schema_columns import schema_columns
from harken.pipeline.source_columns import SourceColumns, csv_columns, json_columns
from harken.pipeline.spark_errors import spark_errors
from harken.pipeline.used_attributes import NO_ATTRIBUTES, UsedAttributes, used_attributes
from harken.pipeline.xml_files import documents_of_files
from harken.schema import load_schema
from harken.spark.frames import column, require_column
from harken.spark.index_files import files_of
from harken.spark.index_versions import IndexVersion
from harken.spark.task import OWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from harken.pipeline.config import Config, SourceConfig

ID, RAW, FAULT = f"{OWN}id", f"{OWN}raw", f"{OWN}fault"
_LINE, _EVENT = f"{OWN}line", f"{OWN}event"
_FILES = ("json", "csv", "parquet")
_COLUMNS_FILE = "columns.json"
"""The file in a checkpoint with the columns of a stream that does not declare them."""
# CSV columns are matched by the header, because by position a new column would shift the others.
_DEFAULT_OPTIONS = {"csv": {"header": "true", "enforceSchema": "false"}}


def find_columns(config: Config, spark: SparkSession, version: IndexVersion | None = None) -> SourceColumns | None:
    """Infer the columns of a source. Returns None if the configuration or the files declare them.

    A stream that ran before has stored its columns. Else the whole source is read: types come from its values, and from
    the subscriptions of the version. Raises SourceError if there is nothing to read.
    """
    reader = _SourceReader(config, spark)
    with spark_errors():
        if reader.declared() is not None or config.source.format not in ("json", "csv", "kafka", "socket"):
            return None
        used = NO_ATTRIBUTES if version is None else used_attributes(version, spark)
        return _stored_columns(config, spark) or reader.inferred(used)


def keep_columns(config: Config, spark: SparkSession, columns: SourceColumns) -> None:
    """Store the columns of a stream in its checkpoint for the next start, unless columns are stored."""
    assert config.checkpoint is not None, "a stream has a checkpoint"
    files = files_of(config.checkpoint, spark)
    if files.read(_COLUMNS_FILE) is None:
        files.write(_COLUMNS_FILE, columns.to_text().encode())


def _stored_columns(config: Config, spark: SparkSession) -> SourceColumns | None:
    if config.checkpoint is None:
        return None
    text = files_of(config.checkpoint, spark).read(_COLUMNS_FILE)
    return None if text is None else SourceColumns.from_text(text, f"{config.checkpoint}/{_COLUMNS_FILE}")


def read(config: Config, spark: SparkSession, columns: SourceColumns | None = None) -> DataFrame:
    """Read the source of a pipeline.

    Rows have the columns of the event and, as strings, `_harken_id`, `_harken_raw` (the line, if it is faulty),
    `_harken_fault` (its fault, or null) and, if columns are loose, `_harken_exact`. `columns` is the result of
    `find_columns`, which is called without subscriptions by default. Raises SourceError if the source cannot be read,
    or lacks a column that the configuration names.
    """
    reader = _SourceReader(config, spark, columns or find_columns(config, spark))
    with spark_errors():
        methods = {"kafka": reader.kafka, "socket": reader.socket, "rate": reader.rate, "xml": reader.xml}
        events = methods.get(config.source.format, reader.files)()
        return _identified(events, config.source)


def event_columns(events: DataFrame) -> list[str]:
    """The columns of the event, without Harken's own."""
    return [name for name in events.columns if not name.startswith(OWN)]


class _SourceReader:
    def __init__(self, config: Config, spark: SparkSession, inferred: SourceColumns | None = None) -> None:
        self._config = config
        self._source = config.source
        self._spark = spark
        self._is_stream = config.mode == "stream"
        self._inferred = inferred
        self._is_csv = config.source.format == "csv"
        self._options = _DEFAULT_OPTIONS.get(config.source.format, {}) | dict(config.source.options)

    def files(self) -> DataFrame:
        from pyspark.sql import functions as f

        source = self._source
        reader = self._reader(self._options, maxFilesPerTrigger=source.max_files_per_trigger).format(source.format)
        if source.format == "parquet":
            return _faultless(reader.schema(self.declared() or self._spark_columns()).load(source.path))
        columns = self._columns()
        types = columns.as_read(self._loose_type())
        rows = _loaded(reader, types, source.path)
        line = column(RAW)
        reason = csv_reason(line, types, self._options) if self._is_csv else json_reason(line, types)
        return with_exact_values(rows.withColumn(FAULT, f.when(line.isNotNull(), reason)), columns, self._is_csv)

    def xml(self) -> DataFrame:
        source = self._source
        reader = self._reader(self._options, maxFilesPerTrigger=source.max_files_per_trigger).format("binaryFile")
        if self._is_stream:
            reader = reader.schema("path string, modificationTime timestamp, length bigint, content binary")
        return documents_of_files(reader.load(source.path), source.row_tag, (ID, RAW, FAULT))

    def kafka(self) -> DataFrame:
        return self._parsed(self._kafka_rows())

    def _kafka_rows(self) -> DataFrame:
        from pyspark.sql import functions as f

        source = self._source
        reader = self._reader(source.options, maxOffsetsPerTrigger=source.max_offsets_per_trigger).format("kafka")
        reader = reader.option("kafka.bootstrap.servers", source.servers).option("subscribe", source.topic)
        rows: DataFrame = reader.option("startingOffsets", source.starting_offsets or "earliest").load()
        position = f.concat_ws("/", "topic", "partition", "offset")
        return rows.select(f.col("value").cast("string").alias(_LINE), position.alias(ID))

    def socket(self) -> DataFrame:
        from pyspark.sql import functions as f

        reader = self._reader(self._source.options).format("socket")
        rows = reader.option("host", self._source.host).option("port", self._source.port).load()
        return self._parsed(rows.select(f.col("value").alias(_LINE)).where(f.trim(_LINE) != ""))

    def rate(self) -> DataFrame:
        reader = self._reader(self._source.options, rowsPerSecond=self._source.rows_per_second)
        return _faultless(reader.format("rate").load())

    def _parsed(self, rows: DataFrame) -> DataFrame:
        """Events parsed from rows that have one JSON text each."""
        from pyspark.sql import functions as f

        columns = self._columns()
        types = columns.as_read(self._loose_type())
        options = {**self._source.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW}
        line = column(_LINE)
        parsed = rows.withColumn(_EVENT, f.from_json(line, _with_raw(types), options))
        values = [column(_EVENT)[each].alias(each) for each in types.names]
        own = [name for name in rows.columns if name.startswith(OWN)]
        is_wrong = f.trim(f.coalesce(line, f.lit(""))).isin("", "null") | column(_EVENT)[RAW].isNotNull()
        events = parsed.select(*values, *map(column, own), is_wrong.alias(_EVENT))
        reason = f.when(column(_EVENT), json_reason(line, types))
        raw = f.when(column(_EVENT), line)
        return with_exact_values(events.withColumns({RAW: raw, FAULT: reason}).drop(_LINE, _EVENT), columns)

    def _reader(self, options: Mapping[str, str], **stream_options: int | None) -> Any:
        """Spark's reader with `options` and, for a stream, the `stream_options` that are not None."""
        reader: Any = self._spark.readStream if self._is_stream else self._spark.read
        limits = {name: str(value) for name, value in stream_options.items() if value is not None and self._is_stream}
        return reader.options(**{**options, **limits})

    def declared(self) -> StructType | None:
        """The columns that the configuration or its schema declares; None if there are none. Parquet has its own."""
        from pyspark.sql.types import StructType

        source = self._source
        if source.columns is not None:
            columns: Any = StructType.fromDDL(source.columns)
            return StructType(columns.fields)
        if self._config.schema is None or source.format == "parquet":
            return None
        return schema_columns(load_schema(self._config.schema), source.event_id, source.event_time)

    def inferred(self, used: UsedAttributes) -> SourceColumns:
        """The columns inferred from the values in the source, and from what subscriptions compare them with."""
        if self._is_stream and self._source.format not in _FILES:
            raise SourceError("no columns of the events are declared", hint="give `columns` in [source]")
        decide = csv_columns if self._is_csv else json_columns
        columns = decide(self._spark_columns(), used, self._protected(), self._is_stream)
        if not columns.doubtful:
            return columns
        return columns.resolved(type_tallies(self._loose_rows(columns), columns.doubtful, self._is_csv))

    def _columns(self) -> SourceColumns:
        declared = self.declared()
        if declared is not None:
            return SourceColumns(declared)
        assert self._inferred is not None, "undeclared columns are inferred before"
        return self._inferred

    def _protected(self) -> set[str]:
        """Columns that keep their types, whatever subscriptions compare them with: the id, the time and join keys."""
        id_and_time = (self._source.event_id, self._source.event_time)
        keys = (key for each in self._config.enrichments for key in each.on)
        return {name for name in (*id_and_time, *keys) if name is not None}

    def _loose_type(self) -> DataType:
        from pyspark.sql.types import StringType, VariantType

        return StringType() if self._is_csv else VariantType()

    def _loose_rows(self, columns: SourceColumns) -> DataFrame:
        """The whole source, with loose columns in the loose type."""
        from pyspark.sql import functions as f

        types = columns.as_read(self._loose_type())
        if self._source.format == "kafka":
            event = f.from_json(column(_LINE), types, self._options)
            return self._kafka_rows().select(event.alias(_EVENT)).select(f"{_EVENT}.*")
        reader = self._spark.read.options(**self._options).format(self._source.format)
        return _loaded(reader, types, self._source.path)

    def _spark_columns(self) -> StructType:
        """The columns that Spark infers from the whole source."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        source = self._source
        reader = self._spark.read.options(**self._options).option("columnNameOfCorruptRecord", RAW)
        if source.format == "kafka":
            text = self._kafka_rows().select(f.coalesce(column(_LINE), f.lit("")).alias("value"))
            inferred = reader.json(text.rdd.map(lambda row: row.value)).schema
        else:
            inferred = reader.option("inferSchema", "true").format(source.format).load(source.path).schema
        columns = StructType([each for each in inferred if each.name != RAW])
        if not columns.fields:
            hint = "give `columns` in [source]"
            raise SourceError("the columns of the events cannot be inferred: the source has none", hint=hint)
        return columns


def _loaded(reader: Any, types: StructType, path: str | None) -> DataFrame:
    """The rows of files with these columns. A line that does not fit them is kept as text in `RAW`."""
    permissive = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", RAW)
    rows: DataFrame = permissive.schema(_with_raw(types)).load(path)
    return rows


def _faultless(rows: DataFrame) -> DataFrame:
    """Rows that are all decoded, with null in `RAW` and `FAULT`."""
    from pyspark.sql import functions as f

    nothing = f.lit(None).cast("string")
    return rows.withColumns({RAW: nothing, FAULT: nothing})


def _with_raw(columns: StructType) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*columns.fields, StructField(RAW, StringType())])


def _identified(events: DataFrame, source: SourceConfig) -> DataFrame:
    """The events with their ids as strings, in `ID`, which Kafka and XML have set if there is no id column."""
    from pyspark.sql import functions as f

    name = source.event_id if source.event_id is not None or source.format != "rate" else "value"
    for each, what in ((name, "which is their id"), (source.event_time, "which is their time")):
        if each is not None:
            require_column(events.select(*map(column, event_columns(events))), each, what)
    if name is not None:
        return events.withColumn(ID, column(name).cast("string"))
    return events if ID in events.columns else events.withColumn(ID, f.lit(None).cast("string"))
