"""The tickets of the command line, in a file only its owner may read: $XDG_STATE_HOME/harken/tickets.json.

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
        with self._file_errors():
            return self._read().get(canonical(server), {})

    def keep(self, server: str, tickets: Mapping[str, str]) -> None:
        """Add tickets for a server. Raises SourceError."""
        self._change(server, lambda kept: kept | dict(tickets))

    def forget(self, server: str, ids: Iterable[str]) -> None:
        """Remove the tickets of these subscriptions. Raises SourceError."""
        gone = set(ids)
        if gone & self.of(server).keys():
            self._change(server, lambda kept: {id: ticket for id, ticket in kept.items() if id not in gone})

    def _change(self, server: str, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        with self._file_errors():
            self.path.parent.mkdir(mode=_FOLDER_OF_OWNER, parents=True, exist_ok=True)
            with locked(self.path.with_suffix(".lock")):
                every = self._read()
                every[canonical(server)] = change(every.get(canonical(server), {}))
                self._write({server: tickets for server, tickets in every.items() if tickets})

    def _read(self) -> Tickets:
        try:
            tickets = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            tickets = None
        if not isinstance(tickets, dict) or not all(isinstance(each, dict) for each in tickets.values()):
            raise SourceError(f"{self.path} is damaged", hint="move it away: subscriptions can be made again")
        return tickets

    def _write(self, tickets: Tickets) -> None:
        with replacing(self.path, durable=True) as stream:
            os.fchmod(stream.fileno(), _OWNER_ONLY)  # before anything is written
            stream.write(json.dumps(tickets, ensure_ascii=False, indent=1).encode() + b"\n")

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        """Turns an OSError into a SourceError with the path."""
        try:
            yield
        except OSError as error:
            raise SourceError(f"{self.path} cannot be used: {error.strerror or error}") from error


def state_folder() -> Path:
    """The folder for state that survives a restart, after the XDG base directory specification."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".local" / "state") / "harken"


def canonical(server: str) -> str:
    """The address of a server in its canonical spelling."""
    parts = urlsplit(server)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"
