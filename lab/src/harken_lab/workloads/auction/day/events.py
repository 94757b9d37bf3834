"""A day at the auction house as JSON lines: lots are listed, bid for, reduced, and in the end sold or not.

A few lines are broken, have a value that the schema does not allow, or come twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import compress

import numpy as np

from harken_lab.workloads.auction.day.goods import CONDITIONS, DAY, FLAGS, WORDS, generator, goods, lot_ids, seller_ids
from harken_lab.workloads.auction.day.lots import DAY_SECONDS, Floats, Ints, Lots, bid_times, draw_lots

COLUMNS = (
    "id STRING, at TIMESTAMP, kind STRING, lot STRING, item STRING, maker STRING, category STRING, condition STRING, "
    "signed BOOLEAN, boxed BOOLEAN, restored BOOLEAN, price DOUBLE, estimate DOUBLE, reserve DOUBLE, shipping DOUBLE, "
    "bids INT, ends TIMESTAMP, seller STRING"
)
"""The columns of events, as a Spark schema."""
KINDS = ("listed", "bid", "reduced", "ending", "sold", "unsold")
_LISTED, _BID, _REDUCED, _ENDING, _SOLD, _UNSOLD = range(len(KINDS))
_EVENTS_A_LOT = 4
_WARNING = 600.0
"""Seconds from the reminder that a lot is ending to its end."""
_BROKEN = 2_000
"""One line in 2,000 is spoilt by each function of `_SPOILING`."""
_TWICE = 500
"""One line in 500 comes twice."""


def lots_of(events: int) -> int:
    """The number of lots of a day with this number of events."""
    return max(8, events // _EVENTS_A_LOT)


def event_lines(count: int, seed: int) -> Iterator[tuple[int, str]]:
    """The hour of the day and the text of each line, ascending by time."""
    rng = generator(seed, 3)
    lots = draw_lots(lots_of(count), seed)
    lot, kind, at, number = _happenings(lots, rng)
    while len(lot) < count:  # few lots may have too few events
        lot, kind, at, number = (np.concatenate([each, each]) for each in (lot, kind, at, number))
    chosen = np.arange(len(lot)) if len(lot) == count else np.sort(rng.choice(len(lot), count, replace=False))
    chosen = chosen[np.argsort(at[chosen], kind="stable")]
    lot, kind, at, number = lot[chosen], kind[chosen], at[chosen], number[chosen]
    lines = _lines(lots, lot, kind, at, number)
    odd = rng.integers(0, _BROKEN, count)
    twice = rng.integers(0, _TWICE, count) == 0
    hours = np.minimum(at // 3_600, 23).astype(int)
    for line, hour, oddity, is_double in zip(lines, hours.tolist(), odd.tolist(), twice.tolist(), strict=True):
        text = _SPOILING[oddity](line) if oddity < len(_SPOILING) else line
        yield hour, text
        if is_double:
            yield hour, text


def _happenings(lots: Lots, rng: np.random.Generator) -> tuple[Ints, Ints, Floats, Ints]:
    """The events of the day as columns: the lot, the kind, the time, and the number of bids up to then."""
    all_lots = np.arange(len(lots))
    bidding = np.repeat(all_lots, lots.bids)
    times = bid_times(lots, bidding, rng)
    order = np.lexsort((times, bidding))
    bidding, times = bidding[order], times[order]
    first = np.cumsum(lots.bids) - lots.bids
    number = np.arange(len(bidding)) - first[bidding] + 1
    reduced = all_lots[(lots.bids == 0) & (rng.random(len(lots)) < 0.5)]
    half_way = lots.listed[reduced] + (lots.ends[reduced] - lots.listed[reduced]) * rng.random(len(reduced))
    is_sold = (lots.bids > 0) & ~(_price(lots, all_lots, lots.bids) < lots.reserve)
    outcome = np.where(is_sold, _SOLD, _UNSOLD)
    zeros = np.zeros_like
    parts = [
        (all_lots, np.full(len(lots), _LISTED), lots.listed, zeros(all_lots)),
        (bidding, np.full(len(bidding), _BID), times, number),
        (reduced, np.full(len(reduced), _REDUCED), half_way, zeros(reduced)),
        (all_lots, np.full(len(lots), _ENDING), lots.ends - _WARNING, lots.bids),
        (all_lots, outcome, lots.ends, lots.bids),
    ]
    lot, kind, at, count = (np.concatenate([part[place] for part in parts]) for place in range(4))
    today = (at >= np.maximum(lots.listed[lot], 0.0)) & (at < DAY_SECONDS) & (at <= lots.ends[lot])
    return lot[today], kind[today], at[today], count[today]


def _price(lots: Lots, lot: Ints, bids: Ints) -> Floats:
    return np.round(lots.opening[lot] * lots.growth[lot] ** bids, 2)


def _lines(lots: Lots, lot: Ints, kind: Ints, at: Floats, bids: Ints) -> Iterator[str]:
    price = _price(lots, lot, bids)
    price = np.where(kind == _REDUCED, np.round(price * 0.8, 2), price)
    about = _descriptions(lots)
    columns = (lot_ids(lot), _times(at), _times(lots.ends[lot]))
    rows = zip(*columns, lot.tolist(), kind.tolist(), price.tolist(), bids.tolist(), strict=True)
    for place, (lot_id, when, ends, which, what, cost, count) in enumerate(rows):
        yield (
            f'{{"id": "e{place:07d}", "at": "{when}", "kind": "{KINDS[what]}", "lot": "{lot_id}", "price": {cost}, '
            f'"bids": {count}, "ends": "{ends}", {about[which]}}}'
        )


def _descriptions(lots: Lots) -> list[str]:
    """For each lot what its events have in common, as the inside of a JSON object."""
    kinds = goods()
    columns = (lots.good, lots.maker, lots.thing, lots.condition, lots.estimate, lots.reserve, lots.shipping)
    rows = zip(*(column.tolist() for column in columns), seller_ids(lots.seller), lots.remarks.tolist(), strict=True)
    descriptions = []
    for good, maker, thing, condition, estimate, reserve, shipping, seller, remarks in rows:
        flags, words = remarks[: len(FLAGS)], remarks[len(FLAGS) :]
        plain = {
            "item": ", ".join([f"{kinds[good].makers[maker]} {kinds[good].things[thing]}", *compress(WORDS, words)]),
            "maker": kinds[good].makers[maker],
            "category": kinds[good].category,
            "condition": CONDITIONS[condition],
            **dict.fromkeys(compress(FLAGS, flags), True),
            "estimate": estimate,
            "reserve": reserve if reserve == reserve else None,
            "shipping": shipping,
            "seller": seller,
        }
        if shipping == 0 and not flags[1]:  # sellers who ship for nothing also fill in the whole form
            plain["boxed"] = False
        present = {name: value for name, value in plain.items() if value is not None}
        descriptions.append(json.dumps(present, ensure_ascii=False)[1:-1])
    return descriptions


def _times(seconds: Floats) -> list[str]:
    moments = np.datetime64(DAY, "s") + np.floor(seconds).astype("m8[s]")
    texts: list[str] = np.datetime_as_string(moments, timezone="UTC").tolist()
    return texts


def _cut_short(line: str) -> str:
    return line[: len(line) // 2]


def _priceless(line: str) -> str:
    return line.replace('"price": ', '"price": "about ').replace(', "bids"', '", "bids"', 1)


def _of_no_category(line: str) -> str:
    before, _, rest = line.partition('"category": "')
    return f'{before}"category": "Miscellaneous{rest[rest.index(chr(34)) :]}'


def _nameless(line: str) -> str:
    return "{" + line[line.index(",") + 2 :]


_SPOILING = (_cut_short, _priceless, _of_no_category, _nameless)
