"""What the tests of the command line share: a way to run it, in this process or in its own, and some input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harken.cli import app
from services.stand import Stand

PROGRAM = [sys.executable, "-c", "from harken.cli import main; main()"]

EVENTS: list[dict[str, Any]] = [
    {"order": "A1", "category": "Toy", "price": 3.5},
    {"order": "A2", "category": "Lamp", "price": 30},
    {"order": "A3", "category": "Toy", "price": 7},
]
SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "alice", "where": "category = 'Toy' AND price < 5", "owner": "Alice", "channel": "mail"},
    {"id": "bob", "where": "price > 5", "channel": "sms"},
]
PAIRS = [(0, "alice"), (1, "bob"), (2, "bob")]

Run = Callable[..., Result]
Program = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]


def lines(text: str) -> list[dict[str, Any]]:
    """The objects of JSON lines. Whatever is not JSON fails."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def no_colours_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that run tests like to force colours."""
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run() -> Run:
    """Run a command in this process."""
    return lambda *arguments, **given: CliRunner().invoke(app, [str(each) for each in arguments], **given)


@pytest.fixture
def program() -> Program:
    """Run a command in a process of its own."""

    def run(*arguments: object, env: dict[str, str] | None = None, **given: Any) -> subprocess.CompletedProcess[str]:
        command = [*PROGRAM, *map(str, arguments)]
        environment = os.environ | (env or {})
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=60, **given
        )

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write records as JSON lines, or a text as it is."""

    def write(name: str, content: list[dict[str, Any]] | str) -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str) else "".join(json.dumps(each) + "\n" for each in content)
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the file of tickets, for commands in this process and in others."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("HARKEN_API_KEY", "HARKEN_TICKET", "HARKEN_WEBHOOK_SECRET"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "state" / "harken"


@pytest.fixture
def stand(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """A server that commands talk to, and that answers what it is told to."""
    with Stand() as stand:
        monkeypatch.setenv("HARKEN_SERVER", stand.url)
        yield stand


@pytest.fixture
def events(write: Write) -> Path:
    return write("events.jsonl", EVENTS)


@pytest.fixture
def subscriptions(write: Write) -> Path:
    return write("subscriptions.jsonl", SUBSCRIPTIONS)
