"""`run`: a pipeline from its configuration to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harken.errors import EventError, HarkenError
from harken.pipeline.counts import TYPE, Counts
from harken.pipeline.failures import explained, told
from harken.pipeline.metrics import Meter
from harken.pipeline.opening import opened_source
from harken.pipeline.progress import counted, parts_of
from harken.pipeline.session import pipeline_session
from harken.pipeline.sinks import write, write_dead_letters
from harken.pipeline.stages import Outcome, Stamp, outcome
from harken.pipeline.stream import BatchReport, Told, stream
from harken.pipeline.subscriptions import Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.pipeline.config import Config

Tell = Callable[[Told], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run."""

    name: str
    mode: str
    batches: int
    counts: Counts
    seconds: float

    def __str__(self) -> str:
        return " · ".join([*parts_of(self.counts), counted(self.batches, "batch"), f"{self.seconds:.1f} s"])

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        head = {"pipeline": self.name, "mode": self.mode, "batches": self.batches, "seconds": round(self.seconds, 3)}
        return head | self.counts.to_dict()


def run(
    config: Config,
    tell: Tell = lambda told: None,
    meter: Meter | None = None,
    started: Callable[[str | None], None] = lambda ui: None,
) -> Result:
    """Run a pipeline to its end. Raises HarkenError if it cannot go on.

    `tell` hears of every batch and of every change of the subscriptions, after `meter` has; `started` is told where
    Spark's own pages are, if it has any, once it runs.
    A session of Spark's that runs already in this process is used, and goes on to run.
    """
    meter = meter or Meter(config)

    def heard(what: Told) -> None:
        meter.take(what)
        tell(what)

    try:
        with pipeline_session(config) as spark:
            started(spark.sparkContext.uiWebUrl)
            if config.is_stream:
                stream(config, spark, heard)
            else:
                _run_batch(config, spark, heard)
    except BaseException as error:
        failure = error if isinstance(error, HarkenError) else None
        if failure is None and isinstance(error, Exception):
            failure = _of_spark(error)
        meter.end(str(failure or error) or type(error).__name__)
        if failure is None or failure is error:
            raise
        raise failure from error
    meter.end()
    return Result(config.name, config.mode, meter.batches, meter.counts, meter.seconds)


def _run_batch(config: Config, spark: SparkSession, tell: Tell) -> None:
    """All that the source has, as one batch."""
    start = time.monotonic()
    subscriptions = Subscriptions(config, spark)
    source = opened_source(config, spark, subscriptions)
    version = subscriptions.current()
    if subscriptions.opening is not None:
        tell(subscriptions.opening)
    stamp = Stamp(0, version, datetime.now(UTC))
    found = outcome(source.events, config, stamp)
    try:
        counts = found.counts()
        _refuse_homeless(config, found)
        for sink in config.sinks:
            write(sink, found.notifications, stamp.batch, pipeline=config.name, rows=counts.notifications)
        if config.dead_letters is not None:
            write_dead_letters(config.dead_letters, found.dead_letters, stamp.batch, rows=counts.refused)
    finally:
        found.release()
    tell(BatchReport(stamp.batch, version, stamp.time, counts, time.monotonic() - start))


def _refuse_homeless(config: Config, found: Outcome) -> None:
    """Raise EventError for events that are refused and have nowhere to go, before anything is written."""
    count = found.counts().refused - found.counts().dead_letters.get(TYPE, 0)  # events with odd values are matched
    if not count or config.dead_letters is not None:
        return
    with told():
        first = found.dead_letters.where(f"stage <> '{TYPE}'").first()
    assert first is not None, "what was counted is there"
    others = f", and {count - 1:,} more are refused" if count > 1 else ""
    raise EventError(
        f"the event {first['event_id'] or first['event']!r:.80} is refused{others}: {first['reason']}",
        hint="give [dead_letters] a `path`, where they can go",
    )


def _of_spark(error: Exception) -> HarkenError | None:
    """The HarkenError that an error of Spark's stands for; None for an error of another kind."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return explained(error) if isinstance(error, PySparkException | Py4JError) else None
