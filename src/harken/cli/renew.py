"""`harken renew`: extend subscriptions of a server."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.command_session import session
from harken.cli.connecting import DEFAULT_SERVER, ApiKey, Server, Ticket, connected, one_by_one
from harken.cli.durations import seconds_option
from harken.cli.options import Json, Verbose

EXAMPLES = """\b
Examples:
  harken renew alice
  harken renew alice bob --valid-for 7d
"""


def renew(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Subscriptions, by their ids.", show_default=False)],
    valid_for: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time from now until they expire: 30m, 12h, 7d. A day unless the server says otherwise.",
        ),
    ] = None,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    ticket: Ticket = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Extend subscriptions before they expire. An expired subscription is gone."""
    seconds = seconds_option(valid_for, "--valid-for")
    with session(json, verbose) as screen, connected(server, api_key, with_tickets=ticket is None) as client:
        from harken.client.answers import in_text

        def prolong(id: str) -> None:
            expires_at = in_text(client.renew(id, seconds, ticket=ticket).expires_at)
            if screen.is_table:
                screen.show(f"{id} lives until {expires_at}")
            else:
                screen.line({"id": id, "expires_at": expires_at})

        one_by_one(screen, ids, prolong)
