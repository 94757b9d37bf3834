"""The clients and the commands against a server as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import aclosing, closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from harken import AsyncClient, Client
from harken.client import Notification, ServerError
from harken.errors import Place
from services.processes import free_port
from services.serving import PROGRAM, serving

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    with Client(server) as client:
        yield client


def prices(notifications: list[Notification]) -> list[Any]:
    return [each.event["price"] for each in notifications]


def test_from_a_subscription_to_a_notification(client: Client) -> None:
    made = client.subscribe("first = 1 AND price < 5", id="first", labels={"team": "toys"}, valid_for=600)
    assert client.tickets["first"] == made.ticket
    published = client.publish([{"first": 1, "price": price} for price in (3, 30, 4)])
    assert (published.accepted, published.rejected) == (3, ())
    page = client.notifications("first", wait=10)
    assert prices(list(page.notifications)) == [3, 4]
    assert client.notifications("first", after=page.next).notifications == ()
    state = client.subscription("first")
    assert (state.where, state.labels, state.expires_at) == (
        "first = 1 AND price < 5",
        {"team": "toys"},
        made.expires_at,
    )


def test_subscriptions_are_listed_changed_renewed_and_ended(client: Client) -> None:
    for each in range(5):
        client.subscribe(f"listed = {each}", id=f"listed-{each}", owner="lister", labels={"n": str(each % 2)})
    assert [each.id for each in client.subscriptions(owner="lister", page_size=2)] == [f"listed-{n}" for n in range(5)]
    assert len(list(client.subscriptions(owner="lister", labels={"n": "0"}))) == 3
    client.change("listed-0", "listed = 9")
    assert client.subscription("listed-0").where == "listed = 9"
    assert client.match([{"listed": 9}, {"listed": 0}]) == [["listed-0"], []]
    before = client.subscription("listed-1").expires_at
    assert client.renew("listed-1", 7 * 86_400).expires_at > before
    ticket = client.tickets["listed-2"]
    client.unsubscribe("listed-2")
    with pytest.raises(ServerError) as caught:
        client.subscription("listed-2", ticket=ticket)
    assert caught.value.status == 404
    with pytest.raises(ServerError) as caught:
        client.subscribe("listed = 1", id="listed-1")
    assert caught.value.status == 409


def test_faults_have_their_places(client: Client) -> None:
    for call in (client.subscribe, client.check):
        with pytest.raises(ServerError) as caught:
            call("price <")
        assert (caught.value.status, caught.value.place) == (422, Place(1, 8))
        assert caught.value.excerpt == "price <\n       ^"
        assert caught.value.request_id
    with pytest.raises(ServerError) as caught:
        client.subscription("nobody's")
    assert caught.value.status == 401


def test_rejected_events_keep_their_positions(client: Client) -> None:
    client.subscribe("big = 1", id="big")
    big = {"big": 1 << 70}
    published = client.publish([{"price": 1}, big, {"price": 2}, {"price": object()}])
    assert published.accepted == 2
    assert [each.position for each in sorted(published.rejected, key=lambda each: each.position)] == [1, 3]
    with pytest.raises(ServerError, match="beyond 64 bits") as caught:
        client.publish(big)
    assert [each.position for each in caught.value.rejected] == [0]
    found = client.match([{"price": 1}, big, {"price": 2}])
    assert len(found) == 3
    assert [each.position for each in found.rejected] == [1]


def test_documents_and_cloudevents(client: Client) -> None:
    client.subscribe("/order/total > 8", id="totals", language="xpath")
    client.subscribe("type = 'sold' AND data.price > 5", id="sold")
    assert client.publish([b"<order><total>9</total></order>", b"<order><total>7</total></order>"]).accepted == 2
    with pytest.raises(ServerError, match="cannot be read"):
        client.publish(b"<order>")
    sold = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "sold", "data": {"price": 6}}
    assert client.publish(sold, content_type="application/cloudevents+json").accepted == 1
    batch = [{**sold, "id": "2"}, {**sold, "id": "3", "data": {"price": 4}}]
    assert client.publish(batch, content_type="application/cloudevents-batch+json").accepted == 2
    (found,) = client.notifications("totals", wait=10).notifications
    assert found.event == "<order><total>9</total></order>"
    assert [each.event["id"] for each in client.notifications("sold", wait=10).notifications] == ["1", "2"]


def test_the_same_key_publishes_once(client: Client) -> None:
    client.subscribe("keyed = 1", id="keyed")
    for _ in range(3):
        done = client.publish([{"keyed": 1}] * 2, idempotency_key="the-key")
        assert done.accepted + done.duplicates >= 2
    assert len(client.notifications("keyed", wait=10).notifications) == 2


def test_explain_and_backtest(client: Client) -> None:
    told = client.explain({"tried": 3}, where="tried < 5 AND qty = 2")
    assert not told.matched
    assert "✓ tried < 5" in str(told)
    client.subscribe("tried < 5", id="tried")
    assert client.explain({"tried": 3}, subscription="tried").matched
    client.publish([{"tried": each} for each in range(10)])
    found = client.backtest("tried >= 8", limit=1)
    assert (found.matched, found.examples[0].event) == (2, {"tried": 9})
    assert found.latest is not None
    assert found.looked_at >= 10


def test_many_subscriptions(client: Client) -> None:
    def many() -> Iterator[dict[str, Any]]:
        for each in range(2_500):
            yield {"id": f"bulk-{each}", "where": "bulk <" if each % 1_000 == 7 else f"bulk = {each}"}

    reports = {each.line: each for each in client.subscribe_many(many())}
    assert sorted(reports) == list(range(1, 2_501))
    assert [line for line, each in reports.items() if each.error is not None] == [8, 1_008, 2_008]
    error = reports[8].error
    assert isinstance(error, ServerError)
    assert (error.status, error.place) == (422, Place(1, 7))
    assert client.match({"bulk": 2_499}) == [["bulk-2499"]]
    assert client.subscription("bulk-2499").where == "bulk = 2499"


def test_schema_and_health(client: Client) -> None:
    assert client.is_ready()
    assert client.health()["status"] == "alive"
    assert client.schema()["version"] is None
    assert client.stats()
    assert client.plan()


def test_api_keys_and_extensions_of_the_schema(tmp_path: Path) -> None:
    def key(owner: str, *scopes: str) -> str:
        options = [option for scope in scopes for option in ("--scope", scope)]
        store = ["--store", str(tmp_path / "harken.db"), "--json"]
        command = [*PROGRAM, "key", "create", "--owner", owner, *options, *store]
        made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return str(json.loads(made.stdout)["key"])

    publisher, subscriber, admin = key("shop", "publish"), key("me", "subscribe"), key("root", "admin")
    with serving(tmp_path, "--api-keys") as url:
        with Client(url) as anonymous, pytest.raises(ServerError) as caught:
            anonymous.publish({"price": 1})
        assert caught.value.status == 401
        with Client(url, api_key=subscriber) as client:
            client.subscribe("price < 5", id="mine")
            client.tickets.clear()
            assert [each.where for each in client.subscriptions()] == ["price < 5"]
            with pytest.raises(ServerError) as caught:
                client.publish({"price": 1})
            assert caught.value.status == 403
            with Client(url, api_key=publisher) as other:
                assert other.publish({"price": 1}).accepted == 1
            assert prices(list(client.notifications("mine", wait=10).notifications)) == [1]
            client.unsubscribe("mine")
        with Client(url, api_key=admin) as client:
            first = client.add_domain("colour", {"type": "enumerated", "values": ["red", "blue"]})
            assert client.add_attribute("shade", "colour") > first
            client.add_attribute("size", "integer")
            client.add_event_type("thing", {"shade": "mandatory unique"})
            last = client.add_optional_attribute("thing", "size")
            assert client.schema()["version"] == last
            with pytest.raises(ServerError) as caught:
                client.add_attribute("shade", "string")
            assert caught.value.status == 409


# Streams


def test_listening_to_several(client: Client) -> None:
    for id in ("one", "two"):
        client.subscribe(f"heard = '{id}'", id=id)
    client.publish([{"heard": "one", "price": 0}])
    with closing(client.listen("one", "two", after=0)) as heard:
        assert prices([next(heard)]) == [0]
        client.publish([{"heard": "two", "price": 1}, {"heard": "three"}, {"heard": "one", "price": 2}])
        found = list(islice(heard, 2))
    assert [(each.subscription, each.event["price"]) for each in found] == [("two", 1), ("one", 2)]


def test_digests_and_throttles(client: Client) -> None:
    client.subscribe("digested = 1", id="digested", delivery={"max_delay": 0.5})
    client.subscribe("digested = 1", id="throttled", delivery={"throttle": {"count": 1, "seconds": 1}})
    with closing(client.listen("digested", after=0)) as heard:
        client.publish([{"digested": 1, "price": each} for each in range(3)])
        assert prices(list(islice(heard, 3))) == [0, 1, 2]
    with closing(client.listen("throttled", after=0)) as heard:
        assert prices([next(heard)]) == [0]
        threading.Event().wait(1.2)
        client.publish({"digested": 1, "price": 9})
        last = next(heard)
    assert (last.event["price"], last.suppressed) == (9, 2)


def test_a_subscription_that_ends_ends_its_stream(client: Client) -> None:
    client.subscribe("ending = 1", id="ending")
    with closing(client.listen("ending", after=0)) as heard:
        client.publish({"ending": 1})
        next(heard)
        client.unsubscribe("ending")
        with pytest.raises(ServerError):
            next(heard)


def test_listening_goes_on_when_the_server_is_started_again(tmp_path: Path) -> None:
    port = free_port()
    heard: list[Any] = []
    enough = threading.Event()

    def listen(client: Client) -> None:
        with closing(client.listen("again")) as notifications:
            for each in islice(notifications, 6):
                heard.append(each.event["price"])
                if len(heard) == 2:
                    enough.set()

    with Client(f"http://127.0.0.1:{port}") as client:
        with serving(tmp_path, port=port):
            client.subscribe("price < 9", id="again")
            listener = threading.Thread(target=listen, args=(client,))
            listener.start()
            while not enough.wait(0.2):
                client.publish({"price": 0})
        with serving(tmp_path, port=port):
            before = len(heard)
            client.publish([{"price": each} for each in range(1, 7)])
            listener.join(60)
    assert not listener.is_alive()
    assert heard[before:] == list(range(1, 7))[: 6 - before]


def test_the_asynchronous_client(server: str) -> None:
    async def life() -> list[Any]:
        async with AsyncClient(server) as client:
            await client.subscribe("awaited < 3", id="awaited")
            assert [each.id async for each in client.subscriptions(language="sql")]
            many = [{"where": f"awaited = {each}", "id": f"awaited-{each}"} for each in range(3)]
            assert [each.id async for each in client.subscribe_many(many)] == [each["id"] for each in many]
            async with aclosing(client.listen("awaited", after=0)) as heard:
                published = asyncio.create_task(client.publish([{"awaited": each} for each in range(5)]))
                found = [(await anext(heard)).event["awaited"] for _ in range(3)]
                assert (await published).accepted == 5
            await client.unsubscribe("awaited")
            return found

    assert asyncio.run(life()) == [0, 1, 2]


# Commands


def test_commands_from_subscribe_to_unsubscribe(server: str, tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "HARKEN_SERVER": server}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*PROGRAM, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    made = run("subscribe", "command = 1 AND price < 5", "--id", "command", "--valid-for", "30m")
    assert (made.returncode, json.loads(made.stdout)["id"]) == (0, "command")
    subscriptions = tmp_path / "many.jsonl"
    subscriptions.write_text('{"id": "c1", "where": "command = 1"}\n{"id": "c2", "where": "command ="}\n')
    many = run("subscribe", "--file", str(subscriptions), "--strict")
    assert many.returncode == 1
    assert "many.jsonl, line 2, subscription 'c2'" in many.stderr
    events = tmp_path / "events.jsonl"
    events.write_text('{"command": 1, "price": 3}\n{"command": 1, "price": 30}\n{bad\n')
    tried = run("publish", str(events), "--dry-run")
    pairs = [(each["event"], each["subscription"]) for each in map(json.loads, tried.stdout.splitlines())]
    assert sorted(pairs) == [(0, "c1"), (0, "command"), (1, "c1")]
    published = run("publish", str(events), "--strict")
    assert published.returncode == 1
    assert "3 events · 2 accepted · 1 rejected" in published.stderr
    heard = run("listen", "command", "c1", "--after", "0", "--count", "3")
    found = [(each["subscription"], each["event"]["price"]) for each in map(json.loads, heard.stdout.splitlines())]
    assert sorted(found) == [("c1", 3), ("c1", 30), ("command", 3)]
    assert run("renew", "command", "c1", "--valid-for", "7d").returncode == 0
    assert run("unsubscribe", "command", "c1").returncode == 0
    again = run("listen", "command", "--once")
    assert again.returncode == 3
    assert "--ticket" in again.stderr
