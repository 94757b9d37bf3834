"""The kernels that turn values into codes, against the plainest way to do so, compiled and not."""

from __future__ import annotations

import os
import subprocess
import sys
from bisect import bisect_left

import numpy as np
import pytest

from harken.kernels import encode_values as encode

INT64 = np.iinfo(np.int64)
ALL_VALID = np.empty(0, np.uint8)


def code_of(value, constants) -> int:
    """Among constants in order."""
    rank = bisect_left(constants, value)
    return 2 * rank + 1 + (rank < len(constants) and constants[rank] == value)


CONSTANTS = [[], [5], [5, 6], [-3, 0, 4, 9], [INT64.min, 0, INT64.max], list(range(0, 400, 3))]
VALUES = [*range(-5, 12), 200, 396, 397, 500, INT64.min, INT64.min + 1, INT64.max - 1, INT64.max]


@pytest.mark.parametrize("constants", CONSTANTS, ids=str)
def test_search(constants: list[int]) -> None:
    codes = np.zeros(len(VALUES), np.uint32)
    encode.encode_by_search(np.array(VALUES), ALL_VALID, 0, np.array(constants, np.int64), codes)
    assert codes.tolist() == [code_of(value, constants) for value in VALUES]


@pytest.mark.parametrize("constants", [[5], [5, 6], [-3, 0, 4, 9], list(range(0, 400, 3)), [INT64.min], [INT64.max]])
def test_table(constants: list[int]) -> None:
    table = np.zeros(constants[-1] - constants[0] + 1, np.uint32)
    encode.fill_table(np.array(constants), constants[0], table)
    assert table.tolist() == [code_of(value, constants) for value in range(constants[0], constants[-1] + 1)]
    codes = np.zeros(len(VALUES), np.uint32)
    top = 2 * len(constants) + 1
    encode.encode_by_table(np.array(VALUES), ALL_VALID, 0, constants[0], constants[-1], table, top, codes)
    assert codes.tolist() == [code_of(value, constants) for value in VALUES]


@pytest.mark.parametrize("bit", [0, 3, 8, 13])
def test_what_is_missing_has_no_code(bit: int) -> None:
    missing = np.arange(len(VALUES)) % 3 == 1
    valid = np.packbits(np.concatenate([np.zeros(bit, np.bool_), ~missing]), bitorder="little")
    constants, words = [-3, 0, 4, 9], [str(value) for value in VALUES]
    table = np.zeros(13, np.uint32)
    encode.fill_table(np.array(constants), -3, table)
    codes = np.ones((3, len(VALUES)), np.uint32)
    encode.encode_by_search(np.array(VALUES), valid, bit, np.array(constants), codes[0])
    encode.encode_by_table(np.array(VALUES), valid, bit, -3, 9, table, 9, codes[1])
    encode.encode_strings(
        *bytes_of(words), valid, bit, *bytes_of(["-3", "0", "4"]), index_of(["-3", "0", "4"]), True, codes[2]
    )
    numbers = [0 if no else code_of(value, constants) for value, no in zip(VALUES, missing, strict=True)]
    strings = [0 if no else code_of(word, ["-3", "0", "4"]) for word, no in zip(words, missing, strict=True)]
    assert codes.tolist() == [numbers, numbers, strings]


PAIRS = [(-1, -0.5), (-1, 0.0), (0, -1e-300), (0, 0.0), (0, 5e-324), (0, 0.5), (7, 0.25), (INT64.max, 1e300)]


@pytest.mark.parametrize("kept", [[], [3], [0, 4, 5], list(range(len(PAIRS)))], ids=str)
def test_pairs(kept: list[int]) -> None:
    constants = [PAIRS[place] for place in kept]
    codes = np.zeros(len(PAIRS), np.uint32)
    wholes, parts = (np.array([pair[half] for pair in PAIRS]) for half in (0, 1))
    whole_constants = np.array([pair[0] for pair in constants], np.int64)
    encode.encode_pairs(wholes, parts, whole_constants, np.array([pair[1] for pair in constants], np.float64), codes)
    assert codes.tolist() == [code_of(pair, constants) for pair in PAIRS]


def test_a_part_moves_off_the_constant() -> None:
    codes = np.array([4, 4, 4, 3, 3, 3], np.uint32)
    encode.move_off_constants(np.array([0.5, -0.5, 0.0, 0.5, -0.5, 0.0]), codes)
    assert codes.tolist() == [5, 3, 4, 3, 3, 3]


# Strings

WORDS = sorted(
    {"", "a", "ab", "abc", "abd", "b", "ä", "ß", "\uffee", "😀", "x" * 40, "x" * 41, "\0", "a\0", "\U0010ffff"}
)


def bytes_of(words: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def index_of(words: list[str], slots: int = 64) -> np.ndarray:
    index = np.zeros(slots, np.int64)
    encode.fill_index(*bytes_of(words), index)
    return index


@pytest.mark.parametrize("is_hashed", [True, False])
@pytest.mark.parametrize("kept", [slice(0, 0), slice(3, 4), slice(0, None, 2), slice(None)], ids=str)
def test_strings(kept: slice, is_hashed: bool) -> None:
    constants = WORDS[kept]
    index = index_of(constants) if is_hashed else np.empty(0, np.int64)
    codes = np.zeros(len(WORDS), np.uint32)
    encode.encode_strings(*bytes_of(WORDS), ALL_VALID, 0, *bytes_of(constants), index, True, codes)
    assert codes.tolist() == [code_of(word, constants) for word in WORDS]


def test_strings_without_order_are_in_any_gap() -> None:
    constants = WORDS[::2]
    codes = np.zeros(len(WORDS), np.uint32)
    encode.encode_strings(*bytes_of(WORDS), ALL_VALID, 0, *bytes_of(constants), index_of(constants), False, codes)
    expected = [code_of(word, constants) for word in WORDS]
    assert [code for code in codes.tolist() if code % 2 == 0] == [code for code in expected if code % 2 == 0]
    assert all(code % 2 == 1 for code, other in zip(codes.tolist(), expected, strict=True) if other % 2)


def test_an_index_that_is_all_but_full_finds_all() -> None:
    words = [f"w{number}" for number in range(63)]
    codes = np.zeros(63, np.uint32)
    encode.encode_strings(
        *bytes_of(words), ALL_VALID, 0, *bytes_of(sorted(words)), index_of(sorted(words)), False, codes
    )
    assert sorted(codes.tolist()) == list(range(2, 128, 2))


def test_hashes_spread() -> None:
    words = [f"{letter}{number}" for letter in ("a", "symbol-", "é") for number in range(3_000)]
    data, offsets = bytes_of(words)
    hashes = {encode.hash_of(data, offsets[place], offsets[place + 1]) for place in range(len(words))}
    assert len(hashes) > len(words) - 10
    assert len({each & 1023 for each in hashes}) == 1024


@pytest.mark.seconds
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="it is these tests that are run")
def test_the_same_without_compilation() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
