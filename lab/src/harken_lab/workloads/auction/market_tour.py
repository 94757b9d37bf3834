"""The demo: the auction market through the engine, from texts to matches and one explanation."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from harken.engine import Engine
from harken.events import Refused, read_rows
from harken.language.explanation import Explanation
from harken.live.subscriptions import Subscription, records_of_rows
from harken_lab.workloads.auction.market import events, readable_subscriptions, schema, subscriptions

_BATCH = 64


@dataclass(frozen=True, slots=True)
class Story:
    """Whom a readable subscription found: the events that it matched, the first of them to look at."""

    subscription: Subscription
    matched: int
    example: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo did, for whoever shows it."""

    subscriptions: int
    events: int
    matches: int
    seconds_to_subscribe: float
    seconds_to_match: float
    refused: list[Refused]
    stories: list[Story]
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

    `progress` is called with the number of events matched since the last time.
    """
    engine = Engine(schema())
    started = perf_counter()
    readable = engine.subscribe_many(records_of_rows(read_rows(io.BytesIO(readable_subscriptions()), "jsonl")))
    engine.subscribe_many(subscriptions(subscriptions_wanted, seed))
    if readable.faults:
        raise readable.faults[0].error
    subscribed = perf_counter()

    market = list(events(events_wanted, seed))
    found: list[list[str]] = []
    refused: list[Refused] = []
    for start in range(0, len(market), _BATCH):
        batch = engine.match_batch(market[start : start + _BATCH])
        found.extend(batch.ids)
        refused.extend(Refused(start + each.position, each.error, each.raw) for each in batch.refused)
        progress(len(batch.ids))
    matched = perf_counter()

    stories = [_story(engine.subscription(id), market, found) for id in _readable_ids(engine)]
    explained, event = _near_miss(engine, market, found, refused)
    return DemoResult(
        len(engine),
        len(market),
        sum(map(len, found)),
        subscribed - started,
        matched - subscribed,
        refused,
        stories,
        explained,
        event,
        engine.explain(explained, event),
    )


def _readable_ids(engine: Engine) -> list[str]:
    rows = read_rows(io.BytesIO(readable_subscriptions()), "jsonl")
    return [record.id for record in records_of_rows(rows) if record.id is not None and record.id in engine]


def _story(subscription: Subscription, market: list[dict[str, Any]], found: list[list[str]]) -> Story:
    hits = [event for event, ids in zip(market, found, strict=True) if subscription.id in ids]
    return Story(subscription, len(hits), hits[0] if hits else None)


def _near_miss(
    engine: Engine, market: list[dict[str, Any]], found: list[list[str]], refused: list[Refused]
) -> tuple[str, dict[str, Any]]:
    """The first readable subscription, and the valid event that met most of its conditions without matching it."""
    wanted = _readable_ids(engine)[0]
    bad = {each.position for each in refused}
    valid = [event for index, event in enumerate(market) if index not in bad and wanted not in found[index]]
    return wanted, max(valid, key=lambda event: _nearness(engine.explain(wanted, event)))


def _nearness(explanation: Explanation) -> tuple[int, int]:
    """How many of the conditions hold; among equals, the more instructive one is false where the other is unknown."""
    truths = [part.truth for part in explanation.tree.parts]
    return truths.count(True), truths.count(False)
