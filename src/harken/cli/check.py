"""`harken check`: every fault of a schema, of subscriptions and of events."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.options import FORMATS, EventFormat, Json, SchemaFile, Verbose
from harken.cli.session import session

EXAMPLES = """\b
Examples:
  harken check --subscriptions subscriptions.jsonl --schema schema.toml
  harken check --events events.csv --json

\b
With --json there is an object a line for every fault and warning. Its `kind`
is schema, subscription or event, its `severity` is fault or warning. The last
line is of kind summary.
"""


def check(
    subscriptions: Annotated[
        str | None, typer.Option("--subscriptions", "-s", metavar="FILE", help=f"{FORMATS}, with id and where.")
    ] = None,
    events: Annotated[str | None, typer.Option("--events", "-e", metavar="FILE", help=f"{FORMATS}.")] = None,
    schema: SchemaFile = None,
    format: EventFormat = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """List all faults of subscriptions, events or a schema.

    Each fault has its place and, where there is one, a hint. Subscriptions and events are checked against the schema
    if it is given; if it has faults itself, they are checked without it. The exit code is 1 if there are faults.
    """
    with session(json, verbose) as screen:
        if subscriptions is None and events is None and schema is None:
            raise typer.BadParameter("there is nothing to check", param_hint="--subscriptions, --events or --schema")
        if subscriptions == events == "-":
            raise typer.BadParameter("standard input can be read only once", param_hint="-")
        from harken.cli.checking import Checking

        checking = Checking(screen)
        known = None if schema is None else checking.schema(schema)
        if subscriptions is not None:
            checking.subscriptions(subscriptions, known)
        if events is not None:
            checking.events(events, format, known)
        checking.show_summary()
        raise typer.Exit(checking.exit_code)
