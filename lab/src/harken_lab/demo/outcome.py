"""What the demo's report shows, all of it read back from the files that the pipeline wrote."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken_lab.demo.demo_folder import DemoFolder
from harken_lab.demo.timeline import SparkStep, steps

if TYPE_CHECKING:
    import pyarrow as pa

    from harken.engine import Engine
    from harken.language.explanation import Explanation

MINUTES = 24 * 60
_BUSIEST = 12
_LETTERS = 8
_CHECKED = 500
"""Notifications that the reference evaluates again, and as many random pairs of an event and a subscription."""
_REJECTING = ("decode", "validate", "late")
"""Stages that keep an event from being matched."""
_TRIED = 400
"""Most subscriptions that are evaluated to find a near miss."""


@dataclass(frozen=True, slots=True)
class BusySubscription:
    """A subscription with many notifications."""

    id: str
    owner: str
    where: str
    count: int


@dataclass(frozen=True, slots=True)
class LetterExample:
    """A dead letter."""

    stage: str
    reason: str
    event: str


@dataclass(frozen=True, slots=True)
class ExplainedSubscription:
    """A subscription, and why an event matches it or does not."""

    id: str
    owner: str
    where: str
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """Pairs of an event and a subscription that the reference evaluated again."""

    notifications: int
    pairs: int
    """Random pairs, most of them without a notification."""
    disagreements: int


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Everything that the report shows."""

    metrics: Mapping[str, Any]
    """The batch's line of the metrics file."""
    steps: list[SparkStep]
    events_by_minute: list[int]
    notifications_by_minute: list[int]
    events_by_category: Mapping[str, int]
    notifications_by_category: Mapping[str, int]
    by_area_and_hour: Mapping[str, list[int]]
    """Notifications of each hour, by the uppermost category."""
    matches_of_events: list[int]
    """How many events match 0, 1, 2 … subscriptions."""
    notifications_of_subscriptions: list[int]
    """How many subscriptions have 0, 1, 2 … notifications."""
    owners: int
    """People with a notification."""
    by_kind: Mapping[str, tuple[int, int]]
    """Subscriptions and notifications by the kind of wish."""
    busiest: list[BusySubscription]
    letters_by_reason: Mapping[tuple[str, str], int]
    letters: list[LetterExample]
    index_bytes: int
    """The size of the index on disk."""
    plan: Mapping[str, Any]
    """The matcher's statistics."""
    event: Mapping[str, Any] | None
    """The event that `hit` and `near_miss` explain."""
    hit: ExplainedSubscription | None
    near_miss: ExplainedSubscription | None
    reference_check: ReferenceCheck

    @property
    def events(self) -> int:
        return int(self.metrics["events"])

    @property
    def notifications(self) -> int:
        return int(self.metrics["notifications"])

    @property
    def subscriptions(self) -> int:
        return int(self.metrics["subscriptions"])

    @property
    def rejected(self) -> int:
        """Events that were rejected before they could be matched."""
        return sum(self.metrics["dead_letters"].get(stage, 0) for stage in _REJECTING)

    @property
    def duplicates(self) -> int:
        """Events with the id of an earlier event."""
        return int(self.metrics["duplicates"])

    @property
    def matched(self) -> int:
        """Events that were matched: neither rejected nor duplicates."""
        return sum(self.matches_of_events)

    @property
    def pairs(self) -> int:
        """Pairs of a matched event and a subscription."""
        return self.matched * self.subscriptions

    @property
    def start(self) -> float:
        """When the pipeline began, in seconds since 1970."""
        ended = datetime.fromisoformat(self.metrics["time"]).timestamp()
        return float(ended - self.metrics["seconds"])

    def seconds(self, name: str) -> float:
        """The time of all steps of a name, added up."""
        return sum(step.seconds for step in self.steps if step.name == name)


def gather(folder: DemoFolder) -> DemoOutcome:
    """Read the outcome from the files that the pipeline wrote."""
    from pyarrow import parquet

    metrics = _batch_line(folder.metrics)
    subscriptions = parquet.read_table(folder.subscriptions)
    notifications = _read_notifications(folder.notifications)
    letters = list(_json_lines(folder.dead_letters.rglob("*.json")))
    rejected = {letter["event_id"] for letter in letters if letter.get("event_id")}
    events = _events(folder.events, rejected)
    version = json.loads((folder.index / "current.json").read_text("utf-8"))
    engine = _engine(folder, version)
    per_event = _counts(notifications, "event_id")
    per_subscription = _counts(notifications, "subscription_id")
    categories = Counter(event["category"] for event in events.values())
    kinds = dict(zip(*(subscriptions[name].to_pylist() for name in ("id", "kind")), strict=True))
    hit, near_miss = _explained(engine, events, notifications, subscriptions, folder)
    notified = dict.fromkeys(sorted(set(kinds.values())), 0)
    for id, count in per_subscription.items():
        notified[kinds[id]] += count
    subscribed = Counter(kinds.values())
    return DemoOutcome(
        metrics=metrics,
        steps=steps(folder.spark_log),
        events_by_minute=_by_minute(_minute(event["at"]) for event in events.values()),
        notifications_by_minute=_minutes_of(notifications),
        events_by_category=categories,
        notifications_by_category=_counts(notifications, "category"),
        by_area_and_hour=_by_area_and_hour(notifications),
        matches_of_events=_histogram(per_event.values(), len(events)),
        notifications_of_subscriptions=_histogram(per_subscription.values(), subscriptions.num_rows),
        owners=len(_counts(notifications, "owner")),
        by_kind={kind: (subscribed[kind], notified[kind]) for kind in notified},
        busiest=_busiest(per_subscription, subscriptions),
        letters_by_reason=Counter((each["stage"], _kind_of_reason(each["reason"])) for each in letters),
        letters=_varied(letters),
        index_bytes=version["nbytes"],
        plan=engine.stats()["matcher"],
        event=None if hit is None else hit[1],
        hit=None if hit is None else hit[0],
        near_miss=near_miss,
        reference_check=_check(engine, events, notifications, subscriptions, folder),
    )


def _batch_line(path: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    last: dict[str, Any] = [line for line in lines if line["kind"] == "batch"][-1]
    return last


def _read_notifications(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    columns = ["event_id", "subscription_id", "owner", "event_time", "category"]
    if not any(path.rglob("*.parquet")):
        return pa.table({name: pa.array([], pa.timestamp("us") if name == "event_time" else "str") for name in columns})
    return parquet.read_table(path, columns=columns)


def _json_lines(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for path in sorted(paths):
        for line in path.read_text("utf-8").splitlines():
            yield json.loads(line)


def _events(folder: Path, rejected: set[str]) -> dict[str, dict[str, Any]]:
    """The events by id, without those that were rejected; of duplicates the first."""
    events: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            id = event.get("id")
            if id is not None and id not in rejected and isinstance(event["price"], float):
                events.setdefault(id, event)
    return events


def _engine(folder: DemoFolder, version: Mapping[str, Any]) -> Engine:
    from harken.engine import Engine

    return Engine.load(folder.index / version["folder"], background=False)


def _counts(table: pa.Table, name: str) -> dict[str, int]:
    """How many rows have each value of a column, most first."""
    grouped = (
        table.group_by(name).aggregate([([], "count_all")]).sort_by([("count_all", "descending"), (name, "ascending")])
    )
    return dict(zip(grouped[name].to_pylist(), grouped["count_all"].to_pylist(), strict=True))


def _minute(text: str) -> int:
    return int(text[11:13]) * 60 + int(text[14:16])


def _by_minute(minutes: Iterable[int]) -> list[int]:
    counts = Counter(minutes)
    return [counts[minute] for minute in range(MINUTES)]


def _minutes_of(notifications: pa.Table) -> list[int]:
    import numpy as np
    import pyarrow.compute as pc

    times = notifications["event_time"]
    minutes = pc.add(pc.multiply(pc.hour(times), 60), pc.minute(times)).to_numpy().astype(np.int64)
    return [int(count) for count in np.bincount(minutes, minlength=MINUTES)]


def _by_area_and_hour(notifications: pa.Table) -> dict[str, list[int]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from harken_lab.workloads.auction.day import ancestors

    table = pa.table({"category": notifications["category"], "hour": pc.hour(notifications["event_time"])})
    grouped = table.group_by(["category", "hour"]).aggregate([([], "count_all")])
    above = {category: path[-1] for category, path in ancestors().items()}
    by_area = {area: [0] * 24 for area in dict.fromkeys(above.values())}
    for row in grouped.to_pylist():
        by_area[above[row["category"]]][row["hour"]] += row["count_all"]
    return dict(sorted(by_area.items(), key=lambda pair: -sum(pair[1])))


def _histogram(counts: Iterable[int], of: int) -> list[int]:
    """How many of `of` things have a count of 0, 1, 2 …; those that `counts` leaves out have 0."""
    things = Counter(counts)
    things[0] = of - sum(things.values())
    return [things[count] for count in range(max(things) + 1)]


def _busiest(counts: Mapping[str, int], subscriptions: pa.Table) -> list[BusySubscription]:
    """The subscriptions with most notifications, one of each text."""
    rows = {row["id"]: row for row in _rows(subscriptions, list(counts)[: 20 * _BUSIEST])}
    texts: dict[str, BusySubscription] = {}
    for id, row in rows.items():
        texts.setdefault(row["where"], BusySubscription(id, row["owner"], row["where"], counts[id]))
    return sorted(texts.values(), key=lambda busy: (-busy.count, busy.id))[:_BUSIEST]


def _rows(subscriptions: pa.Table, ids: list[str]) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows: list[dict[str, Any]] = subscriptions.filter(pc.is_in(subscriptions["id"], pa.array(ids, "str"))).to_pylist()
    return rows


def _kind_of_reason(reason: str) -> str:
    """A reason in one line, without the hint."""
    return reason.splitlines()[0]


def _varied(letters: list[dict[str, Any]]) -> list[LetterExample]:
    """One dead letter of each stage and reason, at most _LETTERS."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for each in letters:
        first.setdefault((each["stage"], _kind_of_reason(each["reason"])), each)
    chosen = sorted(first.values(), key=lambda each: each["stage"])[:_LETTERS]
    return [LetterExample(each["stage"], each["reason"], each["event"]) for each in chosen]


def _enriched(event: Mapping[str, Any], sellers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The event as it was matched: without its id, with the attributes of its seller."""
    return {name: value for name, value in event.items() if name != "id"} | dict(sellers.get(event["seller"], {}))


def _sellers(path: Path) -> dict[str, dict[str, Any]]:
    from pyarrow import parquet

    rows = parquet.read_table(path, columns=["seller", "country", "rating", "since", "business"]).to_pylist()
    return {
        row.pop("seller"): {f"seller_{name}": value for name, value in (row | {"since": str(row["since"])}).items()}
        for row in rows
    }


def _explained(
    engine: Engine,
    events: Mapping[str, Mapping[str, Any]],
    notifications: pa.Table,
    subscriptions: pa.Table,
    folder: DemoFolder,
) -> tuple[tuple[ExplainedSubscription, dict[str, Any]] | None, ExplainedSubscription | None]:
    """A notification worth explaining, with its event; and a subscription that the event narrowly misses."""
    if not notifications.num_rows:
        return None, None
    stride = max(1, notifications.num_rows // _TRIED)
    sampled = notifications.take(list(range(0, notifications.num_rows, stride)))
    rows = {row["id"]: row for row in _rows(subscriptions, sampled["subscription_id"].to_pylist())}
    pairs = zip(sampled["event_id"].to_pylist(), sampled["subscription_id"].to_pylist(), strict=True)
    event_id, id = max(pairs, key=lambda pair: (rows[pair[1]]["kind"] == "trusted", len(rows[pair[1]]["where"]), pair))
    event = _enriched(events[event_id], _sellers(folder.sellers))
    hit = ExplainedSubscription(id, rows[id]["owner"], rows[id]["where"], engine.explain(id, event))
    return (hit, event), _near_miss(engine, event, subscriptions)


def _near_miss(engine: Engine, event: Mapping[str, Any], subscriptions: pa.Table) -> ExplainedSubscription | None:
    """The subscription that the event misses most narrowly, of some on its category if there are any."""
    import pyarrow.compute as pc

    on_category = pc.match_substring(subscriptions["where"], f"category = '{event['category']}'")
    rows = subscriptions.filter(on_category).slice(0, _TRIED).to_pylist() or subscriptions.slice(0, _TRIED).to_pylist()
    explained = [
        ExplainedSubscription(row["id"], row["owner"], row["where"], engine.explain(row["id"], event)) for row in rows
    ]
    missed = [each for each in explained if not each.explanation.matched and each.explanation.tree.parts]
    return max(missed, key=_nearness, default=None)


def _nearness(subscription: ExplainedSubscription) -> tuple[int, int, int]:
    """Sorts by fewest conditions that fail, then most that hold, then the shortest text."""
    truths = [part.truth for part in subscription.explanation.tree.parts]
    return truths.count(True) - len(truths), truths.count(True), -len(subscription.where)


def _check(
    engine: Engine,
    events: Mapping[str, Mapping[str, Any]],
    notifications: pa.Table,
    subscriptions: pa.Table,
    folder: DemoFolder,
) -> ReferenceCheck:
    """Have the reference evaluate some pairs again, one by one."""
    rng = random.Random(1)
    sellers = _sellers(folder.sellers)
    picked = rng.sample(range(notifications.num_rows), min(_CHECKED, notifications.num_rows))
    some = notifications.take(sorted(picked))
    notified = list(zip(some["event_id"].to_pylist(), some["subscription_id"].to_pylist(), strict=True))
    names, ids = sorted(events), subscriptions["id"].to_pylist()
    pairs = [(rng.choice(names), rng.choice(ids)) for _ in range(_CHECKED)] if names else []
    matches = _pairs_of(notifications, {event for event, _ in pairs})
    disagreements = 0
    for event, id in notified:
        disagreements += not engine.explain(id, _enriched(events[event], sellers)).matched
    for event, id in pairs:
        disagreements += engine.explain(id, _enriched(events[event], sellers)).matched is not ((event, id) in matches)
    return ReferenceCheck(len(notified), len(pairs), disagreements)


def _pairs_of(notifications: pa.Table, events: set[str]) -> set[tuple[str, str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    chosen = notifications.filter(pc.is_in(notifications["event_id"], pa.array(sorted(events), "str")))
    return set(zip(chosen["event_id"].to_pylist(), chosen["subscription_id"].to_pylist(), strict=True))
