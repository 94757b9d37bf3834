"""The outbox: notifications in packs, one for each lane and transaction, and how those of a subscription are found.

A row a notification would cost more than all the rest of a transaction. A pack has the notifications of one lane that
were appended together; to read a subscription's, the packs of its lane that name it are gone through from a cursor on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from harken.store.database import Row, Transaction, rows_in
from harken.store.stored import JournalledEvent, Notified

LANES = 128
"""More would make more rows a transaction, fewer would make readers pass over more packs of others."""
_COLUMNS = "lane", "last", "base", "event", "last_event", "time", "entries", "subscriptions"
_ENTRY = np.dtype("<u4")
_READ = "SELECT last, base, event, time, entries, subscriptions FROM notifications "


def lane_of(subscription: str) -> int:
    """The lane that the notifications of a subscription lie in."""
    return crc32(subscription.encode("utf-8", "surrogatepass")) % LANES


class NewNotification(NamedTuple):
    """A notification as it is appended, without its event."""

    number: int
    subscription: str
    event: int
    time: int
    suppressed: int


@dataclass(slots=True)
class NewNotifications:
    """Notifications of one transaction, in columns: their numbers follow `base` without gaps."""

    base: int
    time: int
    subscriptions: list[str] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    """The number of the event of each, which never falls."""
    suppressed: dict[int, int] = field(default_factory=dict)
    """How many were suppressed before one, by its place; 0 for others."""

    def __len__(self) -> int:
        return len(self.subscriptions)

    def __iter__(self) -> Iterator[NewNotification]:
        return self.at(range(len(self)))

    def at(self, places: Iterable[int]) -> Iterator[NewNotification]:
        """Those at some places."""
        for place in places:
            number, suppressed = self.base + place + 1, self.suppressed.get(place, 0)
            yield NewNotification(number, self.subscriptions[place], self.events[place], self.time, suppressed)

    @property
    def last(self) -> int:
        """The number of the last one."""
        return self.base + len(self)


def insert_packs(transaction: Transaction, new: NewNotifications) -> None:
    """Write notifications."""
    if not len(new):
        return
    first_event = new.events[0]
    entries = np.zeros((len(new), 3), _ENTRY)
    entries[:, 0] = np.arange(1, len(new) + 1)
    entries[:, 1] = np.array(new.events, np.int64) - first_event
    for place, count in new.suppressed.items():
        entries[place, 2] = min(count, 0xFFFFFFFF)
    lanes = np.array([lane_of(id) for id in new.subscriptions], np.int64)
    order = np.argsort(lanes, kind="stable")
    ends = np.cumsum(np.bincount(lanes, minlength=LANES)).tolist()
    entries = entries[order]
    ids = [new.subscriptions[place] for place in order.tolist()]
    rows: list[Row] = []
    start = 0
    for lane, end in enumerate(ends):
        if end > start:
            own = entries[start:end]
            last, last_event = new.base + int(own[-1, 0]), first_event + int(own[-1, 1])
            head = lane, last, new.base, first_event, last_event, new.time
            rows.append((*head, own.tobytes(), ("\0" + "\0".join(ids[start:end]) + "\0").encode()))
        start = end
    transaction.insert("notifications", _COLUMNS, rows)


def has_after(transaction: Transaction, id: str, after: int) -> bool:
    """Whether a subscription has notifications after one."""
    return bool(_entries_after(transaction, id, after, 1))


def read_after(transaction: Transaction, begin: Mapping[str, int], limit: int) -> list[Notified]:
    """The first notifications of subscriptions, in their order; of each those after a number."""
    found: list[NewNotification] = []
    for id, after in begin.items():
        found += _entries_after(transaction, id, after, limit)
        if len(found) > limit and len(begin) > 1:
            found = sorted(found)[:limit]
    return _with_events(transaction, found)


def read_at(transaction: Transaction, id: str, numbers: Sequence[int]) -> list[Notified]:
    """Those of these numbers that belong to a subscription, in their order."""
    found: list[NewNotification] = []
    known: dict[int, NewNotification] = {}
    last = -1
    for number in sorted(set(numbers)):
        if number > last:
            rest = f"WHERE lane = ? AND last >= ? AND {transaction.contains('subscriptions')} ORDER BY last LIMIT 1"
            packs = transaction.rows(_READ + rest, (lane_of(id), number, _needle(id)))
            if not packs:
                break
            last, known = packs[0][0], {each.number: each for each in _unpacked(packs[0], id)}
        if number in known:
            found.append(known[number])
    return _with_events(transaction, found)


def prune_packs(transaction: Transaction, first_event: int, up_to: int | None, most: int) -> tuple[int, int | None]:
    """Delete packs whose events are all before one, and whose notifications are all up to a number.

    Returns how many packs, at most so many, and a number before which there are no notifications any more; None if
    there are none at all.
    """
    text = "SELECT last, base, last_event FROM notifications WHERE lane = ? ORDER BY last LIMIT ?"
    count, kept = 0, None
    for lane in range(LANES):
        rows = transaction.rows(text, (lane, most // LANES + 2))
        gone = 0
        while gone < len(rows) and rows[gone][2] < first_event and (up_to is None or rows[gone][0] <= up_to):
            gone += 1
        if gone:
            transaction.run("DELETE FROM notifications WHERE lane = ? AND last <= ?", (lane, rows[gone - 1][0]))
        count += gone
        if rows:
            begin = rows[gone][1] + 1 if gone < len(rows) else rows[-1][0] + 1
            kept = begin if kept is None else min(kept, begin)
    return count, kept


def _entries_after(transaction: Transaction, id: str, after: int, limit: int) -> list[NewNotification]:
    # Each pack has at least one of the subscription; only of the first all may be before the number.
    rest = f"WHERE lane = ? AND last > ? AND {transaction.contains('subscriptions')} ORDER BY last LIMIT ?"
    found: list[NewNotification] = []
    for pack in transaction.stream(_READ + rest, (lane_of(id), after, _needle(id), limit + 1)):
        found += [each for each in _unpacked(pack, id) if each.number > after]
        if len(found) >= limit:
            break
    return found[:limit]


def _needle(id: str) -> bytes:
    return f"\0{id}\0".encode()  # ids have no NUL: the server takes printable ones only


def _unpacked(pack: Row, id: str) -> list[NewNotification]:
    """The notifications of a subscription in a pack."""
    _, base, event, time, packed, ids = pack
    name = id.encode()
    places = [place for place, each in enumerate(bytes(ids)[1:-1].split(b"\0")) if each == name]
    entries: NDArray[np.uint32] = np.frombuffer(packed, _ENTRY).reshape(-1, 3)[places]
    return [NewNotification(base + number, id, event + at, time, held) for number, at, held in entries.tolist()]


def _with_events(transaction: Transaction, entries: Sequence[NewNotification]) -> list[Notified]:
    text = "SELECT number, time, kind, body FROM events WHERE number IN"
    numbers = sorted({each.event for each in entries})
    events = {row[0]: event_of(row) for row in rows_in(transaction, text, numbers)}
    return [
        Notified(each.number, each.subscription, each.time, each.suppressed, events.get(each.event), each.event)
        for each in sorted(entries)
    ]


def event_of(row: Row) -> JournalledEvent:
    """An event from its row."""
    number, at, kind, body = row
    return JournalledEvent(number, at, kind, bytes(body))
