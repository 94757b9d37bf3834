"""`harken sql`: subscriptions as SQL tables and a query, for use elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.command_session import session
from harken.cli.options import FILES, Json, SchemaFile, Verbose
from harken.cli.screen import Screen, counted, printable_lines

if TYPE_CHECKING:
    from harken.relational.printed import Script

EXAMPLES = """\b
Examples:
  harken sql subscriptions.jsonl --dialect postgres > matching.sql
  harken sql subscriptions.jsonl --dialect spark --rows 0

\b
The script makes three tables. Fill harken_events with events, a row each:
harken_attributes tells which attribute each of its columns is, and how it is
stored. The query, which is last, gives pairs of an event and the id of a
subscription. Where `exact` is 0, SQL cannot say all that the subscription
asks for: it may be true of the event.
"""

_DIALECTS = ("spark", "postgres", "duckdb", "sqlite")


def sql(
    subscriptions: Annotated[
        list[str], typer.Argument(metavar="SUBSCRIPTIONS", help=f"{FILES}, with the fields id and where.")
    ],
    dialect: Annotated[
        str,
        typer.Option(metavar="NAME", help=f"One of {', '.join(_DIALECTS)}.", autocompletion=lambda: list(_DIALECTS)),
    ] = "duckdb",
    rows: Annotated[
        int, typer.Option(metavar="N", min=0, help="At most this many rows of subscriptions are written.")
    ] = 100_000,
    schema: SchemaFile = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Print subscriptions as tables and a query of SQL.

    The algorithm relational_anchored does the same inside a database. Invalid subscriptions are reported on standard
    error, and then the exit code is 1.
    """
    with session(json, verbose) as screen:
        if dialect not in _DIALECTS:
            raise typer.BadParameter(f"it is one of {', '.join(_DIALECTS)}, not {dialect}", param_hint="--dialect")
        from harken.databases.dialects import DIALECTS
        from harken.relational.printed import Script

        script = Script()
        faults = _read(screen, script, subscriptions, schema)
        for statement in script.statements(DIALECTS[dialect], rows):
            if json:
                screen.line({"kind": "statement", "sql": statement})
            else:
                print(f"{statement};\n")
        if len(script) > rows:
            text = f"{len(script) - rows:,} of {counted(len(script), 'row')} were left out: --rows is {rows:,}"
            screen.aside({"kind": "summary", "rows": len(script), "written": rows}, text)
        if faults:
            raise typer.Exit(1)


def _read(screen: Screen, script: Script, names: list[str], schema: str | None) -> int:
    """Add the subscriptions of files to the script. Returns the number rejected."""
    from harken.cli.inputs import SubscriptionFiles, event_files
    from harken.errors import CapabilityError, HarkenError
    from harken.language.compiled import Compiler
    from harken.live.subscriptions import Fault
    from harken.matchers.kinds import FLAT, PROGRAMS
    from harken.schema import load_schema

    compiler = Compiler(None if schema is None else load_schema(schema))
    faults = 0
    for record in SubscriptionFiles(event_files(names, None)):
        if isinstance(record, Fault):
            fault = record
        else:
            try:
                compiled = compiler.compile(record.where, record.language)
                if compiled.plan.kind not in (FLAT, PROGRAMS):
                    raise CapabilityError("the subscription needs more than flat attributes, which SQL cannot express")
                script.add(record.id, compiled.normal_form)
                continue
            except HarkenError as error:
                fault = record.fault(error)
        faults += 1
        named = "" if fault.id is None else f"{fault.id}: "
        screen.aside({"kind": "subscription", **fault.to_dict()}, printable_lines(f"{named}{fault.error}"))
    return faults
