"""`harken listen`: print notifications of subscriptions as they come."""

from __future__ import annotations

import sys
from contextlib import closing
from itertools import islice
from typing import Annotated

import typer

from harken.cli.command_session import session
from harken.cli.connecting import DEFAULT_SERVER, ApiKey, Server, Ticket, connected
from harken.cli.options import Json, Verbose

EXAMPLES = """\b
Examples:
  harken listen alice
  harken listen alice bob --after 0 --count 100
  harken listen alice --once --server http://prices:8080 --ticket TICKET
"""


def listen(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Subscriptions, by their ids.", show_default=False)],
    after: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Begin after the notification of this id, not now; 0: with the first."),
    ] = None,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="End after this many notifications.", show_default=False)
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after the first notification.")] = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    ticket: Ticket = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Print notifications of subscriptions as they come.

    There is a JSON line for each, until Ctrl-C. A lost connection is opened again, and continues where it broke off.
    """
    if once and count is not None:
        raise typer.BadParameter("give one of them", param_hint="--once or --count")
    with session(json, verbose) as screen, connected(server, api_key, with_tickets=ticket is None) as client:
        wanted = 1 if once else count
        with closing(client.listen(*ids, after=after, ticket=ticket)) as notifications:
            for notification in islice(notifications, wanted):
                screen.line(notification.to_dict())
                sys.stdout.flush()
