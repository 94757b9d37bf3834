"""Batches to codes: what is missing, what is several, and which arrays tie paths together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from harken.codes.encode import EncodedBatch, encode, shared_prefixes
from harken.codes.flat import Flat
from harken.events import Event, EventBatch, validate
from harken.language import normalise
from harken.language.sql import parse
from harken.schema import Schema, parse_schema
from harken.schema.values import INT64_MAX, INT64_MIN
from properties.replay import some


def batch(*events: dict[str, Any]) -> EventBatch:
    return EventBatch.of(tuple(map(Event.of, events)), tuple(range(len(events))))


def encoded(text: str, *events: dict[str, Any], schema: Schema | None = None) -> tuple[dict[str, int], EncodedBatch]:
    """The place of each column, and the codes."""
    rows = Flat.of_forms([(0, normalise(parse(text), schema))]).coded()
    places = {str(column): place for place, column in enumerate(rows.columns)}
    return places, encode(batch(*events), rows.columns, rows.dictionaries)


def test_a_code_for_every_column_and_event() -> None:
    places, found = encoded("x = 5 AND y < 'b'", {"x": 5, "y": "a"}, {"x": 6}, {"x": "a", "y": 1}, {"y": "b"}, {})
    assert found.codes[places["x number"]].tolist() == [2, 3, 0, 0, 0]
    assert found.codes[places["y string"]].tolist() == [1, 0, 0, 2, 0]
    assert found.codes.flags.c_contiguous
    assert not len(found.several)


def test_columns_in_which_no_event_has_a_value() -> None:
    places, found = encoded("x = 5 AND y < 'b' AND z = 1 AND w = 2", {"x": 5, "y": 1}, {"x": 7, "w": [1, 2]})
    has_value = {name: bool(found.has_value[place]) for name, place in places.items()}
    assert has_value == {"x number": True, "y string": False, "z number": False, "w number": True}


def test_columns_in_which_no_row_of_a_table_has_a_value() -> None:
    rows = Flat.of_forms([(0, normalise(parse("x = 5 AND y < 'b' AND z = 1 AND w IS NULL"), None))]).coded()
    places = {str(column): place for place, column in enumerate(rows.columns)}
    table = pa.table({"x": [5, None], "y": [1, 2], "w": [None, "a"]})
    found = encode(validate(table).batch, rows.columns, rows.dictionaries)
    has_value = {name: bool(found.has_value[place]) for name, place in places.items()}
    assert [has_value[name] for name in ("x number", "y string", "z number")] == [True, False, False]
    assert all(found.has_value[place] or not found.codes[place].any() for place in range(len(rows.columns)))


def test_presence_is_never_missing() -> None:
    _, found = encoded("x IS NULL", {"x": 1}, {}, {"x": [1, 2]}, {"x": {"y": 1}}, {"x": []})
    assert found.codes.tolist() == [[3, 2, 3, 3, 2]]
    assert not len(found.several)


def test_places_in_a_coded_domain() -> None:
    schema = parse_schema('[domains.d]\ntype = "enumerated"\nvalues = ["c", "a", "b"]\n[attributes]\nx = "d"')
    _, found = encoded("x = 'a'", {"x": "c"}, {"x": "a"}, {"x": "b"}, {}, {"x": "?"}, schema=schema)
    assert found.codes.tolist() == [[1, 2, 3, 0, 0]]
    assert found.several.tolist() == [4], "what is not of the domain is left to verification"


def test_no_columns_and_no_events() -> None:
    assert encode(batch({"x": 1}), [], []).codes.shape == (0, 1)
    _, found = encoded("x = 1")
    assert (found.codes.shape, found.several.tolist(), found.starts.tolist()) == ((1, 0), [], [0])


# Columns of Arrow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = [
    pa.array([5, None, 4, 6, None, 5, INT64_MAX, INT64_MIN]),
    pa.array([5, None, 4, 6, None, 5, INT64_MAX, 0], pa.uint64()),
    pa.array([5, None, 4, 6, None, 5, 127, -128], pa.int8()),
    pa.array([5.0, None, 4.5, 6.0, None, 5.0, 1e300, float("nan")]),
    pa.array(["5", None, "b", "", None, "a\0", "ä", "zz"]),
    pa.array(["5", None, "b", "", None, "a\0", "ä", "zz"], pa.large_string()),
    pa.array(["5", None, "b", "", None, "a\0", "ä", "zz"], pa.string_view()),
    pa.array(["b", None, "b", "a", None, "a", "b", "zz"]).dictionary_encode(),
    pa.array([NOON, None, NOON + timedelta(seconds=1), NOON, None, None, NOON, NOON], pa.timestamp("us", "UTC")),
    pa.array([NOON, None, NOON + timedelta(seconds=1), NOON, None, None, NOON, NOON], pa.timestamp("ms", "UTC")),
    pa.array([True, None, False, True, None, None, True, False]),
    pa.array([[5, 6], None, [4], [], None, [5, 5], [6], [None]], pa.list_(pa.int64())),
    pa.array([1, 2, 3, 4, 5, 6, 7, 8]),
    pa.array(["a", "b", "c", "d", "e", "f", "g", "h"]),
    pa.nulls(8),
    pa.nulls(8, pa.int64()),
    pa.nulls(8, pa.string()),
]
WHERE = """
    x IN (4, 5, 7) AND y < 'b' OR x = 4.5 AND z IN ('5', 'b') OR z > 5 AND y = TIMESTAMP '2026-01-01T12:00:00Z'
    OR x IS NULL AND y = 1 OR z = true
"""


@pytest.mark.seconds
@pytest.mark.parametrize("where", [WHERE, "x IN (4, 5, 7) AND y < 'b' AND z = TIMESTAMP '2026-01-01T12:00:00Z'"])
@pytest.mark.parametrize("rows", [slice(0, 8), slice(1, 8), slice(3, 4), slice(4, 5), slice(0, 0)], ids=str)
def test_columns_have_the_codes_of_their_rows(where: str, rows: slice) -> None:
    known = Flat.of_forms([(0, normalise(parse(where), None))]).coded()
    for x, y, z in some(product(COLUMNS, COLUMNS, COLUMNS[::3]), 300):
        table = pa.table({"x": x, "y": y, "z": z})[rows]
        in_chunks = pa.concat_tables([table[:2], table[2:]])
        expected = encode(batch(*table.to_pylist()), known.columns, known.dictionaries)
        for each in (table, in_chunks):
            decoded = validate(each)
            assert not decoded.rejected
            found = encode(decoded.batch, known.columns, known.dictionaries)
            assert found.codes.tolist() == expected.codes.tolist()
            assert found.several.tolist() == expected.several.tolist()
            assert found.starts.tolist() == expected.starts.tolist()
            assert found.values.tolist() == expected.values.tolist()


# Several values


def test_several_values_are_apart() -> None:
    places, found = encoded("x < 5 AND y = 1", {"x": 1, "y": 1}, {"x": [9, 1, 9], "y": 1}, {"x": [1]}, {"x": [1, 2]})
    x, y = places["x number"], places["y number"]
    assert found.several.tolist() == [1, 3]
    assert found.codes[:, [1, 3]].tolist() == [[0, 0], [0, 0]]
    assert found.codes[x].tolist() == [1, 0, 1, 0]
    assert found.of_several(0, x).tolist() == [1, 3]
    assert found.of_several(0, y).tolist() == [2]
    assert found.of_several(1, x).tolist() == [1]
    assert found.of_several(1, y).tolist() == []
    assert found.starts[-1] == len(found.values) == 4


def test_parts_of_a_batch_are_as_batches_of_their_own() -> None:
    given = [{"x": 1, "y": "a"}, {"x": [1, 2]}, {"y": "b"}, {"x": [2, 5], "y": ["a", "b"]}, {}, {"x": [5, 1]}]
    columns = encoded("x = 1 AND x2 = 5 AND y < 'b'", *given)[1]
    for first in range(len(given) + 1):
        for last in range(first, len(given) + 1):
            part, alone = columns.part(first, last), encoded("x = 1 AND x2 = 5 AND y < 'b'", *given[first:last])[1]
            assert part.codes.tolist() == alone.codes.tolist()
            assert part.codes.flags.c_contiguous
            assert part.several.tolist() == alone.several.tolist()
            assert (part.has_value | ~alone.has_value).all()
            for place in range(len(part.several)):
                for column in range(3):
                    assert part.of_several(place, column).tolist() == alone.of_several(place, column).tolist()


def test_values_of_several_kinds_are_several() -> None:
    _, found = encoded("x IN (1, 'a')", {"x": [1, "a"]}, {"x": [1]}, {"x": [1, True]})
    assert found.several.tolist() == [0]


@pytest.mark.parametrize(
    ("text", "event", "several"),
    [
        ("i.p > 3 AND i.q = 2", {"i": [{"p": 5}, {"q": 2}]}, True),
        ("i.p > 3 AND i.q = 2", {"i": [{"p": 5, "q": 2}]}, False),
        ("i.p > 3 AND i.q = 2", {"i": {"p": 5, "q": 2}}, False),
        ("i.p > 3 AND i.q = 2", {"i": [[{"p": 5}, {"q": 2}]]}, True),
        ("i.p > 3 AND i.q = 2", {"i": {"p": [5], "q": [2]}}, False),
        ("i = 3 AND i.q = 2", {"i": [3, {"q": 2}]}, True),
        ("i.p > 3 AND j.q = 2", {"i": [{"p": 5}, {}], "j": [{"q": 2}, {}]}, False),
        ("a.i.p > 3 AND a.i.q = 2 AND a.x = 1", {"a": {"i": [{"p": 5}, {"q": 2}], "x": 1}}, True),
        ("a.i.p > 3 AND a.x = 1", {"a": [{"i": {"p": 5}}, {"x": 1}]}, True),
        ("a.i.p > 3 AND a.x = 1", {"a": {"i": [{"p": 5}, {"q": 2}], "x": 1}}, False),
    ],
)
def test_an_array_ties_the_paths_that_go_through_it(text: str, event: dict[str, Any], several: bool) -> None:
    _, found = encoded(text, event)
    assert found.several.tolist() == [0] * several


def test_shared_prefixes() -> None:
    paths = [("a", "b", "c"), ("a", "b", "d"), ("a", "e"), ("f",), ("g", "h"), ("g",), ("f",), ("i", "j")]
    assert shared_prefixes(paths) == [("a", "b"), ("g",)]
    assert shared_prefixes([("a",), ("b", "c")]) == []
