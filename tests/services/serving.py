"""`harken serve` as a process, for tests that talk to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from services.processes import free_port, running

PROGRAM = [sys.executable, "-c", "from harken.cli import main; main()"]


@contextmanager
def serving(folder: Path, *options: str, port: int | None = None) -> Iterator[str]:
    """A server on a file in the folder, and its address. It is there again if the folder is served again."""
    port = free_port() if port is None else port
    url = f"http://127.0.0.1:{port}"
    command = [*PROGRAM, "serve", "--port", str(port), "--store", str(folder / "harken.db"), *options]
    with running(command, folder / "serve.log", lambda: _is_ready(url)):
        yield url


def _is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
