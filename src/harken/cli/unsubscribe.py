"""`harken unsubscribe`: remove subscriptions from a server."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.command_session import session
from harken.cli.connecting import DEFAULT_SERVER, ApiKey, Server, Ticket, connected, kept, one_by_one
from harken.cli.options import Json, Verbose

EXAMPLES = """\b
Examples:
  harken unsubscribe alice
  harken unsubscribe alice bob --server http://prices:8080
"""


def unsubscribe(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Subscriptions, by their ids.", show_default=False)],
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    ticket: Ticket = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """End subscriptions, and forget their tickets."""
    with session(json, verbose) as screen, connected(server, api_key, with_tickets=ticket is None) as client:
        from harken.cli.tickets import TicketFile

        ended: list[str] = []

        def end(id: str) -> None:
            client.unsubscribe(id, ticket=ticket)
            ended.append(id)
            screen.aside({"kind": "unsubscribed", "id": id}, f"{id} is ended")

        try:
            one_by_one(screen, ids, end)
        finally:
            kept(lambda: TicketFile().forget(server, ended))
