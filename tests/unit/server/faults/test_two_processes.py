"""Two servers on one PostgreSQL database: what one acknowledges, the other knows with its next answer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from services.postgres import Postgres, running_postgres
from unit.server.faults.listening import Listener
from unit.server.faults.receivers import Receiver
from unit.server.faults.server_process import (
    STOPPED,
    ServerProcess,
    database_url,
    ending,
    notifications,
    publish,
    subscribe,
    ticket_of,
    wait_until,
)

pytestmark = [pytest.mark.processes, pytest.mark.together]
ROUNDS = 10


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[list[ServerProcess]]:
    folder, url = tmp_path_factory.mktemp("servers"), database_url(postgres)
    schema = folder / "schema.toml"
    schema.write_text('[attributes]\nsubject = "string"\nn = "integer"\n')
    options = ("--allow-webhooks-to", "127.0.0.0/8", "--schema", str(schema))
    found = [ServerProcess(folder, *options, store=url) for _ in range(2)]
    with ending(*found):
        for each in found:
            each.start(until_ready=False)  # both at once: one of them makes the tables
        for each in found:
            each.wait_until_ready()
        yield found
        assert [each.stop() for each in found] == [STOPPED, STOPPED]


@pytest.fixture
def here(servers: list[ServerProcess]) -> Iterator[httpx.Client]:
    with servers[0].client() as found:
        yield found


@pytest.fixture
def there(servers: list[ServerProcess]) -> Iterator[httpx.Client]:
    with servers[1].client() as found:
        yield found


def test_who_subscribes_here_is_told_of_what_is_published_there(here: httpx.Client, there: httpx.Client) -> None:
    for number in range(ROUNDS):
        first, second = (here, there) if number % 2 else (there, here)
        taken = subscribe(first, f"subject = 'told' AND n = {number}")
        publish(second, {"subject": "told", "n": number}, {"subject": "told", "n": number + 1})
        assert [each["event"]["n"] for each in notifications(second, taken)] == [number]


def test_who_unsubscribes_here_is_not_told_of_what_is_published_there(here: httpx.Client, there: httpx.Client) -> None:
    with Receiver() as receiver:
        watch = subscribe(here, "subject = 'silent'", "watch")
        for number in range(ROUNDS):
            first, second = (here, there) if number % 2 else (there, here)
            taken = subscribe(first, "subject = 'silent'", delivery=receiver.delivery(f"/{number}"))
            publish(second, {"subject": "silent", "n": number})
            wait_until(lambda number=number: receiver.at(f"/{number}"))  # type: ignore[misc]
            assert first.delete(f"/subscriptions/{taken['id']}", headers=ticket_of(taken)).status_code == 204
            publish(second, {"subject": "silent", "n": ROUNDS + number})
        time.sleep(0.2)
        assert [each.content["event"]["n"] for each in receiver.arrivals] == list(range(ROUNDS))
        assert len(notifications(there, watch)) == 2 * ROUNDS


def test_a_changed_condition_counts_at_both(here: httpx.Client, there: httpx.Client) -> None:
    taken = subscribe(here, "subject = 'changed' AND n = 0")
    for number in range(1, ROUNDS):
        first, second = (here, there) if number % 2 else (there, here)
        changed = {"where": f"subject = 'changed' AND n = {number}"}
        answer = first.put(f"/subscriptions/{taken['id']}", json=changed, headers=ticket_of(taken))
        assert answer.status_code == 200, answer.text
        publish(second, {"subject": "changed", "n": number - 1}, {"subject": "changed", "n": number})
    assert [each["event"]["n"] for each in notifications(here, taken)] == list(range(1, ROUNDS))


def test_a_stream_here_tells_what_is_published_there_and_here_in_order(
    here: httpx.Client, there: httpx.Client, servers: list[ServerProcess]
) -> None:
    taken = subscribe(here, "subject = 'streamed'")
    with Listener(lambda: servers[0].url, [taken]) as listener:
        for number in range(100):
            publish(there if number % 3 else here, {"subject": "streamed", "n": number})
        wait_until(lambda: len(listener.told) == 100)
    assert [each["event"]["n"] for each in listener.told] == list(range(100))
    assert listener.cursors == sorted(listener.cursors)
    assert listener.opened == 1


def test_a_long_poll_here_ends_when_something_is_published_there(here: httpx.Client, there: httpx.Client) -> None:
    taken = subscribe(here, "subject = 'polled'")
    asked = {"subscription": taken["id"], "wait": "55"}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(here.get, "/notifications", params=asked, headers=ticket_of(taken))
        time.sleep(0.3)
        assert not waiting.done()
        publish(there, {"subject": "polled", "n": 1})
        assert [each["event"]["n"] for each in waiting.result().json()["notifications"]] == [1]


def test_a_stream_ends_when_its_subscription_is_removed_there(
    here: httpx.Client, there: httpx.Client, servers: list[ServerProcess]
) -> None:
    taken = subscribe(here, "subject = 'ended'")
    with Listener(lambda: servers[0].url, [taken]) as listener:
        assert there.delete(f"/subscriptions/{taken['id']}", headers=ticket_of(taken)).status_code == 204
        wait_until(lambda: listener.ended)
        wait_until(lambda: b" 404 " in listener.rejection)


def test_each_message_is_sent_by_one_of_them(here: httpx.Client, there: httpx.Client) -> None:
    with Receiver() as receiver:
        for number in range(20):
            subscribe(here, "subject = 'hooked'", delivery=receiver.delivery(f"/{number}"))
        for number in range(20):
            publish(there if number % 2 else here, {"subject": "hooked", "n": number})
        wait_until(lambda: len(receiver.arrivals) >= 400)
        time.sleep(0.5)
        assert max(Counter((each.path, each.id) for each in receiver.arrivals).values()) == 1
        for number in range(20):
            assert [each.content["event"]["n"] for each in receiver.at(f"/{number}")] == list(range(20))


def test_an_extension_of_the_schema_here_is_known_there(here: httpx.Client, there: httpx.Client) -> None:
    for number in range(ROUNDS):
        first, second = (here, there) if number % 2 else (there, here)
        answer = first.post("/schema/attributes", json={"name": f"extra{number}", "domain": "integer"})
        assert answer.status_code == 201, answer.text
        taken = subscribe(second, f"extra{number} = 1")
        publish(first, {f"extra{number}": 1})
        publish(second, {f"extra{number}": 1})
        assert len(notifications(first, taken)) == 2
        assert second.get("/schema").json()["version"] == answer.json()["version"]


def test_a_repeated_request_is_known_to_both(here: httpx.Client, there: httpx.Client) -> None:
    taken = subscribe(here, "subject = 'once'")
    for number in range(ROUNDS):
        headers = {"Idempotency-Key": f"once {number}"}
        answers = [each.post("/events", json={"subject": "once"}, headers=headers) for each in (here, there, here)]
        assert {each.text for each in answers} == {'{"accepted":1,"rejected":[]}'}
    assert len(notifications(here, taken)) == ROUNDS
