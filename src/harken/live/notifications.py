"""The results that are delivered: a notification for every match, a dead letter for everything rejected.

The fields of both, their order and their types are defined here for every output, such as the sinks of a pipeline and
the answers of `harken.spark.match`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, get_args, get_type_hints

from harken.errors import DecodeError, HarkenError
from harken.events import RejectedEvent

if TYPE_CHECKING:
    import pyarrow as pa

EVENT_ID, SUBSCRIPTION_ID = "event_id", "subscription_id"
DECODE, TYPE, VALIDATE, LATE, MATCH = "decode", "type", "validate", "late", "match"
STAGES = (DECODE, TYPE, VALIDATE, LATE, MATCH)
"""The stages at which something is rejected. At `type` it is a single value, whose event is still matched; at `match`
the event failed with one subscription and was matched with the others."""


@dataclass(frozen=True, slots=True)
class NotificationRow:
    """A match of an event and a subscription. Columns of the event may follow these fields."""

    event_id: str
    subscription_id: str
    owner: str | None
    event_time: datetime | None
    match_time: datetime
    index_version: int
    batch_id: int


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """A rejected event, a rejected value of an event, or an event that failed with one subscription."""

    event_id: str | None
    stage: str
    reason: str
    subscription_id: str | None
    """The subscription that failed; None if the event itself is at fault."""
    event: str | None
    """The event as text, or the beginning of it."""
    match_time: datetime
    index_version: int
    batch_id: int

    @classmethod
    def of_rejected(
        cls, rejected: RejectedEvent, event_id: str | None, match_time: datetime, index_version: int, batch_id: int
    ) -> DeadLetterRow:
        """The dead letter of an event that could not be decoded, or is not valid."""
        stage = DECODE if isinstance(rejected.error, DecodeError) else VALIDATE
        return cls(event_id, stage, str(rejected.error), None, rejected.raw, match_time, index_version, batch_id)


Record = type[NotificationRow] | type[DeadLetterRow]


def names_of(record: Record) -> tuple[str, ...]:
    """The names of a record's fields, in their order."""
    return tuple(field.name for field in fields(record))


def arrow_schema(record: Record) -> pa.Schema:
    """The columns of a record. All of them may be null."""
    import pyarrow

    types = {str: pyarrow.string(), int: pyarrow.int64(), datetime: pyarrow.timestamp("us", "UTC")}
    hints = get_type_hints(record)
    return pyarrow.schema([(name, types[(get_args(hints[name]) or (hints[name],))[0]]) for name in names_of(record)])


def failure_reason(subscription_id: str, error: HarkenError) -> str:
    """Why an event and a subscription could not be matched."""
    return f"the subscription {subscription_id!r:.60} failed: {error.message}"
