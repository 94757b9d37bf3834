"""The kernels of the columnar matcher: what they compute, compiled and as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harken.kernels import intrinsics, plain
from harken.kernels.compile import kernel
from harken.kernels.sifting import first_of_run
from harken.kernels.vector import (
    LANES,
    ROWS,
    aligned,
    first_bits,
    keep_pieces,
    spread,
    spread_pieces,
    spread_word,
    write_lines,
)

PROGRAM = Path(__file__).parent / "plain_columnar.py"


def run(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.seconds
def test_without_compilation_the_answers_are_the_same() -> None:
    compiled, plainly = run(), run(NUMBA_DISABLE_JIT="1")
    assert compiled == plainly
    assert len(compiled) == 6
    assert len({line.partition("[")[2] for line in compiled}) == 1, "all layouts find the same"
    assert compiled[0].count("'") > 200


@kernel
def _within_and_below(columns, low, span, code):
    return (
        intrinsics.within(columns, low, span, np.uint64(code)),
        intrinsics.below(columns, low, low, np.uint64(code)),
    )


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_within_and_below(kind: type) -> None:
    rng = np.random.default_rng(1)
    columns = rng.integers(0, 50, 400).astype(kind)
    columns[:200] -= kind(20)  # some wrap around
    for low, span, code in rng.integers(0, 300, (50, 3)).tolist():
        expected = plain.within(columns, low, span, code % 60), plain.below(columns, low, low, code % 60)
        assert _within_and_below(columns, low, span, code % 60) == expected


@kernel
def _by_pointer(numbers, grid, row, at):
    pointed, in_row = intrinsics.pointer(numbers), intrinsics.row_pointer(grid, row)
    pointed[at] += 5
    return pointed[at], in_row[at]


def test_pointers_read_and_write_the_array() -> None:
    numbers, grid = np.arange(6, dtype=np.int32), np.arange(18, dtype=np.uint16).reshape(3, 6)
    grid.flags.writeable = False
    assert _by_pointer(numbers, grid, 2, 4) == (9, 16)
    assert numbers.tolist() == [0, 1, 2, 3, 9, 5]
    assert plain.pointer(numbers)[4] == 9
    assert plain.row_pointer(grid, 2)[4] == 16


@kernel
def _sketch_tests(columns, low, span, code, doubled):
    return (
        intrinsics.within(columns, low, span, code),
        intrinsics.at_an_end(columns, low, span, code),
        intrinsics.admitted_by_end(columns, low, low, doubled),
        intrinsics.level_with_end(columns, low, low, doubled),
    )


def test_the_tests_of_a_sketch() -> None:
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 256, 400).astype(np.uint8)
    columns[100:300] //= 16
    for low, span, code in rng.integers(0, 330, (200, 3)).tolist():
        byte, doubled = np.uint8(code % 256), np.uint8(code % 128 * 2)
        assert _sketch_tests(columns, low, span, np.uint64(byte), np.uint64(doubled)) == (
            plain.within(columns, low, span, byte),
            plain.at_an_end(columns, low, span, byte),
            plain.admitted_by_end(columns, low, low, doubled),
            plain.level_with_end(columns, low, low, doubled),
        )


@pytest.mark.parametrize("density", [0, 0.05, 0.5, 1])
def test_spread_appends_the_ids_of_the_bits(density: float) -> None:
    rng = np.random.default_rng(2)
    ids = rng.permutation(200).astype(np.int32)
    bits = rng.random(ROWS) < density
    word = np.packbits(bits, bitorder="little").view(np.uint64)[0]
    out = np.full(200, -5, np.int32)
    end = spread(ids, 31, word, out, 10, len(out))
    assert out[10:end].tolist() == ids[31 : 31 + ROWS][bits].tolist()
    assert (out[:10] == -5).all()
    near = np.full(200, -5, np.int32)
    limit = 10 + int(bits.sum())
    assert spread(ids, 31, word, near, 10, limit) == end
    assert (near[limit:] == -5).all(), "nothing from the limit on is touched"
    wherever = np.full(200, -5, np.int32)
    assert spread_word(ids, 31, word, wherever, 10) == end
    assert wherever[10:end].tolist() == out[10:end].tolist()
    assert (wherever[:10] == -5).all()
    assert (wherever[10 + ROWS :] == -5).all(), "no more than a word has bits is touched"


@kernel
def _first_of_run(word):
    return first_of_run(np.uint64(word))


@pytest.mark.parametrize(
    ("word", "first"),
    [
        (0, 63),
        (1, 0),
        (1 << 63, 63),
        ((1 << 64) - 1, 0),
        ((1 << 64) - 2, 1),
        ((1 << 63) - 1, 0),
        (0b0110, 1),
        (0b0101, -1),
        (1 << 63 | 1, -1),
        ((1 << 64) - 1 - (1 << 40), -1),
    ],
)
def test_the_first_bit_of_a_run(word: int, first: int) -> None:
    assert _first_of_run(np.uint64(word)) == first


def test_first_bits() -> None:
    assert [int(first_bits(count)).bit_count() for count in (-5, 0, 1, 63, 64, 99)] == [0, 0, 1, 63, 64, 64]


@pytest.mark.parametrize("density", [0, 0.02, 0.2, 0.9, 1])
def test_pieces_are_what_is_not_empty_of_a_block(density: float) -> None:
    rng = np.random.default_rng(3)
    bits = rng.random(8 * ROWS) < density
    bits[100:200] = False
    words = np.packbits(bits, bitorder="little").view(np.uint64)
    pieces = np.zeros(5 + 32, np.uint32)
    end = keep_pieces(words, 64, pieces, 5)
    numbers = np.flatnonzero(bits.reshape(-1, LANES).any(axis=1))
    assert (pieces[5:end] >> LANES).tolist() == (64 + numbers).tolist()
    ids = rng.permutation(2_000).astype(np.int32)
    out = np.full(3 + len(bits) + LANES, -1, np.int32)
    written = spread_pieces(ids, 7, pieces, 5, end, out, 3)
    begin = 7 + 64 * LANES
    assert out[3:written].tolist() == ids[begin : begin + len(bits)][bits].tolist()
    assert (out[:3] == -1).all()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("length", [0, 1, 15, 16, 31, 32, 33, 100])
def test_lines_are_written_up_to_where_one_ends(length: int, streaming: bool) -> None:
    source = np.arange(200, dtype=np.int32)
    for start in range(17):
        out = aligned(200, np.int32)
        out[:] = -1
        written = write_lines(source, length, out, start, streaming)
        assert length - LANES < written <= length
        assert written == 0 or (start + written) % LANES == 0
        assert out[start : start + written].tolist() == source[:written].tolist()
        assert (out[:start] == -1).all()
        assert (out[start + written :] == -1).all()


def test_an_aligned_array_starts_with_a_line() -> None:
    for size in (1, 7, 100):
        array = aligned(size, np.int32)
        assert array.shape == (size,)
        assert array.ctypes.data % 64 == 0
