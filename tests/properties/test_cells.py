"""Cells against events: whatever a batch was made of, its columns hold what its events do, and no event is judged
otherwise than it would be by its row.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from math import inf, isinf, nan
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harken.events import Cells, Decoded, Event, EventBatch, read_events, rows_from_arrow, validate, whole_and_part
from harken.events import decode as decoding
from harken.events.batch import collect
from harken.events.cells import as_integer, embedded
from harken.events.json_columns import JsonEvents
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.paths import Path
from harken.schema.values import INT64_MAX, INT64_MIN, KINDS, Kind, Value
from properties.generators import KEYS, nested_events, vocabulary_of
from properties.replay import many_examples
from properties.scalars import SCALARS, floating, integer, near, one_in, string

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIGHT = Limits(max_event_values=12, max_event_depth=5, max_event_bytes=300)


# What cells say, in Python again


def told(cells: Cells) -> list[tuple[int, Any]]:
    """(row, value) of every cell, a number as the exact fraction or infinity that its pair stands for."""
    assert cells.rows.dtype == np.int32
    if cells.kind is Kind.STRING:
        assert cells.values.null_count == 0
        return list(zip(cells.rows.tolist(), cells.values.to_pylist(), strict=True))
    assert cells.values.dtype == np.int64
    values = cells.values.tolist()
    if cells.kind is Kind.NUMBER:
        parts = [0.0] * len(values) if cells.part is None else cells.part.tolist()
        assert cells.part is None or any(parts)
        values = [number_of(whole, part) for whole, part in zip(values, parts, strict=True)]
    else:
        assert cells.part is None
        values = [VALUES[cells.kind](value) for value in values]
    return list(zip(cells.rows.tolist(), values, strict=True))


def number_of(whole: int, part: float) -> Fraction | float:
    if abs(part) < 1:
        return whole + Fraction(part)
    assert whole == (INT64_MAX if part > 0 else INT64_MIN)
    return part if isinf(part) else Fraction(part)


VALUES: dict[Kind, Callable[[int], Any]] = {
    Kind.BOOLEAN: bool,
    Kind.DATE: lambda days: date.fromordinal(EPOCH.toordinal() + days),
    Kind.TIMESTAMP: lambda microseconds: EPOCH + timedelta(microseconds=microseconds),
}


def hold_to_events(batch: EventBatch, events: Sequence[Event], path: Path) -> None:
    """Assert that the cells at a path are the values of the events there."""
    found = batch.cells(path)
    assert found.present.tolist() == [bool(event.values(path)) for event in events]
    expected: dict[Kind, list[tuple[int, Value]]] = {}
    for row, event in enumerate(events):
        for value in event.values(path):
            if not isinstance(value, dict):
                expected.setdefault(KINDS[type(value)], []).append((row, value))
    assert [cells.kind for cells in found.cells] == [kind for kind in Kind if kind in expected]
    for cells in found.cells:
        assert told(cells) == expected[cells.kind]
    assert batch.branching(path).dtype == np.bool_
    assert batch.branching(path).tolist() == [branches(event.attributes, path) for event in events]
    hold_table_to_events(batch, events, path)


def branches(node: Any, path: Path) -> bool:
    """Whether an array of several elements lies on the way, in a canonical event."""
    for key in path:
        if not isinstance(node, dict):
            return False
        node = node.get(key)
        while isinstance(node, list):
            if len(node) > 1:
                return True
            (node,) = node
    return False


def hold_table_to_events(batch: EventBatch, events: Sequence[Event], path: Path) -> None:
    """Assert that a table is there where it can be, and has the only value of each event."""
    table = batch.table([path])
    everything = [event.values(path) for event in events]
    values = [[value for value in each if not isinstance(value, dict)] for each in everything]
    kinds = {KINDS[type(value)] for each in values for value in each}
    only_objects = any(each and not some for each, some in zip(everything, values, strict=True))
    if max(map(len, values), default=0) > 1 or len(kinds) > 1 or only_objects:
        assert table is None
    elif table is None:
        assert any(type(value) is float for each in values for value in each)
        assert any(float(value) != value for each in values for value in each)  # type: ignore[arg-type]
    else:
        assert table.num_columns == 1
        assert table.column(0).to_pylist() == [each[0] if each else None for each in values]


def paths_of(rng: Random, raw: Iterable[Any]) -> list[Path]:
    """All paths to values, the beginnings of them, and some that lead nowhere."""
    values = [path for path in vocabulary_of(raw).values if path]
    begun = {path[:length] for path in values for length in range(len(path) + 1)}
    return [*begun, *((*path, rng.choice(KEYS)) for path in values[:3]), (rng.choice(KEYS),)]


def same(left: Iterable[Decoded], right: Iterable[Decoded]) -> None:
    for one, other in zip(left, right, strict=True):
        assert one.batch == other.batch
        assert [each.to_dict() for each in one.rejected] == [each.to_dict() for each in other.rejected]
        assert [str(each.error) for each in one.rejected] == [str(each.error) for each in other.rejected]


# The embedding


numbers = st.one_of(
    st.randoms(use_true_random=False).map(integer),
    st.randoms(use_true_random=False).map(floating),
    st.integers(INT64_MIN, INT64_MAX),
    st.floats(allow_nan=False),
)


@many_examples
@given(numbers, numbers, st.randoms(use_true_random=False))
def test_pairs_compare_as_numbers_do(left: Value, right: Value, rng: Random) -> None:
    neighbour = near(rng, left)
    for one, other in ((left, right), (left, neighbour), (left, float(left)), (left, left)):  # type: ignore[arg-type]
        first, second = whole_and_part(one), whole_and_part(other)  # type: ignore[arg-type]
        assert (first < second, first == second) == (one < other, one == other)  # type: ignore[operator]
        assert number_of(*first) == one


@many_examples
@given(st.lists(st.floats(allow_nan=False) | st.randoms(use_true_random=False).map(floating)))
def test_arrays_are_embedded_alike(values: list[float]) -> None:
    whole, part = embedded(np.array(values, np.float64))
    parts = np.zeros(len(values)) if part is None else part
    assert list(zip(whole.tolist(), parts.tolist(), strict=True)) == [whole_and_part(value) for value in values]


@given(st.randoms(use_true_random=False), st.sampled_from(["boolean", "timestamp", "date"]))
def test_integers_compare_as_what_they_stand_for(rng: Random, name: str) -> None:
    left, right = SCALARS[name](rng), SCALARS[name](rng)
    kind = KINDS[type(left)]
    one, other = as_integer(kind, left), as_integer(kind, right)
    assert (one < other, one == other) == (left < right, left == right)  # type: ignore[operator]
    assert VALUES[kind](one) == left


# Events from Python


@many_examples
@given(st.randoms(use_true_random=False))
def test_events_of_any_form(rng: Random) -> None:
    raw = nested_events(rng, rng.choice((1, 2, 8)))
    batch = validate(raw).batch
    for path in paths_of(rng, raw):
        hold_to_events(batch, batch, path)


# Events from Arrow

Column = tuple[pa.DataType, Callable[[], Any]]


def column(rng: Random, depth: int, bad: bool) -> Column:
    """A type, and what draws a cell of it; if `bad`, now and then one that no event can hold."""
    roll = rng.randrange(8) if depth else 0
    if roll < 5:
        kind, draw = scalar_column(rng, bad)
    elif roll == 5:
        inner, draw_one = column(rng, depth - 1, bad)
        make = rng.choice((pa.list_, pa.large_list, pa.list_view, pa.large_list_view))
        kind, draw = make(inner), lambda: [draw_one() for _ in range(rng.randrange(4))]
    elif roll == 6:
        inner, draw_one = column(rng, depth - 1, bad)
        kind, draw = pa.list_(inner, 2), lambda: [draw_one(), draw_one()]
    else:
        fields = {key: column(rng, depth - 1, bad) for key in rng.sample(KEYS, rng.randrange(4))}
        kind = pa.struct([(key, inner) for key, (inner, _) in fields.items()])
        draw = lambda: {key: draw_one() for key, (_, draw_one) in fields.items()}  # noqa: E731
    return kind, lambda: None if one_in(rng, 6) else draw()


def scalar_column(rng: Random, bad: bool) -> Column:
    return rng.choice(
        (
            (pa.int64(), lambda: integer(rng)),
            (pa.int8(), lambda: rng.randrange(-128, 128)),
            (pa.uint64(), lambda: 2**63 if bad and one_in(rng, 4) else rng.randrange(2**63)),
            (pa.float64(), lambda: nan if one_in(rng, 6) else floating(rng)),
            (pa.float32(), lambda: rng.choice((0.5, -0.0, 1e30, -inf, nan, 3.0))),
            (pa.string(), lambda: string(rng)),
            (pa.large_string(), lambda: string(rng)),
            (pa.string_view(), lambda: string(rng) * rng.randrange(8)),
            (pa.dictionary(pa.int8(), pa.string()), lambda: rng.choice(("a", "ü", ""))),
            (pa.dictionary(pa.int16(), pa.int64()), lambda: rng.choice((1, 2**60))),
            (pa.bool_(), lambda: one_in(rng, 2)),
            (pa.timestamp("us", "UTC"), lambda: 2**60 if bad and one_in(rng, 4) else SCALARS["timestamp"](rng)),
            (pa.timestamp("ns"), lambda: rng.randrange(-(10**18), 10**18)),
            (pa.timestamp("s"), lambda: 2**60 if bad and one_in(rng, 4) else rng.randrange(-(10**10), 10**10)),
            (pa.date32(), lambda: SCALARS["date"](rng)),
            (pa.decimal128(6, 2), lambda: rng.randrange(10**4)),
            (pa.map_(pa.string(), pa.int64()), lambda: [(key, 1) for key in rng.choices(KEYS[:3], k=rng.randrange(3))])
            if bad
            else (pa.null(), lambda: None),
        )
    )


def table_of(rng: Random, bad: bool = False) -> pa.Table:
    fields = {key: column(rng, 3, bad) for key in rng.sample(KEYS, rng.randrange(1, 5))}
    rows = rng.choice((1, 2, 8))
    whole = pa.table({key: pa.array([draw() for _ in range(rows)], kind) for key, (kind, draw) in fields.items()})
    start, cut = rng.randrange(rows), rng.randrange(rows + 1)
    if one_in(rng, 3):
        whole = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    return whole.slice(start) if one_in(rng, 3) else whole


def is_valid(table: pa.Table) -> bool:
    """Arrow makes arrays that it calls invalid itself: of null lists of a fixed size that hold dictionaries."""
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


@many_examples
@given(st.randoms(use_true_random=False))
def test_tables_of_any_type(rng: Random) -> None:
    table = table_of(rng)
    assume(is_valid(table))
    batch = validate(table).batch
    assert batch.is_lazy
    by_rows = collect(rows_from_arrow(table), None, DEFAULT_LIMITS)
    same([validate(table)], [by_rows])
    names = [(*path, key) for path in type_paths(table.schema, ()) for key in ("a", "b")]
    for path in {*type_paths(table.schema, ()), *names[:4], ()}:
        hold_to_events(batch, list(by_rows.batch), path)
        hold_to_events(batch[1:], list(by_rows.batch)[1:], path)
    assert [batch[row] for row in range(len(batch))] == list(by_rows.batch)


@many_examples
@given(st.randoms(use_true_random=False), st.sampled_from([DEFAULT_LIMITS, TIGHT]))
def test_tables_with_bad_cells(rng: Random, limits: Limits) -> None:
    table = table_of(rng, bad=True)
    if max((len(path) for path in type_paths(table.schema, ())), default=0) > 2:
        limits = DEFAULT_LIMITS  # deeper types are rejected as such
    try:
        by_rows = collect(rows_from_arrow(table, limits), None, limits)
    except Exception as error:
        with pytest.raises(type(error)):
            validate(table, limits=limits)
        return
    found = validate(table, limits=limits)
    same([found], [by_rows])
    for path in type_paths(table.schema, ()):
        hold_to_events(found.batch, list(by_rows.batch), path)


def type_paths(fields: Iterable[pa.Field], path: Path) -> list[Path]:
    """The paths of a type, through lists."""
    found: list[Path] = []
    for field in fields:
        kind = field.type
        while hasattr(kind, "value_type") and not pa.types.is_dictionary(kind):
            kind = kind.value_type
        found.append((*path, field.name))
        if pa.types.is_struct(kind):
            found += type_paths(kind, (*path, field.name))
    return found


# Events from JSON


def in_columns_and_by_rows(data: bytes, limits: Limits) -> tuple[list[Decoded], list[Decoded]]:
    found = []
    for fewest in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decoding, "_FEWEST_IN_COLUMNS", fewest)
            found.append(list(read_events(io.BytesIO(data), limits=limits)))
    return found[0], found[1]


def jsonable(node: Any) -> Any:
    """What JSON can say of it: infinities are none of that, and times are texts."""
    if isinstance(node, dict):
        return {key: jsonable(value) for key, value in node.items()}
    if isinstance(node, list):
        return [jsonable(value) for value in node]
    if isinstance(node, date):
        return node.isoformat()
    return None if isinstance(node, float) and not abs(node) < inf else node


@many_examples
@given(st.randoms(use_true_random=False))
def test_json_of_any_form(rng: Random) -> None:
    raw = [jsonable(event) for event in nested_events(rng, rng.choice((1, 2, 8)))]
    data = "".join(json.dumps(event, ensure_ascii=one_in(rng, 2)) + "\n" for event in raw).encode()
    in_columns, by_rows = in_columns_and_by_rows(data, DEFAULT_LIMITS)
    same(in_columns, by_rows)
    for path in paths_of(rng, raw):
        for part, other in zip(in_columns, by_rows, strict=True):
            hold_to_events(part.batch, list(other.batch), path)


SCALAR_TEXTS = (
    *("1", "-0", "0.5", "-0.0", "1e5", "1E-400", "9007199254740991", "9007199254740993", "9223372036854775807"),
    *("9223372036854775808", "1e300", "1e999", "NaN", "Infinity", "-Infinity", "01", "1.", "+1", "-", "0.1e1"),
    *("true", "false", "null", "nul", '""', '"x"', '"2026-07-01"', '"2026-07-01T12:00:00Z"', '"12:00"', r'"\u00fc"'),
    *(r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00"', r'"\u0000"', '"\t"', r'"\x"', '"ü"', '"}\\n{"', "'x'", "[]", "{}"),
    *("[1, 2.5]", "[[1], []]", "[null]", '[{"a": 1}, {"b": 2}]', '{"a": 1}', '{"a": {"b": [1]}}', '{"a": 1, "a": 2}'),
)


@many_examples
@given(st.randoms(use_true_random=False), st.sampled_from([DEFAULT_LIMITS, TIGHT]))
def test_almost_json(rng: Random, limits: Limits) -> None:
    """Columns that hold one kind of text, mostly, so that many of them are read by Arrow."""
    forms = {key: [rng.choice(SCALAR_TEXTS) for _ in range(2)] for key in rng.sample(KEYS, rng.randrange(1, 4))}
    ends = ["\n"] * 12 + ["\r\n", " \n", "\n\n", "", " ", "\0\n", "\n\ufeff"]
    lines = []
    for _ in range(rng.choice((1, 2, 6))):
        cells = [f"{json.dumps(key)}: {rng.choice(texts)}" for key, texts in forms.items() if not one_in(rng, 6)]
        if one_in(rng, 12):
            cells = cells * 2
        lines.append("{" + ", ".join(cells) + "}" + rng.choice(ends))
    in_columns, by_rows = in_columns_and_by_rows("".join(lines).encode(), limits)
    same(in_columns, by_rows)
    for part, other in zip(in_columns, by_rows, strict=True):
        for path in [(key,) for key in forms] + [(key, inner) for key in forms for inner in "ab"]:
            hold_to_events(part.batch, list(other.batch), path)


@many_examples
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.randoms(use_true_random=False))
def test_floats_are_read_to_the_last_bit(values: list[float], rng: Random) -> None:
    values = [value for value in values if abs(value) < 2**53]
    texts = [rng.choice((repr(value), f"{value:.40g}", f"{value:.17e}")) for value in values]
    in_columns, by_rows = in_columns_and_by_rows(
        "".join(f'{{"x": {text}}}\n' for text in texts).encode(), DEFAULT_LIMITS
    )
    same(in_columns, by_rows)
    for part in in_columns:
        assert isinstance(part.batch.views, JsonEvents)
        hold_to_events(part.batch, list(part.batch), ("x",))
