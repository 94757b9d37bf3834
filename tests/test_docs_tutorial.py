"""The shell blocks of the tutorial run in their order, in one shell and an empty folder, as a reader pastes them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from services.processes import free_port

PAGE = Path(__file__).parent.parent / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```sh\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```)?", re.DOTALL | re.MULTILINE)
MARK = "== end of block"
SECONDS = 600
PORTS = ("8080", "8099")
"""The ports that the page names. The test takes free ones instead."""


def as_pattern(output: str) -> str:
    """What a block prints, where `…` stands for anything but an end of line."""
    return re.escape(output).replace("…", "[^\n]*")


def without_colours(environment: dict[str, str]) -> dict[str, str]:
    outside = ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE")
    mine = ("HARKEN_STORE", "HARKEN_SERVER", "HARKEN_API_KEY", "HARKEN_TICKET", "HARKEN_WEBHOOK_SECRET")
    return {name: value for name, value in environment.items() if name not in outside + mine}


@pytest.mark.processes
@pytest.mark.seconds
def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for port in PORTS:
        assert port in text
        text = text.replace(port, str(free_port()))
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```sh\n") > 0
    script = "set -e\n" + "".join(f"{each['code']}echo '{MARK}'\n" for each in blocks)
    environment = without_colours(dict(os.environ)) | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    folder = tmp_path / "empty"
    folder.mkdir()
    stdout, stderr = tmp_path / "stdout", tmp_path / "stderr"
    with stdout.open("w") as out, stderr.open("w") as err:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, env=environment, stdout=out, stderr=err, start_new_session=True
        )
    try:
        status = shell.wait(SECONDS)
    finally:
        if shell.returncode != 0:  # what it left running is of its own session
            os.killpg(shell.pid, signal.SIGKILL)
    told = f"{stdout.read_text()}\n{stderr.read_text()}"
    assert status == 0, told
    printed = stdout.read_text().split(f"{MARK}\n")[:-1]
    for each, found in zip(blocks, printed, strict=True):
        assert re.fullmatch(as_pattern(each["output"] or ""), found), f"{each['code']}printed\n{found}\n{told}"
