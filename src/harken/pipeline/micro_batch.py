"""One batch, from its events to the sinks: a whole source, or a micro-batch of a stream."""

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

    `reached` is called after every step, with the step's name.
    """
    found = outcome(events, config, stamp)
    try:
        counts = found.counts
        reached("matched")
        _refuse_without_dead_letters(config, found)
        for sink in config.sinks:
            notifications = found.with_events if sink.format == "store" else found.notifications
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
                config.dead_letters, found.dead_letters, stamp.batch, rows=counts.refused, reached=reached
            )
        found.remember()
        reached("remembered")
    finally:
        found.release()
    return counts


def _refuse_without_dead_letters(config: Config, found: BatchOutcome) -> None:
    """Raise EventError if events were refused and there is no place for dead letters, before anything is written."""
    count = found.counts.refused - found.counts.dead_letters.get(TYPE, 0)  # events with odd values are matched
    if not count or config.dead_letters is not None:
        return
    with spark_errors():
        first = found.dead_letters.where(f"stage <> '{TYPE}'").first()
    assert first is not None, "what was counted is there"
    others = f", and {count - 1:,} more are refused" if count > 1 else ""
    raise EventError(
        f"the event {first['event_id'] or first['event']!r:.80} is refused{others}: {first['reason']}",
        hint="give [dead_letters] a `path`, where they can go",
    )
