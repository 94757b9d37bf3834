"""How kernels are compiled and kept."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.seconds

PROGRAM = """
from harken.kernels.compile import kernel

@kernel
def doubled(number):
    return 2 * number

print(doubled(21), sum(doubled.stats.cache_hits.values()))
"""


def run(program: Path) -> list[str]:
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("kept", [b"cnot.there\nThing\n.", b"", b"nonsense"])
def test_what_is_kept_and_cannot_be_read_is_compiled_anew(tmp_path: Path, kept: bytes) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert run(program) == ["42", "0"]
    hits = run(program)[1]
    assert hits == "1"
    (index,) = (tmp_path / "__pycache__").glob("*.nbi")
    version = pickle.loads(index.read_bytes())
    index.write_bytes(pickle.dumps(version) + kept)
    assert run(program) == ["42", "0"]
    assert run(program) == ["42", "1"], "and is kept again"
