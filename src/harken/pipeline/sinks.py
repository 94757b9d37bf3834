"""Writes the notifications and dead letters of a batch. Writing a batch again replaces it, except in Kafka.

In files, each batch has a folder `batch=ID`, which is renamed into place. A database table is changed in one
transaction (`jdbc`). A store knows which parts of a batch it has (`notification_outbox`). Kafka cannot replace a batch:
after a crash the batch is sent again, with headers by which a reader drops duplicates.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harken.errors import HarkenError, SourceError, StoreError
from harken.live.notifications import EVENT_ID, SUBSCRIPTION_ID
from harken.pipeline.jdbc import has_rows, replace_rows
from harken.pipeline.notification_outbox import append_notifications
from harken.pipeline.spark_errors import reason_of, spark_errors
from harken.pipeline.steps import Reached, ignore_step
from harken.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import Config, DeadLetters, Sink

_UNFINISHED = "_unfinished"
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
"""By default Spark truncates times to milliseconds, and leaves out nulls."""


def write(
    sink: Sink,
    notifications: DataFrame,
    batch: int,
    *,
    pipeline: str,
    rows: int | None = None,
    reached: Reached = ignore_step,
) -> None:
    """Write a batch of notifications to a sink. Raises SourceError.

    `rows` is the number of notifications, if known: an empty batch is not written, unless it is the first. For a store,
    pass `BatchOutcome.with_events`.
    """
    try:
        if sink.format in ("parquet", "json"):
            _write_folder(notifications, sink.path or "", sink.format, batch, sink.options, rows, reached)
        elif sink.format == "jdbc":
            replace_rows(sink, notifications, batch, pipeline, rows == 0, reached)
        elif rows != 0 and sink.format == "store":
            append_notifications(sink, notifications, batch, pipeline, reached)
        elif rows != 0:
            _SENDERS[sink.format](sink, notifications, batch, pipeline)
    except Exception as error:  # from Spark, a driver, a file system or a store
        if isinstance(error, HarkenError) and not isinstance(error, StoreError):
            raise
        raise SourceError(f"batch {batch} cannot be written to the sink `{sink.name}`: {reason_of(error)}") from error
    reached(f"wrote {sink.name}")


def write_dead_letters(
    output: DeadLetters, dead: DataFrame, batch: int, *, rows: int | None = None, reached: Reached = ignore_step
) -> None:
    """Write a batch of dead letters. Raises SourceError."""
    try:
        _write_folder(dead, output.path, output.format, batch, {}, rows, reached)
    except HarkenError:
        raise
    except Exception as error:
        raise SourceError(f"the dead letters of batch {batch} cannot be written: {reason_of(error)}") from error
    reached("wrote dead letters")


def require_no_batches(config: Config, spark: SparkSession) -> None:
    """Raise SourceError if a sink has batches, which a stream with a new checkpoint would overwrite."""
    for sink in config.sinks:
        hint = "use the checkpoint with which they were written, move them away, or name another location"
        if sink.format in ("parquet", "json") and sink.path and _has_batches(spark, sink.path):
            raise SourceError(f"the sink `{sink.name}` has batches already, in {sink.path}", hint=hint)
        with spark_errors():
            is_used = sink.format == "jdbc" and has_rows(sink, spark, config.name)
        if is_used:
            raise SourceError(f"the sink `{sink.name}` has rows of `{config.name}` already, in {sink.table}", hint=hint)


def _write_folder(
    frame: DataFrame,
    root: str,
    format: str,
    batch: int,
    options: Mapping[str, Any],
    rows: int | None,
    reached: Reached,
) -> None:
    """Write to a temporary folder, and rename it to the folder of the batch."""
    spark = frame.sparkSession
    target = f"{root.rstrip('/')}/batch={batch}"
    empty = frame.isEmpty() if rows is None else not rows
    if empty and batch:
        _remove(spark, target)
        return
    unfinished = f"{root.rstrip('/')}/{_UNFINISHED}"
    temporary = f"{unfinished}/{uuid.uuid4().hex[:8]}"
    settings = {**(_JSON if format == "json" else {}), **_texts(options)}
    with _utc_times(spark):
        (frame.coalesce(1) if empty else frame).write.format(format).options(**settings).save(temporary)
    reached("wrote elsewhere")
    _remove(spark, target)
    system, path = _system(spark, target)
    if not system.rename(path(temporary), path(target)):
        raise SourceError(f"{temporary} cannot be renamed to {target}")
    _remove(spark, unfinished)


@contextmanager
def _utc_times(spark: SparkSession) -> Iterator[None]:
    """In this block, write timestamps to Parquet in the standard type, not in Spark's legacy INT96."""
    name = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _send_to_kafka(sink: Sink, notifications: DataFrame, batch: int, pipeline: str) -> None:
    from pyspark.sql import functions as f

    texts = {
        "harken_pipeline": f.lit(pipeline),
        "harken_batch": f.lit(str(batch)),
        "harken_subscription": f.col(SUBSCRIPTION_ID),
    }
    headers = [f.struct(f.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in texts.items()]
    messages = notifications.select(
        f.col(EVENT_ID).cast("binary").alias("key"),
        f.to_json(f.struct(*map(column, notifications.columns)), _JSON).cast("binary").alias("value"),
        f.array(*headers).alias("headers"),
    )
    settings = {"kafka.bootstrap.servers": sink.servers or "", "topic": sink.topic or "", **_texts(sink.options)}
    messages.write.format("kafka").options(**settings).save()


def _show(sink: Sink, notifications: DataFrame, batch: int, pipeline: str) -> None:
    """Print the first rows as a table."""
    print(f"{pipeline}, batch {batch}:")
    notifications.show(sink.limit, truncate=False)


_SENDERS: dict[str, Callable[[Sink, DataFrame, int, str], None]] = {"kafka": _send_to_kafka, "console": _show}


def _has_batches(spark: SparkSession, root: str) -> bool:
    system, path = _system(spark, root)
    folder = path(root)
    return bool(system.exists(folder)) and any(
        each.getPath().getName().startswith("batch=") for each in system.listStatus(folder)
    )


def _remove(spark: SparkSession, folder: str) -> None:
    system, path = _system(spark, folder)
    system.delete(path(folder), True)


def _system(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """Hadoop's file system for a location, and the class `Path` for its methods."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path
    jsession: Any = spark._jsparkSession
    return path(location).getFileSystem(jsession.sessionState().newHadoopConf()), path


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as the strings that Spark takes."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
