"""Subscriptions from tables of predicates: rows, texts, what goes by its text, and what is rejected."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from drawn import generate
from harken.codes.columns import ColumnPredicates
from harken.codes.conjunctions import code
from harken.codes.constants import Pairs
from harken.codes.flat import Flat
from harken.codes.tables import table_predicates as listed
from harken.codes.tables import table_rows as tables
from harken.codes.tables.table_rows import TableRows, rows_of_table
from harken.errors import HarkenError, ParseError, SourceError, SubscriptionError
from harken.events.cells import whole_and_part
from harken.language.compiled import Compiler
from harken.limits import Limits
from harken.schema.values import INT64_MAX, INT64_MIN

TYPES: dict[str, pa.DataType] = {
    "attribute": pa.string(),
    "operator": pa.string(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}
FIELDS = {int: "integer", float: "float", str: "string", bool: "boolean", datetime: "timestamp", date: "date"}
STRUCT = pa.struct(list(TYPES.items()))
LISTS = pa.list_(STRUCT)

Predicate = dict[str, Any] | None
Cut = tuple[Any, int] | None


def asks(attribute: str | None, operator: str | None, value: Any = None, **more: Any) -> Predicate:
    """A predicate, with its value in the field of its type."""
    given = {} if value is None else {FIELDS[type(value)]: value}
    return {"attribute": attribute, "operator": operator} | given | more


def table(*subscriptions: list[Predicate] | None, type: pa.DataType = LISTS) -> pa.Table:
    ids = pa.array([f"s{row}" for row in range(len(subscriptions))])
    return pa.table({"id": ids, "predicates": pa.array(subscriptions, type)})


def cuts(found: ColumnPredicates) -> dict[int, tuple[Cut, Cut]]:
    """The interval of each row, with numbers and times as the pairs that they are embedded as."""
    constants: Any = found.constants
    if isinstance(constants, np.ndarray):
        constants = constants.tolist()
    elif isinstance(constants, Pairs):
        parts = np.zeros(len(constants)) if constants.part is None else constants.part
        constants = list(zip(constants.whole.tolist(), parts.tolist(), strict=True))
        constants = [whole if part == 0 else (whole, part) for whole, part in constants]
    elif isinstance(constants, pa.Array):
        constants = constants.to_pylist()
    assert len(set(constants)) == len(constants)
    assert found.rows.dtype == found.low.dtype == found.high.dtype == np.int32
    assert found.low_side.dtype == found.high_side.dtype == np.uint8
    assert found.rows.tolist() == sorted(set(found.rows.tolist()))
    sides = zip(found.rows, found.low, found.low_side, found.high, found.high_side, strict=True)
    return {
        int(row): (
            None if low < 0 else (constants[low], int(low_side)),
            None if high < 0 else (constants[high], int(high_side)),
        )
        for row, low, low_side, high, high_side in sides
    }


def intervals(found: TableRows) -> dict[str, dict[int, tuple[Cut, Cut]]]:
    return {str(each.column): cuts(each) for each in found.flat.columns}


def point(value: Any) -> tuple[Cut, Cut]:
    return (value, 0), (value, 1)


# Rows and texts

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_TICKS = 1_767_355_200_000_000
ONE = [
    (asks("x", "=", 5), "x = 5", "x number", point(5)),
    (asks("x", "<>", 5), "x <> 5", "x number", ((5, 1), (5, 0))),
    (asks("x", "!=", 5), "x <> 5", "x number", ((5, 1), (5, 0))),
    (asks("x", "<", 5), "x < 5", "x number", (None, (5, 0))),
    (asks("x", "<=", 5), "x <= 5", "x number", (None, (5, 1))),
    (asks("x", ">", 5), "x > 5", "x number", ((5, 1), None)),
    (asks("x", ">=", 5), "x >= 5", "x number", ((5, 0), None)),
    (asks("x", " >= ", 5), "x >= 5", "x number", ((5, 0), None)),
    (asks("x", ">=", INT64_MIN), f"x >= {INT64_MIN}", "x number", ((INT64_MIN, 0), None)),
    (asks("x", "=", 2.5), "x = 2.5", "x number", point((2, 0.5))),
    (asks("x", "=", -2.0), "x = -2.0", "x number", point(-2)),
    (asks("x", "=", -0.0), "x = -0.0", "x number", point(0)),
    (asks("x", "<", 1e16), "x < 1e+16", "x number", (None, (10**16, 0))),
    (asks("x", "<", 1e300), "x < 1e+300", "x number", (None, (whole_and_part(1e300), 0))),
    (asks("x", "=", "it's"), "x = 'it''s'", "x string", point("it's")),
    (asks("x", "=", ""), "x = ''", "x string", point("")),
    (asks("x", ">", "é"), "x > 'é'", "x string", (("é", 1), None)),
    (asks("x", "=", True), "x = TRUE", "x boolean", point(1)),
    (asks("x", "=", False), "x = FALSE", "x boolean", point(0)),
    (asks("x", "<>", True), "x <> TRUE", "x boolean", point(0)),
    (asks("x", "!=", False), "x <> FALSE", "x boolean", point(1)),
    (asks("x", "<", date(2026, 1, 2)), "x < DATE '2026-01-02'", "x date", (None, (20_455, 0))),
    (asks("x", "=", date.min), "x = DATE '0001-01-01'", "x date", point(-719_162)),
    (asks("x", ">=", NOON), "x >= TIMESTAMP '2026-01-02 12:00:00.000000'", "x timestamp", ((NOON_TICKS, 0), None)),
    (asks("x", "is null"), "x IS NULL", "x presence", point(0)),
    (asks("x", "IS  Not\nnull"), "x IS NOT NULL", "x presence", point(1)),
    (asks("items.price", "=", 1), "items.price = 1", "items.price number", point(1)),
    (asks("`a.b`.not", "=", 1), "`a.b`.`not` = 1", "`a.b`.`not` number", point(1)),
    (asks("date", "=", 1), "date = 1", "date number", point(1)),
]


@pytest.mark.parametrize(("predicate", "text", "column", "interval"), ONE)
def test_a_predicate_is_an_interval_and_a_text(predicate: Predicate, text: str, column: str, interval: Any) -> None:
    found = rows_of_table(table([predicate]))
    assert intervals(found) == {column: {0: interval}}
    assert found.texts().to_pylist() == [text]
    Compiler().compile(text)
    assert not found.faults
    assert not len(found.slow)


def test_rows_are_exact_and_numbered() -> None:
    found = rows_of_table(
        table(
            [asks("x", "=", 5), asks("y", "<", 2.5)],
            None,
            [],
            [asks("y", ">", 5), asks("x", "=", "a"), asks("z", "is null")],
            [asks("x", "=", 5)],
        )
    )
    assert found.flat.numbers.tolist() == [0, 3, 4]
    assert found.flat.numbers.dtype == np.int32
    assert not found.flat.inexact.any()
    assert not found.flat.overlapping.any()
    assert intervals(found) == {
        "x number": {0: point(5), 2: point(5)},
        "x string": {1: point("a")},
        "y number": {0: (None, ((2, 0.5), 0)), 1: ((5, 1), None)},
        "z presence": {1: point(0)},
    }
    assert found.slow.tolist() == [2]
    assert [row for row, _ in found.faults] == [1]
    texts = ["x = 5 AND y < 2.5", None, "TRUE", "y > 5 AND x = 'a' AND z IS NULL", "x = 5"]
    assert found.texts().to_pylist() == texts
    assert found.texts().type == pa.large_string()
    assert found.texts([3, 1, 3]).to_pylist() == [texts[3], None, texts[3]]
    assert found.texts([]).to_pylist() == []


@pytest.mark.parametrize(
    ("subscription", "column", "interval"),
    [
        pytest.param([asks("x", ">", 1), asks("x", "<", 9)], "x number", ((1, 1), (9, 0)), id="an attribute twice"),
        pytest.param([asks("x", ">", 1), asks("`x`", "<", 9)], "x number", ((1, 1), (9, 0)), id="by two names"),
        pytest.param([asks("x", ">", 1.5), asks("x", ">=", 1)], "x number", (((1, 0.5), 1), None), id="with a part"),
        pytest.param([asks("x", "<", 9), asks("x", "=", 3), asks("x", "<>", 4)], "x number", point(3), id="a point"),
        pytest.param([asks("x", ">=", 1), asks("x", "<>", 1)], "x number", ((1, 1), None), id="without its low end"),
        pytest.param([asks("x", "<=", 1), asks("x", "<>", 1)], "x number", (None, (1, 0)), id="without its high end"),
        pytest.param(
            [asks("x", "<>", 9), asks("x", ">=", 1), asks("x", "<=", 9), asks("x", "<>", 1)],
            "x number",
            ((1, 1), (9, 0)),
            id="without both ends",
        ),
        pytest.param([asks("x", "<>", 1), asks("x", "!=", 1)], "x number", ((1, 1), (1, 0)), id="left out twice"),
        pytest.param([asks("x", "is not null"), asks("x", ">", 1)], "x number", ((1, 1), None), id="present"),
        pytest.param([asks("x", "is null"), asks("x", "is null")], "x presence", point(0), id="absent twice"),
        pytest.param([asks("x", ">=", "b"), asks("x", ">", "a")], "x string", (("b", 0), None), id="strings"),
        pytest.param([asks("x", "<", True)], "x boolean", point(0), id="below true"),
        pytest.param([asks("x", ">=", False)], "x boolean", (None, None), id="from false"),
        pytest.param([asks("x", "<=", True), asks("x", "<>", False)], "x boolean", point(1), id="two booleans"),
        pytest.param(
            [asks("x", ">=", date(2026, 1, 2)), asks("x", "<", date(2026, 1, 3))],
            "x date",
            ((20_455, 0), (20_456, 0)),
            id="dates",
        ),
    ],
)
def test_predicates_on_one_attribute_are_what_they_have_in_common(
    subscription: list[Predicate], column: str, interval: Any
) -> None:
    found = rows_of_table(table([asks("y", "=", 1)], subscription, [asks("z", "=", 1)]))
    assert not len(found.slow)
    assert not found.faults
    assert intervals(found)[column] == {1: interval}
    Compiler().compile(found.texts([1])[0].as_py())


@pytest.mark.parametrize(
    "subscription",
    [
        pytest.param([], id="nothing"),
        pytest.param([asks("x", ">", 1), asks("x", "<>", 5)], id="a hole"),
        pytest.param([asks("x", "<>", 1), asks("x", "<>", 5)], id="two holes"),
    ],
)
def test_what_has_to_be_normalised_goes_by_its_text(subscription: list[Predicate]) -> None:
    found = rows_of_table(table([asks("x", "=", 1)], subscription))
    assert found.slow.tolist() == [1]
    assert found.slow.dtype == np.int64
    assert found.flat.numbers.tolist() == [0]
    assert not found.faults
    Compiler().compile(found.texts([1])[0].as_py())


@pytest.mark.parametrize(
    "subscription",
    [
        [asks("x", ">", 5), asks("x", "<", 1)],
        [asks("x", ">", 5), asks("x", "<=", 5.0)],
        [asks("x", "=", 5), asks("x", "<>", 5)],
        [asks("x", "=", "a"), asks("x", "=", "b")],
        [asks("x", "=", 1), asks("x", "=", "a")],
        [asks("x", "=", 1), asks("x", "is null")],
        [asks("x", "is not null"), asks("x", "is null")],
        [asks("x", "=", True), asks("x", "=", False)],
        [asks("x", ">", True)],
        [asks("x", ">", date(2026, 1, 2)), asks("x", "<", date(2026, 1, 3))],
        [asks("x", ">", NOON), asks("x", "<", NOON + timedelta(microseconds=1))],
    ],
)
def test_contradictions_are_rejected_by_their_texts(subscription: list[Predicate]) -> None:
    found = rows_of_table(table(subscription, [asks("x", "=", 1)]))
    assert found.slow.tolist() == [0]
    with pytest.raises(HarkenError, match="no event can ever match"):
        Compiler().compile(found.texts([0])[0].as_py())


@pytest.mark.parametrize(
    "predicate",
    [
        asks("x", "<", ""),
        asks("x", "<", date.min),
        asks("x", ">", date.max),
        asks("x", "<", datetime.min.replace(tzinfo=UTC)),
        asks("x", ">", datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_what_can_never_be_true_is_rejected_by_its_text(predicate: Predicate) -> None:
    found = rows_of_table(table([predicate]))
    assert found.slow.tolist() == [0]
    with pytest.raises(HarkenError, match="no event can ever match"):
        Compiler().compile(found.texts()[0].as_py())


def test_what_the_limits_may_reject_goes_by_its_text() -> None:
    long = [asks(f"x{number}", "=", number) for number in range(12)]
    given = table([asks("x1", "=", 1)], long, [asks("x1", "=", "a" * 90)])
    assert rows_of_table(given).slow.tolist() == []
    assert rows_of_table(given, Limits(max_values=11)).slow.tolist() == [1]
    limits = Limits(max_text_length=90)
    found = rows_of_table(given, limits)
    assert found.slow.tolist() == [1, 2]
    assert all(len(text) <= limits.max_text_length for text in found.texts(found.flat.numbers).to_pylist())


# Tables of all sorts

MANY: list[list[Predicate] | None] = [
    [asks("x", "=", 5), asks("s", "<>", "a")],
    [asks("x", "<", 7), asks("s", "=", "b")],
    None,
    [asks("s", "=", "b"), asks("x", "<", 7)],
]
EXPECTED = ["x = 5 AND s <> 'a'", "x < 7 AND s = 'b'", None, "s = 'b' AND x < 7"]


@pytest.mark.parametrize(
    "type",
    [
        LISTS,
        pa.large_list(STRUCT),
        pa.list_(STRUCT, 2),
        pa.list_view(STRUCT),
        pa.large_list_view(STRUCT),
    ],
    ids=lambda type: str(type).split("<")[0],
)
def test_lists_of_all_sorts(type: pa.DataType) -> None:
    given = table(*MANY, type=type)
    found = rows_of_table(given)
    assert found.texts().to_pylist() == EXPECTED
    assert found.flat.numbers.tolist() == [0, 1, 3]
    assert intervals(found) == intervals(rows_of_table(table(*MANY)))
    sliced = rows_of_table(given.slice(1, 2))
    assert sliced.texts().to_pylist() == EXPECTED[1:3]
    assert sliced.flat.numbers.tolist() == [0]
    assert rows_of_table(given.slice(1, 0)).texts().to_pylist() == []


def test_tables_in_pieces() -> None:
    given = table(*MANY)
    pieces = pa.concat_tables([given.slice(3), given.slice(0, 0), given.slice(0, 3)])
    assert rows_of_table(pieces).texts().to_pylist() == [EXPECTED[3], *EXPECTED[:3]]
    none = rows_of_table(pa.Table.from_batches([], given.schema))
    assert (len(none.flat), none.flat.columns, len(none.slow), none.faults) == (0, [], 0, [])


def test_names_and_values_may_be_dictionaries_and_views() -> None:
    for strings in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        type = pa.struct([("attribute", strings), ("operator", strings), ("integer", pa.int64()), ("string", strings)])
        items = [item for row in MANY for item in row or []]
        columns = [
            pa.array([(item or {}).get(name) for item in items], field.type)
            if not pa.types.is_dictionary(field.type)
            else pa.array([(item or {}).get(name) for item in items]).dictionary_encode().cast(strings)
            for name, field in zip(("attribute", "operator", "integer", "string"), type, strict=True)
        ]
        struct = pa.StructArray.from_arrays(columns, fields=list(type))
        lists = pa.ListArray.from_arrays(pa.array([0, 2, 4, 6]), struct)
        found = rows_of_table(pa.table({"predicates": lists}))
        assert found.texts().to_pylist() == [text for text in EXPECTED if text]


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        *((kind, 100, "100") for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint32(), pa.uint64())),
        (pa.uint64(), INT64_MAX, str(INT64_MAX)),
        (pa.float16(), np.float16(0.5), "0.5"),
        (pa.float32(), 0.1, "0.10000000149011612"),
        (pa.decimal128(12, 2), Decimal("0.10"), "0.1"),
        (pa.decimal64(12, 2), Decimal("5.00"), "5.0"),
        (pa.decimal256(60, 2), Decimal(2) ** 100, "1.2676506002282294e+30"),
        (pa.string(), "a", "'a'"),
        (pa.bool_(), True, "TRUE"),
        (pa.date32(), date(2026, 1, 2), "DATE '2026-01-02'"),
        (pa.date64(), date(1969, 12, 31), "DATE '1969-12-31'"),
        (pa.timestamp("s"), datetime(2026, 1, 2, 12), "TIMESTAMP '2026-01-02 12:00:00.000000'"),
        (pa.timestamp("ms", "+02:00"), NOON, "TIMESTAMP '2026-01-02 12:00:00.000000'"),
        (pa.timestamp("us", "Europe/Berlin"), NOON, "TIMESTAMP '2026-01-02 12:00:00.000000'"),
        (pa.timestamp("ns"), np.datetime64("1969-12-31T23:59:59.999999999"), "TIMESTAMP '1969-12-31 23:59:59.999999'"),
        (pa.timestamp("us", "UTC"), datetime.max.replace(tzinfo=UTC), "TIMESTAMP '9999-12-31 23:59:59.999999'"),
    ],
)
def test_one_field_of_any_type(type: pa.DataType, value: Any, text: str) -> None:
    struct = pa.struct([("attribute", pa.string()), ("operator", pa.string()), ("value", type)])
    found = rows_of_table(table([{"attribute": "x", "operator": "=", "value": value}], type=pa.list_(struct)))
    assert not found.faults
    assert found.texts().to_pylist() == [f"x = {text}"]
    expected = Flat.of_forms([(0, Compiler().compile(f"x = {text}").normal_form)]).coded()
    (coded,) = found.flat.coded().predicates
    assert coded.column == expected.predicates[0].column
    assert [coded.low.tolist(), coded.high.tolist()] == [
        expected.predicates[0].low.tolist(),
        expected.predicates[0].high.tolist(),
    ]


def test_fields_of_one_kind_share_a_column() -> None:
    struct = pa.struct([*STRUCT, ("value", pa.float32())])
    given = [
        asks("x", "=", 5),
        asks("x", "=", 5.5),
        {"attribute": "x", "operator": "=", "value": 5.0},
        asks("x", "=", "a"),
    ]
    found = rows_of_table(table(*([each] for each in given), type=pa.list_(struct)))
    numbers, strings = found.flat.columns
    assert found.texts().to_pylist() == ["x = 5", "x = 5.5", "x = 5.0", "x = 'a'"]
    coded = code(found.flat.numbers, [numbers, strings])
    assert len(coded.dictionaries[0]) == 2
    assert coded.predicates[0].low.tolist() == [2, 4, 2]


def test_fields_without_a_type_hold_nothing() -> None:
    struct = pa.struct([("attribute", pa.string()), ("operator", pa.string()), ("value", pa.null())])
    found = rows_of_table(table([asks("x", "is null")], [asks("x", "=")], type=pa.list_(struct)))
    assert found.texts().to_pylist() == ["x IS NULL", None]


# Faults


@pytest.mark.parametrize(
    ("predicate", "message", "hint"),
    [
        (None, "predicate 2 is null", "leave it out"),
        (asks(None, "=", 1), "predicate 2 has no `attribute`", "list of structs"),
        (asks("", "=", 1), "predicate 2 has the `attribute` '', which is not a name", None),
        (asks("a b", "=", 1), "predicate 2 has the `attribute` 'a b', which is not a name", "`a b`"),
        (asks("a..b", "=", 1), "predicate 2 has the `attribute` 'a..b', which is not a name", "`a..b`"),
        (asks("y", None, 1), "predicate 2 has no `operator`", "list of structs"),
        (asks("y", "==", 1), "predicate 2 on `y` has the `operator` '==', which is not known", "write ="),
        (asks("y", "is nul", 1), "predicate 2 on `y` has the `operator` 'is nul', which is not", "`IS NULL`"),
        (asks("y", "not in", 1), "predicate 2 on `y` has the `operator` 'not in', which is not", "in a text"),
        (asks("y", "~", 1), "predicate 2 on `y` has the `operator` '~', which is not known", "operators are ="),
        (asks("y", "<"), "predicate 2 on `y` has no value to compare with", "is not null"),
        (asks("y", "<", 1, string="a"), "predicate 2 on `y` has values in `integer` and `string`", "but one"),
        (asks("y", "is null", 1), "predicate 2 on `y` has a value in `integer`, and IS NULL takes none", "null"),
        (asks("y", "<", nan), "predicate 2 on `y` has a value in `float` that is NaN", "null"),
        (asks("y", "<", inf), "predicate 2 on `y` has a value in `float` that is infinite", "is not null"),
        (asks("y", "<", -inf), "predicate 2 on `y` has a value in `float` that is infinite", "is not null"),
    ],
)
def test_faults(predicate: Predicate, message: str, hint: str | None) -> None:
    found = rows_of_table(table([asks("x", "=", 1)], [asks("x", "=", 2), predicate, asks(None, None)], []))
    ((row, error),) = found.faults
    assert row == 1
    assert isinstance(error, ParseError)
    assert message in error.message
    assert error.hint is None if hint is None else hint in (error.hint or "")
    assert found.flat.numbers.tolist() == [0]
    assert found.slow.tolist() == [2]
    assert found.texts().to_pylist() == ["x = 1", None, "TRUE"]


def test_a_subscription_without_predicates_is_a_fault() -> None:
    found = rows_of_table(table(None, [asks("y", "<")], None))
    assert [row for row, _ in found.faults] == [0, 1, 2]
    error = found.faults[0][1]
    assert isinstance(error, SubscriptionError)
    assert error.message == "the subscription has no `predicates`"
    assert found.texts().to_pylist() == [None, None, None]
    assert len(found.flat) == 0
    assert len(found.flat.coded()) == 0


def raw(type: pa.DataType, stored: list[int]) -> pa.Array:
    return pa.array(stored, pa.int64() if type.bit_width == 64 else pa.int32()).view(type)


DAY = timedelta(days=1) // timedelta(seconds=1)
LAST_DAY = (date.max - date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([1, INT64_MAX + 1], pa.uint64()), "does not fit in 64 bits"),
        (raw(pa.date32(), [0, LAST_DAY + 1]), "is a time outside the years 1 to 9999"),
        (raw(pa.date64(), [0, -(2**62)]), "is a time outside the years 1 to 9999"),
        (raw(pa.timestamp("s"), [0, (LAST_DAY + 1) * DAY]), "is a time outside the years 1 to 9999"),
        (raw(pa.timestamp("us", "UTC"), [0, INT64_MIN]), "is a time outside the years 1 to 9999"),
        (pa.array([b"a", b"\xff"]).view(pa.string()), "is not UTF-8 text"),
        (pa.array([b"a", b"\xff"], pa.large_binary()).view(pa.large_string()), "is not UTF-8 text"),
        (pa.array([1.5, nan], pa.float32()), "is NaN"),
        (pa.array([Decimal(1), Decimal(10) ** 30], pa.decimal128(38, 0)), None),
    ],
)
def test_values_that_no_text_can_name(values: pa.Array, message: str | None) -> None:
    fields = [pa.array(["x", "x"]), pa.array(["<=", "<="]), values]
    struct = pa.StructArray.from_arrays(fields, ["attribute", "operator", "value"])
    found = rows_of_table(pa.table({"predicates": pa.ListArray.from_arrays(pa.array([0, 1, 2]), struct)}))
    if message is None:
        assert not found.faults
        return
    ((row, error),) = found.faults
    assert row == 1
    assert message in error.message
    assert found.flat.numbers.tolist() == [0]
    assert found.texts().to_pylist()[1] is None
    assert found.texts().to_pylist()[0].startswith("x <= ")
    assert len(found.flat.coded().dictionaries[0]) == 1


def test_names_that_are_not_text() -> None:
    fields = [pa.array([b"x", b"\xff"]).view(pa.string()), pa.array([b"\xff", b"="]).view(pa.string())]
    struct = pa.StructArray.from_arrays([*fields, pa.array([1, 1])], ["attribute", "operator", "integer"])
    found = rows_of_table(pa.table({"predicates": pa.ListArray.from_arrays(pa.array([0, 1, 2]), struct)}))
    assert [error.message for _, error in found.faults] == [
        "predicate 1 has the `operator` b'\\xff', which is not UTF-8 text",
        "predicate 1 has the `attribute` b'\\xff', which is not UTF-8 text",
    ]


def shaped(*fields: tuple[str, pa.DataType]) -> pa.Table:
    return pa.table({"predicates": pa.array([None], pa.list_(pa.struct(list(fields))))})


NAMES = (("attribute", pa.string()), ("operator", pa.string()))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.table({"id": ["a"]}), "the table has no column `predicates`"),
        (pa.Table.from_arrays([pa.array([1])] * 2, ["predicates"] * 2), "several columns `predicates`"),
        (pa.table({"predicates": ["x = 1"]}), "`predicates` has the Arrow type string"),
        (pa.table({"predicates": [["x = 1"]]}), "`predicates` has the Arrow type list"),
        (shaped(("operator", pa.string())), "the predicates have no field `attribute`"),
        (shaped(("attribute", pa.string())), "the predicates have no field `operator`"),
        (shaped(*NAMES, ("interger", pa.int64())), "an unknown field `interger`"),
        (shaped(*NAMES, ("integer", pa.int64()), ("integer", pa.int8())), "the field `integer` twice"),
        (shaped(*NAMES, ("integer", pa.float64())), "`integer` of the predicates has the Arrow type double"),
        (shaped(*NAMES, ("string", pa.binary())), "`string` of the predicates has the Arrow type binary"),
        (shaped(*NAMES, ("value", pa.time64("us"))), "`value` of the predicates has the Arrow type time64[us]"),
        (shaped(("attribute", pa.int8()), ("operator", pa.string())), "`attribute` of the predicates has the Arrow"),
        (shaped(("attribute", pa.null()), ("operator", pa.string())), "`attribute` of the predicates has the Arrow"),
    ],
)
def test_tables_of_other_shapes_are_rejected(given: pa.Table, message: str) -> None:
    with pytest.raises(SourceError) as rejected:
        rows_of_table(given)
    assert message in rejected.value.message
    assert rejected.value.hint


# Workloads


# ranges: two predicates on an attribute go by way of a text
@pytest.mark.parametrize(
    "name", ["w0", "w1", "w2", "w3", "w4", "le-subscribe", "stock", "gryphon", "orders", "attributes-many", "mixed"]
)
def test_tables_of_workloads_give_their_predicates(name: str) -> None:
    workload = generate(name, 400, 0, 5)
    found = rows_of_table(workload.table())
    assert not found.faults
    assert not len(found.slow)
    assert found.flat.numbers.tolist() == list(range(400))
    assert intervals(found) == {str(each.column): cuts(each) for each in workload.predicates}
    texts = [text.replace("!=", "<>") for text in workload.texts().to_pylist()]
    assert found.texts().to_pylist() == texts


@pytest.mark.parametrize(
    ("limit", "value"), [("_BLOCK", 3), ("_MOST_NARROW", 1), ("_MARKED_PER_SORTED", 0), ("_MARKED_PER_SORTED", 1_000)]
)
def test_sizes_make_no_difference(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = table(*MANY, [asks("y", "=", "c"), asks("x", "=", 9)], [asks("x", "<>", 9), asks("x", "<>", 8)])
    expected = rows_of_table(given)
    expected_texts = expected.texts().to_pylist()
    monkeypatch.setattr(tables, limit, value)
    found = rows_of_table(given)
    assert intervals(found) == intervals(expected)
    assert found.slow.tolist() == expected.slow.tolist() == [5]
    assert found.texts().to_pylist() == expected_texts


def test_strings_of_more_bytes_than_offsets_of_32_bits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "_MOST_BYTES", 1)
    assert rows_of_table(table(*MANY)).texts().to_pylist() == EXPECTED
