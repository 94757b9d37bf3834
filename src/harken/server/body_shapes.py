"""Notifications as JSON text, plain or in a CloudEvent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from harken.store import CLOUDEVENTS, JournalledEvent, Notified
from harken.store.stored import XML

NOTIFICATION_TYPE = "harken.notification"
DIGEST_TYPE = "harken.digest"
CLOUDEVENT_JSON = "application/cloudevents+json"
EVENT_GONE = "the event was deleted from the journal: it was older than journal_age, or beyond journal_bytes"


def iso(time: int) -> str:
    """A time in microseconds as ISO 8601."""
    return datetime.fromtimestamp(time / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def event_text(event: JournalledEvent | None) -> str:
    """The value of the field `event`: JSON, with XML as a string. For a deleted event null and a field `event_gone`."""
    if event is None:
        return f'null, "event_gone": "{EVENT_GONE}"'
    if event.kind == XML:
        return json.dumps(event.body.decode("utf-8", "replace"))
    return event.body.decode()


def notification_text(notified: Notified, format: str, source: str) -> str:
    """A notification as JSON. `source` is for the format of CloudEvents."""
    if format != CLOUDEVENTS:
        return _plain(notified)
    return _cloudevent(
        NOTIFICATION_TYPE, source, notified.subscription, str(notified.number), notified.time, _plain(notified)
    )


def _plain(notified: Notified) -> str:
    suppressed = f', "suppressed": {notified.suppressed}' if notified.suppressed else ""
    return (
        f'{{"id": "{notified.number}", "subscription": {json.dumps(notified.subscription)}, '
        f'"event": {event_text(notified.event)}, "event_id": "{notified.event_number}", '
        f'"time": "{iso(notified.time)}"{suppressed}}}'
    )


def digest_text(subscription: str, notified: Sequence[Notified], format: str, source: str) -> str:
    """Several notifications of one subscription as one digest, in JSON."""
    inner = ", ".join(map(_plain, notified))
    plain = f'{{"subscription": {json.dumps(subscription)}, "notifications": [{inner}]}}'
    if format != CLOUDEVENTS:
        return plain
    last = notified[-1]
    return _cloudevent(DIGEST_TYPE, source, subscription, f"{notified[0].number}-{last.number}", last.time, plain)


def _cloudevent(type: str, source: str, subscription: str, id: str, time: int, data: str) -> str:
    return (
        f'{{"specversion": "1.0", "type": "{type}", "source": "{source}", "id": "{id}", '
        f'"subject": {json.dumps(subscription)}, "time": "{iso(time)}", "datacontenttype": "application/json", '
        f'"data": {data}}}'
    )
