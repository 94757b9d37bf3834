"""Changes that overtake each other inside a server, in an order that its clients would see once in a long while."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

import pytest

from harken.server.service import Service
from harken.server.subscribing import NewSubscription
from harken.store import StoredDelivery
from unit.server.faults.in_process import draft, publish, running, stored
from unit.server.faults.receivers import SECRET, Answer, Receiver

WEBHOOK = StoredDelivery(url="http://192.0.2.1/", secret="whsec_" + "A" * 32)


def told(service: Service) -> list[bytes]:
    """The events of the notifications of the subscription `a` that there is now."""
    found = service.store.notifications({"a": stored(service).since}, 0, 100)
    return [each.event.body for each in found if each.event is not None]


def test_whoever_takes_over_an_id_is_not_told_what_the_one_before_asked_for(tmp_path: Path) -> None:
    async def overtake(service: Service) -> None:
        await service.subscriptions.subscribe([draft("price < 5")])
        goes_on = threading.Event()
        held = service.committer.submit(lambda writing: goes_on.wait(60))
        leaving = asyncio.create_task(service.subscriptions.unsubscribe("a"))
        await asyncio.sleep(0.05)  # both wait behind what is held
        coming = asyncio.create_task(service.subscriptions.subscribe([draft("price > 50")]))
        await asyncio.sleep(0.2)
        publishing = asyncio.ensure_future(publish(service, b'{"price": 3}'))
        await asyncio.sleep(0.2)  # it is matched with the first one
        goes_on.set()
        await asyncio.wrap_future(held)
        await asyncio.gather(leaving, publishing)
        assert isinstance((await coming)[0], NewSubscription)
        await publish(service, b'{"price": 51}')
        assert told(service) == [b'{"price": 51}']

    running(tmp_path, overtake)


def test_whoever_changes_while_events_wait_misses_none(tmp_path: Path) -> None:
    async def overtake(service: Service) -> None:
        await service.subscriptions.subscribe([draft("price < 5")])
        goes_on = threading.Event()
        held = service.committer.submit(lambda writing: goes_on.wait(60))
        changing = asyncio.create_task(service.subscriptions.change(stored(service), draft("price < 6")))
        await asyncio.sleep(0.2)
        publishing = asyncio.ensure_future(publish(service, b'{"price": 3}'))
        await asyncio.sleep(0.2)
        goes_on.set()
        await asyncio.wrap_future(held)
        await asyncio.gather(changing, publishing)
        assert told(service) == [b'{"price": 3}']

    running(tmp_path, overtake)


def test_who_renews_while_a_webhook_is_added_keeps_the_webhook(tmp_path: Path) -> None:
    async def overtake(service: Service) -> None:
        await service.subscriptions.subscribe([draft("price < 5")])
        before = stored(service)
        await service.subscriptions.change(before, draft("price < 5", delivery=WEBHOOK))
        await service.subscriptions.renew(before, 600)
        assert service.index.deliveries == {"a": WEBHOOK}
        assert stored(service).delivery == WEBHOOK

    running(tmp_path, overtake)


@pytest.mark.parametrize("status", [200, 410, 500])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_message_that_is_under_way_is_nothing_to_the_next_webhook(tmp_path: Path, status: int, is_new: bool) -> None:
    """Somebody else has the id by the time that the first webhook answers; or it has moved to another place."""

    async def overtake(service: Service) -> None:
        subscribing = service.subscriptions
        await subscribing.subscribe([draft("n > 0", delivery=hook("/first"))])
        await publish(service, b'{"n": 1}', b'{"n": 2}')
        await until(lambda: receiver.at("/first"))
        if is_new:
            await subscribing.unsubscribe("a")
            await subscribing.subscribe([draft("n > 50", delivery=hook("/second"))])
        else:
            await subscribing.change(stored(service), draft("n > 50", delivery=hook("/second")))
        await publish(service, b'{"n": 51}', b'{"n": 3}')
        own = [51] if is_new else [1, 2, 51]
        if status == 200 and not is_new:
            own.pop(0)
        await until(lambda: len(receiver.at("/second")) >= len(own))
        await asyncio.sleep(0.2)
        assert [each.content["event"]["n"] for each in receiver.at("/second")] == own
        assert len(receiver.at("/first")) == 1
        known = service.store.webhook("a")
        assert known is not None
        assert (known[0].state, known[0].last_error, known[1]) == ("idle", None, 0)

    def hook(path: str) -> StoredDelivery:
        return StoredDelivery(url=f"http://127.0.0.1:{receiver.port}{path}", secret=SECRET)

    with Receiver() as receiver:
        receiver.will("/first", Answer(status, after=0.4))
        networks = (ip_network("127.0.0.0/8"),)
        running(tmp_path, overtake, webhook_networks=networks, webhook_delays=(0.0,) if status == 500 else (600.0,))


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)
