"""The outbox: notifications in packs, one for each lane and transaction, and how to read a subscription's from them.

A row for each notification would cost more than all the rest of a transaction. A pack has the notifications of one
lane that were appended together. A subscription's notifications are in the packs of its lane that contain its id.

Lanes lie in different pages. In a database that writes whole pages, the notifications of a transaction are one pack at
first, in the tail. Once the tail is long, all of it is spread over the lanes at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from harken.databases.connection import Row
from harken.store.database import Transaction, fitting, rows_in
from harken.store.stored import JournalledEvent, Notified

LANES = 128
"""More lanes make more rows a transaction; with fewer, readers scan more packs of other subscriptions."""
TAIL = LANES
"""The lane of packs that are not spread yet. They are later than all others."""
_TAIL_PACKS, _TAIL_NOTIFICATIONS = 64, 16_384
"""Most packs and notifications in the tail: every reader scans it."""
_COLUMNS = "lane", "last", "base", "event", "last_event", "time", "entries", "subscriptions"
_ENTRY = np.dtype("<u4")
_READ = "SELECT last, base, event, time, entries, subscriptions FROM notifications "


def lane_of(subscription: str) -> int:
    """The lane of a subscription's notifications."""
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
    """Notifications of one transaction, in columns. Their numbers follow `base` without gaps."""

    base: int
    time: int
    subscriptions: list[str] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    """The event number of each notification, in ascending order."""
    suppressed: dict[int, int] = field(default_factory=dict)
    """By place of a notification, how many were suppressed before it; left out where none were."""

    def __len__(self) -> int:
        return len(self.subscriptions)

    def __iter__(self) -> Iterator[NewNotification]:
        return self.at(range(len(self)))

    def at(self, places: Iterable[int]) -> Iterator[NewNotification]:
        """The notifications at these places."""
        for place in places:
            number, suppressed = self.base + place + 1, self.suppressed.get(place, 0)
            yield NewNotification(number, self.subscriptions[place], self.events[place], self.time, suppressed)

    @property
    def last(self) -> int:
        """The number of the last notification."""
        return self.base + len(self)


def insert_packs(transaction: Transaction, new: NewNotifications) -> None:
    """Insert the notifications of a transaction into the outbox."""
    if not len(new):
        return
    packs = [_packed(new)]
    if not transaction.writes_whole_pages:
        packs = _spread(packs)
    elif _is_full(transaction, len(new)):
        tail = transaction.rows(f"SELECT {', '.join(_COLUMNS)} FROM notifications WHERE lane = ?", (TAIL,))
        transaction.run("DELETE FROM notifications WHERE lane = ?", (TAIL,))
        packs = _spread([*tail, *packs])
    transaction.insert("notifications", _COLUMNS, packs)


def _packed(new: NewNotifications) -> Row:
    """Notifications as one pack of the tail."""
    entries = np.zeros((len(new), 3), _ENTRY)
    entries[:, 0] = np.arange(1, len(new) + 1)
    entries[:, 1] = np.array(new.events, np.int64) - new.events[0]
    for place, count in new.suppressed.items():
        entries[place, 2] = min(count, 0xFFFFFFFF)
    head = TAIL, new.last, new.base, new.events[0], new.events[-1], new.time
    return *head, entries.tobytes(), ("\0" + "\0".join(new.subscriptions) + "\0").encode()


def _is_full(transaction: Transaction, more: int) -> bool:
    """Whether the tail has no room for another pack of `more` notifications."""
    text = "SELECT COUNT(*), COALESCE(SUM(last - base), 0) FROM notifications WHERE lane = ?"
    packs, notifications = transaction.rows(text, (TAIL,))[0]
    return bool(packs >= _TAIL_PACKS or notifications + more > _TAIL_NOTIFICATIONS)


def _spread(packs: Iterable[Row]) -> list[Row]:
    """Divide packs of the tail into packs of the lanes, in the order of the table's key."""
    rows: list[Row] = []
    for _, _, base, event, _, time, packed, subscriptions in packs:
        ids = bytes(subscriptions)[1:-1].split(b"\0")
        lanes = np.array([crc32(id) % LANES for id in ids], np.int64)
        order = np.argsort(lanes, kind="stable")
        entries = np.frombuffer(packed, _ENTRY).reshape(-1, 3)[order]
        ids = [ids[place] for place in order.tolist()]
        start = 0
        for lane, end in enumerate(np.cumsum(np.bincount(lanes, minlength=LANES)).tolist()):
            if end > start:
                own = entries[start:end]
                head = lane, base + int(own[-1, 0]), base, event, event + int(own[-1, 1]), time
                rows.append((*head, own.tobytes(), b"\0" + b"\0".join(ids[start:end]) + b"\0"))
            start = end
    return sorted(rows, key=lambda row: row[:2])


def has_after(transaction: Transaction, id: str, after: int) -> bool:
    """Whether a subscription has notifications after a number."""
    return bool(_first(_packs(transaction, id, after, 2), {id: after}, 1))


def read_after(
    transaction: Transaction, begin: Mapping[str, int], limit: int, most_bytes: int | None = None
) -> tuple[list[Notified], bool]:
    """The first `limit` notifications of subscriptions, in their order, and whether there may be more.

    `begin` has the number for each subscription after which its notifications are read. There are fewer of them if
    their events have more than `most_bytes` together, but at least one.
    """
    first: list[NewNotification] = []
    for id, after in begin.items():
        first += _first(_packs(transaction, id, after, limit + 1, [lane_of(id)]), {id: after}, limit)
        if len(first) > limit:
            first = sorted(first)[:limit]
    if len(first) < limit:  # all of the tail is later
        first += _first(_tail_packs(transaction, begin, limit + 1), begin, limit - len(first))
    kept = _with_events(transaction, first, most_bytes)
    return kept, bool(kept) and (len(kept) < len(first) or len(kept) == limit)


def read_at(transaction: Transaction, id: str, numbers: Sequence[int], most_bytes: int | None = None) -> list[Notified]:
    """The notifications of a subscription that have these numbers, in their order.

    There are fewer of them if their events have more than `most_bytes` together, but at least one.
    """
    notifications: list[NewNotification] = []
    in_pack: dict[int, NewNotification] = {}
    last = -1
    for number in sorted(set(numbers)):
        if number > last:
            pack = next(_packs(transaction, id, number - 1, 1), None)
            if pack is None:
                break
            last, in_pack = pack[0], {each.number: each for each in _unpacked(pack, [id])}
        if number in in_pack:
            notifications.append(in_pack[number])
    return _with_events(transaction, notifications, most_bytes)


def prune_packs(transaction: Transaction, first_event: int, up_to: int | None, most: int) -> tuple[int, int | None]:
    """Delete at most about `most` packs whose events are all before `first_event`, and whose notifications are all up
    to `up_to`.

    Returns the number of deleted packs, and the number before which no notifications are left; None if there are none.
    """
    text = "SELECT last, base, last_event FROM notifications WHERE lane = ? ORDER BY last LIMIT ?"
    count, kept = 0, None
    for lane in range(TAIL + 1):
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


def _first(packs: Iterable[Row], begin: Mapping[str, int], limit: int) -> list[NewNotification]:
    """The first `limit` notifications in ascending packs that come after the number of their subscription."""
    notifications: list[NewNotification] = []
    for pack in packs:
        notifications += [each for each in _unpacked(pack, begin) if each.number > begin[each.subscription]]
        if len(notifications) >= limit:
            break
    return notifications[:limit]


def _packs(
    transaction: Transaction, id: str, after: int, limit: int, lanes: Sequence[int] | None = None
) -> Iterator[Row]:
    """The packs with notifications of a subscription that end after a number, at most `limit` of each lane.

    The lanes are by default the subscription's own and the tail. Only in the first pack of a lane may all of the
    subscription's notifications be before the number.
    """
    rest = f"WHERE lane = ? AND last > ? AND {transaction.contains('subscriptions')} ORDER BY last LIMIT ?"
    for lane in _lanes(transaction, id) if lanes is None else lanes:
        yield from transaction.stream(_READ + rest, (lane, after, _needle(id), limit))


def _tail_packs(transaction: Transaction, begin: Mapping[str, int], limit: int) -> Iterator[Row]:
    """The packs of the tail that may have notifications of these subscriptions. For several it is read only once."""
    if not transaction.writes_whole_pages or not begin:
        return
    if len(begin) == 1:
        ((id, after),) = begin.items()
        yield from _packs(transaction, id, after, limit, [TAIL])
    else:
        rest = "WHERE lane = ? AND last > ? ORDER BY last"
        yield from transaction.stream(_READ + rest, (TAIL, min(begin.values())))


def _lanes(transaction: Transaction, id: str) -> list[int]:
    """The lanes that may have notifications of a subscription, the one with earlier notifications first."""
    return [lane_of(id), TAIL] if transaction.writes_whole_pages else [lane_of(id)]


def _needle(id: str) -> bytes:
    return f"\0{id}\0".encode()  # ids have no NUL: the server rejects ids that are not printable


def _unpacked(pack: Row, ids: Iterable[str]) -> list[NewNotification]:
    """The notifications of these subscriptions in a pack."""
    _, base, event, time, packed, subscriptions = pack
    wanted = {id.encode(): id for id in ids}
    every = bytes(subscriptions)[1:-1].split(b"\0")
    places = [(place, wanted[each]) for place, each in enumerate(every) if each in wanted]
    entries: NDArray[np.uint32] = np.frombuffer(packed, _ENTRY).reshape(-1, 3)[[place for place, _ in places]]
    return [
        NewNotification(base + number, id, event + event_offset, time, suppressed)
        for (_, id), (number, event_offset, suppressed) in zip(places, entries.tolist(), strict=True)
    ]


def _with_events(
    transaction: Transaction, entries: Sequence[NewNotification], most_bytes: int | None
) -> list[Notified]:
    """Notifications in their order, with their events: the first, and more while the events fit into `most_bytes`."""
    entries = sorted(entries)
    if most_bytes is not None and len(entries) > 1:
        sizes = _sizes(transaction, entries)
        entries = entries[: fitting((sizes.get(each.event, 0) for each in entries), most_bytes)]
    text = "SELECT number, time, kind, body FROM events WHERE number IN"
    numbers = sorted({each.event for each in entries})
    events = {row[0]: event_of(row) for row in rows_in(transaction, text, numbers)}
    return [
        Notified(each.number, each.subscription, each.time, each.suppressed, events.get(each.event), each.event)
        for each in entries
    ]


def _sizes(transaction: Transaction, entries: Sequence[NewNotification]) -> dict[int, int]:
    """The size in bytes of each notification's event, by event number, without reading the events."""
    numbers = sorted({each.event for each in entries})
    return dict(rows_in(transaction, "SELECT number, length(body) FROM events WHERE number IN", numbers))


def event_of(row: Row) -> JournalledEvent:
    """The event of a row of the journal."""
    number, time, kind, body = row
    return JournalledEvent(number, time, kind, bytes(body))
