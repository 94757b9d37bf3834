"""Runs a pipeline from its configuration to its end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harken.errors import require_extra
from harken.pipeline.batch_outcome import Stamp
from harken.pipeline.counts import Counts
from harken.pipeline.matched_subscriptions import Subscriptions
from harken.pipeline.micro_batch import run_batch
from harken.pipeline.opened_source import opened_source
from harken.pipeline.pipeline_session import pipeline_session
from harken.pipeline.progress import counted, parts_of
from harken.pipeline.reports import BatchReport, Report
from harken.pipeline.run_metrics import Meter
from harken.pipeline.spark_errors import spark_errors
from harken.pipeline.stopping import Stop, cancelled_by, stopped_by_signals
from harken.pipeline.stream import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.pipeline.config import Config


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run."""

    name: str
    mode: str
    batches: int
    counts: Counts
    seconds: float

    def __str__(self) -> str:
        return " · ".join([*parts_of(self.counts), counted(self.batches, "batch"), f"{self.seconds:.1f} s"])

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data."""
        head = {"pipeline": self.name, "mode": self.mode, "batches": self.batches, "seconds": round(self.seconds, 3)}
        return head | self.counts.to_dict()


def run(
    config: Config,
    on_report: Callable[[Report], None] = lambda report: None,
    meter: Meter | None = None,
    on_start: Callable[[str | None], None] = lambda ui: None,
) -> RunResult:
    """Run a pipeline to its end. Raises HarkenError if it fails.

    `on_report` is called with the report of every batch and every change of the subscriptions, after `meter`.
    `on_start` is called with the address of Spark's UI, or None, once Spark runs. An active Spark session is used, and
    stays open.
    """
    meter = meter or Meter(config)

    def forward(report: Report) -> None:
        meter.take(report)
        on_report(report)

    stop = Stop()
    is_done = False
    try:
        require_extra("spark")
        with stopped_by_signals(stop), spark_errors(), pipeline_session(config) as spark:
            if not stop.is_set():
                on_start(spark.sparkContext.uiWebUrl)
                is_done = _work(config, spark, forward, stop)
        if stop.signal is not None and not is_done:  # only now: Spark has been stopped in order
            signal.raise_signal(stop.signal)
    except BaseException as error:
        meter.end(str(error) or type(error).__name__)
        raise
    meter.end()
    return RunResult(config.name, config.mode, meter.batches, meter.counts, meter.seconds)


def _work(config: Config, spark: SparkSession, report: Callable[[Report], None], stop: Stop) -> bool:
    """Run the pipeline's batches. Returns False if a signal cancelled the only batch; a stream is never cancelled."""
    if config.is_stream:
        stream(config, spark, report, stop)
        return True
    try:
        with stopped_by_signals(stop), cancelled_by(stop, spark):
            _run_once(config, spark, report)
    except Exception:
        if stop.is_set():
            return False
        raise
    return True


def _run_once(config: Config, spark: SparkSession, report: Callable[[Report], None]) -> None:
    """Process the whole source as one batch."""
    started = time.monotonic()
    subscriptions = Subscriptions(config, spark)
    source = opened_source(config, spark, subscriptions)
    stamp = Stamp(0, subscriptions.current(), datetime.now(UTC))
    if subscriptions.opening is not None:
        report(subscriptions.opening)
    counts = run_batch(source.events, config, stamp)
    report(BatchReport(stamp.batch, stamp.version, stamp.time, counts, time.monotonic() - started))
