"""`harken serve` in a process of its own, which a test may kill, stop and start again on the same port."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from services.postgres import Postgres

_START_SECONDS = 120.0
STOPPED = 143
"""The exit code of a server that was told to stop."""
_STOP_SECONDS = 60.0
_PORTS = range(20_000, 32_000)
"""Below those that the system gives to whoever connects: nobody takes the port of a server that is dead for a while."""


class ServerProcess:
    """A server on one store. It is started by `start`, or by `serving`."""

    def __init__(self, folder: Path, *options: str, store: str | None = None) -> None:
        self.port = _steady_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = str(folder / "harken.db") if store is None else store
        self.snapshots = folder / f"snapshots-{self.port}"
        self.options = options
        self._log = folder / f"server-{self.port}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, until_ready: bool = True) -> None:
        """Start the process, and wait until it answers."""
        places = ["--port", str(self.port), "--store", self.store, "--snapshot", str(self.snapshots)]
        command = [sys.executable, "-m", "harken", "serve", *places, *self.options]
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        if until_ready:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        try:
            wait_until(self._is_ready, _START_SECONDS, every=0.01)
        except AssertionError:
            raise AssertionError(f"the server did not start:\n{self.log()}") from None

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"the server ended:\n{self.log()}"
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
                return b" 200 " in connection.recv(100)
        except OSError:
            return False

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it was not started"
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End the process as if its power was cut."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Tell the process to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)

    def resident_bytes(self) -> int:
        """The memory that the process has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-6_000:]

    @contextmanager
    def client(self, timeout: float = 60.0) -> Iterator[httpx.Client]:
        with httpx.Client(base_url=self.url, timeout=timeout, trust_env=False) as found:
            yield found


@contextmanager
def serving(folder: Path, *options: str, store: str | None = None) -> Iterator[ServerProcess]:
    """A server that runs, and is dead when the block ends."""
    server = ServerProcess(folder, *options, store=store)
    with ending(server):
        server.start()
        yield server


@contextmanager
def ending(*servers: ServerProcess) -> Iterator[None]:
    """Have no process of these servers left when the block ends."""
    try:
        yield
    finally:
        for each in servers:
            if each.is_running:
                each.kill()


def set_options(**settings: object) -> list[str]:
    """Settings as options of the command."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def database_url(postgres: Postgres) -> str:
    """The URL of a PostgreSQL database, in which there is no store any more."""
    postgres.query("DROP SCHEMA IF EXISTS harken CASCADE")
    return f"postgresql://{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}"


def wait_until(holds: Callable[[], Any], seconds: float = 60.0, every: float = 0.02) -> None:
    """Wait until something holds, and fail if it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not become true within {seconds:g} s"
        time.sleep(every)


# What is asked of a server


def subscribe(client: httpx.Client, where: str, id: str | None = None, **more: Any) -> dict[str, Any]:
    """Take a subscription. Returns the answer, with its ticket."""
    answer = client.post("/subscriptions", json={"where": where, **({} if id is None else {"id": id}), **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ticket_of(*taken: Mapping[str, Any]) -> dict[str, str]:
    """The header that opens subscriptions."""
    return {"Harken-Ticket": ",".join(each["ticket"] for each in taken)}


def publish(client: httpx.Client, *events: Mapping[str, Any]) -> None:
    answer = client.post("/events", json=events)
    assert answer.status_code == 202, answer.text
    assert answer.json()["accepted"] == len(events)


def matches(client: httpx.Client, *events: Mapping[str, Any]) -> list[set[str]]:
    """What events would match."""
    answer = client.post("/events?dry_run=true", json=events)
    assert answer.status_code == 200, answer.text
    return [set(each) for each in answer.json()["matches"]]


def notifications(client: httpx.Client, *taken: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All notifications of subscriptions, by cursor."""
    found: list[dict[str, Any]] = []
    cursor = "0"
    while True:
        asked: dict[str, Any] = {"subscription": [each["id"] for each in taken], "after": cursor, "limit": 1_000}
        answer = client.get("/notifications", params=asked, headers=ticket_of(*taken))
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["notifications"]
        if not page["notifications"]:
            return found
        cursor = page["next"]


def _steady_port() -> int:
    for _ in range(100):
        port = random.SystemRandom().choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("there is no free port")
