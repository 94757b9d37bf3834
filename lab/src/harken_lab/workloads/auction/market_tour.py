"""The demo: the auction market through the engine, from texts to matches and one explanation."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from harken.engine import Engine
from harken.events import RejectedEvent, read_rows
from harken.language.explanation import Explanation
from harken.live.subscriptions import Subscription, records_of_rows
from harken_lab.workloads.auction.market import events, readable_subscriptions, schema, subscriptions

_BATCH = 64


@dataclass(frozen=True, slots=True)
class SubscriptionSummary:
    """A readable subscription, the number of events that it matched, and the first of them."""

    subscription: Subscription
    matched: int
    example: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The figures of the demo, one summary a readable subscription, and an explained near miss."""

    subscriptions: int
    events: int
    matches: int
    seconds_to_subscribe: float
    seconds_to_match: float
    rejected: list[RejectedEvent]
    summaries: list[SubscriptionSummary]
    explained: str
    event: dict[str, Any]
    explanation: Explanation


def run(
    subscriptions_wanted: int = 3_000,
    events_wanted: int = 500,
    seed: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> DemoResult:
    """Subscribe the readable and the generated subscriptions, match the events, and explain a near miss.

    `progress` is called with the number of events matched since the previous call.
    """
    engine = Engine(schema())
    started = perf_counter()
    readable = engine.subscribe_many(records_of_rows(read_rows(io.BytesIO(readable_subscriptions()), "jsonl")))
    engine.subscribe_many(subscriptions(subscriptions_wanted, seed))
    if readable.faults:
        raise readable.faults[0].error
    subscribed = perf_counter()

    market = list(events(events_wanted, seed))
    matches: list[list[str]] = []
    rejected: list[RejectedEvent] = []
    for start in range(0, len(market), _BATCH):
        batch = engine.match_batch(market[start : start + _BATCH])
        matches.extend(batch.ids)
        rejected.extend(RejectedEvent(start + each.position, each.error, each.raw) for each in batch.rejected)
        progress(len(batch.ids))
    matched = perf_counter()

    summaries = [_summary(engine.subscription(id), market, matches) for id in _readable_ids(engine)]
    explained, event = _near_miss(engine, market, matches, rejected)
    return DemoResult(
        len(engine),
        len(market),
        sum(map(len, matches)),
        subscribed - started,
        matched - subscribed,
        rejected,
        summaries,
        explained,
        event,
        engine.explain(explained, event),
    )


def _readable_ids(engine: Engine) -> list[str]:
    rows = read_rows(io.BytesIO(readable_subscriptions()), "jsonl")
    return [record.id for record in records_of_rows(rows) if record.id is not None and record.id in engine]


def _summary(subscription: Subscription, market: list[dict[str, Any]], matches: list[list[str]]) -> SubscriptionSummary:
    hits = [event for event, ids in zip(market, matches, strict=True) if subscription.id in ids]
    return SubscriptionSummary(subscription, len(hits), hits[0] if hits else None)


def _near_miss(
    engine: Engine, market: list[dict[str, Any]], matches: list[list[str]], rejected: list[RejectedEvent]
) -> tuple[str, dict[str, Any]]:
    """The id of the first readable subscription, and the valid event that meets most of its conditions but not all."""
    wanted = _readable_ids(engine)[0]
    bad = {each.position for each in rejected}
    valid = [event for index, event in enumerate(market) if index not in bad and wanted not in matches[index]]
    return wanted, max(valid, key=lambda event: _nearness(engine.explain(wanted, event)))


def _nearness(explanation: Explanation) -> tuple[int, int]:
    """Conditions that are true, then conditions that are false: a false one explains more than an unknown one."""
    truths = [part.truth for part in explanation.tree.parts]
    return truths.count(True), truths.count(False)
