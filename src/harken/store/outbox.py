"""The outbox: notifications in packs, one for each lane and transaction, and how those of a subscription are found.

A row a notification would cost more than all the rest of a transaction. A pack has the notifications of one lane that
were appended together; to read a subscription's, the packs of its lane that name it are gone through from a cursor on.

Lanes lie in different pages. Where a transaction writes every page that it changes as a whole, its notifications are
one pack at first, in the tail. When the tail has become long, all of it is spread over the lanes at once.
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
"""More would make more rows a transaction, fewer would make readers pass over more packs of others."""
TAIL = LANES
"""The lane of packs that are not spread yet. They are later than all others."""
_TAIL_PACKS, _TAIL_NOTIFICATIONS = 64, 16_384
"""What the tail has at most: whoever reads, passes over it."""
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
    packs = [_packed(new)]
    if not transaction.writes_whole_pages:
        packs = _spread(packs)
    elif _is_full(transaction, len(new)):
        known = transaction.rows(f"SELECT {', '.join(_COLUMNS)} FROM notifications WHERE lane = ?", (TAIL,))
        transaction.run("DELETE FROM notifications WHERE lane = ?", (TAIL,))
        packs = _spread([*known, *packs])
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
    """Whether the tail has no room for a pack of so many notifications."""
    text = "SELECT COUNT(*), COALESCE(SUM(last - base), 0) FROM notifications WHERE lane = ?"
    packs, notifications = transaction.rows(text, (TAIL,))[0]
    return bool(packs >= _TAIL_PACKS or notifications + more > _TAIL_NOTIFICATIONS)


def _spread(packs: Iterable[Row]) -> list[Row]:
    """Packs of the tail as packs of lanes, in the order of the table."""
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
    """Whether a subscription has notifications after one."""
    return bool(_taken(_packs(transaction, id, after, 2), {id: after}, 1))


def read_after(
    transaction: Transaction, begin: Mapping[str, int], limit: int, most_bytes: int | None = None
) -> tuple[list[Notified], bool]:
    """The first notifications of subscriptions, in their order; of each those after a number.

    They end early where their events have more bytes. Returns also whether there may be more of them.
    """
    found: list[NewNotification] = []
    for id, after in begin.items():
        found += _taken(_packs(transaction, id, after, limit + 1, [lane_of(id)]), {id: after}, limit)
        if len(found) > limit:
            found = sorted(found)[:limit]
    if len(found) < limit:  # all of the tail is later
        found += _taken(_tail_packs(transaction, begin, limit + 1), begin, limit - len(found))
    kept = _with_events(transaction, found, most_bytes)
    return kept, bool(kept) and (len(kept) < len(found) or len(kept) == limit)


def read_at(transaction: Transaction, id: str, numbers: Sequence[int], most_bytes: int | None = None) -> list[Notified]:
    """Those of these numbers that belong to a subscription, in their order, while their events have no more bytes."""
    found: list[NewNotification] = []
    known: dict[int, NewNotification] = {}
    last = -1
    for number in sorted(set(numbers)):
        if number > last:
            pack = next(_packs(transaction, id, number - 1, 1), None)
            if pack is None:
                break
            last, known = pack[0], {each.number: each for each in _unpacked(pack, [id])}
        if number in known:
            found.append(known[number])
    return _with_events(transaction, found, most_bytes)


def prune_packs(transaction: Transaction, first_event: int, up_to: int | None, most: int) -> tuple[int, int | None]:
    """Delete packs whose events are all before one, and whose notifications are all up to a number.

    Returns how many packs, at most so many, and a number before which there are no notifications any more; None if
    there are none at all.
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


def _taken(packs: Iterable[Row], begin: Mapping[str, int], limit: int) -> list[NewNotification]:
    """The first notifications of subscriptions in packs that follow each other; of each those after a number."""
    found: list[NewNotification] = []
    for pack in packs:
        found += [each for each in _unpacked(pack, begin) if each.number > begin[each.subscription]]
        if len(found) >= limit:
            break
    return found[:limit]


def _packs(
    transaction: Transaction, id: str, after: int, limit: int, lanes: Sequence[int] | None = None
) -> Iterator[Row]:
    """The packs that name a subscription and end after a number, so many of each lane: its own, and the tail.

    Each has at least one notification of the subscription; only of the first all may be before the number.
    """
    rest = f"WHERE lane = ? AND last > ? AND {transaction.contains('subscriptions')} ORDER BY last LIMIT ?"
    for lane in _lanes(transaction, id) if lanes is None else lanes:
        yield from transaction.stream(_READ + rest, (lane, after, _needle(id), limit))


def _tail_packs(transaction: Transaction, begin: Mapping[str, int], limit: int) -> Iterator[Row]:
    """The packs of the tail in which there may be notifications of subscriptions: of several, it is read once."""
    if not transaction.writes_whole_pages or not begin:
        return
    if len(begin) == 1:
        ((id, after),) = begin.items()
        yield from _packs(transaction, id, after, limit, [TAIL])
    else:
        rest = "WHERE lane = ? AND last > ? ORDER BY last"
        yield from transaction.stream(_READ + rest, (TAIL, min(begin.values())))


def _lanes(transaction: Transaction, id: str) -> list[int]:
    """Where the notifications of a subscription may lie, the earlier ones first."""
    return [lane_of(id), TAIL] if transaction.writes_whole_pages else [lane_of(id)]


def _needle(id: str) -> bytes:
    return f"\0{id}\0".encode()  # ids have no NUL: the server takes printable ones only


def _unpacked(pack: Row, ids: Iterable[str]) -> list[NewNotification]:
    """The notifications of subscriptions in a pack."""
    _, base, event, time, packed, subscriptions = pack
    names = {id.encode(): id for id in ids}
    every = bytes(subscriptions)[1:-1].split(b"\0")
    found = [(place, names[each]) for place, each in enumerate(every) if each in names]
    entries: NDArray[np.uint32] = np.frombuffer(packed, _ENTRY).reshape(-1, 3)[[place for place, _ in found]]
    return [
        NewNotification(base + number, id, event + at, time, held)
        for (_, id), (number, at, held) in zip(found, entries.tolist(), strict=True)
    ]


def _with_events(
    transaction: Transaction, entries: Sequence[NewNotification], most_bytes: int | None
) -> list[Notified]:
    """Notifications in their order with their events, while these have no more bytes. The first is always there."""
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
    """The bytes of their events, by number. No event is read for that."""
    numbers = sorted({each.event for each in entries})
    return dict(rows_in(transaction, "SELECT number, length(body) FROM events WHERE number IN", numbers))


def event_of(row: Row) -> JournalledEvent:
    """An event from its row."""
    number, at, kind, body = row
    return JournalledEvent(number, at, kind, bytes(body))
