"""Dictionaries: constants of every kind in order, and the code of every value among them."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, date, datetime
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harken.codes import dictionary as module
from harken.codes.columns import Column
from harken.codes.dictionary import Numbers, Strings, code_of, dictionary_of
from harken.events import Event, EventBatch
from harken.events.utf8 import utf8_of
from harken.schema import Kind
from harken.schema.values import KINDS


def column(kind: Kind | None, coded: tuple[str, ...] | None = None) -> Column:
    return Column(("x",), kind, coded)


def codes(kind: Kind, constants: Any, values: list[Any], ordered: bool = True) -> list[int]:
    """The codes of the values of events."""
    dictionary, _ = dictionary_of(column(kind), constants, ordered)
    batch = EventBatch.of(tuple(Event.of({"x": value}) for value in values), tuple(range(len(values))))
    (cells,) = batch.cells(("x",)).cells
    return dictionary.encode(cells).tolist()


def expected(constants: list[Any], values: list[Any]) -> list[int]:
    ordered = sorted(set(constants))
    ranks = [bisect_left(ordered, value) for value in values]
    return [
        2 * rank + 1 + (rank < len(ordered) and ordered[rank] == value)
        for rank, value in zip(ranks, values, strict=True)
    ]


INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)
NUMBERS = [
    *(0, 1, -1, 2, 3, 1.0, 0.5, -0.5, -1e-300, 1e-300, -1e-301, 2.5, -2.5, 2**53, 2**53 + 1, 2.0**53, -inf, inf),
    *(INT64_MAX, INT64_MIN, 2.0**63, -(2.0**63), 1e300, -1e300, INT64_MAX - 1),
]
VALUES = {
    Kind.NUMBER: NUMBERS,
    Kind.STRING: ["", "a", "b", "ab", "é", "\uffee", "😀", "z" * 30],
    Kind.BOOLEAN: [False, True],
    Kind.DATE: [date(1970, 1, 1), date(1969, 12, 31), date.min, date.max, date(2026, 5, 4)],
    Kind.TIMESTAMP: [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ],
}


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("step", [1, 2, 3, 100])
def test_codes_are_places_among_the_constants(kind: Kind, step: int) -> None:
    constants = VALUES[kind][::step]
    assert codes(kind, constants, VALUES[kind]) == expected(constants, VALUES[kind])


@pytest.mark.parametrize("kind", Kind)
def test_no_constants(kind: Kind) -> None:
    assert set(codes(kind, [], VALUES[kind])) == {1}


def test_integer_constants_and_values_with_a_part() -> None:
    for constants in ([-3, -2, 0, 1, 4], [0, 10**6, 10**12]):
        assert codes(Kind.NUMBER, constants, NUMBERS) == expected(constants, NUMBERS)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_constants_as_an_array(kind: type) -> None:
    constants = np.array([7, 3, 5], kind)
    assert codes(Kind.NUMBER, constants, NUMBERS) == expected([3, 5, 7], NUMBERS)


@pytest.mark.parametrize("constants", [[3, 1, 2], [2.5, -1.0, 0.0], [1, 0.5], ["b", "a"], [True, False]], ids=str)
def test_ranks(constants: list[Any]) -> None:
    kind = KINDS[type(constants[0])]
    _, ranks = dictionary_of(column(kind), constants)
    assert ranks.tolist() == [sorted(constants).index(each) for each in constants]


def test_equal_constants_have_one_rank() -> None:
    dictionary, ranks = dictionary_of(column(Kind.NUMBER), [2, 1, 1.0, 2.0, 1.5])
    assert (len(dictionary), ranks.tolist()) == (3, [2, 0, 0, 2, 1])
    dictionary, ranks = dictionary_of(column(Kind.NUMBER), np.array([0.0, -0.0, 1.0]))
    assert (len(dictionary), ranks.tolist()) == (2, [0, 0, 1])
    dictionary, ranks = dictionary_of(column(Kind.STRING), ["b", "a", "b"])
    assert (len(dictionary), ranks.tolist()) == (2, [1, 0, 1])


def test_dense_integers_have_a_table_and_others_have_not() -> None:
    tables = [dictionary_of(column(Kind.NUMBER), each)[0] for each in (range(0, 3000, 3), [0, 10**6], [0.5, 1.5])]
    assert [isinstance(each, Numbers) and len(each.table) for each in tables] == [2998, 0, 0]


def test_places_in_a_domain_and_presence_are_integers() -> None:
    dictionary, ranks = dictionary_of(column(Kind.STRING, ("low", "high")), [1, 0])
    assert (type(dictionary), ranks.tolist()) == (Numbers, [1, 0])
    dictionary, ranks = dictionary_of(column(None), [True, False])
    assert (type(dictionary), ranks.tolist()) == (Numbers, [1, 0])


def test_strings_without_order_need_no_gap() -> None:
    found = codes(Kind.STRING, ["b", "d"], ["a", "b", "c", "d", "e"], ordered=False)
    assert found[1::2] == [2, 4]
    assert all(code % 2 for code in found[::2])


def test_strings_that_collide_are_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FARTHEST", -1)
    dictionary, _ = dictionary_of(column(Kind.STRING), ["b", "d"], ordered=False)
    assert isinstance(dictionary, Strings)
    assert not len(dictionary.index)
    assert codes(Kind.STRING, ["b", "d"], ["a", "b", "c", "d", "e"], ordered=False) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_utf8_of_a_slice(kind: pa.DataType) -> None:
    data, offsets = utf8_of(pa.array(["aa", "bé", "", "c"], kind)[1:])
    words = [bytes(data[start:end]).decode() for start, end in pairwise(offsets)]
    assert words == ["bé", "", "c"]


def test_utf8_of_nothing() -> None:
    data, offsets = utf8_of(pa.array([], pa.string()))
    assert (len(data), offsets.tolist()) == (0, [0])


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("constants", [range(10, 20_010), range(0, 2_000_000, 100), [n / 4 for n in range(20_000)]])
def test_one_value_has_the_code_that_a_batch_gives_it(constants: Any, many: bool) -> None:
    """By a table, by search among integers, and among numbers with a part; and the same with few constants."""
    known = list(constants if many else constants[:50])
    dictionary, _ = dictionary_of(column(Kind.NUMBER), known)
    values = [*NUMBERS, known[0], known[0] - 0.5, known[3], known[3] + 0.25, known[-1], known[-1] + 0.5, known[-1] + 1]
    assert [code_of(dictionary, Kind.NUMBER, value) for value in values] == codes(Kind.NUMBER, known, values)
