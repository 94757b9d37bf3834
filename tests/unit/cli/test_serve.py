"""`harken serve` as a command: what it says, where it listens, and its exit codes when it cannot."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from .conftest import PROGRAM, Program, Run

pytestmark = pytest.mark.seconds

SCHEMA = '[attributes]\nprice = "float"\n'
SECONDS = 120.0
"""After this a server hangs. A busy machine takes long to import what a server needs: httpx's 5 s are not enough."""


def test_the_settings_are_listed(run: Run) -> None:
    result = run("serve", "--set", "help")
    assert result.exit_code == 0
    assert re.search(r"^max_body_bytes +33,554,432$", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "max_stream=1"], "did you mean `max_streams`"),
        (["--set", "max_streams=many"], "must be a number"),
        (["--allow-webhooks-to", "here"], "not a network"),
        (["--store", "NOWHERE/harken.db"], "there is no folder for the store"),
        (["--store", "mysql://host/db"], "`mysql` names no store"),
        (["--schema", "NOWHERE/schema.toml"], "schema.toml"),
        (["--operators", "no.such:thing"], "no.such"),
        (["--host", "203.0.113.7"], "the allowed names are missing"),
        (["--host", "203.0.113.7", "--allowed-host", "here"], "cannot listen on 203.0.113.7"),
        (["--allowed-host", "http://here"], "not the name of a host"),
    ],
)
def test_a_server_that_cannot_start_says_why(program: Program, tmp_path: Path, words: list[str], told: str) -> None:
    given = [word.replace("NOWHERE", str(tmp_path / "nowhere")) for word in words]
    result = program("serve", "--port", "0", *given, cwd=tmp_path)
    assert result.returncode == 3, result.stderr
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_that_is_taken(program: Program, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = program("serve", "--port", taken.getsockname()[1], "--store", tmp_path / "harken.db")
    assert result.returncode == 3
    assert "Address already in use" in result.stderr


def test_a_store_is_served_once_and_keeps_its_schema(program: Program, tmp_path: Path) -> None:
    store = tmp_path / "harken.db"
    first, wider, other = (tmp_path / f"{name}.toml" for name in ("first", "wider", "other"))
    first.write_text(SCHEMA)
    wider.write_text(SCHEMA + 'weight = "float"\n')
    other.write_text(SCHEMA.replace("float", "string"))

    # As a script starts it in the background: Python then installs no handler of SIGINT, and the server still has one.
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    *python, main = PROGRAM

    def serve(schema: Path) -> subprocess.Popen[str]:
        command = [
            *python,
            ignoring + main,
            "serve",
            "--json",
            "--port",
            "0",
            "--store",
            str(store),
            "--schema",
            str(schema),
        ]
        return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def wait_until_ready(process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        while "ready with" not in (line := process.stderr.readline()):
            assert line, "the server ended"

    process = serve(first)
    try:
        assert process.stderr is not None
        url = json.loads(process.stderr.readline())["url"]
        assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*", url), "where it really listens"
        assert httpx.get(f"{url}/healthz", timeout=SECONDS).status_code == 200
        wait_until_ready(process)
        again = program("serve", "--port", "0", "--store", store)
        assert again.returncode == 3
        assert "is served already" in again.stderr
        weight = {"name": "weight", "domain": "float"}
        assert httpx.post(f"{url}/schema/attributes", json=weight, timeout=SECONDS).status_code == 201
        process.send_signal(signal.SIGINT)
        log = process.stderr.read()
        assert process.wait(SECONDS) == 130
        assert all(json.loads(line) for line in log.splitlines()), "its log is JSON, a line each"
        assert any('"path": "/schema/attributes"' in line for line in log.splitlines())
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
    result = program("serve", "--port", "0", "--store", store, "--schema", other)
    assert result.returncode == 3
    assert "does not contain" in result.stderr
    for same in (first, wider):
        process = serve(same)
        assert process.stderr is not None
        with process.stderr:
            wait_until_ready(process)  # the schema of the file is a part of the store's
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
        assert process.wait(SECONDS) == 143
