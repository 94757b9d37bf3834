"""Servers that are killed under load, again and again: nothing that was acknowledged is lost, nothing is made up."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from properties.replay import SEED
from services.postgres import Postgres, running_postgres
from unit.server.faults.listening import Listener
from unit.server.faults.load import Condition, Life, Load, now
from unit.server.faults.oracle import Oracle
from unit.server.faults.receivers import Answer, Arrival, Receiver
from unit.server.faults.server_process import (
    STOPPED,
    ServerProcess,
    database_url,
    ending,
    notifications,
    set_options,
    subscribe,
    ticket_of,
    wait_until,
)

pytestmark = pytest.mark.processes
LONG = os.environ.get("HARKEN_LONG") == "1"
CYCLES, LIFE_SECONDS = (500, (0.05, 0.6)) if LONG else (5, (0.2, 2.0))
FEWEST_PUBLISHED = (0, 1, 5) if LONG else (5,)
"""Requests that a server answers before it is killed: where all is slow, it would else be killed before the first."""
SHARED_CYCLES = 40 if LONG else 2
OPTIONS = [
    *("--allow-webhooks-to", "127.0.0.0/8"),
    *set_options(snapshot_changes=1, webhook_timeout=2, webhook_delays="0.05,0.1,0.2,0.5,1,600,600"),
]
_SETTLE_SECONDS = 60.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


class Crashes:
    """Servers on one store, the clients that use them, and those who listen all the time."""

    def __init__(self, servers: Sequence[ServerProcess], receiver: Receiver, seed: int) -> None:
        self.servers = servers
        self.random = Random(seed)
        self.receiver = receiver
        self.load = Load(lambda: [each.url for each in servers], receiver, seed)

    def run(self, cycles: int, life: tuple[float, float]) -> None:
        steady = self.subscribe_steadily()
        with Listener(
            lambda: self.random.choice(self.servers).url, [each.taken or {} for each in steady], "0"
        ) as heard:
            self.load.start()
            for _ in range(cycles):
                server = self.random.choice(self.servers)
                enough = self.load.published + self.random.choice(FEWEST_PUBLISHED)
                time.sleep(self.random.uniform(*life))
                wait_until(lambda enough=enough: self.load.published >= enough, _SETTLE_SECONDS)  # type: ignore[misc]
                server.kill()
                time.sleep(self.random.choice([0, 0.1]))
                server.start()
                assert not self.load.failures, self.load.failures[:5]
            self.load.stop()
            self.settle()
            told = self.told()
            expected = sorted((each for life in steady for each in told[life.id]), key=lambda each: int(each["id"]))
            wait_until(lambda: len(heard.told) >= len(expected))
        assert heard.told == expected, "a stream tells everything once, in order"
        assert heard.opened > 1 or len(self.servers) > 1
        for each in self.servers:
            assert each.stop() == STOPPED, each.log()
        self.check(told)

    def subscribe_steadily(self) -> list[Life]:
        """Those who are there from the beginning to the end."""
        conditions = [
            Condition("price >= 0", lambda event: True),
            Condition("kind = 'a'", lambda event: bool(event["kind"] == "a")),
            Condition("price < 50", lambda event: bool(event["price"] < 50)),
        ]
        found = []
        with self.servers[0].client() as client:
            for number, condition in enumerate(conditions):
                life = self.load.begun(f"steady-{number}", condition, number > 0)
                draft = self.load.draft(life)
                life.taken = subscribe(client, draft.pop("where"), **draft)
                life.phases[0].acknowledged = now()
                found.append(life)
        return found

    def settle(self) -> None:
        """Wait until no webhook has anything to do."""

        def is_settled(life: Life) -> bool:
            answer = client.get(f"/subscriptions/{life.id}", headers=ticket_of(life.taken or {}))
            assert answer.status_code == 200, answer.text
            return bool(answer.json()["webhook"]["state"] == "active")

        with self.servers[-1].client() as client:
            for each in self.load.lives:
                if each.is_hooked and each.is_live:
                    wait_until(lambda each=each: is_settled(each), _SETTLE_SECONDS)  # type: ignore[misc]

    def told(self) -> dict[str, list[dict[str, Any]]]:
        """What the API tells of those who are still subscribed."""
        with self.servers[0].client() as client:
            live = [each for each in self.load.lives if each.is_live]
            return {each.id: notifications(client, each.taken or {}) for each in live}

    def check(self, told: dict[str, list[dict[str, Any]]]) -> None:
        oracle = Oracle(self.load, self.servers[0].store)
        oracle.check()
        by_path: dict[str, list[Arrival]] = {}
        for each in self.receiver.arrivals:
            by_path.setdefault(each.path, []).append(each)
        assert by_path.keys() <= {life.path for life in self.load.lives}
        for life in self.load.lives:
            arrivals = by_path.get(life.path, [])
            if life.is_live:
                oracle.check_live(life, told[life.id])
            if life.is_live and life.is_hooked:
                assert {each.id for each in arrivals} == {each["id"] for each in told[life.id]}
            self.check_arrivals(oracle, life, arrivals)
        self.summarise(oracle)

    def check_arrivals(self, oracle: Oracle, life: Life, arrivals: Sequence[Arrival]) -> None:
        """A subscriber gets its notifications in order, and the same twice as it was."""
        first: dict[str, Arrival] = {}
        for each in arrivals:
            if first.setdefault(each.id, each) is each:
                oracle.check_told(life, each.content)
            assert each.body == first[each.id].body
            assert each.content["id"] == each.id
        assert list(first) == sorted(first, key=int)

    def summarise(self, oracle: Oracle) -> None:
        sent, arrived = self.load.publishings, self.receiver.arrivals
        counts = {
            "events": len(oracle.numbers),
            "notifications": len(oracle.by_number),
            "subscriptions": len(self.load.lives),
            "publications repeated": sum(each.attempts > 1 for each in sent),
            "publications without an answer": sum(each.acknowledged is None for each in sent),
            "subscriptions without an answer": sum(each.taken is None for each in self.load.lives),
            "webhooks": len(arrived),
            "webhooks repeated": len(self.receiver.arrivals)
            - len({(each.path, each.id) for each in self.receiver.arrivals}),
        }
        print(counts)
        assert counts["events"] > 20
        assert counts["webhooks"] > 20


def uneasy(random: Random) -> Answer:
    """A receiver that fails now and then."""
    return Answer(500) if random.random() < 0.05 else Answer(after=0.05 if random.random() < 0.1 else 0)


def crash(servers: Sequence[ServerProcess], cycles: int) -> None:
    random = Random(SEED)
    with ending(*servers), Receiver() as receiver:
        receiver.otherwise = lambda arrival, count: uneasy(random)
        for each in servers:
            each.start()
        Crashes(servers, receiver, SEED).run(cycles, LIFE_SECONDS)


def test_nothing_is_lost_and_nothing_made_up_when_a_server_is_killed(tmp_path: Path) -> None:
    crash([ServerProcess(tmp_path, *OPTIONS)], CYCLES)


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_made_up_when_one_of_two_servers_is_killed(
    tmp_path: Path, postgres: Postgres
) -> None:
    url = database_url(postgres)
    crash([ServerProcess(tmp_path, *OPTIONS, store=url) for _ in range(2)], SHARED_CYCLES)
