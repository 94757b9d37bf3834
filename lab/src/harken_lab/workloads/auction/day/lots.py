"""The lots of a day: their goods, prices, ends and bids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harken_lab.workloads.auction.day.goods import (
    CONDITION_SHARES,
    REMARK_SHARES,
    SELLERS,
    generator,
    goods,
    shares,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOUR = 3_600.0
DAY_SECONDS = 24 * HOUR
# How active bidders are in each hour of the day, as weights.
_BUSY = (3, 2, 1, 1, 1, 2, 5, 9, 12, 12, 11, 12, 16, 14, 11, 11, 13, 17, 23, 30, 34, 30, 19, 8)
# How many auctions end in each hour of the day, as weights: sellers prefer the evening.
_ENDINGS = (1, 1, 0, 0, 0, 0, 1, 2, 4, 5, 5, 5, 7, 6, 5, 5, 6, 8, 14, 22, 26, 20, 8, 2)
_DAYS_AGO = (40, 18, 14, 12, 10, 6)
"""Weights of the days since a lot was listed, from 0 on."""
_WORTH = (0.25, 0.6, 1.0, 1.4, 1.8)
"""The factor of a price by condition."""


@dataclass(frozen=True, slots=True)
class Lots:
    """Columns with a row a lot. Times are seconds since midnight, and may lie on days before or after."""

    good: Ints
    maker: Ints
    thing: Ints
    condition: Ints
    remarks: NDArray[np.bool_]
    seller: Ints
    estimate: Floats
    reserve: Floats
    """NaN if there is none."""
    shipping: Floats
    opening: Floats
    """The price at which bidding begins."""
    growth: Floats
    """The factor by which a bid raises the price."""
    listed: Floats
    ends: Floats
    bids: Ints

    def __len__(self) -> int:
        return len(self.good)


def draw_lots(count: int, seed: int) -> Lots:
    """Draw lots. With another count all of them are others."""
    rng = generator(seed, 2)
    kinds = goods()
    good = rng.choice(len(kinds), count, p=shares([each.share for each in kinds]))
    condition = rng.choice(len(CONDITION_SHARES), count, p=shares(CONDITION_SHARES))
    remarks = rng.random((count, len(REMARK_SHARES))) < np.asarray(REMARK_SHARES)
    middling = np.asarray([each.price for each in kinds])[good]
    dear = 1 + 0.5 * remarks[:, 0] + 0.6 * remarks[:, 4] + 0.2 * remarks[:, 5]
    estimate = middling * np.asarray(_WORTH)[condition] * dear * rng.lognormal(0, 0.55, count)
    ends = _end_times(rng, count)
    bids = rng.negative_binomial(0.9, 0.22, count)
    opening = estimate * rng.uniform(0.08, 0.7, count)
    final = estimate * rng.lognormal(-0.1, 0.3, count)
    growth = np.maximum(1.02, (final / opening) ** (1 / np.maximum(bids, 1)))
    return Lots(
        good=good,
        maker=rng.integers(0, 1_000, count) % np.asarray([len(each.makers) for each in kinds])[good],
        thing=rng.integers(0, 1_000, count) % np.asarray([len(each.things) for each in kinds])[good],
        condition=condition,
        remarks=remarks,
        seller=np.minimum((SELLERS * rng.random(count) ** 1.6).astype(np.int64), SELLERS - 1),
        estimate=_money(estimate),
        reserve=np.where(rng.random(count) < 0.35, _money(estimate * rng.uniform(0.55, 1.05, count)), np.nan),
        shipping=_money(np.where(rng.random(count) < 0.25, 0, rng.gamma(2.0, 1.5 + middling / 120, count))),
        opening=opening,
        growth=growth,
        listed=_at_busy_hours(rng.random(count)) - DAY_SECONDS * rng.choice(len(_DAYS_AGO), count, p=shares(_DAYS_AGO)),
        ends=ends,
        bids=bids,
    )


def bid_times(lots: Lots, lot: Ints, rng: np.random.Generator) -> Floats:
    """The times of bids: about half follow the activity of the day, the others come shortly before the end."""
    begin = np.maximum(lots.listed[lot], 0.0)
    end = np.minimum(lots.ends[lot], DAY_SECONDS)
    low, high = _busyness(begin), _busyness(np.maximum(end, begin))
    whenever = _at_busy_hours(low + (high - low) * rng.random(len(lot)))
    hurried = lots.ends[lot] - rng.exponential(420, len(lot))
    return np.where(rng.random(len(lot)) < 0.55, whenever, hurried)


def _end_times(rng: np.random.Generator, count: int) -> Floats:
    hours = rng.choice(24, count, p=shares(_ENDINGS)).astype(float)
    on_the_hour = rng.random(count) < 0.45
    minutes = np.where(on_the_hour, rng.choice([0, 0, 0, 30, 15, 45], count), rng.integers(0, 60, count))
    seconds = np.where(on_the_hour, 0, rng.integers(0, 60, count))
    day = rng.choice(3, count, p=shares((70, 20, 10)))
    return day * DAY_SECONDS + hours * HOUR + minutes * 60.0 + seconds


def _curve() -> tuple[Floats, Floats]:
    """Seconds of the day, and the share of the day's activity that is over by then."""
    middle = (np.arange(-1, 25) + 0.5) * HOUR
    height = np.asarray([_BUSY[-1], *_BUSY, _BUSY[0]], float)
    seconds = np.arange(0, DAY_SECONDS + 1, 60.0)
    done = np.cumsum(np.interp(seconds, middle, height))
    return seconds, (done - done[0]) / (done[-1] - done[0])


_SECONDS, _DONE = _curve()


def _busyness(seconds: Floats) -> Floats:
    return np.interp(seconds, _SECONDS, _DONE)


def _at_busy_hours(share: Floats) -> Floats:
    return np.interp(share, _DONE, _SECONDS)


def _money(amount: Floats) -> Floats:
    return np.round(amount, 2)
