"""Back-tests: bounded in bytes and time, so many at one time, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from harken.errors import LimitError, StoreUnavailableError
from harken.server.models import BacktestModel
from harken.server.service import Service
from harken.store import JournalledEvent
from unit.server.faults.in_process import draft, publish, running
from unit.server.serving import Server, problem, running_server, settings

pytestmark = pytest.mark.together
HANGS = 60.0
EVERYTHING = BacktestModel(where="n >= 0")


async def stays() -> bool:
    return False


async def backtested(service: Service, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await service.backtests.run(BacktestModel(**given), stays))
    return found


# Over HTTP


@pytest.fixture(scope="module")
def narrow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("narrow"), *settings(max_backtest_bytes=5_000)) as server:
        server.publish(*({"n": n, "text": "x" * 1_000} for n in range(20)))
        yield server


def test_bytes_are_bounded(narrow_server: Server) -> None:
    found = problem(narrow_server.post("/backtest", {"where": "n >= 0"}), 413)
    assert found["limit"] == "max_backtest_bytes"
    assert "20 events" in found["detail"]
    assert "`events` 4" in found["hint"], "how many can be looked at"
    four = narrow_server.post("/backtest", {"where": "n >= 0", "events": 4}).json()
    assert (four["looked_at"], four["matched"]) == (4, 4)


def test_time_is_bounded(tmp_path: Path) -> None:
    with running_server(tmp_path, *settings(backtest_timeout=1e-9)) as server:
        server.publish({"n": 1})
        found = problem(server.post("/backtest", {"where": "n >= 0"}), 413)
        assert found["limit"] == "backtest_timeout"


def test_how_many_run_at_one_time(tmp_path: Path) -> None:
    with running_server(tmp_path, *settings(max_backtests=0)) as server:
        found = problem(server.post("/backtest", {"where": "n >= 0"}), 429)
        assert found["limit"] == "max_backtests"
        problem(server.post("/backtest", {"where": "n >"}), 429)


# In this process


class Gate:
    """Holds the threads that read events for back-tests until it is opened, and notes how much they read.

    It is `reached` once as many threads as `threads` wait.
    """

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch, threads: int = 1) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        arrivals = itertools.count(1)
        self.bytes: list[int] = []
        read = service.store.latest_events

        def latest_events(count: int, before: int | None = None) -> list[JournalledEvent]:
            if next(arrivals) == threads:
                self.reached.set()
            assert self.opened.wait(HANGS)
            events = read(count, before)
            self.bytes.append(sum(len(each.body) for each in events))
            return events

        monkeypatch.setattr(service.store, "latest_events", latest_events)


def test_others_go_on_while_back_tests_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(service: Service) -> None:
        await service.subscriptions.subscribe([draft("n >= 0")])
        await publish(service, b'{"n": 1}')
        gate = Gate(service, monkeypatch)
        under_way = [asyncio.create_task(service.backtests.run(EVERYTHING, stays)) for _ in range(3)]
        await asyncio.to_thread(gate.reached.wait, HANGS)
        with pytest.raises(LimitError) as caught:
            await service.backtests.run(EVERYTHING, stays)
        assert caught.value.limit == "max_backtests"
        await publish(service, b'{"n": 2}')
        pages = [service.readers.run(service.store.notifications_page, {"a": 0}, 0, 9) for _ in range(20)]
        assert all(len(page.notified) == 2 for page in await asyncio.gather(*pages))
        assert not any(each.done() for each in under_way)
        gate.opened.set()
        assert [json.loads(each)["matched"] for each in await asyncio.gather(*under_way)] == [1, 1, 1]
        assert (await backtested(service, where="n >= 0"))["matched"] == 2

    running(tmp_path, work, max_backtests=3)


def test_one_whose_client_left_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place is free at once, though it would have gone on for long."""

    async def work(service: Service) -> None:
        await publish(service, *[b'{"n": 1}'] * 1_000)
        gate = Gate(service, monkeypatch)
        left = asyncio.Event()

        async def has_left() -> bool:
            left.set()
            return True

        leaving = asyncio.create_task(service.backtests.run(EVERYTHING, has_left))
        await asyncio.wait_for(left.wait(), HANGS)
        gate.opened.set()
        with pytest.raises(ClientDisconnect):
            await leaving
        assert len(gate.bytes) == 1, "the chunk that was being read"
        assert (await backtested(service, where="n >= 0"))["matched"] == 1_000

    running(tmp_path, work)


def test_a_server_that_stops_does_not_wait_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(service: Service) -> None:
        await publish(service, *[b'{"n": 1}'] * 1_000)
        gate = Gate(service, monkeypatch)
        asked = asyncio.create_task(service.backtests.run(EVERYTHING, stays))
        await asyncio.to_thread(gate.reached.wait, HANGS)
        closing = asyncio.create_task(asyncio.to_thread(service.backtests.close))
        while not service.backtests._closing.is_set():
            await asyncio.sleep(0.01)
        gate.opened.set()
        with pytest.raises(StoreUnavailableError):
            await asked
        await closing
        assert len(gate.bytes) == 1

    running(tmp_path, work)


def test_few_events_are_in_memory_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their sizes: a chunk has a mebibyte, or one event that is larger."""
    sizes = [10] * 500 + [300_000] * 10 + [2_000_000] * 3 + [10] * 500

    async def work(service: Service) -> None:
        for number, size in enumerate(sizes):
            await publish(service, b'{"n": %d, "text": "%s"}' % (number, b"x" * size))
        gate = Gate(service, monkeypatch)
        gate.opened.set()
        found = await backtested(service, where="n % 2 = 0", limit=3)
        assert (found["looked_at"], found["matched"]) == (len(sizes), (len(sizes) + 1) // 2)
        assert [each["event"]["n"] for each in found["examples"]] == [1_012, 1_010, 1_008]
        assert sum(gate.bytes) > sum(sizes)
        assert max(gate.bytes) < 2_100_000
        assert sorted(gate.bytes)[:-3][-1] <= 1 << 20

    running(tmp_path, work)


def test_examples_are_bounded_in_bytes(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        for number in range(10):
            await publish(service, b'{"n": %d, "text": "%s"}' % (number, b"x" * 1_000))
        found = await backtested(service, where="n >= 0")
        assert (found["matched"], [each["event"]["n"] for each in found["examples"]]) == (10, [9, 8])
        await publish(service, b'{"n": 10, "text": "%s"}' % (b"x" * 9_000))
        found = await backtested(service, where="n >= 0")
        assert [each["event"]["n"] for each in found["examples"]] == [10], "the first is shown, however large"

    running(tmp_path, work, max_answer_bytes=2_500)
