"""The shell blocks of a page, run as a reader pastes them: in their order, in one shell and an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from services.processes import free_port

BLOCK = re.compile(r"^```sh\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```)?", re.DOTALL | re.MULTILINE)
MARK = "== end of block"
SECONDS = 600


def assert_prints_what_it_says(page: Path, ports: Sequence[str], folder: Path) -> None:
    """Run the page with free ports in place of those that it names, and compare the output of each block."""
    text = page.read_text(encoding="utf-8")
    free = {port: str(free_port()) for port in ports}
    assert [port for port in ports if port not in text] == []
    text = re.sub("|".join(ports), lambda port: free[port[0]], text)
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```sh\n") > 0
    script = "set -e\n" + "".join(f"{each['code']}echo '{MARK}'\n" for each in blocks)
    status, stdout, stderr = _run(script, folder)
    log = f"{stdout}\n{stderr}"
    assert status == 0, log
    printed = stdout.split(f"{MARK}\n")[:-1]
    for each, output in zip(blocks, printed, strict=True):
        assert re.fullmatch(_pattern(each["output"] or ""), output), f"{each['code']}printed\n{output}\n{log}"


def _run(script: str, folder: Path) -> tuple[int | None, str, str]:
    """The exit status, or None if the script ran out of time, and what it printed."""
    environment = _without_settings(dict(os.environ)) | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(folder / "state"),
    }
    empty = folder / "empty"
    empty.mkdir()
    stdout, stderr = folder / "stdout", folder / "stderr"
    with stdout.open("w") as out, stderr.open("w") as err:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=empty, env=environment, stdout=out, stderr=err, start_new_session=True
        )
    try:
        with suppress(subprocess.TimeoutExpired):
            shell.wait(SECONDS)
    finally:
        if shell.returncode != 0:  # what it left running is of its own session
            os.killpg(shell.pid, signal.SIGKILL)
    return shell.returncode, stdout.read_text(encoding="utf-8"), stderr.read_text(encoding="utf-8")


def _pattern(output: str) -> str:
    """What a block prints, where `…` stands for anything but an end of line."""
    return re.escape(output).replace("…", "[^\n]*")


def _without_settings(environment: dict[str, str]) -> dict[str, str]:
    """The environment without what turns colours on or off, and without Harken's own variables."""
    colours = ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE")
    ours = ("HARKEN_STORE", "HARKEN_SERVER", "HARKEN_API_KEY", "HARKEN_TICKET", "HARKEN_WEBHOOK_SECRET")
    return {name: value for name, value in environment.items() if name not in colours + ours}
