"""`harken check`: every fault of a schema, of subscriptions and of events."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.command_session import session
from harken.cli.options import EVENT_FILES, FILES, EventFormat, Json, Operators, SchemaFile, Split, Verbose

EXAMPLES = """\b
Examples:
  harken check --subscriptions subscriptions.jsonl --schema schema.toml
  harken check --events docs.xml --split dataset --subscriptions xpaths.jsonl
  harken check --events monday.csv --events 'older/*.csv.gz' --json

\b
Equal warnings about several subscriptions are shown as one, with the first of
them. -v and --json list all.

\b
With --json there is an object a line for every fault and warning. Its `kind`
is schema, subscription or event, its `severity` is fault or warning. The last
line is of kind summary.
"""


def check(
    subscriptions: Annotated[
        list[str] | None,
        typer.Option(
            "--subscriptions",
            "-s",
            metavar="FILE",
            help=f"{FILES}, with the fields id and where; or the folder of a saved engine.",
        ),
    ] = None,
    events: Annotated[
        list[str] | None, typer.Option("--events", "-e", metavar="FILE", help=f"{EVENT_FILES}; - is standard input.")
    ] = None,
    schema: SchemaFile = None,
    format: EventFormat = None,
    split: Split = None,
    operators: Operators = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """List all faults of subscriptions, events or a schema.

    Each fault has its place and, where there is one, a hint. Subscriptions and events are checked against the schema
    if it is given; if it has faults itself, they are checked without it. A saved engine has its own schema. The exit
    code is 1 if there are faults.
    """
    with session(json, verbose) as screen:
        if not subscriptions and not events and schema is None:
            raise typer.BadParameter("there is nothing to check", param_hint="--subscriptions, --events or --schema")
        if [*(subscriptions or []), *(events or [])].count("-") > 1:
            raise typer.BadParameter("standard input can be read only once", param_hint="-")
        from harken.cli.checking import Checking
        from harken.cli.inputs import loaded_operators

        checking = Checking(screen, lists_all=json or verbose > 0, operators=loaded_operators(operators))
        if schema is not None:
            checking.schema(schema)
        if subscriptions:
            checking.subscriptions(subscriptions)
        if events:
            checking.events(events, format, split)
        checking.show_summary()
        raise typer.Exit(checking.exit_code)
