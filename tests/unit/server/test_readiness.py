"""Whether the store takes changes: asked now and then, with more bytes after a failure, and not waited for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

import pytest

from harken.errors import StoreUnavailableError
from harken.server import readiness
from harken.server.committing import Committer
from harken.server.readiness import Readiness


class Writing:
    """Notes the sizes of what is written."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def probe(self, size: int) -> None:
        self.sizes.append(size)


class Store:
    """Stands in for a committer: a change is made, fails, or is not done yet."""

    def __init__(self) -> None:
        self.failures = 0
        self.writing = Writing()
        self.error: Exception | None = None
        self.is_hung = False
        self.waiting: list[Future[Any]] = []

    def submit(self, work: Callable[[Any], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        work(self.writing)
        if self.is_hung:
            self.waiting.append(future)
        elif self.error is not None:
            self.failures += 1
            future.set_exception(self.error)
        else:
            future.set_result(None)
        return future


@pytest.fixture
def store() -> Store:
    return Store()


def checking(store: Store, check: Callable[[Readiness], Any]) -> None:
    async def run() -> None:
        await check(Readiness(cast(Committer, store)))

    asyncio.run(run())


def test_an_answer_is_good_for_a_while(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(ready: Readiness) -> None:
        assert await asyncio.gather(*(ready.check() for _ in range(20))) == [None] * 20
        assert len(store.writing.sizes) == 1
        store.failures += 1  # somebody's change
        store.error = StoreUnavailableError("the disk is full")
        assert [await ready.check(), await ready.check()] == ["the disk is full"] * 2
        assert store.writing.sizes == [0, 65_536]
        store.error = None
        monkeypatch.setattr(readiness, "_FRESH_SECONDS", 0.0)
        await asyncio.sleep(0.01)
        assert await ready.check() is None
        assert store.writing.sizes == [0, 65_536, 65_536]

    monkeypatch.setattr(readiness, "_FRESH_SECONDS", 3_600.0)
    checking(store, check)


def test_after_a_failure_there_has_to_be_room_for_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(ready: Readiness) -> None:
        async def checked() -> str | None:
            await asyncio.sleep(0.01)
            return await ready.check()

        store.failures = 3  # others were told that the disk is full
        store.error = StoreUnavailableError("the disk is full")
        assert await checked() == await checked() == ready.problem == "the disk is full"
        store.error = None
        assert await checked() is await checked() is ready.problem is None
        assert store.writing.sizes == [65_536, 65_536, 65_536, 0]

    monkeypatch.setattr(readiness, "_FRESH_SECONDS", 0.0)
    checking(store, check)


def test_a_store_that_does_not_answer_is_not_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(ready: Readiness) -> None:
        store.is_hung = True
        assert await ready.check() is None, "it may be busy"
        monkeypatch.setattr(readiness, "_PATIENCE_SECONDS", 0.0)
        assert "has not answered" in (await ready.check() or "")
        assert len(store.waiting) == 1, "it is asked once"
        store.waiting[0].set_result(None)
        await asyncio.sleep(0.1)
        assert await ready.check() is None

    monkeypatch.setattr(readiness, "_ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(readiness, "_FRESH_SECONDS", 3_600.0)
    checking(store, check)
