"""What the commands that talk to a server share: options, a client with the stored tickets, and a loop over ids."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.command_session import show_error
from harken.cli.exits import ExitCode
from harken.cli.screen import Screen
from harken.errors import SourceError

if TYPE_CHECKING:
    from harken.client import Client, ServerError

Server = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="HARKEN_SERVER", help="Where `harken serve` runs.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="KEY",
        envvar="HARKEN_API_KEY",
        help="An API key, if the server requires one.",
        show_default=False,
    ),
]
Ticket = Annotated[
    str | None,
    typer.Option(
        "--ticket",
        metavar="TICKET",
        envvar="HARKEN_TICKET",
        help="The ticket, if `harken subscribe` was not run here.",
        show_default=False,
    ),
]
DEFAULT_SERVER = "http://127.0.0.1:8080"

_UNAUTHORIZED = 401

log = logging.getLogger(__name__)


@contextmanager
def connected(server: str, api_key: str | None, *, with_tickets: bool = False) -> Iterator[Client]:
    """A client of a server, with the stored tickets if it needs them. Raises HarkenError."""
    from harken.cli.tickets import TicketFile
    from harken.client import Client, ServerError

    tickets = TicketFile().of(server) if with_tickets else {}
    with Client(server, api_key=api_key, tickets=tickets) as client:
        try:
            yield client
        except ServerError as error:
            raise _for_people(error) from None


def one_by_one(screen: Screen, ids: Sequence[str], act: Callable[[str], None]) -> None:
    """Call `act` for each id. Rejections of the server are shown, do not stop the loop, and decide the exit code."""
    from harken.client import ServerError

    rejected = 0
    for id in ids:
        try:
            act(id)
        except ServerError as error:
            rejected += 1
            if len(ids) > 1:
                error.message = f"{id}: {error.message}"
            show_error(screen, _for_people(error))
    if rejected:
        raise typer.Exit(ExitCode.UNUSABLE if rejected == len(ids) else ExitCode.FAULTS)


def kept(change: Callable[[], None]) -> bool:
    """Change the file of tickets; return whether that worked. Nothing is raised: the command itself has succeeded."""
    try:
        change()
    except SourceError as error:
        log.warning("%s", error)
        return False
    return True


def _for_people(error: ServerError) -> ServerError:
    """The error; if a ticket or key is missing, with a hint at options instead of headers."""
    from harken.cli.tickets import TicketFile

    if error.status == _UNAUTHORIZED:
        error.hint = f"give it as --ticket or --api-key; tickets that `harken subscribe` got are in {TicketFile().path}"
    return error
