"""`harken publish`: send events to a server."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.command_session import session
from harken.cli.connecting import DEFAULT_SERVER, ApiKey, Server, connected
from harken.cli.exits import ExitCode
from harken.cli.options import EVENT_FILES, EventFormat, Json, Split, Verbose

EXAMPLES = """\b
Examples:
  harken publish events.jsonl
  harken publish --event-json '{"category": "Toy", "price": 3.5}'
  harken publish monday.jsonl.gz tuesday/ 'old/*.csv' --strict
  harken publish docs.xml --split dataset --dry-run
  tail -f log.jsonl | harken publish - --batch-size 1
"""


def publish(
    events: Annotated[
        list[str] | None, typer.Argument(metavar="EVENTS", help=f"{EVENT_FILES}; - is standard input.")
    ] = None,
    event_json: Annotated[
        list[str] | None, typer.Option(metavar="JSON", help="Publish this event, and no EVENTS.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Publish nothing: show the subscriptions that match.")
    ] = False,
    rejected: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write everything rejected to this file, as JSON lines.")
    ] = None,
    format: EventFormat = None,
    split: Split = None,
    batch_size: Annotated[int, typer.Option(metavar="N", min=1, help="Number of events sent together.")] = 1_000,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if any event was rejected.")] = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Publish events to a server.

    The server notifies the subscriptions that are true of them. Invalid events are rejected and reported, the others
    published. A batch whose answer is lost is sent again, and counts once. A summary goes to standard error.
    """
    if (not events) is (not event_json):
        raise typer.BadParameter("give one of them", param_hint="EVENTS or --event-json")
    with session(json, verbose) as screen, connected(server, api_key) as client:
        from harken.cli.inputs import event_files
        from harken.cli.publishing import events_of_files, events_of_texts, run

        if event_json:
            source = events_of_texts(event_json)
        else:
            source = events_of_files(event_files(events or [], format), format, split)
        summary = run(client, source, batch_size, rejected, screen, dry_run=dry_run)
        screen.aside(summary.to_dict(), str(summary))
        if summary.accepted + summary.duplicates == 0:
            raise typer.Exit(ExitCode.UNUSABLE)
        if strict and summary.rejected:
            raise typer.Exit(ExitCode.FAULTS)
