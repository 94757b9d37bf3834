"""The command line: `harken match`, `check`, `explain`, `run`, `serve` and others.

There is a module for each command. It imports what it needs only when it runs, so that `harken --help` answers at once.
"""

from __future__ import annotations

import io
import signal
import sys
from typing import Annotated

import typer

from harken.cli.algorithms import algorithms
from harken.cli.check import EXAMPLES as CHECK_EXAMPLES
from harken.cli.check import check
from harken.cli.commands import FILES, MORE, SERVER, SPARK, Commands, GroupedCommand
from harken.cli.exits import EXIT_CODES, ExitCode
from harken.cli.explain import EXAMPLES as EXPLAIN_EXAMPLES
from harken.cli.explain import explain
from harken.cli.key import app as key
from harken.cli.listen import EXAMPLES as LISTEN_EXAMPLES
from harken.cli.listen import listen
from harken.cli.match import EXAMPLES as MATCH_EXAMPLES
from harken.cli.match import match
from harken.cli.publish import EXAMPLES as PUBLISH_EXAMPLES
from harken.cli.publish import publish
from harken.cli.renew import EXAMPLES as RENEW_EXAMPLES
from harken.cli.renew import renew
from harken.cli.run import EXAMPLES as RUN_EXAMPLES
from harken.cli.run import run
from harken.cli.serve import EXAMPLES as SERVE_EXAMPLES
from harken.cli.serve import serve
from harken.cli.sql import EXAMPLES as SQL_EXAMPLES
from harken.cli.sql import sql
from harken.cli.subscribe import EXAMPLES as SUBSCRIBE_EXAMPLES
from harken.cli.subscribe import subscribe
from harken.cli.unsubscribe import EXAMPLES as UNSUBSCRIBE_EXAMPLES
from harken.cli.unsubscribe import unsubscribe
from harken.cli.warm_up import warm_up
from harken.release import __version__

# Typer's framed help and errors break lines at 80 columns, and put control codes into the logs of CI machines.
app = typer.Typer(
    name="harken",
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=MATCH_EXAMPLES, cls=GroupedCommand, rich_help_panel=FILES)(match)
app.command(epilog=CHECK_EXAMPLES, rich_help_panel=FILES)(check)
app.command(epilog=EXPLAIN_EXAMPLES, rich_help_panel=FILES)(explain)
app.command(epilog=RUN_EXAMPLES, rich_help_panel=SPARK)(run)
app.command(epilog=SERVE_EXAMPLES, rich_help_panel=SERVER)(serve)
app.command(epilog=SUBSCRIBE_EXAMPLES, rich_help_panel=SERVER)(subscribe)
app.command(epilog=PUBLISH_EXAMPLES, rich_help_panel=SERVER)(publish)
app.command(epilog=LISTEN_EXAMPLES, rich_help_panel=SERVER)(listen)
app.command(epilog=RENEW_EXAMPLES, rich_help_panel=SERVER)(renew)
app.command(epilog=UNSUBSCRIBE_EXAMPLES, rich_help_panel=SERVER)(unsubscribe)
app.add_typer(key, rich_help_panel=SERVER)
app.command(epilog="Example: harken algorithms --json", rich_help_panel=MORE)(algorithms)
app.command(epilog=SQL_EXAMPLES, rich_help_panel=MORE)(sql)
_WARM_UP_EXAMPLE = "Example, in a Dockerfile: RUN NUMBA_CACHE_DIR=/opt/kernels harken warm-up"
app.command("warm-up", epilog=_WARM_UP_EXAMPLE, rich_help_panel=MORE)(warm_up)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"harken {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Content-based publish/subscribe: find, for every event, the subscriptions that are true of it.

    A subscription is a condition such as  category = 'Toy' AND price < 5
    """


def main() -> None:
    """The program `harken`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Files and pipes are UTF-8 everywhere. A terminal keeps its encoding; what that lacks is escaped.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    # SIGTERM raises an exception, so that no half-written file is left behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(ExitCode.TERMINATED))
    app(prog_name="harken")
