"""Cells: the embeddings of values, and batches as columns, whatever they were made of."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nextafter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harken.events import Cells, Event, EventBatch, PathCells, as_integer, rows_from_arrow, validate, whole_and_part
from harken.events.batch import collect
from harken.events.cells import embedded
from harken.events.column_views import ColumnViews
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import BUILT_IN, EnumeratedDomain, EventType, IntegerDomain, Rule, Schema
from harken.schema.paths import Path
from harken.schema.values import INT64_MAX, INT64_MIN, Kind

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
DAY = date(2026, 7, 1)


def shown(cells: PathCells) -> dict[str, list[tuple[int, Any]]]:
    """(row, value) by kind, a number as its pair."""
    return {each.kind.value: list(zip(each.rows.tolist(), values(each), strict=True)) for each in cells.cells}


def values(cells: Cells) -> list[Any]:
    if cells.kind is Kind.STRING:
        return list(cells.values.to_pylist())
    if cells.kind is not Kind.NUMBER:
        return list(cells.values.tolist())
    parts = [0.0] * len(cells.rows) if cells.part is None else cells.part.tolist()
    return list(zip(cells.values.tolist(), parts, strict=True))


class TestEmbedding:
    @pytest.mark.parametrize(
        ("value", "pair"),
        [
            (0, (0, 0.0)),
            (-3, (-3, 0.0)),
            (3.0, (3, 0.0)),
            (-0.0, (0, 0.0)),
            (2.5, (2, 0.5)),
            (-2.5, (-2, -0.5)),
            (-5e-324, (0, -5e-324)),
            (INT64_MAX, (INT64_MAX, 0.0)),
            (INT64_MIN, (INT64_MIN, 0.0)),
            (2.0**63, (INT64_MAX, 2.0**63)),
            (-(2.0**63), (INT64_MIN, 0.0)),
            (nextafter(-(2.0**63), -inf), (INT64_MIN, nextafter(-(2.0**63), -inf))),
            (inf, (INT64_MAX, inf)),
            (-inf, (INT64_MIN, -inf)),
        ],
    )
    def test_numbers(self, value: int | float, pair: tuple[int, float]) -> None:
        assert whole_and_part(value) == pair
        if isinstance(value, float):
            whole, part = embedded(np.array([value]))
            assert (whole.tolist(), 0.0 if part is None else part[0]) == ([pair[0]], pair[1])
            assert (part is None) == (pair[1] == 0)

    def test_the_sign_of_nothing_is_plus(self) -> None:
        assert str(whole_and_part(-0.0)[1]) == "0.0"
        assert str(whole_and_part(-3.0)[1]) == "0.0"
        _, part = embedded(np.array([-0.0, -3.0, 0.5]))
        assert part is not None
        assert str(part.tolist()) == "[0.0, 0.0, 0.5]"

    @pytest.mark.parametrize(
        ("kind", "value", "integer"),
        [
            (Kind.BOOLEAN, True, 1),
            (Kind.BOOLEAN, False, 0),
            (Kind.DATE, date(1970, 1, 2), 1),
            (Kind.DATE, date.min, -719_162),
            (Kind.TIMESTAMP, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
            (Kind.TIMESTAMP, datetime.max.replace(tzinfo=UTC), 253_402_300_799_999_999),
        ],
    )
    def test_the_others(self, kind: Kind, value: Any, integer: int) -> None:
        assert as_integer(kind, value) == integer

    @pytest.mark.parametrize(("kind", "value"), [(Kind.STRING, "x"), (Kind.NUMBER, 1), (Kind.DATE, NOON.time())])
    def test_what_is_more_than_an_integer(self, kind: Kind, value: Any) -> None:
        with pytest.raises(TypeError, match="not a"):
            as_integer(kind, value)


EVENTS = [
    {"n": 1, "s": "x", "seller": {"country": "CH"}, "items": [{"price": 1.5}, {"price": [2, "much"]}, 7]},
    {"n": 2.5, "s": ["a", ["ü", None]], "seller": "me", "items": {"price": 3}},
    {"n": None, "s": [], "seller": {}, "at": NOON, "day": DAY, "ok": True},
    {"n": [2**53 + 1, 2.0**53, True]},
]


class TestEvents:
    @pytest.mark.parametrize(
        ("path", "expected", "present"),
        [
            (("n",), {"number": [(0, (1, 0)), (1, (2, 0.5)), (3, (2**53 + 1, 0)), (3, (2**53, 0))]}, [0, 1, 3]),
            (("s",), {"string": [(0, "x"), (1, "a"), (1, "ü")]}, [0, 1]),
            (("seller",), {"string": [(1, "me")]}, [0, 1, 2]),
            (("seller", "country"), {"string": [(0, "CH")]}, [0]),
            (("items",), {"number": [(0, (7, 0))]}, [0, 1]),
            (("items", "price"), {"number": [(0, (1, 0.5)), (0, (2, 0)), (1, (3, 0))]}, [0, 1]),
            (("at",), {"timestamp": [(2, as_integer(Kind.TIMESTAMP, NOON))]}, [2]),
            (("day",), {"date": [(2, as_integer(Kind.DATE, DAY))]}, [2]),
            (("ok",), {"boolean": [(2, 1)]}, [2]),
            (("ok", "more"), {}, []),
            (("nothing",), {}, []),
            ((), {}, [0, 1, 2, 3]),
        ],
    )
    def test_cells(self, path: Path, expected: dict[str, Any], present: list[int]) -> None:
        cells = validate(EVENTS).batch.cells(path)
        more = {"boolean": [(3, 1)]} if path == ("n",) else {"string": [(0, "much")]} if path[1:] == ("price",) else {}
        assert shown(cells) == expected | more
        assert cells.present.nonzero()[0].tolist() == present
        assert (cells.present.dtype, len(cells.present)) == (np.bool_, 4)

    def test_types(self) -> None:
        for each in validate([{"a": value} for value in (1, 1.5, "x", True, NOON, DAY)]).batch.cells(("a",)).cells:
            assert each.rows.dtype == np.int32
            assert each.kind is Kind.STRING or each.values.dtype == np.int64
            assert each.kind is Kind.STRING or each.values.flags.writeable
            assert (each.part is None) == (each.kind is not Kind.NUMBER)
        assert [each.kind for each in validate([{"a": ["x", True, 1]}]).batch.cells(("a",)).cells] == [
            Kind.NUMBER,
            Kind.STRING,
            Kind.BOOLEAN,
        ]

    def test_no_events(self) -> None:
        cells = EventBatch.of((), ()).cells(("a",))
        assert (cells.cells, len(cells.present)) == ((), 0)

    def test_deep_arrays(self) -> None:
        nested: Any = [1, "x"]
        for _ in range(2_000):
            nested = [nested]
        assert shown(EventBatch.of((Event({"a": nested}),), (0,)).cells(("a",))) == {
            "number": [(0, (1, 0))],
            "string": [(0, "x")],
        }

    def test_asked_again_they_are_the_same(self) -> None:
        batch = validate(EVENTS).batch
        assert batch.cells(("n",)) is batch.cells(("n",))

    def test_slices(self) -> None:
        batch = validate(EVENTS).batch
        assert shown(batch[1::2].cells(("n",)))["number"] == [(0, (2, 0.5)), (1, (2**53 + 1, 0)), (1, (2**53, 0))]


def arrow(array: pa.Array | pa.ChunkedArray, schema: Schema | None = None) -> EventBatch:
    return validate(pa.table({"a": array}), schema).batch


LISTS = (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
NESTED = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.struct([("z", pa.string())])))])
NUMBERS = [(0, (1, 0)), (2, (100, 0))]
IN_COLUMNS: list[tuple[pa.Array, dict[str, Any]]] = [
    *[
        (pa.array([1, None, 100], kind), {"number": NUMBERS})
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    ],
    *[
        (pa.array([-0.5, None, -0.0, float("nan")], kind), {"number": [(0, (0, -0.5)), (2, (0, 0))]})
        for kind in (pa.float16(), pa.float32(), pa.float64())
    ],
    (pa.array([Decimal("0.10"), None, Decimal(7)], pa.decimal128(10, 2)), {"number": [(0, (0, 0.1)), (2, (7, 0))]}),
    *[
        (pa.array(["ü", None, "", "x" * 20], kind), {"string": [(0, "ü"), (2, ""), (3, "x" * 20)]})
        for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))
    ],
    (pa.DictionaryArray.from_arrays([0, 1, None, 0], pa.array([7, None])), {"number": [(0, (7, 0)), (3, (7, 0))]}),
    (pa.array([True, None, False]), {"boolean": [(0, 1), (2, 0)]}),
    (pa.nulls(2), {}),
    (pa.array([float("nan")] * 2), {}),
    (pa.array([-1, None], pa.int32()).view(pa.date32()), {"date": [(0, -1)]}),
    (pa.array([-86_400_000, None]).view(pa.date64()), {"date": [(0, -1)]}),
    *[
        (pa.array([-1, None, 3]).view(pa.timestamp(unit, "+05:30")), {"timestamp": [(0, -scale), (2, 3 * scale)]})
        for unit, scale in (("s", 10**6), ("ms", 10**3), ("us", 1))
    ],
    (pa.array([-1, 1_999]).view(pa.timestamp("ns")), {"timestamp": [(0, -1), (1, 1)]}),
    *[
        (pa.array([[1, None], None, [], [2, 3]], make(pa.int64())), {"number": [(0, (1, 0)), (3, (2, 0)), (3, (3, 0))]})
        for make in LISTS
    ],
    (pa.array([[1, None], None, [2, 3]], pa.list_(pa.int64(), 2)), {"number": [(0, (1, 0)), (2, (2, 0)), (2, (3, 0))]}),
    (pa.array([[["x"], []], None, [None, ["y"]]]), {"string": [(0, "x"), (2, "y")]}),
    (pa.array(['{"x": 1}'], pa.json_()), {"string": [(0, '{"x": 1}')]}),
]


class TestArrow:
    @pytest.mark.parametrize(("array", "expected"), IN_COLUMNS, ids=[str(array.type) for array, _ in IN_COLUMNS])
    def test_types(self, array: pa.Array, expected: dict[str, Any]) -> None:
        batch = arrow(array)
        assert batch.is_lazy
        assert shown(batch.cells(("a",))) == expected
        rows = {row for pairs in expected.values() for row, _ in pairs}
        assert batch.cells(("a",)).present.nonzero()[0].tolist() == sorted(rows)
        for each in batch.cells(("a",)).cells:
            assert each.rows.dtype == np.int32
            assert each.kind is Kind.STRING or each.values.flags.writeable
            assert each.kind is Kind.STRING or each.values.dtype == np.int64

    @pytest.mark.parametrize(("array", "expected"), IN_COLUMNS, ids=[str(array.type) for array, _ in IN_COLUMNS])
    def test_slices_and_chunks(self, array: pa.Array, expected: dict[str, Any]) -> None:
        for start in range(len(array) + 1):
            for end in range(start, len(array) + 1):
                part = {
                    kind: kept
                    for kind, pairs in expected.items()
                    if (kept := [(row - start, value) for row, value in pairs if start <= row < end])
                }
                assert shown(arrow(array.slice(start, end - start)).cells(("a",))) == part
                assert shown(arrow(array)[start:end].cells(("a",))) == part
            chunks = pa.chunked_array([array[:start], array[start:]], array.type)
            assert shown(arrow(chunks).cells(("a",))) == expected

    def test_integers_stay_where_they_are(self) -> None:
        whole = pa.array(range(1_000), pa.int64())
        (cells,) = arrow(whole.slice(10, 500)).cells(("a",)).cells
        assert cells.values.ctypes.data == whole.buffers()[1].address + 80
        del whole
        assert cells.values.tolist() == list(range(10, 510))
        assert isinstance(cells.values.base._memory, pa.Buffer), "which lives as long as the cells"
        assert cells.values.flags.writeable, "or every kernel is compiled once more"
        large = pa.array([0, INT64_MAX], pa.uint64())
        assert shown(arrow(large).cells(("a",))) == {"number": [(0, (0, 0.0)), (1, (INT64_MAX, 0.0))]}

    def test_integers_at_odd_addresses(self) -> None:
        buffer = pa.py_buffer(b"?" + np.arange(5).tobytes()).slice(1)
        (cells,) = arrow(pa.Array.from_buffers(pa.int64(), 5, [None, buffer])).cells(("a",)).cells
        assert cells.values.flags.aligned
        assert cells.values.tolist() == [0, 1, 2, 3, 4]

    def test_rows_of_large_batches(self) -> None:
        count = 200_000
        chunks = [pa.nulls(0, pa.int64()), pa.array(np.arange(count - 7)), pa.array(np.arange(7))]
        (cells,) = arrow(pa.chunked_array(chunks)).cells(("a",)).cells
        assert np.array_equal(cells.rows, np.arange(count))
        assert np.array_equal(cells.values[-7:], np.arange(7))

    def test_objects(self) -> None:
        rows = [{"x": 1, "y": [{"z": "p"}, None, {"z": None}, {"z": "q"}]}, None, {"x": None, "y": []}]
        for kind in (NESTED, pa.list_(NESTED)):
            batch = arrow(pa.array([[row] for row in rows] if kind != NESTED else rows, kind))
            assert batch.is_lazy
            assert batch.cells(("a",)).present.tolist() == [True, False, True]
            assert batch.cells(("a",)).cells == ()
            assert shown(batch.cells(("a", "x"))) == {"number": [(0, (1, 0))]}
            assert batch.cells(("a", "y")).present.tolist() == [True, False, False]
            assert shown(batch.cells(("a", "y", "z"))) == {"string": [(0, "p"), (0, "q")]}
            for path in (("a", "q"), ("a", "x", "q"), ("q",), ("a", "y", "z", "q")):
                assert not batch.cells(path).present.any()

    def test_what_lies_under_a_null_does_not_show(self) -> None:
        inner = pa.array([1, 2**63], pa.uint64())
        column = pa.StructArray.from_arrays([inner], ["x"], mask=pa.array([False, True]))
        batch = arrow(column)
        assert shown(batch.cells(("a", "x"))) == {"number": [(0, (1, 0))]}
        assert len(batch) == 2

    @pytest.mark.parametrize(
        "array",
        [
            pa.array([1, 2**63], pa.uint64()),
            pa.array([0, 2**62]).view(pa.timestamp("s")),
            pa.array([0, 253_402_300_800]).view(pa.timestamp("s")),
            pa.array([0, -62_135_596_801]).view(pa.timestamp("s")),
            pa.array([0, 2_932_897], pa.int32()).view(pa.date32()),
            pa.array([0, -719_163], pa.int32()).view(pa.date32()),
            pa.array([0, 1]).view(pa.date64()),
            pa.array([b"x", b"\xff"]).view(pa.string()),
            pa.array([b"x", b"\xed\xa0\x80"]).view(pa.string()),
            pa.array([[("x", 1)], []], pa.map_(pa.string(), pa.int64())),
            pa.RunEndEncodedArray.from_arrays([2, 3], ["x", None]),
            pa.array([Decimal(1000)], pa.decimal128(5, -2)),
            pa.DictionaryArray.from_arrays([0, 0], pa.array([["x"]])),
        ],
        ids=lambda array: str(array.type),
    )
    def test_what_is_read_by_rows(self, array: pa.Array) -> None:
        batch = arrow(array)
        assert not batch.is_lazy
        assert batch.cells(("a",)).present[0]

    def test_the_ends_of_the_calendar_are_within(self) -> None:
        for unit, scale in (("s", 1), ("ms", 10**3), ("us", 10**6)):
            ends = pa.array([-62_135_596_800 * scale, 253_402_300_800 * scale - 1]).view(pa.timestamp(unit))
            assert arrow(ends).is_lazy
            assert arrow(ends)[0].attributes == {"a": datetime.min.replace(tzinfo=UTC)}
        days = pa.array([-719_162, 2_932_896], pa.int32()).view(pa.date32())
        assert arrow(days).is_lazy
        assert [event.attributes["a"] for event in arrow(days)] == [date.min, date.max]

    def test_too_many_values_are_for_the_rows_to_tell(self) -> None:
        table = pa.table({"a": [[1, 2, 3], [1]], "b": [1, 2]})
        limits = Limits(max_event_values=4)
        decoded = validate(table, limits=limits)
        assert decoded.batch.positions == (1,)
        assert decoded.rejected[0].error.to_dict()["limit"] == "max_event_values"
        assert validate(table, limits=Limits(max_event_values=5)).batch.is_lazy

    def test_columns_without_rows_and_rows_without_columns(self) -> None:
        table = pa.table({"a": pa.array([], pa.int64())})
        assert validate(table).batch.cells(("a",)).cells == ()
        empty = validate(pa.table({"a": [1, 2, 3]}).select([])).batch
        assert [event.attributes for event in empty] == [{}, {}, {}]
        assert not empty.cells(("a",)).present.any()
        assert empty.cells(()).present.all()

    def test_chunks_of_different_dictionaries(self) -> None:
        chunks = [pa.array(texts).dictionary_encode() for texts in (["x", "y"], ["z", "x"])]
        batch = validate(pa.table({"a": pa.chunked_array(chunks)})).batch
        assert shown(batch.cells(("a",))) == {"string": [(0, "x"), (1, "y"), (2, "z"), (3, "x")]}


class TestLaziness:
    TABLE = pa.table({"a": range(100), "s": [f"text {n}" for n in range(100)]})

    def made(self, batch: EventBatch) -> int:
        assert isinstance(batch.views, ColumnViews)
        return len(batch.views._made)

    def test_only_what_is_asked_for_is_made(self) -> None:
        batch = validate(self.TABLE).batch
        batch.cells(("a",))
        assert self.made(batch) == 0
        assert batch[7].attributes == {"a": 7, "s": "text 7"}
        assert batch[7] is batch[7]
        assert batch[-1].attributes["a"] == 99
        assert self.made(batch) == 2

    def test_many_are_made_at_once(self) -> None:
        batch = validate(self.TABLE).batch
        assert [batch[n].attributes["a"] for n in range(0, 100, 2)] == list(range(0, 100, 2))
        assert self.made(batch) == 100

    def test_a_sequence_still(self) -> None:
        batch = validate(self.TABLE).batch
        plain = validate(self.TABLE.to_pylist()).batch
        assert not plain.is_lazy
        assert batch == plain
        assert hash(batch) == hash(plain)
        assert batch != plain[1:]
        assert batch != 7
        assert plain[3] in batch
        assert list(batch) == list(plain)
        for part in (slice(None), slice(3, 9), slice(-5, None), slice(90, 200), slice(9, 3), slice(None, None, -7)):
            assert batch[part] == plain[part]
            assert shown(batch[part].cells(("s",))) == shown(plain[part].cells(("s",)))
        assert batch[20:][3:][1].attributes["a"] == 24
        for index in (100, -101):
            with pytest.raises(IndexError):
                batch[index]


class TestNested:
    """What lies in structs and lists is told from the columns: no event is made for it."""

    SELLER = pa.array([{"country": "CH", "rating": 3}, None, {"country": None, "rating": 5}, {"country": "DE"}] * 2)

    @pytest.fixture(autouse=True)
    def _no_events(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def reject(self: ColumnViews, content: dict[str, Any]) -> Event:
            raise AssertionError("an event was made")

        monkeypatch.setattr(ColumnViews, "_event", reject)

    @pytest.mark.parametrize("start", [0, 1, 3])
    def test_a_column_in_a_struct_stays_where_it_is(self, start: int) -> None:
        batch = validate(pa.table({"seller": self.SELLER}).slice(start)).batch
        country, rating = batch.dense(("seller", "country")), batch.dense(("seller", "rating"))
        assert country is not None
        assert rating is not None
        assert country.to_list() == ["CH", None, None, "DE", "CH", None, None, "DE"][start:]
        assert rating.to_list() == [3, None, 5, None, 3, None, 5, None][start:]
        assert batch.dense(("seller", "gone")) is None
        assert batch.dense(("seller", "country", "more")) is None
        assert batch.dense(("seller",)) is None

    def test_a_column_in_chunks_is_put_together(self) -> None:
        table = pa.table({"seller": pa.chunked_array([self.SELLER[:3], self.SELLER[3:3], self.SELLER[3:]])})
        dense = validate(table).batch.dense(("seller", "rating"))
        assert dense is not None
        assert (dense.kind, dense.to_list()) == (Kind.NUMBER, [3, None, 5, None, 3, None, 5, None])

    def test_a_column_in_a_list_is_not_dense(self) -> None:
        assert validate(pa.table({"a": [[{"x": 1}]]})).batch.dense(("a", "x")) is None

    @pytest.mark.parametrize(
        ("cells", "prefix", "expected"),
        [
            ([{"x": 1}, None, {"x": None}], ("a", "x"), [False] * 3),
            ([[1], [1, 2], [1, None], [None], [], None], ("a",), [False, True, False, False, False, False]),
            ([[1.5, float("nan")], [1.5, 2.5], [float("nan")] * 2], ("a",), [False, True, False]),
            ([[[1], []], [[1], [2]], [[1, 2]], [[], None]], ("a",), [False, True, True, False]),
            ([[{"x": 1}], [{"x": 1}, {"x": None}], [{"x": 1}, None]], ("a",), [False, True, False]),
            ([[{"x": 1}], [{"x": 1}, {"x": None}], [{"x": 1}, None]], ("a", "x"), [False, True, False]),
            ([{"x": [1, 2]}, {"x": [1]}, {"x": None}, None], ("a",), [False] * 4),
            ([{"x": [1, 2]}, {"x": [1]}, {"x": None}, None], ("a", "x"), [True, False, False, False]),
            ([{"x": [1, 2]}, {"x": [1]}, {"x": None}, None], ("a", "y"), [False] * 4),
            ([[1, 2], [1]], ("a", "x"), [True, False]),
            ([[None, None], []], ("a", "x"), [False, False]),
            ([1, 2], ("b",), [False, False]),
        ],
    )
    def test_which_events_branch(self, cells: list[Any], prefix: Path, expected: list[bool]) -> None:
        table = pa.table({"a": cells})
        in_chunks = pa.concat_tables([table[:1], table[1:]])
        assert validate(table).batch.branching(prefix).tolist() == expected
        assert validate(in_chunks).batch.branching(prefix).tolist() == expected
        assert validate(in_chunks).batch[1:].branching(prefix).tolist() == expected[1:]
        assert validate(table.to_pylist()).batch.branching(prefix).tolist() == expected


class TestTables:
    def test_chosen_paths(self) -> None:
        events = [{"a": {"b": 1}, "s": "x", "on": DAY, "at": NOON, "ok": True}, {}, {"a": {"b": 2.5}, "s": ["y"]}]
        table = validate(events).batch.table([("a", "b"), ("s",), ("on",), ("at",), ("ok",), ("gone",)])
        assert table.to_pydict() == {
            "a.b": [1, None, 2.5],
            "s": ["x", None, "y"],
            "on": [DAY, None, None],
            "at": [NOON, None, None],
            "ok": [True, None, None],
            "gone": [None] * 3,
        }

    @pytest.mark.parametrize(
        "values", [[[1, 2]], [1, "x"], [{"x": 1}], [1, {"x": 1}], [2**53 + 1, 0.5], [INT64_MAX, 0.5], [[1, 2], {}]]
    )
    def test_what_no_column_holds(self, values: list[Any]) -> None:
        assert validate([{"a": value} for value in values]).batch.table([("a",)]) is None


class TestArrowWithASchema:
    SCHEMA = Schema(
        domains={
            "size": EnumeratedDomain("size", ("S", "M", "L")),
            "small": IntegerDomain("small", 0, 9),
        },
        attributes={
            ("n",): IntegerDomain("small", 0, 9),
            ("m",): BUILT_IN["integer"],
            ("x",): BUILT_IN["float"],
            ("s",): BUILT_IN["string"],
            ("size",): EnumeratedDomain("size", ("S", "M", "L")),
            ("at",): BUILT_IN["timestamp"],
            ("day",): BUILT_IN["date"],
            ("ok",): BUILT_IN["boolean"],
            ("inner", "n"): BUILT_IN["integer"],
        },
    )

    @pytest.mark.parametrize(
        "columns",
        [
            {"n": [0, 9, None], "m": [1, 2, 3], "x": [1, 2, 3], "s": ["a", None, "b"], "ok": [True, None, False]},
            {"x": [1.5, float("nan"), None], "size": ["S", "L", None], "at": [NOON] * 3, "day": [DAY] * 3},
            {"size": pa.array(["S", "M", "S"]).dictionary_encode(), "n": [[1, 2], [], None], "other": [1.5, None, 2]},
            {"size": pa.array(["S", None, "S"], pa.string_view()), "inner": [{"n": 1}, None, {"n": None}]},
            {"n": pa.nulls(3), "inner": [1, 2, 3], "at": pa.nulls(3, pa.struct([("x", pa.int64())]))},
        ],
    )
    def test_read_in_columns(self, columns: dict[str, Any]) -> None:
        table = pa.table(columns)
        batch = validate(table, self.SCHEMA).batch
        assert batch.is_lazy
        assert list(batch) == list(validate(table.to_pylist(), self.SCHEMA).batch)

    @pytest.mark.parametrize(
        "columns",
        [
            {"n": [0, 10]},
            {"n": [-1, 0]},
            {"n": [0.0, 1.0]},
            {"x": ["x", "y"]},
            {"size": ["S", "XL"]},
            {"at": ["2026-07-01T12:00:00", "soon"]},
            {"day": [NOON, NOON]},
            {"ok": [0, 1]},
            {"s": [{"x": 1}, None]},
            {"inner": [[{"n": 1}], [{"n": 1}, {"n": 2}]], "m": ["x", None]},
        ],
    )
    def test_read_by_rows(self, columns: dict[str, Any]) -> None:
        table = pa.table(columns)
        decoded = validate(table, self.SCHEMA)
        assert not decoded.batch.is_lazy
        plain = collect(rows_from_arrow(table), self.SCHEMA, DEFAULT_LIMITS)
        assert decoded.batch == plain.batch
        assert [each.to_dict() for each in decoded.rejected] == [each.to_dict() for each in plain.rejected]

    def test_event_types_are_for_the_rows(self) -> None:
        sale = EventType("sale", {("n",): Rule(mandatory=True)})
        schema = Schema(attributes={("n",): BUILT_IN["integer"]}, event_types={"sale": sale})
        decoded = validate(pa.table({"event_type": ["sale", "sale"], "n": [1, None]}), schema)
        assert decoded.batch.positions == (0,)


def test_times_of_python_are_exact() -> None:
    moments = [datetime.min, datetime.max, *(datetime(1970, 1, 1) + timedelta(microseconds=n) for n in (-1, 0, 1))]
    batch = validate([{"t": moment, "d": moment.date()} for moment in moments]).batch
    (times,), (days,) = batch.cells(("t",)).cells, batch.cells(("d",)).cells
    assert times.values.tolist() == [as_integer(Kind.TIMESTAMP, moment.replace(tzinfo=UTC)) for moment in moments]
    assert days.values.tolist() == [as_integer(Kind.DATE, moment.date()) for moment in moments]


def test_limits_of_arrow_types_stay() -> None:
    assert DEFAULT_LIMITS.max_event_depth == 64
    nested: pa.DataType = pa.int64()
    for _ in range(60):
        nested = pa.list_(nested)
    value: Any = 1
    for _ in range(60):
        value = [value]
    assert shown(arrow(pa.array([value, None], nested)).cells(("a",))) == {"number": [(0, (1, 0))]}


@pytest.mark.parametrize(
    ("column", "is_dense"),
    [
        (pa.array([1, None, 3]), True),
        (pa.array([1, None, 3], pa.uint64()), True),
        (pa.array(["a", None, ""]), True),
        (pa.array([1, None, 3], pa.timestamp("us")), True),
        (pa.array([1, None, 3], pa.timestamp("ms")), False),
        (pa.array([1, None, 3], pa.int32()), False),
        (pa.array([1.5, None, 3.0]), False),
        (pa.array([[1], None, [3, 4]]), False),
        (pa.array(["a", None, "b"]).dictionary_encode(), False),
        (pa.chunked_array([[1], [None, 3]]), True),
        (pa.chunked_array([["a"], [None, "b"]]), True),
    ],
    ids=str,
)
def test_what_lies_ready_in_memory_is_dense(column: pa.Array, is_dense: bool) -> None:
    table = pa.table({"x": column})
    found = validate(table).batch.dense(("x",))
    assert (found is not None) == is_dense
    if found is not None:
        assert found.values[0] in (1, pa.scalar("a"))
        assert np.unpackbits(found.valid, bitorder="little")[found.bit :][:3].tolist() == [1, 0, 1]
    assert validate(table).batch.dense(("y",)) is None
    assert validate(table).batch.dense(("x", "y")) is None
    assert validate(table.to_pylist()).batch.dense(("x",)) is None


@pytest.mark.parametrize("start", [0, 1, 7, 8, 9, 63, 64, 65, 990])
@pytest.mark.parametrize("kind", [pa.float64(), pa.int32(), pa.bool_(), pa.string()], ids=str)
def test_nulls_of_a_slice_are_its_own(start: int, kind: pa.DataType) -> None:
    values = pa.array([None if row % 3 == 1 else row for row in range(1_000)]).cast(kind)
    expected = [row - start for row in range(start, 1_000) if row % 3 != 1]
    (cells,) = arrow(values.slice(start)).cells(("a",)).cells
    assert cells.rows.tolist() == expected
