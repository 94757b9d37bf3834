"""Where notifications and dead letters of a batch go. To write a batch again is to replace it, but for Kafka.

A folder has a folder `batch=ID` for each batch, which appears as a whole; a table is changed in one transaction (see
`tables`). Kafka has no place for a batch: one that is repeated after a crash is sent again, and each message has
headers by which its reader can tell.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harken.errors import HarkenError, SourceError
from harken.pipeline.batches import reached
from harken.pipeline.failures import reason_of, told
from harken.pipeline.tables import has_rows, replace_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import Config, DeadLetters, Sink

_UNFINISHED = "_unfinished"
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
"""Spark's own format of a time ends at milliseconds, and its rows lack what is null."""


def write(sink: Sink, notifications: DataFrame, batch: int, *, pipeline: str, rows: int | None = None) -> None:
    """Give a batch of notifications to a sink. Raises SourceError.

    `rows` is how many there are, if that is known: an empty batch leaves nothing, except the first of all.
    """
    try:
        if sink.format in ("parquet", "json"):
            _write_folder(notifications, sink.path or "", sink.format, batch, sink.options, rows)
        elif sink.format == "jdbc":
            replace_rows(sink, notifications, batch, pipeline, is_empty=rows == 0)
        elif rows != 0:
            _SENDERS[sink.format](sink, notifications, batch, pipeline)
    except HarkenError:
        raise
    except Exception as error:  # whatever Spark, a driver or a file system has to say
        raise SourceError(f"batch {batch} cannot be written to the sink `{sink.name}`: {reason_of(error)}") from error
    reached(f"wrote {sink.name}")


def write_dead_letters(output: DeadLetters, dead: DataFrame, batch: int, *, rows: int | None = None) -> None:
    """Put a batch of dead letters where they belong. Raises SourceError."""
    try:
        _write_folder(dead, output.path, output.format, batch, {}, rows)
    except HarkenError:
        raise
    except Exception as error:
        raise SourceError(f"the dead letters of batch {batch} cannot be written: {reason_of(error)}") from error
    reached("wrote dead letters")


def refuse_batches_of_others(config: Config, spark: SparkSession) -> None:
    """Raise SourceError if a sink has batches already. A stream that starts anew would replace them by its own."""
    for sink in config.sinks:
        hint = "go on with the checkpoint that they were written with, move them away, or name another place"
        if sink.format in ("parquet", "json") and sink.path and _has_batches(spark, sink.path):
            raise SourceError(f"the sink `{sink.name}` has batches already, in {sink.path}", hint=hint)
        with told():
            is_taken = sink.format == "jdbc" and has_rows(sink, spark, config.name)
        if is_taken:
            raise SourceError(f"the sink `{sink.name}` has rows of `{config.name}` already, in {sink.table}", hint=hint)


def _write_folder(
    frame: DataFrame, root: str, format: str, batch: int, options: Mapping[str, Any], rows: int | None
) -> None:
    """Write elsewhere, and put it in place as a whole."""
    spark = frame.sparkSession
    target = f"{root.rstrip('/')}/batch={batch}"
    empty = frame.isEmpty() if rows is None else not rows
    if empty and batch:
        _remove(spark, target)
        return
    unfinished = f"{root.rstrip('/')}/{_UNFINISHED}"
    place = f"{unfinished}/{uuid.uuid4().hex[:8]}"
    settings = {**(_JSON if format == "json" else {}), **_texts(options)}
    with _utc_times(spark):
        (frame.coalesce(1) if empty else frame).write.format(format).options(**settings).save(place)
    reached("wrote elsewhere")
    _remove(spark, target)
    system, path = _system(spark, target)
    if not system.rename(path(place), path(target)):
        raise SourceError(f"{place} cannot be renamed to {target}")
    _remove(spark, unfinished)


@contextmanager
def _utc_times(spark: SparkSession) -> Iterator[None]:
    """Have times in Parquet as every reader knows them, instead of in Spark's own old way."""
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
        "harken_subscription": f.col("subscription_id"),
    }
    headers = [f.struct(f.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in texts.items()]
    columns = [f.col(f"`{name.replace('`', '``')}`") for name in notifications.columns]
    messages = notifications.select(
        f.col("event_id").cast("binary").alias("key"),
        f.to_json(f.struct(*columns), _JSON).cast("binary").alias("value"),
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
    place = path(root)
    return bool(system.exists(place)) and any(
        each.getPath().getName().startswith("batch=") for each in system.listStatus(place)
    )


def _remove(spark: SparkSession, folder: str) -> None:
    system, path = _system(spark, folder)
    system.delete(path(folder), True)


def _system(spark: SparkSession, place: str) -> tuple[Any, Any]:
    """The file system of Hadoop's that a place is in, and what makes its paths."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path
    jsession: Any = spark._jsparkSession
    return path(place).getFileSystem(jsession.sessionState().newHadoopConf()), path


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as Spark takes them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
