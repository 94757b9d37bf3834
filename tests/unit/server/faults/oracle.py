"""What must be true of a store after its servers were killed, by plain Python over what clients asked for."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harken.store import Notified, open_store
from unit.server.faults.load import Life, Load, Phase, Publishing

FOREVER = 1 << 62
Pair = tuple[str, str]
"""A subscription's id and the name of an event."""


class Oracle:
    """The requests of clients, and the journal and outbox of the store that they ended up in."""

    def __init__(self, load: Load, store: str) -> None:
        self.load = load
        self.published: dict[str, Publishing] = {event["n"]: each for each in load.publishings for event in each.events}
        self.events: dict[str, dict[str, Any]] = {
            event["n"]: event for each in load.publishings for event in each.events
        }
        opened = open_store(store, create=False)
        try:
            journal = opened.latest_events(1 << 40)
            self.numbers: dict[str, int] = {}
            for row in journal:
                event = json.loads(row.body)
                assert event["n"] not in self.numbers, f"{event['n']} was journalled twice"
                assert event == self.events[event["n"]]
                self.numbers[event["n"]] = row.number
            ids = sorted({each.id for each in load.lives})
            self.outbox: dict[str, list[Notified]] = {id: opened.notifications({id: 0}, 0, 1 << 40) for id in ids}
        finally:
            opened.close()
        self.by_number = {each.number: each for rows in self.outbox.values() for each in rows}
        self.lives_of: dict[str, list[Life]] = {}
        for life in load.lives:
            self.lives_of.setdefault(life.id, []).append(life)

    def check(self) -> None:
        self.check_journal()
        self.check_order()
        self.check_notifications()

    def check_journal(self) -> None:
        """Every acknowledged event is in the journal. (That none is there twice was seen when it was read.)"""
        lost = [
            event["n"]
            for each in self.load.publishings
            if each.acknowledged is not None
            for event in each.events
            if event["n"] not in self.numbers
        ]
        assert not lost, f"{len(lost)} acknowledged events are lost: {lost[:5]}"

    def check_order(self) -> None:
        """What was published after something was acknowledged has a higher number."""
        kept = [each for each in self.load.publishings if each.events[0]["n"] in self.numbers]
        by_end = sorted((each.acknowledged, each) for each in kept if each.acknowledged is not None)
        position, highest = 0, 0
        for each in sorted(kept, key=lambda each: each.began):
            while position < len(by_end) and by_end[position][0] < each.began:
                highest = max(highest, self.numbers[by_end[position][1].events[-1]["n"]])
                position += 1
            numbers = [self.numbers[event["n"]] for event in each.events]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            assert each.attempts > 1 or numbers[0] > highest
        told = sorted(self.by_number.values(), key=lambda each: each.number)
        assert [each.event_number for each in told] == sorted(each.event_number for each in told)

    def check_notifications(self) -> None:
        """Whoever must be notified is, and nobody else but those whose change was under way; nobody twice."""
        found = Counter((each.subscription, self.name_of(each)) for rows in self.outbox.values() for each in rows)
        assert max(found.values(), default=1) == 1, "a subscription was notified of an event twice"
        missing = set(self.guaranteed()) - found.keys()
        assert not missing, f"{len(missing)} notifications are missing: {sorted(missing)[:5]}"
        odd = [pair for pair in found if not self.is_allowed(self.lives_of[pair[0]], pair[1])]
        assert not odd, f"{len(odd)} notifications that nobody asked for: {sorted(odd)[:5]}"

    def check_live(self, life: Life, told: Sequence[Mapping[str, Any]]) -> None:
        """What the API tells of a subscription is in the outbox, and this one asked for it."""
        ids = [int(each["id"]) for each in told]
        assert ids == sorted(set(ids))
        for each in told:
            self.check_told(life, each)
        names = {each["event"]["n"] for each in told}
        assert {name for id, name in self.guaranteed(life) if id == life.id} <= names

    def check_told(self, life: Life, notification: Mapping[str, Any]) -> None:
        """What a subscriber was told is in the outbox, and this very subscription asked for it."""
        kept = self.by_number.get(int(notification["id"]))
        assert kept is not None, f"{notification} was told, and is gone"
        name = notification["event"]["n"]
        assert (kept.subscription, self.name_of(kept)) == (life.id, name) == (notification["subscription"], name)
        assert self.is_allowed([life], name), f"{life} did not ask for {notification}"

    def name_of(self, notified: Notified) -> str:
        assert notified.event is not None
        return str(json.loads(notified.event.body)["n"])

    def guaranteed(self, only: Life | None = None) -> Iterator[Pair]:
        """Acknowledged events with whoever was subscribed from before they were published to after they were taken."""
        lives = self.load.lives if only is None else [only]
        phases = [(each.acknowledged, life.id, each) for life in lives for each in life.phases]
        waiting = sorted(((at, id, each) for at, id, each in phases if at is not None), key=lambda each: each[0])
        active: list[tuple[str, Phase]] = []
        position = 0
        for publishing in sorted(self.load.publishings, key=lambda each: each.began):
            if publishing.acknowledged is None:
                continue
            while position < len(waiting) and waiting[position][0] < publishing.began:
                active.append(waiting[position][1:])
                position += 1
            active = [each for each in active if (each[1].asked_to_go or FOREVER) > publishing.began]
            for id, phase in active:
                if (phase.asked_to_go or FOREVER) > publishing.acknowledged:
                    yield from ((id, event["n"]) for event in publishing.events if phase.condition.holds(event))

    def is_allowed(self, lives: Sequence[Life], name: str) -> bool:
        """Whether one of these, which follow each other, may have been there when the event was published."""
        publishing, event = self.published[name], self.events[name]
        last = bisect_right(lives, publishing.ended or FOREVER, key=lambda each: each.phases[0].began)
        for life in reversed(lives[:last]):
            for phase in life.phases:
                is_before = phase.began < (publishing.ended or FOREVER)
                is_after = (phase.gone or FOREVER) > publishing.began
                if is_before and is_after and phase.condition.holds(event):
                    return True
            if (life.phases[-1].gone or FOREVER) < publishing.began:
                return False
        return False
