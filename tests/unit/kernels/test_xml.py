"""The kernels of XML: vectors against plain Python, and all tests of documents once more without compilation."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harken.kernels import scanning, xml
from harken.kernels.compile import kernel

_before_markup = scanning.finder(b"<&]")


@kernel
def _find(data, at):
    return _before_markup(data, at)


@kernel
def _same(left, at, right, other):
    return scanning.same_bytes(left, at, right, other)


@kernel
def _copy(source, at, target, to):
    scanning.copy_bytes(source, at, target, to)


def test_vectors_say_what_python_says() -> None:
    draw = random.Random(1)
    for _ in range(300):
        data = np.array([draw.choice(b"ab<&]\xff\x00" if draw.random() < 0.1 else b"xyz") for _ in range(80)], np.uint8)
        other = data.copy()
        other[draw.randrange(80)] ^= 128
        at = draw.randrange(48)
        found = data[at : at + 32].tobytes()
        assert _find(data, at) == min(found.find(each) % 33 if each in found else 32 for each in (b"<", b"&", b"]"))
        assert _same(data, at, other, at) == scanning._same_bytes_plain(data, at, other, at)
        target = np.zeros(50, np.uint8)
        _copy(data, at, target, 9)
        assert target[9:41].tobytes() == found
        assert not target[:9].any()
        assert not target[41:].any()


def test_the_survey() -> None:
    draw = random.Random(2)
    pieces = [bytes(draw.choices(b"<=ab\n", k=draw.randrange(100))) + extra for extra in (b"", b"\r", b"\xff", b"\x01")]
    pieces += [extra + b"abc" * 30 for extra in (b"\t\n", b"\r", b"\x80", b"\x1f", b"\x7f")]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in pieces])]).astype(np.int64)
    status, is_ascii = np.zeros(len(pieces), np.uint8), np.zeros(len(pieces), np.bool_)
    most, everything = xml.survey(np.frombuffer(b"".join(pieces), np.uint8), offsets, 92, status, is_ascii)
    for place, piece in enumerate(pieces):
        has_control = any(byte < 32 and byte not in b"\t\n\r" for byte in piece)
        assert (status[place] == xml.DONE) == (not has_control and len(piece) <= 92)
        assert is_ascii[place] == piece.isascii()
    whole = b"".join(pieces)
    assert most == 2 * whole.count(b"<") + whole.count(b"=") + len(pieces) + 1
    assert everything == scanning.HAS_RETURN | scanning.HAS_HIGH | scanning.HAS_CONTROL


def test_lines_end_in_line_feeds() -> None:
    pieces = [b"a\r\nb\rc\n", b"\r", b"\n\r\r\n", b"", b"\r", b"\nx"]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in pieces])]).astype(np.int64)
    to, to_offsets = np.zeros(40, np.uint8), np.zeros(len(pieces) + 1, np.int64)
    xml.end_lines(np.frombuffer(b"".join(pieces), np.uint8), offsets, to, to_offsets)
    for place, piece in enumerate(pieces):
        ended = to[to_offsets[place] : to_offsets[place + 1]].tobytes()
        assert ended == piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


@pytest.mark.seconds
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="it is these tests that are run")
def test_the_same_without_compilation() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    environment.pop("HARKEN_DATA", None)
    documents = Path(__file__).parent.parent / "events" / "xml"
    fast_path = f"{documents / 'test_fast_path.py'}::test_"
    names = ["mutations[0]", "well_formed_documents", "limits_are_exact", "one_by_one_at_the_end_of_the_data"]
    tests = [__file__, str(documents / "test_documents.py"), *(fast_path + name for name in names)]
    chosen = ["-k", "not limits_have_their_names and not deep"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *chosen]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
