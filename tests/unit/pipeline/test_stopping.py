"""`harken run` in a process of its own, which is told to end: alone, and with its whole process group, Java too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from unit.deadline import without_hanging

pytestmark = pytest.mark.processes

# A shell has what it starts in the background ignore SIGINT, and who runs the tests hands that on.
HEED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
COMMAND = [sys.executable, "-c", f"{HEED}; import sys; from harken.cli import main; sys.argv[0] = 'harken'; main()"]
STREAM = """\
mode = "stream"
checkpoint = "state"
trigger = "1 second"
[source]
format = "rate"
rows_per_second = 10
[subscriptions]
path = "subscriptions.jsonl"
[[sink]]
format = "json"
path = "out"
"""
BATCH = """\
[source]
format = "json"
path = "events.jsonl"
columns = "id STRING, price DOUBLE"
event_id = "id"
[subscriptions]
path = "subscriptions.jsonl"
[match]
operators = ["blocking:blocks"]
[[sink]]
format = "json"
path = "out"
"""
OPERATOR = """\
import pathlib, time
import harken

@harken.operator(cost=1)
def blocks(event, folder: str) -> bool:
    pathlib.Path(folder, "begun").touch()
    time.sleep(600)
    return True
"""


def one(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)


def group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGTERM)


def terminal(process: subprocess.Popen[str]) -> None:
    """Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)


@contextmanager
def running(folder: Path, pipeline: str, where: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "pipeline.toml").write_text(pipeline)
    (folder / "events.jsonl").write_text('{"id": "a", "price": 1}\n' * 100)
    (folder / "subscriptions.jsonl").write_text(json.dumps({"id": "all", "where": where}))
    (folder / "blocking.py").write_text(OPERATOR)
    command = [*COMMAND, "run", "pipeline.toml", "--json"]
    with (
        without_hanging(),
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def unexpected(folder: Path) -> list[str]:
    """What stands on standard error besides JSON lines and the warnings that Java begins with."""
    expected = ("WARNING: ", '{"kind": "spark"', '{"kind": "log"')
    return [line for line in (folder / "log").read_text().splitlines() if not line.startswith(expected)]


@pytest.mark.parametrize("ended", [pytest.param(one, marks=pytest.mark.slow), group])
def test_a_stream_ends_after_the_running_batch(tmp_path: Path, ended: Callable[[subprocess.Popen[str]], None]) -> None:
    with running(tmp_path, STREAM, "value >= 0") as process:
        assert process.stdout is not None
        while json.loads(process.stdout.readline())["kind"] != "batch":
            pass
        ended(process)
        *_, last = process.stdout.read().splitlines()
        assert process.wait() == 0
    assert json.loads(last)["kind"] == "end"
    assert unexpected(tmp_path) == []
    batches = tmp_path / "state/batches"
    assert len(list(batches.glob("*/begun.json"))) == len(list(batches.glob("*/done.json"))) >= 1


@pytest.mark.parametrize(
    ("ended", "code"),
    [(one, 143), pytest.param(group, 143, marks=pytest.mark.slow), pytest.param(terminal, 130, marks=pytest.mark.slow)],
)
def test_a_batch_ends_at_once(tmp_path: Path, ended: Callable[[subprocess.Popen[str]], None], code: int) -> None:
    with running(tmp_path, BATCH, f"price > 0 AND blocks('{tmp_path}')") as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.05)
        ended(process)
        assert process.wait() == code
    shown = '{"kind": "error", "message": "interrupted"}'
    said = [line for line in unexpected(tmp_path) if not line.startswith(("java.", "\tat ", shown))]
    assert said == [], "Spark alone may stumble over a job that was cancelled just now"


def test_while_spark_starts(tmp_path: Path) -> None:
    with running(tmp_path, STREAM, "value >= 0") as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            pytest.skip("needs /proc")
        while not children.read_text():  # Java
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.01)
        group(process)
        assert process.wait() == 143
    assert unexpected(tmp_path) == []
    assert not (tmp_path / "state/batches").exists()
