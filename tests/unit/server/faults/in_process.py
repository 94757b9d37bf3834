"""A service without HTTP in the process of the test, for orders of things that no client could bring about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from harken.events.pieces import Piece
from harken.server.publications import Incoming
from harken.server.service import Service
from harken.server.settings import ServerSettings
from harken.server.subscribing import SubscriptionDraft
from harken.store import StoredDelivery, StoredSubscription
from harken.store.stored import JSON


def running(folder: Path, work: Callable[[Service], Awaitable[None]], **settings: Any) -> None:
    """Have something done with a service that runs."""

    async def run() -> None:
        service = Service(ServerSettings(store=str(folder / "harken.db"), **settings))
        await service.start()
        try:
            await work(service)
        finally:
            await service.stop()

    asyncio.run(run())


def draft(where: str, id: str = "a", delivery: StoredDelivery | None = None) -> SubscriptionDraft:
    return SubscriptionDraft(id, where, "sql", 600, None, {}, delivery or StoredDelivery())


def publish(service: Service, *texts: bytes) -> Awaitable[object]:
    return service.publish(Incoming(JSON, [Piece(each, 1) for each in texts]), None)


def stored(service: Service, id: str = "a") -> StoredSubscription:
    found = service.store.subscription(id)
    assert found is not None
    return found
