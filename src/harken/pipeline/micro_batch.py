"""Runs one batch, from its events to the sinks: a whole source, or a micro-batch of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.errors import EventError
from harken.live.notifications import TYPE
from harken.pipeline.batch_outcome import BatchOutcome, Stamp, outcome
from harken.pipeline.counts import Counts
from harken.pipeline.sinks import write, write_dead_letters
from harken.pipeline.spark_errors import spark_errors
from harken.pipeline.steps import Reached, ignore_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from harken.pipeline.config import Config


def run_batch(events: DataFrame, config: Config, stamp: Stamp, reached: Reached = ignore_step) -> Counts:
    """Match the events of a batch, and write notifications and dead letters. Raises HarkenError.

    `reached` is called with the name of each completed step.
    """
    result = outcome(events, config, stamp)
    try:
        counts = result.counts
        reached("matched")
        _require_dead_letters(config, result)
        for sink in config.sinks:
            notifications = result.with_events if sink.format == "store" else result.notifications
            assert notifications is not None, "a sink is a store"
            write(
                sink,
                notifications,
                stamp.batch,
                pipeline=config.name,
                rows=counts.notifications,
                reached=reached,
            )
        if config.dead_letters is not None:
            write_dead_letters(
                config.dead_letters, result.dead_letters, stamp.batch, rows=counts.dead_letter_count, reached=reached
            )
        result.remember()
        reached("remembered")
    finally:
        result.release()
    return counts


def _require_dead_letters(config: Config, result: BatchOutcome) -> None:
    """Raise EventError if events were rejected and there is no place for dead letters."""
    counts = result.counts
    count = counts.dead_letter_count - counts.dead_letters.get(TYPE, 0)  # events with odd values are matched
    if not count or config.dead_letters is not None:
        return
    with spark_errors():
        first = result.dead_letters.where(f"stage <> '{TYPE}'").first()
    assert first is not None, "dead letters were counted"
    others = f", and {count - 1:,} more are rejected" if count > 1 else ""
    raise EventError(
        f"the event {first['event_id'] or first['event']!r:.80} is rejected{others}: {first['reason']}",
        hint="give [dead_letters] a `path`, so that rejected events are written there",
    )
