"""A PostgreSQL server: the machine's own or, where there is none, one from Maven; and a client for it of a page.

The server from Maven comes without psql, so the client here speaks to either: plain queries, answers as text.
"""

from __future__ import annotations

import io
import os
import platform
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from services.maven import POSTGRESQL_SERVERS, jars_or_skip
from services.processes import free_port, running

_SECONDS = 60
_PROTOCOL = 3 << 16
_QUICK = ("fsync=off", "shared_buffers=16MB", "max_connections=20", "unix_socket_directories=")


class PostgresError(Exception):
    """The server rejected a query."""


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server that runs, with one empty database."""

    port: int
    user: str = "harken"
    password: str = "not-a-secret"
    database: str = "postgres"

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}"

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        """The rows that one or several statements return, every value as PostgreSQL writes it."""
        rows: list[tuple[str | None, ...]] = []
        greeting = struct.pack("!i", _PROTOCOL) + _strings("user", self.user, "database", self.database, "")
        to_send = [b"Q" + _counted(_strings(sql)), b"X" + _counted(b"")]
        address = ("127.0.0.1", self.port)
        with socket.create_connection(address, _SECONDS) as connection, connection.makefile("rb") as stream:
            connection.sendall(_counted(greeting))
            for kind, body in _messages(stream):
                if kind == b"R" and body == struct.pack("!i", 3):
                    connection.sendall(b"p" + _counted(_strings(self.password)))
                elif kind == b"Z":  # ready: at first for the query, then to part
                    connection.sendall(to_send.pop(0))
                elif kind == b"D":
                    rows.append(_row(body))
                elif kind == b"E":
                    raise PostgresError(_fields(body)["M"])
        return rows

    def answers(self) -> bool:
        try:
            return self.query("SELECT 1") == [("1",)]
        except (OSError, PostgresError):
            return False


@contextmanager
def running_postgres(*, of_machine: bool = True) -> Iterator[Postgres]:
    """The machine's server, if it has one and it is wanted, or Maven's. Skips the test if there is none."""
    with tempfile.TemporaryDirectory(prefix="harken-postgres-", ignore_cleanup_errors=True) as name:
        folder, server = Path(name), Postgres(free_port())
        account = _account(folder)
        programs = (machine_programs() if of_machine else None) or maven_programs(folder)
        (folder / "password").write_text(server.password)
        (folder / "password").chmod(0o644)
        data = ["-D", str(folder / "data")]
        identity = ["-U", server.user, "-A", "password", f"--pwfile={folder / 'password'}"]
        command = [str(programs / "initdb"), *data, *identity, "-E", "UTF8", "--no-locale", "--no-sync"]
        made = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True, **account)
        assert made.returncode == 0, made.stdout + made.stderr
        settings = [word for setting in _QUICK for word in ("-c", setting)]
        command = [str(programs / "postgres"), *data, "-h", "127.0.0.1", "-p", str(server.port), *settings]
        with running(command, folder / "log", server.answers, stop=signal.SIGINT, cwd=folder, **account):
            yield server


def machine_programs() -> Path | None:
    """The folder of the machine's initdb and postgres: that of the PATH, or the newest of Debian's."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: place.parent.name, reverse=True)
    return next((place for place in places if (place / "postgres").is_file() and (place / "initdb").is_file()), None)


def maven_programs(folder: Path) -> Path:
    """The same from Maven, laid out in the folder: a cache may be closed to the account that the server runs as."""
    package = POSTGRESQL_SERVERS.get(platform.machine()) if platform.system() == "Linux" else None
    if package is None:
        pytest.skip("there is no PostgreSQL server on this machine, and none for it on Maven")
    jar = next(jar for jar in jars_or_skip([package]) if jar.name.startswith("embedded-postgres-binaries"))
    with zipfile.ZipFile(jar) as archive:
        packed = archive.read(next(name for name in archive.namelist() if name.endswith(".txz")))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tape:
        tape.extractall(folder / "server", filter="data")
    return folder / "server" / "bin"


def _account(folder: Path) -> dict[str, Any]:
    """PostgreSQL rejects to run as root, so it runs as nobody then, and the folder is nobody's."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _strings(*texts: str) -> bytes:
    return b"".join(text.encode() + b"\0" for text in texts)


def _counted(body: bytes) -> bytes:
    return struct.pack("!i", len(body) + 4) + body


def _messages(stream: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    while head := stream.read(5):
        yield head[:1], stream.read(struct.unpack("!i", head[1:])[0] - 4)


def _row(body: bytes) -> tuple[str | None, ...]:
    values: list[str | None] = []
    stream = io.BytesIO(body[2:])
    while head := stream.read(4):
        length = struct.unpack("!i", head)[0]
        values.append(None if length < 0 else stream.read(length).decode())
    return tuple(values)


def _fields(body: bytes) -> dict[str, str]:
    return {text[:1].decode(): text[1:].decode() for text in body.split(b"\0") if text}
