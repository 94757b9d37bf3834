"""One event to codes: what `encode` tells of it, or nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.codes import encode as batches
from harken.codes import encode_one
from harken.codes.columns import NamedColumns
from harken.codes.encode import encode, several_of_one
from harken.codes.encode_one import codes_of_one
from harken.codes.flat import Flat
from harken.events import Event, EventBatch, validate
from harken.language import normalise
from harken.language.sql import parse
from harken.schema import Schema, parse_schema
from harken.schema.values import INT64_MAX, INT64_MIN

SCHEMA = parse_schema('[domains.d]\ntype = "enumerated"\nvalues = ["c", "a", "b"]\n[attributes]\ncoded = "d"')
TEXTS = (
    f"x = 5 AND y < 'b' AND z >= 2.5 AND t = true AND u > -3 AND v <> {INT64_MAX}",
    "x < 2.5 AND y = 'é' AND d < DATE '2026-07-01' AND a.x >= TIMESTAMP '2026-07-01T12:00:00Z' AND z IS NULL",
    "x <> 'c' AND y BETWEEN -1e300 AND 1e-300 AND a.y = 'a' AND a.z IS NOT NULL AND coded = 'a' AND a.x.y > 0",
    "x > 1000000 AND x < 1000007 AND y LIKE 'ab%' AND t = false AND a.y < 7 AND coded = 'b' AND b IS NULL",
)
READ = (
    "d < DATE '2026-07-01' AND y >= TIMESTAMP '2026-07-01T12:00:00Z' AND y <> 'c'",
    "a.x = TIMESTAMP '2026-07-01T12:00:00Z' AND y < DATE '2026-07-02' AND x > TIMESTAMP '2026-07-01T11:00:00Z'",
)
"""Without a schema, so that strings are read."""
FORMS = [*(normalise(parse(text), SCHEMA) for text in TEXTS), *(normalise(parse(text)) for text in READ)]
ROWS = Flat.of_forms(enumerate(FORMS)).coded()
TIMES = st.sampled_from(["2026-07-01", "2026-06-30", "2026-07-01T12:00Z", "2026-07-01 13:00:00+01:00", "2026-07-01T10"])

NUMBERS = st.one_of(
    *(st.integers(-9, 9), st.integers(999_999, 1_000_009), st.integers(INT64_MIN, INT64_MAX)),
    *(st.floats(allow_nan=False), st.sampled_from([2.5, -0.0, 5.0, 1e-300, 2.0**63, -(2.0**63)])),
)
SCALARS = st.one_of(
    *(TIMES, NUMBERS, st.booleans(), st.none(), st.sampled_from(["", "a", "ab", "abc", "b", "c", "é", "z"]), st.text()),
    st.dates(date(2026, 6, 29), date(2026, 7, 3)),
    st.integers(-3, 3).map(lambda hours: datetime(2026, 7, 1, 12, tzinfo=UTC) + timedelta(hours=hours)),
)
PLAIN = st.dictionaries(st.sampled_from("xyzt"), st.one_of(SCALARS, st.dictionaries(st.just("y"), SCALARS)))
ANY = st.one_of(SCALARS, PLAIN, st.lists(SCALARS, max_size=3), st.lists(PLAIN, max_size=2))


def events(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from("xyztuvdab"), values)


def both(event: dict[str, Any], schema: Schema | None = None) -> tuple[Any, Any]:
    one = Event.of(event, schema)
    batch = EventBatch.of((one,), (0,))
    codes = codes_of_one(one, ROWS.columns, ROWS.dictionaries)
    return codes, encode(batch, ROWS.columns, ROWS.dictionaries)


@given(events(st.one_of(SCALARS, PLAIN)), st.sampled_from([None, "a", "b", "c"]))
def test_without_arrays_as_a_batch_of_one(event: dict[str, Any], coded: str | None) -> None:
    one, whole = both(event | {"coded": coded})
    assert one is not None
    assert one.tolist() == whole.codes.tolist()
    assert ((one[:, 0] != 0) <= whole.has_value).all()
    assert (one.dtype, one.shape) == (whole.codes.dtype, whole.codes.shape)
    assert not len(whole.several)


@given(events(ANY))
def test_with_arrays_as_a_batch_of_one_or_nothing(event: dict[str, Any]) -> None:
    one, whole = both(event)
    if one is None:
        assert "[" in repr(Event.of(event).attributes)
    else:
        assert one.tolist() == whole.codes.tolist()
        assert not len(whole.several)


@pytest.mark.parametrize(
    "event", [{"x": [1, 2]}, {"x": [1]}, {"a": [{"x": 1}]}, {"a": {"x": [{"y": 1}]}}, {"coded": "?"}]
)
def test_what_is_left_to_batches(event: dict[str, Any]) -> None:
    assert both(event)[0] is None


def test_arrays_that_nobody_asks_for() -> None:
    one, _ = both({"other": [1, 2], "x": 5})
    assert one is not None


@given(st.lists(events(ANY), max_size=4), st.booleans())
def test_columns_that_events_lack_make_no_difference(given_events: list[dict[str, Any]], one_by_one: bool) -> None:
    """With many columns only those are looked at that events have, one by one or column by column."""
    known = tuple(Event.of(event) for event in given_events)
    batch = EventBatch.of(known, tuple(range(len(known))))
    named = NamedColumns.of(ROWS.columns)
    expected = encode(batch, ROWS.columns, ROWS.dictionaries)
    with pytest.MonkeyPatch.context() as patch:
        for module in (batches, encode_one):
            patch.setattr(module, "FEW_COLUMNS", 0)
        patch.setattr(encode_one, "_MORE_COLUMNS", 0)
        patch.setattr(batches, "_VALUE", -1.0 if one_by_one else 1e9)
        found = encode(batch, ROWS.columns, ROWS.dictionaries, named)
        assert found.codes.tolist() == expected.codes.tolist()
        assert found.several.tolist() == expected.several.tolist()
        assert (found.starts.tolist(), found.values.tolist()) == (expected.starts.tolist(), expected.values.tolist())
        assert (found.has_value >= (found.codes != 0).any(axis=1)).all()
        for event in known:
            one, all_columns = (
                codes_of_one(event, ROWS.columns, ROWS.dictionaries, named),
                codes_of_one(event, ROWS.columns, ROWS.dictionaries),
            )
            assert (one is None and all_columns is None) or one.tolist() == all_columns.tolist()


@given(events(ANY))
def test_several_bindings_of_one_event_as_of_a_batch(event: dict[str, Any]) -> None:
    one = Event.of(event)
    places = [place for place, column in enumerate(ROWS.columns) if column.coded is None]
    columns, dictionaries = ([each[place] for place in places] for each in (ROWS.columns, ROWS.dictionaries))
    found = several_of_one(one, columns, dictionaries)
    expected = encode(EventBatch.of((one,), (0,)), columns, dictionaries)
    assert found is not None
    for place in range(len(columns)):
        codes = found.of_several(0, place).tolist()
        if len(expected.several):
            assert codes == expected.of_several(0, place).tolist()
        else:
            assert codes == [code for code in expected.codes[place].tolist() if code]
    assert found.codes.shape == expected.codes.shape
    assert not found.codes.any()
    assert (found.several.dtype, found.starts.dtype, found.values.dtype) == (
        *(expected.several.dtype, expected.starts.dtype, expected.values.dtype),
    )
    assert several_of_one(one, ROWS.columns, ROWS.dictionaries) is None, "there are coded ones"


def test_attributes_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the columns of an event are looked up by name, they come in its order, and all may be there."""
    monkeypatch.setattr(encode_one, "FEW_COLUMNS", 0)
    monkeypatch.setattr(encode_one, "_MORE_COLUMNS", 0)
    rows = Flat.of_forms([(0, normalise(parse("x = 5 AND y = 'b' AND z > 2")))]).coded()
    named = NamedColumns.of(rows.columns)
    for event in ({"x": 5, "y": "a", "z": 1}, {"z": 1, "y": "a", "x": 5}):
        found = codes_of_one(Event.of(event), rows.columns, rows.dictionaries, named)
        expected = codes_of_one(Event.of(event), rows.columns, rows.dictionaries)
        assert found is not None
        assert expected is not None
        assert found.tolist() == expected.tolist()


@given(st.lists(st.dictionaries(st.sampled_from("xyzt"), SCALARS), min_size=1, max_size=5))
def test_plain_dicts_as_events(raw: list[dict[str, Any]]) -> None:
    """The columns of plain dicts, with gaps or without, have the codes that their events have."""
    found = encode(validate(raw, names=frozenset("xyzt")).batch, ROWS.columns, ROWS.dictionaries)
    batch = EventBatch.of(tuple(map(Event.of, raw)), range(len(raw)))
    expected = encode(batch, ROWS.columns, ROWS.dictionaries)
    assert found.codes.tolist() == expected.codes.tolist()
    assert found.has_value.tolist() == expected.has_value.tolist()
