"""The tickets that the command line has got, in a file that nobody else may read: $XDG_STATE_HOME/harken/tickets.json.

They are kept by server and by id, so that `harken listen alice` works after `harken subscribe … --id alice`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from harken.errors import SourceError
from harken.versions.atomic import replacing
from harken.versions.locks import locked

Tickets = dict[str, dict[str, str]]
"""Tickets by id, by server."""

_OWNER_ONLY, _FOLDER_OF_OWNER = 0o600, 0o700


class TicketFile:
    """Reads and changes the file. Processes may do so at the same time."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = state_folder() / "tickets.json" if path is None else path

    def of(self, server: str) -> dict[str, str]:
        """The tickets for a server, by id. Raises SourceError."""
        with self._told():
            return self._read().get(canonical(server), {})

    def keep(self, server: str, tickets: Mapping[str, str]) -> None:
        """Add tickets for a server. Raises SourceError."""
        self._change(server, lambda known: known | dict(tickets))

    def forget(self, server: str, ids: Iterable[str]) -> None:
        """Remove the tickets of these subscriptions. Raises SourceError."""
        gone = set(ids)
        if gone & self.of(server).keys():
            self._change(server, lambda known: {id: ticket for id, ticket in known.items() if id not in gone})

    def _change(self, server: str, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        with self._told():
            self.path.parent.mkdir(mode=_FOLDER_OF_OWNER, parents=True, exist_ok=True)
            with locked(self.path.with_suffix(".lock")):
                every = self._read()
                every[canonical(server)] = change(every.get(canonical(server), {}))
                self._write({server: tickets for server, tickets in every.items() if tickets})

    def _read(self) -> Tickets:
        try:
            found = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
            raise SourceError(f"{self.path} is damaged", hint="move it away: subscriptions can be made anew")
        return found

    def _write(self, tickets: Tickets) -> None:
        with replacing(self.path, durable=True) as stream:
            os.fchmod(stream.fileno(), _OWNER_ONLY)  # before there is anything to read in it
            stream.write(json.dumps(tickets, ensure_ascii=False, indent=1).encode() + b"\n")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SourceError(f"{self.path} cannot be used: {error.strerror or error}") from error


def state_folder() -> Path:
    """Where programs keep what should survive a restart, after the XDG base directory specification."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".local" / "state") / "harken"


def canonical(server: str) -> str:
    """One spelling of the address of a server."""
    parts = urlsplit(server)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"
