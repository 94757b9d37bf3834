"""Clients of servers that are killed again and again: what each asked for and when, and what it was answered."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from unit.server.faults.receivers import Receiver
from unit.server.faults.server_process import ticket_of

KINDS = ("a", "b", "c")
PRICES = 100
_MOST_LIVE = 8
_IDS = 12
_PAUSE = 0.02


@dataclass(frozen=True)
class Condition:
    """What a subscription asks for, as text and as a function of an event."""

    text: str
    holds: Callable[[dict[str, Any]], bool]


def drawn_condition(random: Random) -> Condition:
    price, kind = random.randrange(PRICES), random.choice(KINDS)
    few = price % 10
    return random.choice(
        [
            Condition(f"price < {few}", lambda event: event["price"] < few),
            Condition(f"price >= {PRICES - few}", lambda event: event["price"] >= PRICES - few),
            Condition(f"price = {price}", lambda event: event["price"] == price),
            Condition(
                f"kind = '{kind}' AND price > {price} AND price < {price + 20}",
                lambda event: event["kind"] == kind and price < event["price"] < price + 20,
            ),
            Condition(
                f"kind = '{kind}' AND price < 10 OR price = {price}",
                lambda event: (event["kind"] == kind and event["price"] < 10) or event["price"] == price,
            ),
        ]
    )


@dataclass
class Phase:
    """A condition for as long as a subscription has it. Times are nanoseconds; None: it did not come to that."""

    condition: Condition
    began: int
    acknowledged: int | None = None
    asked_to_go: int | None = None
    gone: int | None = None


@dataclass
class Life:
    """One subscription, from its creation to its end. Another may have its id after that."""

    id: str
    number: int
    is_hooked: bool
    phases: list[Phase]
    taken: dict[str, Any] | None = None
    """The answer with the ticket; None if the server was killed before it answered."""

    @property
    def path(self) -> str:
        """Where its webhook is."""
        return f"/{self.id}/{self.number}"

    @property
    def is_live(self) -> bool:
        return self.taken is not None and self.phases[-1].asked_to_go is None


@dataclass
class Publishing:
    """A request that publishes, with all its repetitions."""

    events: list[dict[str, Any]]
    began: int
    acknowledged: int | None = None
    ended: int | None = None
    """When it can have no effect any more; None if that is not known."""
    attempts: int = 0


@dataclass
class Load:
    """What all clients have done, and the threads that do it."""

    urls: Callable[[], Sequence[str]]
    receiver: Receiver
    seed: int
    lives: list[Life] = field(default_factory=list)
    publishings: list[Publishing] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Answers that cannot be right."""
    _stops: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def start(self, subscribers: int = 2, publishers: int = 3) -> None:
        for kind, count in ((Subscriber, subscribers), (Publisher, publishers)):
            for number in range(count):
                client = kind(self, f"{kind.__name__.lower()}{number}")
                self._threads.append(threading.Thread(target=client.run, args=(self._stops,), daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Have the clients finish what they have begun. The servers have to run."""
        self._stops.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a client gets no answer"
        assert not self.failures, self.failures[:5]

    @property
    def published(self) -> int:
        """How many requests to publish were answered so far."""
        return sum(each.acknowledged is not None for each in list(self.publishings))

    def begun(self, id: str, condition: Condition, is_hooked: bool) -> Life:
        life = Life(id, next(self._numbers), is_hooked, [Phase(condition, now())])
        self.lives.append(life)
        return life

    def draft(self, life: Life) -> dict[str, Any]:
        delivery = {"delivery": self.receiver.delivery(life.path)} if life.is_hooked else {}
        return {"id": life.id, "where": life.phases[-1].condition.text, "valid_for": 3_600, **delivery}


def now() -> int:
    return time.monotonic_ns()


class Client:
    """A thread that asks one thing after the other."""

    def __init__(self, load: Load, name: str) -> None:
        self.load = load
        self.name = name
        self.random = Random(f"{load.seed} {name}")

    def run(self, stops: threading.Event) -> None:
        try:
            with httpx.Client(timeout=60, trust_env=False) as self.http:
                while not stops.is_set():
                    self.step()
                    stops.wait(self.random.random() * _PAUSE)
        except Exception as error:
            self.load.failures.append(f"{self.name}: {error!r}")
            raise

    def step(self) -> None:
        raise NotImplementedError

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response | None:
        """Ask a server once. None if there is no telling what came of it."""
        try:
            answer = self.http.request(method, self.random.choice(self.load.urls()) + path, **more)
        except httpx.TransportError:
            time.sleep(0.01)
            return None
        if answer.status_code == 503:
            time.sleep(0.01)
            return None
        return answer

    def ask_until_told(self, method: str, path: str, **more: Any) -> tuple[httpx.Response, bool]:
        """Ask until there is an answer. Returns also whether it is that to the first request."""
        for attempt in itertools.count():
            answer = self.ask(method, path, **more)
            if answer is not None:
                return answer, attempt == 0
        raise AssertionError

    def expect(self, is_right: bool, answer: httpx.Response) -> None:
        if not is_right:
            request = answer.request
            self.load.failures.append(
                f"{self.name}: {request.method} {request.url.path} {answer.status_code} {answer.text}"
            )


class Subscriber(Client):
    """Subscribes, changes, renews and unsubscribes; the ids of its own are used again and again."""

    def __init__(self, load: Load, name: str) -> None:
        super().__init__(load, name)
        self.ids = (f"{name}-{number}" for number in itertools.count())
        self.free = [next(self.ids) for _ in range(_IDS)]
        self.live: list[Life] = []

    def step(self) -> None:
        if len(self.live) < 2 or (len(self.live) < _MOST_LIVE and self.random.random() < 0.4):
            if self.free and self.random.random() < 0.8:
                self.subscribe(self.take_id())
            elif len(self.free) >= 3:
                self.subscribe_many([self.take_id() for _ in range(3)])
        elif self.live:
            life = self.random.choice(self.live)
            self.random.choice([self.unsubscribe, self.unsubscribe, self.change, self.renew])(life)

    def take_id(self) -> str:
        return self.free.pop(self.random.randrange(len(self.free)))

    def begun(self, id: str) -> Life:
        return self.load.begun(id, drawn_condition(self.random), self.random.random() < 0.5)

    def subscribe(self, id: str) -> None:
        life = self.begun(id)
        answer, is_first = self.ask_until_told("POST", "/subscriptions", json=self.load.draft(life))
        if answer.status_code == 201:
            self.taken(life, answer.json())
        else:  # the server was killed after it had taken it: nobody has the ticket
            self.expect(answer.status_code == 409 and not is_first, answer)
            self.free.append(next(self.ids))

    def subscribe_many(self, ids: list[str]) -> None:
        lives = {id: self.begun(id) for id in ids}
        lines = "".join(json.dumps(self.load.draft(each)) + "\n" for each in lives.values())
        answer = self.ask("POST", "/subscriptions", content=lines, headers={"Content-Type": "application/x-ndjson"})
        if answer is not None:
            self.expect(answer.status_code == 200, answer)
            for line in answer.text.splitlines():
                told = json.loads(line)
                if "error" not in told:
                    self.taken(lives[told["id"]], told)
                else:
                    self.expect(told["error"]["status"] == 503, answer)
        self.free += [next(self.ids) for each in lives.values() if each.taken is None]

    def taken(self, life: Life, answer: dict[str, Any]) -> None:
        life.phases[0].acknowledged = now()
        life.taken = answer
        self.live.append(life)

    def unsubscribe(self, life: Life) -> None:
        assert life.taken is not None
        life.phases[-1].asked_to_go = now()
        answer, is_first = self.ask_until_told("DELETE", f"/subscriptions/{life.id}", headers=ticket_of(life.taken))
        life.phases[-1].gone = now()
        self.expect(answer.status_code == 204 or (answer.status_code == 404 and not is_first), answer)
        self.live.remove(life)
        self.free.append(life.id)

    def change(self, life: Life) -> None:
        assert life.taken is not None
        life.phases[-1].asked_to_go = now()
        life.phases.append(Phase(drawn_condition(self.random), now()))
        draft = {name: value for name, value in self.load.draft(life).items() if name != "id"}
        answer, _ = self.ask_until_told("PUT", f"/subscriptions/{life.id}", json=draft, headers=ticket_of(life.taken))
        self.expect(answer.status_code == 200, answer)
        life.phases[-1].acknowledged = life.phases[-2].gone = now()

    def renew(self, life: Life) -> None:
        assert life.taken is not None
        answer, _ = self.ask_until_told(
            "POST", f"/subscriptions/{life.id}/renew", json={"valid_for": 3_600}, headers=ticket_of(life.taken)
        )
        self.expect(answer.status_code == 200, answer)


class Publisher(Client):
    """Publishes one event or several; those that cannot be published twice are repeated until they are acknowledged."""

    def __init__(self, load: Load, name: str) -> None:
        super().__init__(load, name)
        self.count = 0

    def step(self) -> None:
        self.random.choice([self.one, self.some, self.lines, self.cloudevent])()

    def event(self) -> dict[str, Any]:
        self.count += 1
        name = f"{self.name}-{self.count}"
        return {"n": name, "price": self.random.randrange(PRICES), "kind": self.random.choice(KINDS)}

    def one(self) -> None:
        event = self.event()
        self.publish([event], json=event)

    def some(self) -> None:
        events = [self.event() for _ in range(self.random.randrange(2, 6))]
        self.publish(events, json=events)

    def lines(self) -> None:
        events = [self.event() for _ in range(self.random.randrange(1, 4))]
        content = "".join(json.dumps(each) + "\n" for each in events)
        self.publish(events, content=content, headers={"Content-Type": "application/x-ndjson"})

    def cloudevent(self) -> None:
        event = self.event()
        event |= {"specversion": "1.0", "id": event["n"], "source": "/load", "type": "offer"}
        self.publish([event], True, content=json.dumps(event), headers={"Content-Type": "application/cloudevents+json"})

    def publish(self, events: list[dict[str, Any]], is_once: bool = False, **more: Any) -> None:
        if self.random.random() < 0.5:
            is_once = True
            more["headers"] = {**more.get("headers", {}), "Idempotency-Key": events[0]["n"]}
        publishing = Publishing(events, now())
        self.load.publishings.append(publishing)
        while publishing.acknowledged is None:
            publishing.attempts += 1
            answer = self.ask("POST", "/events", **more)
            if answer is None and not is_once:
                return
            if answer is not None:
                publishing.acknowledged = publishing.ended = now()
                self.expect(answer.status_code == 202 and answer.json()["accepted"] == len(events), answer)
        if is_once and self.random.random() < 0.1:  # as one does who has not heard the answer
            answer, _ = self.ask_until_told("POST", "/events", **more)
            publishing.ended = now()
            self.expect(answer.status_code == 202, answer)
