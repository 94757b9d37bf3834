"""One event to codes: what `encode` tells of it, or nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.codes.encode import encode
from harken.codes.encode_one import codes_of_one
from harken.codes.flat import Flat
from harken.events import Event, EventBatch
from harken.language import normalise, parse
from harken.schema import Schema, parse_schema
from harken.schema.values import INT64_MAX, INT64_MIN

SCHEMA = parse_schema('[domains.d]\ntype = "enumerated"\nvalues = ["c", "a", "b"]\n[attributes]\ncoded = "d"')
TEXTS = (
    f"x = 5 AND y < 'b' AND z >= 2.5 AND t = true AND u > -3 AND v <> {INT64_MAX}",
    "x < 2.5 AND y = 'é' AND d < DATE '2026-07-01' AND a.x >= TIMESTAMP '2026-07-01T12:00:00Z' AND z IS NULL",
    "x <> 'c' AND y BETWEEN -1e300 AND 1e-300 AND a.y = 'a' AND a.z IS NOT NULL AND coded = 'a' AND a.x.y > 0",
    "x > 1000000 AND x < 1000007 AND y LIKE 'ab%' AND t = false AND a.y < 7 AND coded = 'b' AND b IS NULL",
)
ROWS = Flat.of_forms((n, normalise(parse(text), SCHEMA)) for n, text in enumerate(TEXTS)).coded()

NUMBERS = st.one_of(
    *(st.integers(-9, 9), st.integers(999_999, 1_000_009), st.integers(INT64_MIN, INT64_MAX)),
    *(st.floats(allow_nan=False), st.sampled_from([2.5, -0.0, 5.0, 1e-300, 2.0**63, -(2.0**63)])),
)
SCALARS = st.one_of(
    *(NUMBERS, st.booleans(), st.none(), st.sampled_from(["", "a", "ab", "abc", "b", "c", "é", "z"]), st.text()),
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
