"""A pipeline that follows a stream, one micro-batch of Spark's after the other.

Each batch is begun in the log with the version of the index that it uses, written to every sink, and then marked as
done. Whenever the process ends, the next one goes on there: no batch is lost, and none is told twice.
"""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harken.errors import HarkenError
from harken.pipeline.batches import BatchLog, Begun, Done, reached
from harken.pipeline.config import AVAILABLE_NOW, Config
from harken.pipeline.counts import Counts
from harken.pipeline.failures import explained
from harken.pipeline.opening import opened_source
from harken.pipeline.sinks import refuse_batches_of_others, write, write_dead_letters
from harken.pipeline.sources import keep_columns
from harken.pipeline.stages import Stamp, outcome
from harken.pipeline.subscriptions import Change, Subscriptions
from harken.pipeline.values import seconds_of
from harken.spark.files import files_of
from harken.spark.index import IndexVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SPARK = "spark"
"""The folder of the checkpoint that is Spark's own."""
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What came of a batch."""

    batch: int
    version: IndexVersion
    time: datetime
    counts: Counts
    seconds: float
    is_replay: bool = False
    """Whether it was begun before, by a process that did not end it."""


Told = BatchReport | Change


def stream(
    config: Config,
    spark: SparkSession,
    tell: Callable[[Told], None] = lambda told: None,
    stop: threading.Event | None = None,
) -> Counts:
    """Follow a stream until its source is used up, if it is to end there, or somebody says to stop.

    SIGTERM, SIGINT and the event `stop` end it after the batch that is running. `tell` hears of every batch, and of
    every change of the subscriptions. Raises HarkenError if a batch fails; the next run goes on with that batch.
    """
    following = _Following(config, spark, tell)
    return following.follow(stop or threading.Event())


class _StoppingError(Exception):
    """A batch that Spark began when we were about to stop. It is the first one next time."""


class _Following:
    def __init__(self, config: Config, spark: SparkSession, tell: Callable[[Told], None]) -> None:
        assert config.checkpoint is not None, "a stream has a checkpoint"
        self._config = config
        self._spark = spark
        self._tell = tell
        self._checkpoint = config.checkpoint.rstrip("/")
        self._log = BatchLog(self._checkpoint, spark)
        self._newest: datetime | None = None
        """The time of the newest event so far."""
        self._subscriptions = Subscriptions(config, spark)
        place = hashlib.sha256(self._log.root.encode()).hexdigest()[:8]
        self._pin = f"{quote(config.name, safe='')}-{place}"
        self._counts = Counts()
        self._running = threading.Lock()
        self._is_stopping = False
        self._is_claimed = False
        self._failure: HarkenError | None = None

    def follow(self, stop: threading.Event) -> Counts:
        with self._log.held(), _signals(stop):
            self._open()
            query = self._started()
            try:
                while not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]
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
        if self._failure is not None:  # of the batch that was waited for
            raise self._failure
        return self._counts

    def _open(self) -> None:
        """See that there is something to match with, and room for what is found."""
        if self._log.is_empty:
            refuse_batches_of_others(self._config, self._spark)
        last = self._log.last()
        self._newest = None if last is None else last.newest
        self._subscriptions.current()

    def _started(self) -> StreamingQuery:
        config = self._config
        source = opened_source(config, self._spark, self._subscriptions)
        if source.columns is not None:
            keep_columns(config, self._spark, source.columns)
        if self._subscriptions.opening is not None:
            self._tell(self._subscriptions.opening)
        writer = source.events.writeStream.queryName(config.name).foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", f"{self._checkpoint}/{SPARK}")
        if config.trigger == AVAILABLE_NOW:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=config.trigger).start()

    def _stop(self, query: StreamingQuery) -> None:
        """Let the batch that is running end. One that begins from here on is turned away."""
        with self._running:
            self._is_stopping = True
        query.stop()

    def _batch(self, events: DataFrame, batch: int) -> None:
        """What Spark calls for every batch. An error is kept, because Spark would tell it in its own way."""
        with self._running:
            if self._is_stopping:
                raise _StoppingError
            try:
                self._claim()
                if self._log.outcome(batch) is None:
                    self._work(events, batch)
            except HarkenError as error:
                self._failure = error
                raise
            except Exception as error:
                self._failure = explained(error)
                raise
        reached("returned")

    def _claim(self) -> None:
        """See that the log's batches are those that Spark counts."""
        if self._is_claimed:
            return
        known = files_of(f"{self._checkpoint}/{SPARK}", self._spark).read("metadata")
        if known is not None:
            self._log.claim(str(json.loads(known)["id"]))
        self._is_claimed = True

    def _work(self, events: DataFrame, batch: int) -> None:
        started = time.monotonic()
        begun = self._log.begun(batch)
        is_replay = begun is not None
        if begun is None:
            begun = self._begin(batch)
        version = self._subscriptions.version(begun.version, begun.fingerprint)
        reached("begun")
        found = outcome(events, self._config, Stamp(batch, version, begun.time, begun.late_before))
        try:
            counts = found.counts()
            reached("matched")
            for sink in self._config.sinks:
                write(sink, found.notifications, batch, pipeline=self._config.name, rows=counts.notifications)
            if self._config.dead_letters is not None:
                write_dead_letters(self._config.dead_letters, found.dead_letters, batch, rows=counts.refused)
            found.remember()
            reached("remembered")
        finally:
            found.release()
        self._newest = _newest(self._newest, counts.max_event_time, begun.time)
        self._log.finish(Done(batch, self._newest, counts.to_dict()))
        reached("done")
        self._counts += counts
        self._tell(BatchReport(batch, version, begun.time, counts, time.monotonic() - started, is_replay))

    def _begin(self, batch: int) -> Begun:
        """Take over what changed in the subscriptions, and record what the batch uses."""
        change = self._subscriptions.refresh()
        if change is not None:
            self._tell(change)
        version = self._subscriptions.current()
        self._subscriptions.pin(self._pin, version)
        reached("pinned")
        now = datetime.now(UTC)
        begun = Begun(batch, version.version, version.fingerprint, now, self._late_before())
        self._log.begin(begun)
        return begun

    def _late_before(self) -> datetime | None:
        late_after = self._config.source.late_after
        if late_after is None or self._newest is None:
            return None
        return self._newest - timedelta(seconds=seconds_of(late_after))


def _newest(before: datetime | None, seen: datetime | None, now: datetime) -> datetime | None:
    """The time of the newest event. One that is ahead of its time does not make all others late."""
    known = [each for each in (before, None if seen is None else min(seen, now)) if each is not None]
    return max(known, default=None)


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """Have a signal say to stop, where this thread may ask for that. A second one does what it always did."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()
        restore()

    before: dict[int, Any] = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    for each in before:
        signal.signal(each, handle)
    try:
        yield
    finally:
        restore()
