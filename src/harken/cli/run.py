"""`harken run`: run a pipeline on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.command_session import session, show_error
from harken.cli.exits import code_of
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen, printable, printable_lines
from harken.errors import ConfigError

if TYPE_CHECKING:
    from harken.pipeline.batch_planning import PipelinePlan
    from harken.pipeline.config import Config
    from harken.pipeline.reports import Report
    from harken.pipeline.run_metrics import Meter

EXAMPLES = """\b
Examples:
  harken run pipeline.toml
  harken run pipeline.toml --dry-run
  harken run pipeline.toml --json > batches.jsonl

\b
On a cluster, where spark-submit starts Spark:
  spark-submit --master yarn $(python -c "import harken.pipeline as p;
      print(p.__path__[0])")/__main__.py pipeline.toml

\b
With --json, standard output has a line for every batch (`kind` is batch), for
every change of the subscriptions (change), and one at the end (end).
"""


def run(
    configuration: Annotated[str, typer.Argument(metavar="PIPELINE.TOML", help="The configuration of the pipeline.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the pipeline would do, with sizes and costs, and do nothing.")
    ] = False,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Run a pipeline on Spark.

    Events from a source are matched with subscriptions, and the notifications written to sinks. The configuration is
    checked completely before Spark starts, and all its faults are listed. A batch ends by itself; a stream goes on
    until Ctrl-C or SIGTERM, which end it after the running batch, and cancel a pipeline of a single batch. Rejected
    events go to the dead letters with their reasons, and the others are matched.
    """
    with session(json, verbose) as screen:
        config = _configured(screen, configuration)
        if dry_run:
            from harken.pipeline.batch_planning import plan

            with _working(screen, "starting Spark"):
                pipeline_plan = plan(config)
            _show_plan(screen, pipeline_plan)
            return
        from harken.pipeline.run import run as run_pipeline
        from harken.pipeline.run_metrics import Meter

        meter = Meter(config)
        with _working(screen, "starting Spark") as say:
            result = run_pipeline(
                config,
                lambda report: _show_report(screen, say, meter, report),
                meter,
                lambda ui: _show_ui(screen, say, ui),
            )
        if json:
            screen.line({"kind": "end", **result.to_dict()})
        else:
            screen.show(f"{printable(config.name)}: {result}")


def _configured(screen: Screen, path: str) -> Config:
    """The configuration. If it has faults, all of them are shown and the command ends."""
    from harken.pipeline.config import load_config

    try:
        return load_config(path)
    except ConfigError as error:
        for each in error.faults or (error,):
            show_error(screen, each)
        raise typer.Exit(code_of(error)) from None


def _show_ui(screen: Screen, say: Callable[[str], None], ui: str | None) -> None:
    if ui is not None:
        screen.aside({"kind": "spark", "ui": ui}, f"Spark's own pages: {ui}")
    say("working")


def _show_report(screen: Screen, say: Callable[[str], None], meter: Meter, report: Report) -> None:
    from harken.pipeline.progress import running_text, text_of
    from harken.pipeline.run_metrics import line_of

    if screen.json:
        screen.line(line_of(report))
        return
    screen.err.print(printable_lines(text_of(report)), soft_wrap=True)
    say(running_text(meter))


def _show_plan(screen: Screen, plan: PipelinePlan) -> None:
    if screen.json:
        screen.line(plan.to_dict())
        return
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")  # long paths are shown whole
    for label, line in plan.lines():
        table.add_row(printable(label), printable(line))
    screen.show(table, wrap=True)


@contextmanager
def _working(screen: Screen, what: str) -> Iterator[Callable[[str], None]]:
    """A status line on a terminal. The yielded function changes its text."""
    if screen.json or not screen.err.is_terminal:
        yield lambda text: None
        return
    with screen.err.status(what) as status:
        yield lambda text: status.update(printable(text))
