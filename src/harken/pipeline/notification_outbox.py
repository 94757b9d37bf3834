"""Notifications in the outbox of a store, exactly once, with their events: a server delivers them to the subscribers.

Notifications are sorted and appended chunk by chunk, each in a transaction that also stores the chunk's key. A batch
that is repeated makes the same chunks with the same keys, and the store appends nothing under a key that it has.
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
# A batch that was interrupted is repeated with the same chunks, or some notifications are lost and others told twice:
# with other numbers than these, a Harken must not continue the checkpoint of an earlier one.
_PAIRS = 2_000
_CHARACTERS = 8 << 20
"""A chunk ends before the next event once it has so many notifications, or so many characters of events."""
_MOST_PAIRS = 100_000
"""A chunk ends even within an event, which is then journalled again with the rest of its notifications."""


@dataclass(slots=True)
class _Told:
    """An event, and the subscriptions that are told of it, each with when it was created, if that is known."""

    kind: str
    text: str
    pairs: list[tuple[str, str | None]] = field(default_factory=list)


def event_text(events: DataFrame, source: SourceConfig, options: dict[str, str]) -> Column:
    """The events as they are matched, with what enriched them: XML as it is, others as JSON."""
    if source.format == "xml":
        return column(DOCUMENT[0])
    return whole_event(event_columns(events), options, EXACT in events.columns)


def with_events(matched: DataFrame, text: str, source: SourceConfig, time: datetime) -> DataFrame:
    """Notifications as `append_notifications` takes them. The column `text` has their events."""
    from pyspark.sql import functions as f

    kind = f.lit(XML if source.format == "xml" else JSON)
    micros = f.unix_micros(f.lit(time).cast("timestamp"))
    ids = EVENT_ID, SUBSCRIPTION_ID, CREATED
    return matched.select(*ids, kind.alias(_KIND), column(text).alias(_EVENT), micros.alias(_TIME))


def append_notifications(
    sink: Sink, notifications: DataFrame, batch: int, pipeline: str, reached: Reached = ignore_step
) -> None:
    """Append the notifications of a batch, unless they are there. Raises StoreError.

    Who has unsubscribed or expired since the batch began is not told, nor who took over the id of another.
    """
    rows = notifications.orderBy(EVENT_ID, _EVENT, SUBSCRIPTION_ID).toLocalIterator()
    with opened_store(sink.store or "") as store:
        for number, (time, chunk) in enumerate(_chunks(rows)):
            key = _key("pipeline", pipeline, batch, time, number)
            _append(store, chunk, key)
            reached("appended a chunk")


def _append(store: Store, chunk: list[_Told], key: bytes) -> None:
    ids = list({id for told in chunk for id, _ in told.pairs})
    with store.writing() as writing:  # nobody changes subscriptions until it is done
        known = {each.id: each for each in store.subscriptions_of(ids)}
        deliveries = {id: each.delivery for id, each in known.items() if not each.delivery.is_default}
        now = microseconds()
        events = [
            NewEvent(told.kind, told.text.encode(), matches)
            for told in chunk
            if (matches := [id for id, created in told.pairs if _is_same(known.get(id), created, now)])
        ]
        writing.append([Publication(events, key)], deliveries)


def _is_same(known: StoredSubscription | None, created: str | None, now: int) -> bool:
    """Whether a subscription is still the one that was matched, and valid."""
    return known is not None and known.expires_at > now and created in (None, str(known.created_at))


def _chunks(rows: Iterable[Any]) -> Iterator[tuple[int, list[_Told]]]:
    """The rows in parts, by event, each part with the time of the batch."""
    chunk: list[_Told] = []
    count = size = time = 0
    last: tuple[str, str] | None = None
    for row in rows:
        event = row[EVENT_ID], row[_EVENT]
        is_full = count >= _MOST_PAIRS or (event != last and (count >= _PAIRS or size >= _CHARACTERS))
        if is_full:
            yield time, chunk
            chunk, count, size = [], 0, 0
        if event != last or not chunk:
            chunk.append(_Told(row[_KIND], row[_EVENT]))
            size += len(row[_EVENT])
        chunk[-1].pairs.append((row[SUBSCRIPTION_ID], row[CREATED]))
        count, time, last = count + 1, row[_TIME], event
    if chunk:
        yield time, chunk


def _key(*parts: str | int) -> bytes:
    """What makes a chunk the same as one that was appended before."""
    return hashlib.sha256(json.dumps(parts).encode()).digest()
