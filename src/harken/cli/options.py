"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.completion import format_names

_EVENTS, _SUBSCRIPTIONS = "Events", "Subscriptions"

FORMATS = "JSON lines, CSV, Parquet or Arrow"
FILES = f"{FORMATS}: files, folders or quoted patterns"
EVENT_FILES = "JSON lines, CSV, Parquet, Arrow or XML: files, folders or quoted patterns"

Json = Annotated[bool, typer.Option("--json", help="Write JSON lines, also to standard error.")]
Verbose = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, show_default=False, help="Log to standard error; twice for more."),
]
SchemaFile = Annotated[
    str | None,
    typer.Option(
        "--schema", metavar="FILE", help="A schema (TOML) that the input has to fit.", rich_help_panel=_EVENTS
    ),
]
Operators = Annotated[
    list[str] | None,
    typer.Option(
        "--operators",
        metavar="MODULE:NAME",
        help="Operators that subscriptions call; also the name of an entry point. Repeatable.",
        rich_help_panel=_SUBSCRIPTIONS,
    ),
]
EventFormat = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The format of the events, if the file's ending does not tell.",
        autocompletion=format_names,
        rich_help_panel=_EVENTS,
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="TAG",
        help="Split XML into a document for every element of this name.",
        rich_help_panel=_EVENTS,
    ),
]
