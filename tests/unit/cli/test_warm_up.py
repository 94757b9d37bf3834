"""`harken warm-up`: what it says, and that nothing is left to compile after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harken.rehearsal import kernels

SOURCES = Path(__file__).parents[3] / "src"
PROGRAM = """
import sys
from numba.core import event

class Listener(event.Listener):
    def on_start(self, started):
        print("compiled", started.data["dispatcher"].py_func.__name__)
    def on_end(self, ended):
        pass

event.register("numba:compile", Listener())
import harken
engine = harken.Engine()
size = int(sys.argv[1])
engine.subscribe_many([(f"s{n}", f"a = 'v{n % 50}' AND b < {n}") for n in range(size)])
engine.subscribe_many([(f"t{n}", f"c = 'v{n % 60}' AND d = {n % 90} AND e = 'w{n % 70}'") for n in range(size)])
engine.match({"a": "v1", "b": 3})
engine.unsubscribe("s7")
print(len(engine.match_batch([{"a": "v1", "b": 3}] * 100).ids))
documents = harken.Engine()
documents.subscribe_many({"id": f"x{n}", "where": f"/a[b = 'v{n}']/c < {n}", "language": "xpath"} for n in range(size))
documents.match_batch([b"<a><b>v1</b><c>0</c></a>"] * 200)
documents.match(b"<a/>")
"""


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(SOURCES)}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env=environment, timeout=600
    )


@pytest.mark.slow
def test_after_it_nothing_is_compiled(tmp_path: Path) -> None:
    done = run("-m", "harken", "warm-up", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["kind"] for line in lines] == ["step"] * 6 + ["summary"], "and no warning that kernels are compiled"
    assert lines[-1]["folder"].startswith(str(tmp_path))
    kept = len(list(tmp_path.rglob("*.nbc")))
    assert abs(kept - kernels()) < kernels() / 10, "the progress bar knows about how far it is"
    for size in ("20", "3000"):
        found = run("-c", PROGRAM, size, folder=tmp_path)
        assert found.stdout == "100\n", found.stdout + found.stderr
        assert found.stderr == ""
