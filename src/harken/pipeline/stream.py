"""Runs a pipeline over a stream, one micro-batch after the other.

Each batch is logged with the index version that it uses, written to every sink, and then logged as done. If the process
dies at any point, the next one continues from the log: no batch is lost, and none is delivered twice.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from harken.errors import HarkenError
from harken.pipeline.batch_log import BatchLog, Begun, Done
from harken.pipeline.batch_outcome import Stamp
from harken.pipeline.config import AVAILABLE_NOW, Config
from harken.pipeline.config.value_types import seconds_of
from harken.pipeline.counts import Counts
from harken.pipeline.matched_subscriptions import Subscriptions
from harken.pipeline.micro_batch import run_batch
from harken.pipeline.opened_source import opened_source
from harken.pipeline.reports import BatchReport, Report
from harken.pipeline.sinks import require_no_batches
from harken.pipeline.spark_errors import explained
from harken.pipeline.steps import Reached, ignore_step
from harken.pipeline.stopping import stopped_by_signals
from harken.pipeline.stream_sources import keep_columns
from harken.spark.index_files import files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SPARK = "spark"
"""The folder of the checkpoint that belongs to Spark."""
_POLL_SECONDS = 0.5


def stream(
    config: Config,
    spark: SparkSession,
    on_report: Callable[[Report], None] = lambda report: None,
    stop: threading.Event | None = None,
    reached: Reached = ignore_step,
) -> Counts:
    """Process a stream until it is stopped or, with the trigger `available-now`, until its source is used up.

    SIGTERM, SIGINT and the event `stop` end it after the running batch. `on_report` is called with the report of every
    batch and every change of the subscriptions; `reached` with the name of each completed step. Raises HarkenError if a
    batch fails; the next run continues with that batch.
    """
    return _Stream(config, spark, on_report, reached).follow(stop or threading.Event())


class _StoppingError(Exception):
    """Spark began a batch while the stream was stopping. The next run processes the batch."""


class _Stream:
    def __init__(
        self, config: Config, spark: SparkSession, on_report: Callable[[Report], None], reached: Reached
    ) -> None:
        assert config.checkpoint is not None, "a stream has a checkpoint"
        self._config = config
        self._spark = spark
        self._report = on_report
        self._reached = reached
        self._checkpoint = config.checkpoint.rstrip("/")
        self._log = BatchLog(self._checkpoint, spark)
        self._newest: datetime | None = None
        """The time of the newest event in all batches so far."""
        self._subscriptions = Subscriptions(config, spark)
        digest = hashlib.sha256(self._log.root.encode()).hexdigest()[:8]
        self._pin = f"{quote(config.name, safe='')}-{digest}"
        self._counts = Counts()
        self._running = threading.Lock()
        self._is_stopping = False
        self._is_claimed = False
        self._failure: HarkenError | None = None

    def follow(self, stop: threading.Event) -> Counts:
        with self._log.locked(), stopped_by_signals(stop):
            self._open()
            query = self._started()
            try:
                while not query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
                    if stop.is_set():
                        self._stop(query)
                        break
            except Exception as error:
                if self._failure is not None:
                    raise self._failure from None
                if not self._is_stopping:
                    raise explained(error) from error
            finally:
                query.stop()
        if self._failure is not None:  # from the batch that ran while the stream was stopping
            raise self._failure
        return self._counts

    def _open(self) -> None:
        """Check the sinks, restore the time of the newest event, and open the subscriptions."""
        if self._log.is_empty:
            require_no_batches(self._config, self._spark)
        last = self._log.last()
        self._newest = None if last is None else last.newest
        self._subscriptions.current()

    def _started(self) -> StreamingQuery:
        config = self._config
        source = opened_source(config, self._spark, self._subscriptions)
        if source.columns is not None:
            keep_columns(config, self._spark, source.columns)
        if self._subscriptions.opening is not None:
            self._report(self._subscriptions.opening)
        writer = source.events.writeStream.queryName(config.name).foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", f"{self._checkpoint}/{SPARK}")
        if config.trigger == AVAILABLE_NOW:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=config.trigger).start()

    def _stop(self, query: StreamingQuery) -> None:
        """Wait for the running batch, then stop. A batch that Spark begins after that fails at once."""
        with self._running:
            self._is_stopping = True
        query.stop()

    def _batch(self, events: DataFrame, batch: int) -> None:
        """Process a batch, called by Spark. An error is stored too, because Spark wraps it in an error of its own."""
        with self._running:
            if self._is_stopping:
                raise _StoppingError
            try:
                self._claim()
                if self._log.done(batch) is None:
                    self._process(events, batch)
            except HarkenError as error:
                self._failure = error
                raise
            except Exception as error:
                self._failure = explained(error)
                raise
        self._reached("returned")

    def _claim(self) -> None:
        """Assign the log to the query of Spark's checkpoint. Raises SegmentError if it belongs to another query."""
        if self._is_claimed:
            return
        metadata = files_of(f"{self._checkpoint}/{SPARK}", self._spark).read("metadata")
        if metadata is not None:
            self._log.claim(str(json.loads(metadata)["id"]))
        self._is_claimed = True

    def _process(self, events: DataFrame, batch: int) -> None:
        started = time.monotonic()
        begun = self._log.begun(batch)
        is_replay = begun is not None
        if begun is None:
            begun = self._begin(batch)
        version = self._subscriptions.version(begun.version, begun.fingerprint)
        self._reached("begun")
        counts = run_batch(events, self._config, Stamp(batch, version, begun.time, begun.late_before), self._reached)
        self._newest = _newest(self._newest, counts.max_event_time, begun.time)
        self._log.finish(Done(batch, self._newest, counts.to_dict()))
        self._reached("done")
        self._counts += counts
        self._report(BatchReport(batch, version, begun.time, counts, time.monotonic() - started, is_replay))

    def _begin(self, batch: int) -> Begun:
        """Take changes of the subscriptions, and log what a new batch begins with."""
        refreshed = self._subscriptions.refresh()
        if refreshed is not None:
            self._report(refreshed)
        version = self._subscriptions.current()
        self._subscriptions.pin(self._pin, version)
        self._reached("pinned")
        now = datetime.now(UTC)
        begun = Begun(batch, version.version, version.fingerprint, now, self._late_before())
        self._log.begin(begun)
        return begun

    def _late_before(self) -> datetime | None:
        """The time before which events of the next batch are late; None if none is."""
        late_after = self._config.source.late_after
        if late_after is None or self._newest is None:
            return None
        return self._newest - timedelta(seconds=seconds_of(late_after))


def _newest(before: datetime | None, of_batch: datetime | None, now: datetime) -> datetime | None:
    """The time of the newest event so far. A time in the future counts as now, so that it does not make others late."""
    times = [each for each in (before, None if of_batch is None else min(of_batch, now)) if each is not None]
    return max(times, default=None)
