"""Appends notifications and their events to the outbox of a store, exactly once. A server delivers them to subscribers.

Notifications are sorted and appended chunk by chunk, each in a transaction that also stores the chunk's key. A repeated
batch makes the same chunks with the same keys, and the store appends nothing under a key that it has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harken.live.notifications import EVENT_ID, SUBSCRIPTION_ID
from harken.pipeline.exact_values import EXACT, whole_event
from harken.pipeline.steps import Reached, ignore_step
from harken.pipeline.stored_subscriptions import CREATED, opened_store
from harken.pipeline.stream_sources import event_columns
from harken.schema.paths import DOCUMENT
from harken.spark.frames import column
from harken.store import NewEvent, Store, StoredSubscription
from harken.store.store import microseconds
from harken.store.stored import JSON, XML
from harken.store.writing import Publication

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

    from harken.pipeline.config import Sink, SourceConfig

_KIND, _EVENT, _TIME = "kind", "event", "time"
# An interrupted batch must be repeated with the same chunks; otherwise notifications are lost or delivered twice. So a
# version of Harken that changes these numbers must not continue a checkpoint of an earlier version.
_PAIRS = 2_000
"""Once a chunk has this many notifications, it ends before the next event."""
_CHARACTERS = 8 << 20
"""Once the events of a chunk have this many characters, it ends before the next event."""
_MOST_PAIRS = 100_000
"""Most notifications of a chunk. An event with more is appended to the journal once per chunk."""


@dataclass(slots=True)
class _MatchedEvent:
    """An event and the subscriptions that it matches."""

    kind: str
    text: str
    pairs: list[tuple[str, str | None]] = field(default_factory=list)
    """The id of each subscription, and its creation time, or None if the index does not have it."""


def event_text(events: DataFrame, source: SourceConfig, options: dict[str, str]) -> Column:
    """The text of enriched events, as they are matched: XML for documents, JSON for others."""
    if source.format == "xml":
        return column(DOCUMENT[0])
    return whole_event(event_columns(events), options, EXACT in events.columns)


def with_events(matched: DataFrame, text: str, source: SourceConfig, time: datetime) -> DataFrame:
    """Notifications in the form that `append_notifications` takes. The column named `text` has their events."""
    from pyspark.sql import functions as f

    kind = f.lit(XML if source.format == "xml" else JSON)
    micros = f.unix_micros(f.lit(time).cast("timestamp"))
    ids = EVENT_ID, SUBSCRIPTION_ID, CREATED
    return matched.select(*ids, kind.alias(_KIND), column(text).alias(_EVENT), micros.alias(_TIME))


def append_notifications(
    sink: Sink, notifications: DataFrame, batch: int, pipeline: str, reached: Reached = ignore_step
) -> None:
    """Append the notifications of a batch, unless the store has them. Raises StoreError.

    Subscriptions that ended or expired since the batch began get none, nor do new ones with the id of an earlier one.
    """
    rows = notifications.orderBy(EVENT_ID, _EVENT, SUBSCRIPTION_ID).toLocalIterator()
    with opened_store(sink.store or "") as store:
        for number, (time, chunk) in enumerate(_chunks(rows)):
            key = _key("pipeline", pipeline, batch, time, number)
            _append(store, chunk, key)
            reached("appended a chunk")


def _append(store: Store, chunk: list[_MatchedEvent], key: bytes) -> None:
    ids = list({id for event in chunk for id, _ in event.pairs})
    with store.writing() as writing:  # subscriptions cannot change during the transaction
        subscriptions = {each.id: each for each in store.subscriptions_of(ids)}
        deliveries = {id: each.delivery for id, each in subscriptions.items() if not each.delivery.is_default}
        now = microseconds()
        events = [
            NewEvent(event.kind, event.text.encode(), matches)
            for event in chunk
            if (matches := [id for id, created in event.pairs if _is_same(subscriptions.get(id), created, now)])
        ]
        writing.append([Publication(events, key)], deliveries)


def _is_same(current: StoredSubscription | None, created: str | None, now: int) -> bool:
    """Whether the current subscription of an id has not expired, and is the one that was matched."""
    return current is not None and current.expires_at > now and created in (None, str(current.created_at))


def _chunks(rows: Iterable[Any]) -> Iterator[tuple[int, list[_MatchedEvent]]]:
    """Divide rows into chunks. Yields the time of the batch and the events of the chunk."""
    chunk: list[_MatchedEvent] = []
    count = size = time = 0
    last: tuple[str, str] | None = None
    for row in rows:
        event = row[EVENT_ID], row[_EVENT]
        is_full = count >= _MOST_PAIRS or (event != last and (count >= _PAIRS or size >= _CHARACTERS))
        if is_full:
            yield time, chunk
            chunk, count, size = [], 0, 0
        if event != last or not chunk:
            chunk.append(_MatchedEvent(row[_KIND], row[_EVENT]))
            size += len(row[_EVENT])
        chunk[-1].pairs.append((row[SUBSCRIPTION_ID], row[CREATED]))
        count, time, last = count + 1, row[_TIME], event
    if chunk:
        yield time, chunk


def _key(*parts: str | int) -> bytes:
    """The key of a chunk, by which the store recognises it."""
    return hashlib.sha256(json.dumps(parts).encode()).digest()
