"""Every type of Arrow, in every place: it is read as its rows would be, or its column and type are named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from harken import Engine
from harken.errors import SourceError
from harken.events import validate

# Every subscription asks for every type, so that most fit no column.
pytestmark = pytest.mark.filterwarnings("ignore::harken.errors.MismatchWarning")

TEXTS = ["a", None, "a text too long for a view", "é"]
BYTES = [b"ab", None, b"cd", b"ef"]
NUMBERS = [1, None, 3, 2]
LISTS = [[1], None, [], [2, None, 3]]
PAIRS = [[1, 2], None, [None, 3], [4, 5]]


def integers_as(kind: pa.DataType) -> pa.Array:
    return pa.array(NUMBERS, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def extension(kind: Any, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


UNITS = ("s", "ms", "us", "ns")
TIMESTAMPS = [pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "Europe/Berlin", "+05:30")]
READ: list[pa.Array] = [
    *(pa.array(NUMBERS, pa.type_for_alias(f"{sign}int{bits}")) for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(pa.array([1.5, None, -0.0, float("nan")], kind) for kind in (pa.float16(), pa.float32(), pa.float64())),
    *(pa.array(TEXTS, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    pa.array([True, None, False, True]),
    pa.nulls(4),
    *map(integers_as, TIMESTAMPS),
    *(
        pa.array([date(2020, 1, 1), None, date(1969, 1, 1), date(2020, 1, 2)], kind)
        for kind in (pa.date32(), pa.date64())
    ),
    *(
        pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal(1)], kind)
        for kind in (pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(20, 2), pa.decimal256(50, 2))
    ),
    pa.array([Decimal(100), None, Decimal(200), Decimal(0)], pa.decimal128(5, -2)),
    *(pa.array(LISTS, kind(pa.int64())) for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)),
    *(pa.array([["a"], None, [], TEXTS], kind(pa.string_view())) for kind in (pa.list_, pa.list_view)),
    pa.array(PAIRS, pa.list_(pa.int64(), 2)),
    pa.array([[("k", 1)], None, [], [("k", 2), ("j", 3)]], pa.map_(pa.string(), pa.int64())),
    pa.array([[("k", "a")], None, [], [("k", "b")]], pa.map_(pa.string_view(), pa.string_view())),
    pa.array([[(1, 1)], None, [], [(2, 2)]], pa.map_(pa.int64(), pa.int64())),
    pa.array([{"k": 1}, None, {"k": None}, {"k": 3}]),
    pa.array([{"k": "a"}, None, {"k": None}, {"k": "b"}], pa.struct([("k", pa.string_view())])),
    pa.array([{}, None, {}, {}], pa.struct([])),
    extension(pa.json_(), ['{"a": 1}', None, "2", '"x"']),
    extension(pa.json_(pa.string_view()), ['{"a": 1}', None, "2", '"x"']),
    extension(pa.bool8(), [1, None, 0, 2]),
    extension(pa.opaque(pa.int64(), "a type", "a vendor"), NUMBERS),
]
REJECTED: list[pa.Array] = [
    pa.array(BYTES, pa.binary(2)),
    *map(integers_as, (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))),
    *(integers_as(pa.duration(unit)) for unit in UNITS),
    pa.array([pa.MonthDayNano([1, 2, 3]), None, pa.MonthDayNano([0, 0, 0]), pa.MonthDayNano([1, 1, 1])]),
    pa.UnionArray.from_sparse(
        pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, 2, 3, 4]), pa.array(["a", "b", "c", "d"])]
    ),
    pa.UnionArray.from_dense(
        pa.array([0, 1, 0, 1], pa.int8()), pa.array([0, 0, 1, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a", "b"])]
    ),
    extension(pa.uuid(), [b"0" * 16, None, b"1" * 16, b"2" * 16]),
    pa.array([[b"a"], None, [], [b"b"]]),
    pa.array([[("k", b"a")], None, [], []], pa.map_(pa.string(), pa.binary())),
]


def picked(array: pa.Array, indices: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([3, 0, None, 2, 1], indices), array)


def in_runs(array: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7, 8], pa.int32()), array)


def in_structs(array: pa.Array) -> pa.Array:
    hidden = pa.array([False, False, True] + [False] * (len(array) - 3))
    return pa.StructArray.from_arrays([array], ["f"], mask=hidden)


def in_lists(array: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, 1, 1, 2, 4], pa.int32()), array)


def in_list_views(array: pa.Array) -> pa.Array:
    return pa.ListViewArray.from_arrays(pa.array([2, 0, 1], pa.int32()), pa.array([2, 1, 0], pa.int32()), array)


Shape = Callable[[pa.Array], pa.Array | list[pa.Array]]
SHAPES: dict[str, Shape] = {
    "plain": lambda array: array,
    "sliced": lambda array: array.slice(1, 3),
    "chunked": lambda array: [array, array.slice(2, 2), array.slice(0, 0)],
    "dictionary": lambda array: picked(array, pa.int8()),
    "dictionary, sliced": lambda array: picked(array, pa.uint32()).slice(1, 3),
    "dictionaries in chunks": lambda array: [picked(array, pa.int64()), picked(array.slice(0, 4), pa.int64()).slice(1)],
    "runs": in_runs,
    "runs, sliced": lambda array: in_runs(array).slice(1, 6),
    "runs, sliced in one": lambda array: in_runs(array).slice(4, 2),
    "struct": in_structs,
    "struct, sliced": lambda array: in_structs(array).slice(1, 3),
    "list": in_lists,
    "list, sliced": lambda array: in_lists(array).slice(2, 2),
    "list view": in_list_views,
    "fixed list": lambda array: pa.FixedSizeListArray.from_arrays(array, 2),
    "map": lambda array: pa.MapArray.from_arrays(
        pa.array([0, 2, 4], pa.int32()), pa.array(["k", "f", "k", "j"]), array
    ),
    "dictionary in struct": lambda array: in_structs(picked(array, pa.int8())),
    "dictionary in list": lambda array: in_lists(picked(array, pa.int8())),
    "runs in struct": lambda array: in_structs(in_runs(array)),
    "runs in list": lambda array: in_lists(in_runs(array)),
    "struct in dictionary": lambda array: picked(in_structs(array), pa.int8()),
    "list in dictionary": lambda array: picked(in_lists(array), pa.int8()),
    "list in runs": lambda array: in_runs(in_lists(array)),
}
MATCHED = {"plain", "sliced", "chunked", "dictionary", "runs", "struct", "list", "dictionary in list"}
"""Those of which not only the events are compared, but what they match: that takes longer."""
WHERE = {
    "present": "c IS NOT NULL",
    "inside": "c.f IS NOT NULL OR c.k IS NULL",
    "one": "c = 1 OR c.f = 1 OR c.k = 1",
    "a": "c = 'a' OR c.f = 'a'",
    "positive": "c > 0 OR c.f > 0 OR c.k > 0",
    "true": "c = TRUE OR c.f = TRUE",
    "day": "c = DATE '2020-01-01' OR c.f = DATE '2020-01-01'",
    "moment": "c >= TIMESTAMP '1970-01-01T00:00:00Z' OR c.f >= TIMESTAMP '1970-01-01T00:00:00Z'",
}


def tables(array: pa.Array) -> Iterator[tuple[str, pa.Table]]:
    for name, shape in SHAPES.items():
        try:
            made = shape(array)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # such an array there cannot be
            continue
        column = pa.chunked_array(made if isinstance(made, list) else [made])
        yield name, pa.table({"c": column, "x": range(len(column))})
    yield "no chunks", pa.table({"c": pa.chunked_array([], array.type), "x": pa.array([], pa.int64())})


def name_of(array: pa.Array) -> str:
    return str(array.type)


@pytest.fixture(scope="module")
def engines() -> tuple[Engine, Engine]:
    """The default, and the one that evaluates every subscription alone."""
    made = Engine(), Engine(algorithm="naive")
    for engine in made:
        engine.subscribe_many(list(WHERE.items()))
    return made


@pytest.mark.parametrize("array", READ, ids=name_of)
def test_what_is_read_is_what_its_rows_are(array: pa.Array, engines: tuple[Engine, Engine]) -> None:
    columnar, naive = engines
    for shape, table in tables(array):
        rows = table.to_pylist(maps_as_pydicts="strict")
        by_rows, by_columns = validate(rows), validate(table)
        assert by_columns.batch == by_rows.batch, shape
        assert [each.position for each in by_columns.rejected] == [each.position for each in by_rows.rejected], shape
        if shape not in MATCHED:
            continue
        expected, found = naive.match_batch(rows), columnar.match_batch(table)
        assert [set(ids) for ids in found.ids] == [set(ids) for ids in expected.ids], shape


@pytest.mark.parametrize("array", REJECTED, ids=name_of)
def test_what_cannot_be_read_is_named(array: pa.Array, engines: tuple[Engine, Engine]) -> None:
    inner = getattr(array.type, "value_type", getattr(array.type, "item_type", array.type))
    for shape, table in tables(array):
        for engine in engines:
            with pytest.raises(SourceError) as caught:
                engine.match_batch(table)
            told = re.fullmatch(
                r"the column `(c|c\.f)` has the Arrow type (.+), which an event cannot hold", caught.value.message
            )
            assert told is not None, shape
            assert told[2] == str(inner), shape


@pytest.mark.parametrize("array", [*READ, *REJECTED], ids=name_of)
def test_what_nobody_asks_for_is_not_looked_at(array: pa.Array) -> None:
    for shape, table in tables(array):
        batch = validate(table, names=frozenset("x")).batch
        assert [event.attributes for event in batch] == [{"x": row} for row in range(table.num_rows)], shape
