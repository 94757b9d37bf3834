"""`harken demo`: a day of auctions through the pipeline on Spark, and a report of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harken.cli.command_session import session
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen, counted
from harken_lab.cli.demo_progress import step, watched
from harken_lab.demo.demo_folder import DemoFolder, prepare, write_market

if TYPE_CHECKING:
    from harken_lab.demo.outcome import DemoOutcome

EXAMPLES = """\b
Examples:
  harken demo
  harken demo --quick --folder /tmp/auction

The folder gets events, subscriptions, pipeline.toml, notifications, dead
letters, metrics and report.html. A folder of an earlier demo is replaced; any
other folder is left alone.
"""

_QUICK = (5_000, 2_000)


def demo(
    folder: Annotated[Path, typer.Option(metavar="DIR", help="The folder for all files.")] = Path("harken-demo"),
    events: Annotated[int, typer.Option(metavar="N", min=1, help="Number of events.")] = 50_000,
    subscriptions: Annotated[int, typer.Option(metavar="N", min=1, help="Number of subscriptions.")] = 100_000,
    seed: Annotated[int, typer.Option(metavar="S", help="The same seed gives the same day.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="5,000 events and 2,000 subscriptions.")] = False,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Run a day of auctions on Spark, and write a report of it.

    The auction house is made up: its events, its sellers and its subscriptions. Every number in the report is read
    back from the files that the pipeline wrote.
    """
    if quick:
        events, subscriptions = _QUICK
    with session(json, verbose) as screen:
        began = time.monotonic()
        outcome = _run(screen, prepare(folder), events, subscriptions, seed)
        seconds = time.monotonic() - began
        if json:
            screen.line(_data(folder, outcome, seconds))
        else:
            _show(screen, folder, outcome, seconds)


def _run(screen: Screen, place: DemoFolder, events: int, subscriptions: int, seed: int) -> DemoOutcome:
    """Make the market, run the pipeline and write the report."""
    from harken_lab.demo.outcome import gather
    from harken_lab.demo.page import page

    with _spark(screen, place, events, subscriptions, seed) as spark:
        from harken.pipeline.config import load_config
        from harken.pipeline.run import run

        with step(screen, "running the pipeline") as running, watched(spark, running):
            result = run(load_config(place.pipeline))
            running.done(f"ran the pipeline: {result}")
    with step(screen, "writing the report") as running:
        outcome = gather(place)
        place.report.write_text(page(outcome, _command(events, subscriptions, seed)), "utf-8")
        running.done("wrote the report")
    return outcome


@contextmanager
def _spark(screen: Screen, place: DemoFolder, events: int, subscriptions: int, seed: int) -> Iterator[Any]:
    """Spark with an event log. The market is made while Spark starts."""
    from harken.spark.session import local_session

    with step(screen, "making a market and starting Spark") as running, ThreadPoolExecutor(1) as other:
        market = other.submit(write_market, place, events, subscriptions, seed)
        settings: dict[str, Any] = {
            "spark.master": "local[*]",
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": place.spark_log.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
        spark = local_session("harken-demo", **settings)
        market.result()
        made = f"{counted(events, 'event')}, {counted(subscriptions, 'subscription')}"
        running.done(f"made a market of {made}, and started Spark")
    try:
        yield spark
    finally:
        spark.stop()


def _command(events: int, subscriptions: int, seed: int) -> str:
    """The command that makes the same day."""
    return f"harken demo --events {events} --subscriptions {subscriptions} --seed {seed}"


def _show(screen: Screen, folder: Path, outcome: DemoOutcome, seconds: float) -> None:
    screen.show(
        f"{outcome.events:,} events: {outcome.rejected:,} were rejected, {outcome.duplicates:,} were duplicates, "
        f"{outcome.matched:,} were matched."
    )
    screen.show(
        f"{outcome.matched:,} events × {outcome.subscriptions:,} subscriptions = {outcome.pairs:,} pairs, of which "
        f"{outcome.notifications:,} matched. It took {seconds:,.1f} s."
    )
    screen.show(f"Open      {folder / 'report.html'}")
    screen.show(f"Then try  harken run {folder / 'pipeline.toml'} --dry-run")


def _data(folder: Path, outcome: DemoOutcome, seconds: float) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "report": str(folder / "report.html"),
        "events": outcome.events,
        "subscriptions": outcome.subscriptions,
        "notifications": outcome.notifications,
        "duplicates": outcome.metrics["duplicates"],
        "dead_letters": outcome.metrics["dead_letters"],
        "seconds_of_pipeline": outcome.metrics["seconds"],
        "seconds": round(seconds, 3),
    }
