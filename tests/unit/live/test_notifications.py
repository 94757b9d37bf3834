"""Notifications and dead letters: one definition of their fields, as names and as Arrow columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from harken.errors import DecodeError, HarkenError, InvalidValueError
from harken.events import RejectedEvent
from harken.live.notifications import (
    DECODE,
    VALIDATE,
    DeadLetterRow,
    NotificationRow,
    Record,
    arrow_schema,
    failure_reason,
    names_of,
)

TIME = pa.timestamp("us", "UTC")


def test_the_fields_of_a_notification() -> None:
    assert arrow_schema(NotificationRow) == pa.schema(
        [
            ("event_id", pa.string()),
            ("subscription_id", pa.string()),
            ("owner", pa.string()),
            ("event_time", TIME),
            ("match_time", TIME),
            ("index_version", pa.int64()),
            ("batch_id", pa.int64()),
        ]
    )


def test_the_fields_of_a_dead_letter() -> None:
    assert arrow_schema(DeadLetterRow) == pa.schema(
        [
            ("event_id", pa.string()),
            ("stage", pa.string()),
            ("reason", pa.string()),
            ("subscription_id", pa.string()),
            ("event", pa.string()),
            ("match_time", TIME),
            ("index_version", pa.int64()),
            ("batch_id", pa.int64()),
        ]
    )


@pytest.mark.parametrize("record", [NotificationRow, DeadLetterRow])
def test_names_and_columns_are_in_one_order(record: Record) -> None:
    assert list(names_of(record)) == arrow_schema(record).names


def test_the_dead_letter_of_a_rejected_event() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    broken = DeadLetterRow.of_rejected(RejectedEvent(3, DecodeError("it is not JSON"), "{"), None, now, 7, 2)
    assert broken == DeadLetterRow(None, DECODE, "it is not JSON", None, "{", now, 7, 2)
    invalid = DeadLetterRow.of_rejected(
        RejectedEvent(3, InvalidValueError("`price` is too large"), None), "e3", now, 7, 2
    )
    assert (invalid.event_id, invalid.stage) == ("e3", VALIDATE)


def test_a_failure_names_the_subscription() -> None:
    assert failure_reason("alice", HarkenError("no such zone", hint="look")) == (
        "the subscription 'alice' failed: no such zone"
    )
