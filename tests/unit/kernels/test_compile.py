"""How kernels are compiled and kept."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harken.kernels.compile import inner, kernel

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


@inner
def _halved(numbers, at):
    return numbers[at] // 2


@kernel
def _half_of(numbers, at):
    return _halved(numbers, at)


def test_only_kernels_call_an_inner_kernel() -> None:
    numbers = np.arange(10)
    assert _half_of(numbers, 9) == 4
    for _ in range(2):
        with pytest.raises(TypeError, match="_halved is an inner kernel"):
            _halved(numbers, 9)
