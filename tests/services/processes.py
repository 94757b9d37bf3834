"""Server processes that a test starts, and ends when it is done with them."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_START_SECONDS = 180
_STOP_SECONDS = 20


def free_port() -> int:
    """A port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str], log: Path, ready: Callable[[], bool], stop: signal.Signals = signal.SIGTERM, **options: Any
) -> Iterator[None]:
    """A server, from when it is ready to the end of the block. What it prints goes to the log."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **options
        )
    try:
        _wait(process, log, ready)
        yield
    finally:
        process.send_signal(stop)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], log: Path, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not start:\n{log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.05)
