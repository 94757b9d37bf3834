"""The kernels of the index of documents, compiled and as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

from harken.language.xpath.parser import parse
from harken.reference.documents import holds
from unit.kernels.plain_documents import DOCUMENTS, TEXTS

PROGRAM = Path(__file__).parent / "plain_documents.py"


def run(**environment: str) -> list[list[list[str]]]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return [literal_eval(line) for line in done.stdout.splitlines()]


@pytest.mark.seconds
def test_without_compilation_the_answers_are_the_same() -> None:
    compiled, plainly = run(), run(NUMBA_DISABLE_JIT="1")
    assert compiled == plainly
    assert len(compiled) == 6
    expected = [sorted(id for id, text in TEXTS.items() if holds(parse(text), document)) for document in DOCUMENTS]
    for found in compiled[1:3]:
        assert [[id for id in ids if id != "sql"] for ids in found] == expected
    assert compiled[2] == compiled[1]
    assert compiled[3] == compiled[4] == compiled[5] == [[id for id in ids if id != "never"] for ids in compiled[1]]
    assert [["sql" in ids] for ids in compiled[1]] == [[True], [False], [False], [False], [False]]


@pytest.mark.seconds
def test_without_compilation_nothing_overflows() -> None:
    """As in all other kernels: whoever looks for a fault in plain Python runs it with warnings as errors."""
    run(NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="error::RuntimeWarning")
