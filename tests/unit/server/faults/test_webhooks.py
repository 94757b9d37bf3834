"""Webhooks to receivers that are slow, dead, failing or gone: tried again, given up, asked for again; none waits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event
from cloudevents.core.formats.json import JSONFormat
from standardwebhooks import Webhook, WebhookVerificationError

from unit.server.faults.receivers import Answer, Arrival, Receiver, contents, dead_port
from unit.server.faults.server_process import (
    ServerProcess,
    ending,
    publish,
    serving,
    set_options,
    subscribe,
    ticket_of,
    wait_until,
)

pytestmark = [pytest.mark.processes, pytest.mark.together]
HERE = ("--allow-webhooks-to", "127.0.0.0/8")
DELAYS = (0.1, 0.2, 0.4)
LONG = 3_600
"""Seconds: longer than any test."""
OPTIONS = [*HERE, *set_options(webhook_delays=",".join(map(str, DELAYS)), webhook_timeout=LONG)]
SLOW = Answer(after=LONG)
"""A call that is held until its receiver ends."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("webhooks"), *OPTIONS) as found:
        yield found


@pytest.fixture
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    with server.client() as found:
        yield found


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    """What the events of a test are about: subscriptions of other tests are there, too."""
    return str(request.node.name)


def subscribe_many(client: httpx.Client, where: str, receiver: Receiver, count: int) -> None:
    """Subscriptions whose webhooks are all at one host."""
    drafts = [{"where": where, "delivery": receiver.delivery(f"/{number}")} for number in range(count)]
    lines = "".join(json.dumps(each) + "\n" for each in drafts)
    answer = client.post("/subscriptions", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert answer.text.count('"ticket"') == count, answer.text


def state(client: httpx.Client, taken: dict[str, Any]) -> dict[str, Any]:
    answer = client.get(f"/subscriptions/{taken['id']}", headers=ticket_of(taken))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["webhook"]
    return found


def redeliver(client: httpx.Client, taken: dict[str, Any], **what: Any) -> int:
    answer = client.post(f"/subscriptions/{taken['id']}/redeliver", json=what, headers=ticket_of(taken))
    assert answer.status_code == 202, answer.text
    return int(answer.json()["redelivered"])


def dead_letters(client: httpx.Client, taken: dict[str, Any]) -> list[dict[str, Any]]:
    answer = client.get(f"/subscriptions/{taken['id']}/dead-letters", headers=ticket_of(taken))
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["dead_letters"]
    return found


def wait_to_arrive(client: httpx.Client, receiver: Receiver, **event: Any) -> None:
    """Publish an event, and wait until a quick receiver has its message."""
    before = len(receiver.at("/quick"))
    publish(client, event)
    wait_until(lambda: len(receiver.at("/quick")) > before)


def test_a_quick_receiver_does_not_wait_for_others(client: httpx.Client, subject: str) -> None:
    where = f"subject = '{subject}'"
    with Receiver() as troubled, Receiver() as quick:
        troubled.will("/slow", SLOW)
        troubled.will("/dripping", Answer(drips=True))
        troubled.will("/failing", Answer(500))
        troubled.will("/away", Answer(302, {"Location": f"http://127.0.0.1:{quick.port}/elsewhere"}))
        for path in ("/slow", "/dripping", "/failing", "/away"):
            subscribe(client, where, delivery=troubled.delivery(path))
        subscribe(client, where, delivery={"webhook": {"url": f"http://127.0.0.1:{dead_port()}/"}})
        subscribe(client, where, delivery=quick.delivery("/quick"))
        for _ in range(3):
            wait_to_arrive(client, quick, subject=subject)
        wait_until(lambda: len({each.path for each in troubled.arrivals}) == 4)
        assert len(troubled.at("/slow")) == len(troubled.at("/dripping")) == 1, "they hold their first calls still"
        assert {each.path for each in quick.arrivals} == {"/quick"}, "redirects are not followed"


def test_a_quick_receiver_does_not_wait_for_hundreds_of_slow_ones_of_one_host(
    client: httpx.Client, subject: str
) -> None:
    where = f"subject = '{subject}'"
    with Receiver() as slow, Receiver() as quick:
        slow.otherwise = lambda arrival, count: SLOW
        subscribe_many(client, where, slow, 300)
        subscribe(client, where, delivery=quick.delivery("/quick"))
        for _ in range(3):
            wait_to_arrive(client, quick, subject=subject)
        wait_until(lambda: slow.arrivals)
        assert len(slow.arrivals) < 300, "most wait for those that are held"


def test_a_quick_receiver_does_not_wait_for_many_slow_ports(client: httpx.Client, subject: str) -> None:
    with ExitStack() as ports, Receiver() as quick, Receiver() as late:
        slow = [ports.enter_context(Receiver()) for _ in range(20)]
        for each in slow:
            each.otherwise = lambda arrival, count: SLOW
            subscribe_many(client, f"subject = '{subject}' AND is_slow = TRUE", each, 16)
        publish(client, {"subject": subject, "is_slow": True})
        wait_until(lambda: all(each.arrivals for each in slow))
        subscribe(client, f"subject = '{subject}'", delivery=quick.delivery("/quick"))
        for _ in range(3):
            wait_to_arrive(client, quick, subject=subject, is_slow=True)
        time.sleep(1.5)  # by now they are known to be slow, and there is room for more calls of them
        for _ in range(3):
            wait_to_arrive(client, quick, subject=subject, is_slow=True)
        subscribe(client, f"subject = '{subject}'", delivery=late.delivery("/quick"))
        wait_to_arrive(client, late, subject=subject, is_slow=True)
        assert max(len(each.arrivals) for each in slow) < 16, "all calls of theirs are held still, and are few"


@pytest.mark.slow
def test_a_quick_receiver_does_not_wait_for_ports_that_were_quick(client: httpx.Client, subject: str) -> None:
    with ExitStack() as ports, Receiver() as late:
        turned = [ports.enter_context(Receiver()) for _ in range(20)]
        for each in turned:
            subscribe_many(client, f"subject = '{subject}'", each, 16)
        publish(client, {"subject": subject})
        wait_until(lambda: all(len(each.arrivals) == 16 for each in turned))
        for each in turned:
            each.otherwise = lambda arrival, count: SLOW
        publish(client, {"subject": subject})
        wait_until(lambda: all(len(each.arrivals) > 16 for each in turned))
        subscribe(client, f"subject = '{subject}'", delivery=late.delivery("/quick"))
        wait_to_arrive(client, late, subject=subject)


def test_a_quick_host_gets_many_messages_at_once(client: httpx.Client, receiver: Receiver, subject: str) -> None:
    many, are_many, lock = 8, threading.Event(), threading.Lock()
    present = 0

    def together(arrival: Arrival, count: int) -> Answer:
        """Hold the calls after the first until there are many."""
        nonlocal present
        if arrival is not receiver.arrivals[0]:
            with lock:
                present += 1
                if present == many:
                    are_many.set()
            assert are_many.wait(60)
        return Answer()

    receiver.otherwise = together
    subscribe_many(client, f"subject = '{subject}'", receiver, 200)
    publish(client, {"subject": subject})
    wait_until(lambda: len(receiver.arrivals) == 200)
    assert are_many.is_set()


def test_failures_are_tried_again_with_the_same_message_and_the_next_one_waits(
    client: httpx.Client, receiver: Receiver, subject: str
) -> None:
    receiver.will("/hook", Answer(500), Answer(503), Answer(200))
    taken = subscribe(client, f"subject = '{subject}'", delivery=receiver.delivery("/hook"))
    publish(client, {"subject": subject, "n": 1}, {"subject": subject, "n": 2})
    wait_until(lambda: len(receiver.at("/hook")) == 4)
    arrivals = receiver.at("/hook")
    assert [each["event"]["n"] for each in contents(arrivals)] == [1, 1, 1, 2]
    assert len({(each.id, each.body) for each in arrivals[:3]}) == 1
    assert arrivals[1].at - arrivals[0].at >= DELAYS[0] / 2
    assert arrivals[2].at - arrivals[1].at >= DELAYS[1] / 2
    wait_until(lambda: state(client, taken)["state"] == "active")
    assert state(client, taken)["failures"] == state(client, taken)["dead"] == 0
    assert "last_error" not in state(client, taken)


def test_a_receiver_that_is_gone_gets_nothing_until_it_is_asked_for(
    client: httpx.Client, receiver: Receiver, subject: str
) -> None:
    receiver.will("/hook", Answer(410), Answer(200))
    taken = subscribe(client, f"subject = '{subject}'", delivery=receiver.delivery("/hook"))
    publish(client, {"subject": subject, "n": 1})
    wait_until(lambda: state(client, taken)["state"] == "stopped")
    publish(client, {"subject": subject, "n": 2})
    time.sleep(2 * sum(DELAYS))
    assert len(receiver.at("/hook")) == 1
    assert "410" in state(client, taken)["last_error"]
    assert redeliver(client, taken) == 0
    wait_until(lambda: len(receiver.at("/hook")) == 3)
    assert [each["event"]["n"] for each in contents(receiver.at("/hook"))] == [1, 1, 2]
    wait_until(lambda: state(client, taken)["state"] == "active")


def test_a_receiver_that_asks_to_wait_is_waited_for(client: httpx.Client, receiver: Receiver, subject: str) -> None:
    receiver.will("/hook", Answer(429, {"Retry-After": "2"}), Answer(200))
    subscribe(client, f"subject = '{subject}'", delivery=receiver.delivery("/hook"))
    publish(client, {"subject": subject})
    wait_until(lambda: len(receiver.at("/hook")) == 2)
    first, second = receiver.at("/hook")
    assert second.at - first.at >= 2
    assert first.id == second.id


@pytest.mark.parametrize("status", [302, 404])
def test_what_fails_every_time_becomes_a_dead_letter_and_can_be_had_again(
    client: httpx.Client, receiver: Receiver, subject: str, status: int
) -> None:
    receiver.will("/hook", Answer(status, {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}))
    taken = subscribe(client, f"subject = '{subject}'", delivery=receiver.delivery("/hook"))
    publish(client, {"subject": subject, "n": 1})
    wait_until(lambda: dead_letters(client, taken))
    (letter,) = dead_letters(client, taken)
    assert letter["event"] == {"subject": subject, "n": 1}
    assert letter["attempts"] == len(receiver.at("/hook")) == len(DELAYS) + 1
    assert str(status) in letter["reason"]
    wait_until(lambda: state(client, taken)["state"] != "waiting")
    found = state(client, taken)
    assert (found["state"], found["failures"], found["dead"]) == ("failing", len(DELAYS) + 1, 1)
    assert str(status) in found["last_error"]
    assert found["failing_since"] < letter["failed_at"]
    assert receiver.at("/elsewhere") == []

    receiver.will("/hook", Answer(200))
    publish(client, {"subject": subject, "n": 2})  # it is alive again, and what is dead stays dead
    wait_until(lambda: len(receiver.at("/hook")) == 5)
    assert redeliver(client, taken, dead=True) == 1
    wait_until(lambda: len(receiver.at("/hook")) == 6)
    assert [each["event"]["n"] for each in contents(receiver.at("/hook"))] == [1, 1, 1, 1, 2, 1]
    assert receiver.at("/hook")[-1].id == letter["id"]
    wait_until(lambda: state(client, taken)["state"] == "active")
    assert dead_letters(client, taken) == []
    found = state(client, taken)
    assert found["failures"] == found["dead"] == 0
    assert not {"last_error", "failing_since"} & found.keys()


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_a_digest_that_waits_longer_than_all_tries_take_gets_all_its_tries(
    client: httpx.Client, receiver: Receiver, subject: str, is_first: bool
) -> None:
    taken = subscribe(client, f"subject = '{subject}'", delivery=receiver.delivery("/hook", max_delay=2 * sum(DELAYS)))
    if not is_first:  # the one before is given up
        receiver.will("/hook", Answer(500))
        publish(client, {"subject": subject, "n": 1})
        wait_until(lambda: dead_letters(client, taken))
        assert dead_letters(client, taken)[0]["attempts"] == len(DELAYS) + 1
    before = len(receiver.at("/hook"))
    receiver.will("/hook", *[Answer(500)] * (before + len(DELAYS)), Answer(200))
    publish(client, {"subject": subject, "n": 2})
    wait_until(lambda: len(receiver.at("/hook")) == before + len(DELAYS) + 1)
    wait_until(lambda: state(client, taken)["state"] == "active")
    assert len(dead_letters(client, taken)) == (0 if is_first else 1)


def test_what_waits_for_those_before_it_gets_all_its_tries(tmp_path: Path, receiver: Receiver) -> None:
    receiver.will("/hook", *[Answer(after=0.3)] * 4, Answer(500), Answer(500), Answer(200))
    with serving(tmp_path, *HERE, *set_options(webhook_delays="0.1,0.1")) as server, server.client() as client:
        taken = subscribe(client, "n > 0", delivery=receiver.delivery("/hook"))
        publish(client, *({"n": n} for n in range(1, 6)))  # the last is older than all tries take when it is first sent
        wait_until(lambda: len(receiver.at("/hook")) == 7)
        wait_until(lambda: state(client, taken)["state"] == "active")
        assert [each["event"]["n"] for each in contents(receiver.at("/hook"))] == [1, 2, 3, 4, 5, 5, 5]
        assert dead_letters(client, taken) == []


def test_what_waited_while_those_before_it_were_given_up_is_tried_once(tmp_path: Path, receiver: Receiver) -> None:
    receiver.will("/hook", Answer(500, after=0.3))
    with serving(tmp_path, *HERE, *set_options(webhook_delays="0.05,0.05")) as server, server.client() as client:
        taken = subscribe(client, "n > 0", delivery=receiver.delivery("/hook"))
        publish(client, {"n": 1}, {"n": 2}, {"n": 3})
        wait_until(lambda: len(dead_letters(client, taken)) == 3)
        assert [each["attempts"] for each in dead_letters(client, taken)] == [3, 1, 1]
        publish(client, {"n": 4})
        wait_until(lambda: len(dead_letters(client, taken)) == 4)
        assert dead_letters(client, taken)[3]["attempts"] == 3, "it did not wait for others"


def test_what_was_asked_for_again_is_tried_as_often_as_the_first_time(
    client: httpx.Client, receiver: Receiver, subject: str
) -> None:
    taken = subscribe(client, f"subject = '{subject}'", delivery=receiver.delivery("/hook"))
    publish(client, {"subject": subject, "n": 1}, {"subject": subject, "n": 2})
    wait_until(lambda: state(client, taken)["state"] == "active" and len(receiver.at("/hook")) == 2)
    second = receiver.at("/hook")[1].id
    time.sleep(sum(DELAYS))  # by now it is older than all tries take
    receiver.will("/hook", Answer(500))
    assert redeliver(client, taken, notifications=[second, "999999999"]) == 1
    wait_until(lambda: dead_letters(client, taken))
    assert [each["id"] for each in dead_letters(client, taken)] == [second]
    assert dead_letters(client, taken)[0]["attempts"] == len(DELAYS) + 1


def test_a_slow_receiver_gets_all_its_tries(tmp_path: Path, receiver: Receiver) -> None:
    receiver.will("/hook", Answer(after=2))
    options = set_options(webhook_timeout=0.4, webhook_delays="0.1,0.1")
    with serving(tmp_path, *HERE, *options) as server, server.client() as client:
        taken = subscribe(client, "n > 0", delivery=receiver.delivery("/hook"))
        publish(client, {"n": 1})
        wait_until(lambda: dead_letters(client, taken))
        (letter,) = dead_letters(client, taken)
        assert (letter["attempts"], letter["reason"]) == (3, "no answer within 0.4 s")


def test_notifications_that_may_wait_travel_together(client: httpx.Client, receiver: Receiver, subject: str) -> None:
    taken = subscribe(client, f"subject = '{subject}'", delivery=receiver.delivery("/hook", max_delay=1.5))
    began = time.monotonic()
    for number in range(0, 6, 2):
        publish(client, {"subject": subject, "n": number}, {"subject": subject, "n": number + 1})
        time.sleep(0.05)

    def arrived() -> list[dict[str, Any]]:
        return [each for digest in contents(receiver.at("/hook")) for each in digest["notifications"]]

    wait_until(lambda: len(arrived()) == 6)
    assert [each["event"]["n"] for each in arrived()] == list(range(6))
    arrival = receiver.at("/hook")[0]
    assert arrival.at - began > 1.4
    first = datetime.fromisoformat(arrived()[0]["time"])
    in_time = [each for each in arrived() if datetime.fromisoformat(each["time"]) - first < timedelta(seconds=1.4)]
    assert arrival.content["notifications"][: len(in_time)] == in_time, (
        "in one message, of which there are two at least"
    )
    assert arrival.content["subscription"] == taken["id"]
    ids = [each["id"] for each in arrival.content["notifications"]]
    assert arrival.id == f"{ids[0]}-{ids[-1]}"
    before = receiver.at("/hook")[-1]
    publish(client, {"subject": subject, "n": 6})
    wait_until(lambda: len(arrived()) == 7)
    last = receiver.at("/hook")[-1]
    assert [each["event"]["n"] for each in last.content["notifications"]] == [6]
    assert last.at - before.at > 1.0


@pytest.mark.parametrize("max_delay", [0, 0.2])
def test_a_message_can_be_a_cloudevent(
    client: httpx.Client, receiver: Receiver, subject: str, max_delay: float
) -> None:
    taken = subscribe(
        client,
        f"subject = '{subject}'",
        delivery=receiver.delivery("/hook", format="cloudevents", max_delay=max_delay),
    )
    publish(client, {"subject": subject, "n": 1})
    wait_until(lambda: receiver.at("/hook"))
    (arrival,) = receiver.at("/hook")
    assert arrival.headers["content-type"] == "application/cloudevents+json"
    event = from_structured_event(HTTPMessage(dict(arrival.headers), arrival.body), JSONFormat())
    data = event.get_data()
    assert isinstance(data, dict)
    assert (event.get_subject(), event.get_id()) == (taken["id"], arrival.id)
    if max_delay:
        assert event.get_type() == "harken.digest"
        (data,) = data["notifications"]
    assert data["event"] == {"subject": subject, "n": 1}


def test_only_the_secret_of_the_subscription_verifies_a_message(
    client: httpx.Client, receiver: Receiver, subject: str
) -> None:
    url = f"http://127.0.0.1:{receiver.port}/hook"
    taken = subscribe(client, f"subject = '{subject}'", delivery={"webhook": {"url": url}})
    publish(client, {"subject": subject})
    wait_until(lambda: receiver.at("/hook"))
    (arrival,) = receiver.at("/hook")
    told = Webhook(taken["webhook_secret"]).verify(arrival.body, dict(arrival.headers))
    assert told["subscription"] == taken["id"]
    for body, secret in ((arrival.body + b" ", taken["webhook_secret"]), (arrival.body, "whsec_" + "A" * 32)):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body, dict(arrival.headers))


def test_private_places_are_rejected_unless_they_are_allowed(tmp_path: Path, receiver: Receiver) -> None:
    server = ServerProcess(tmp_path, *OPTIONS)
    with ending(server):
        server.start()
        with server.client() as client:
            taken = subscribe(client, "n > 0", delivery=receiver.delivery("/hook"))
            publish(client, {"n": 1})
            wait_until(lambda: receiver.at("/hook"))
        server.stop()
        server.options = tuple(set_options(webhook_delays="0.1"))
        server.start()
        with server.client() as client:
            for host in ("127.0.0.1", "localhost", "10.1.2.3", "[::1]", "169.254.169.254", "[::ffff:10.0.0.1]"):
                webhook = {"url": f"http://{host}:{receiver.port}/hook"}
                answer = client.post("/subscriptions", json={"where": "n > 0", "delivery": {"webhook": webhook}})
                assert answer.status_code == 422, host
                assert answer.json()["type"] == "urn:harken:webhook-rejected-error"
            publish(client, {"n": 2})
            wait_until(lambda: dead_letters(client, taken))
            (letter,) = dead_letters(client, taken)
            assert (letter["event"], letter["reason"]) == ({"n": 2}, "`127.0.0.1` is not a public address")
        assert len(receiver.arrivals) == 1


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_message_that_was_under_way_is_sent_again_soon_after_a_restart(
    tmp_path: Path, receiver: Receiver, is_killed: bool
) -> None:
    receiver.will("/hook", SLOW, Answer(200))
    server = ServerProcess(tmp_path, *OPTIONS)
    with ending(server):
        server.start()
        with server.client() as client:
            subscribe(client, "n > 0", delivery=receiver.delivery("/hook"))
            publish(client, {"n": 1}, {"n": 2})
            wait_until(lambda: receiver.at("/hook"))
        if is_killed:
            server.kill()
        else:
            server.stop()
        server.start()
        wait_until(lambda: len(receiver.at("/hook")) == 3)
    first, again, _ = receiver.at("/hook")
    assert (first.id, first.body) == (again.id, again.body)
