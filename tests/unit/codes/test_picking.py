"""Strings by their numbers: what pyarrow takes, wherever they lie."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.codes.picking import picked

TEXTS = st.lists(st.text(max_size=40), min_size=1, max_size=30)


@given(TEXTS, st.data(), st.integers(0, 5))
def test_what_is_picked_is_what_is_taken(texts: list[str], data: st.DataObject, skipped: int) -> None:
    strings = pa.array(texts, pa.large_string())
    strings = strings.slice(min(skipped, len(strings) - 1))
    numbers = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=100))
    found = picked(strings, np.array(numbers, np.int32))
    found.validate(full=True)
    assert found.type == pa.string()
    assert found.to_pylist() == strings.take(pa.array(numbers, pa.int32())).to_pylist()


def test_too_much_for_one_array_is_rejected() -> None:
    strings = pa.array(["x" * 1_000_000], pa.large_string())
    with pytest.raises(OverflowError, match="more than an Arrow array can hold"):
        picked(strings, np.zeros(3_000, np.int32))


def test_without_compilation() -> None:
    program = (
        "import numpy as np, pyarrow as pa; from harken.codes.picking import picked;"
        "texts = ['', 'a', 'x' * 40, 'é' * 9];"
        "print(picked(pa.array(texts, pa.large_string()), np.array([3, 0, 2, 2, 1], np.int32)).to_pylist())"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.strip() == str(["é" * 9, "", "x" * 40, "x" * 40, "a"])
