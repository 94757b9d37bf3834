"""Strings as timestamps and dates: one by one and in columns, as the reference reads them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.events import times_in_text, validate
from harken.events.cells import Cells, as_integer
from harken.events.times_in_text import read_times
from harken.reference import expressions as reference
from harken.schema.derived import reading_of
from harken.schema.values import Kind, read_date, read_timestamp

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
DAYS = ("2026-02-01", "2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "0000-01-01", "0000-12-31", "2026-13-01")
ODD_DAYS = ("2026-1-01", "20260201", "２026-02-01", "2026-W05-1", "", "x")
CLOCKS = ("12", "12:00", "23:30:59.9", "00:00:00,123456789", "12:00:60", "24:00:00", "12:60", "1200", "12:00:00.", "")
ZONES = ("Z", "", "+01", "+01:00", "-0530", "-23:59", "+24:00", "-00:60", "+14:00", "z", " Z", "+1")
TEXTS = st.one_of(
    st.builds("{}{}{}{}".format, *map(st.sampled_from, (DAYS, "T T_t", CLOCKS, ZONES))),
    *(st.sampled_from((*DAYS, *ODD_DAYS)), st.text(max_size=3)),
)


@pytest.mark.parametrize(
    "text",
    [
        *("2026-02-01T12:00:00Z", "2026-02-01 12:00:00", "2026-02-01T12", "2026-02-01T12:00", "2026-02-01 13:00+01"),
        *("2026-02-01T12:00:00.0000009", "2026-02-01T12:00:00,0", "2026-02-01T06:30:00-0530", "2026-02-02T02:00+14:00"),
    ],
)
def test_a_full_timestamp(text: str) -> None:
    assert read_timestamp(text) == NOON
    assert read_date(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("2026-02-01", "2026-02-01T", "20260201T120000Z", "2026-W05-7T12:00", "2026-032T12:00", "12:00", "soon", ""),
        *("2026-02-30T12:00", "2026-02-01T24:00", "2026-02-01T12:00:60", "2026-02-01t12:00", "2026-02-01T12:00z"),
        *(" 2026-02-01T12:00", "2026-02-01T12:00 ", "2026-02-01T12:00\n", "2026-02-01_12:00", "２026-02-01T12:00"),
        *("0001-01-01T00:00+01:00", "9999-12-31T23:30-01:00", "0000-12-31T23:30-01:00", "1769947200"),
    ],
)
def test_no_full_timestamp(text: str) -> None:
    assert read_timestamp(text) is None


def test_a_full_date() -> None:
    assert read_date("2026-02-01") == date(2026, 2, 1)
    assert all(read_date(text) is None for text in ("2026-2-1", "20260201", "2026-02-30", "0000-01-01", "2026-02-01Z"))


def in_column(texts: list[str], kind: Kind, type: pa.DataType) -> list[tuple[int, int]]:
    cells = Cells(Kind.STRING, np.arange(len(texts), dtype=np.int32), pa.array(texts, type))
    found = read_times(cells, kind)
    assert found.kind is kind
    assert found.values.dtype == np.int64
    return list(zip(found.rows.tolist(), found.values.tolist(), strict=True))


@given(st.lists(TEXTS), st.sampled_from([1, 10_000]), st.sampled_from([pa.string(), pa.large_string()]))
def test_columns_are_read_as_the_reference_reads_single_values(texts: list[str], few: int, type: pa.DataType) -> None:
    """However they are sorted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(times_in_text, "_FEWEST_TO_SPLIT", few)
        for kind, constant in ((Kind.TIMESTAMP, NOON), (Kind.DATE, NOON.date())):
            values = [reference._read_as(constant, text) for text in texts]
            expected = [(row, as_integer(kind, each)) for row, each in enumerate(values) if each is not None]
            assert in_column(texts, kind, type) == expected


@pytest.mark.parametrize("written", ["{}Z", "{}", "{}+01:00", "{}7Z"])
def test_long_columns_of_one_form(written: str) -> None:
    draw = Random(1)
    texts = [
        written.format(f"2026-02-{draw.randrange(1, 29):02}T12:00:{draw.random() * 50 + 10:09.6f}")
        for _ in range(2_000)
    ]
    expected = [as_integer(Kind.TIMESTAMP, read_timestamp(text)) for text in texts]  # type: ignore[arg-type]
    assert in_column(texts, Kind.TIMESTAMP, pa.string()) == list(enumerate(expected))
    texts[1_234] = "none"
    assert len(in_column(texts, Kind.TIMESTAMP, pa.string())) == len(texts) - 1


def test_what_is_a_timestamp_already_is_taken_as_it_lies() -> None:
    table = pa.table({"at": pa.array([NOON, None], pa.timestamp("us", "UTC")), "x": [1, 2]})
    batch = validate(table).batch
    plain, read = batch.dense(("at",)), batch.dense(reading_of(("at",), Kind.TIMESTAMP))
    assert plain is not None
    assert read is not None
    assert read.values.ctypes.data == plain.values.ctypes.data
    nanoseconds = validate(pa.table({"at": pa.array([NOON], pa.timestamp("ns"))})).batch
    assert nanoseconds.cells(reading_of(("at",), Kind.TIMESTAMP)) is nanoseconds.cells(("at",))
    assert not batch.unparsed()


def test_strings_beside_timestamps() -> None:
    batch = validate([{"at": NOON}, {"at": "x"}, {"at": ["2026-02-01T12:00", "y", 5]}, {}]).batch
    found = batch.cells(reading_of(("at",), Kind.TIMESTAMP))
    (cells,) = found.cells
    assert (cells.rows.tolist(), found.present.tolist()) == ([0, 2], [True, False, True, False])
    assert set(cells.values.tolist()) == {as_integer(Kind.TIMESTAMP, NOON)}
    assert batch.unparsed() == {reading_of(("at",), Kind.TIMESTAMP): 2}
