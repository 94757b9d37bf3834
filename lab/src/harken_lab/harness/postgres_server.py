"""A PostgreSQL server of the machine, started for a measurement and stopped after it, in a folder of its own.

The server listens on a socket in that folder, which only this account can enter: it needs neither port nor password.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harken.errors import StoreUnavailableError
from harken.relational.database_session import open_database
from harken_lab.harness.result_files import Unavailable

_START_SECONDS = 60
_STOP_SECONDS = 20
_SETTINGS = ("fsync=off", "listen_addresses=", "max_connections=20", "temp_buffers=256MB", "work_mem=64MB")
"""`temp_buffers` hold the tables of a session, so that PostgreSQL works in memory as the other databases do."""


@contextmanager
def running_postgres() -> Iterator[str]:
    """Run a server until the end of the block, and yield its URL. Raises Unavailable, with the reason."""
    programs = _programs()
    if programs is None:
        raise Unavailable("there is no PostgreSQL server on this machine (`initdb` and `postgres`)")
    with tempfile.TemporaryDirectory(prefix="harken-postgres-", ignore_cleanup_errors=True) as name:
        folder, account = Path(name), _account(Path(name))
        data = ["-D", str(folder / "data")]
        command = [
            str(programs / "initdb"),
            *data,
            "-U",
            "harken",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "--no-sync",
        ]
        result = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True, **account)
        if result.returncode:
            raise Unavailable(f"PostgreSQL's `initdb` failed: {result.stderr.strip()[-200:]}")
        settings = [word for each in (*_SETTINGS, f"unix_socket_directories={folder}") for word in ("-c", each)]
        with (folder / "log").open("wb") as log:
            command = [str(programs / "postgres"), *data, *settings]
            server = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **account)
        try:
            url = f"postgresql://harken@{quote(name, safe='')}/postgres"
            _wait(server, url, folder / "log")
            yield url
        finally:
            _stop(server)


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    database = open_database(url)
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            database.connect()
        except StoreUnavailableError:
            if server.poll() is not None or time.monotonic() > deadline:
                reason = log.read_text(errors="replace").strip()[-200:]
                raise Unavailable(f"PostgreSQL did not start: {reason}") from None
            time.sleep(0.05)
        else:
            database.close()
            return


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGINT)
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _programs() -> Path | None:
    """The folder of `initdb` and `postgres`: the one on the PATH, or the newest of Debian's folders."""
    initdb = shutil.which("initdb")
    folders = [Path(initdb).resolve().parent] if initdb else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_release, reverse=True)
    return next((each for each in folders if (each / "postgres").is_file() and (each / "initdb").is_file()), None)


def _release(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


def _account(folder: Path) -> dict[str, Any]:
    """Arguments for `subprocess`: for root an unprivileged account, which then owns the folder, else none.

    PostgreSQL does not run as root.
    """
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam("nobody")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
