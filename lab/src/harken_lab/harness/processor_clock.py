"""Processor time of this process and of a database server's sessions: other load on the machine disturbs it less."""

from __future__ import annotations

from pathlib import Path
from time import process_time

from harken.relational.database_session import open_database


class ProcessorClock:
    """Counts the processor time of this process and, given a server's URL, that of the server's sessions.

    The clock's own session, by which it lists the others, does not count.
    """

    def __init__(self, url: str | None = None) -> None:
        self._server = None if url is None else open_database(url)
        self._sessions: list[Path] = []
        if self._server is not None:
            self._server.connect()

    def version(self) -> str | None:
        """The version of the server, if there is one."""
        if self._server is None:
            return None
        number = int(self._server.integers("SELECT current_setting('server_version_num')::int8")[0, 0])
        return f"{number // 10_000}.{number % 10_000}"

    def find_sessions(self) -> None:
        """From now on count the sessions that are open at this moment."""
        if self._server is not None:
            query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            self._sessions = [Path(f"/proc/{pid}/schedstat") for pid in self._server.integers(query)[:, 0].tolist()]

    def now(self) -> float:
        """Seconds of processor time. Only differences between two calls mean something."""
        return process_time() + sum(int(path.read_text().split()[0]) for path in self._sessions) / 1e9

    def close(self) -> None:
        """Close the connection to the server, if there is one."""
        if self._server is not None:
            self._server.close()
