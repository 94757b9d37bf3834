"""A store that several write to at once, threads, stores and processes: one after the other, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import pytest

from harken.errors import DuplicateIdError, UnknownIdError
from harken.store import BehindError, Store, Writing, open_store
from harken.store.postgres import PostgresDatabase
from unit.store.contents import HOUR, NOW, SECOND, WEBHOOK, create, event, gaps, numbers, publish, subscription, told

Result = TypeVar("Result")
SHORT = 0.3
"""Seconds within which whoever does not have to wait would be done."""
WRITER = """
import sys
from harken.store import open_store
from unit.store.contents import create, event, publish
store, name = open_store(sys.argv[1]), sys.argv[2]
for turn in range(40):
    create(store, f"{name}{turn}")
    publish(store, event("a", f"{name}{turn}"), event("a"), key=f"{name}{turn}".encode())
    publish(store, event("a"), key=f"common{turn}".encode())
store.close()
"""


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def in_writing(store: Store, work: Callable[[Writing], Result], now: int = NOW) -> Result:
    with store.writing(now) as writing:
        return work(writing)


def waiting(pool: ThreadPoolExecutor, store: Store, work: Callable[[Writing], Result]) -> Future[Result]:
    """A change of the store that has to wait for another, which is not done yet."""
    future = pool.submit(in_writing, store, work)
    with pytest.raises(TimeoutError):
        future.result(SHORT)
    return future


def test_what_fails_leaves_no_trace(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    before = (store.sizes(), store.last_notification, store.listed("", 9), store.webhook("a"))

    def fail(error: type[BaseException]) -> None:
        with store.writing(NOW) as writing:
            writing.create([subscription("b")])
            writing.change(subscription("a", "price > 7"))
            writing.give_up("a", [1], 1, "x")
            writing.remove("a")
            raise error

    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)
    assert (store.sizes(), store.last_notification, store.listed("", 9), store.webhook("a")) == before
    create(store, "b")
    assert [each.sequence for each in store.changes(0) or ()] == [1, 2]


def test_threads_of_one_store_write_one_after_the_other(store: Store, pool: ThreadPoolExecutor) -> None:
    create(store, "a")

    def write(name: int) -> None:
        for turn in range(10):
            create(store, f"{name} {turn}")
            publish(store, event("a", f"{name} {turn}"))
            assert len(told(store, f"{name} {turn}")) == 1

    list(pool.map(write, range(8)))
    check_numbers(store, subscriptions=81, events=80, notifications=160)


def test_stores_and_their_threads_write_one_after_the_other(
    opened: Callable[[], Store], pool: ThreadPoolExecutor
) -> None:
    stores = [opened() for _ in range(4)]
    create(stores[0], "a")

    def write(name: int) -> None:
        for turn in range(10):
            create(stores[name % 4], f"{name} {turn}")
            publish(stores[name % 4], event("a", f"{name} {turn}"), key=f"{name} {turn}".encode())
            publish(stores[(name + 1) % 4], event("a", f"{name} {turn}"), key=f"{name} {turn}".encode())

    list(pool.map(write, range(8)))
    check_numbers(stores[0], subscriptions=81, events=80, notifications=160)


def test_processes_write_one_after_the_other(store: Store, place: str) -> None:
    create(store, "a")
    command = [sys.executable, "-c", WRITER, place]
    tests = str(__file__).partition("/unit/")[0]
    processes = [
        subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True, env={"PYTHONPATH": tests})
        for name in "xyz"
    ]
    assert [(process.communicate(timeout=100)[1], process.returncode) for process in processes] == [("", 0)] * 3
    check_numbers(store, subscriptions=121, events=3 * 80 + 40, notifications=3 * 120 + 40)


def check_numbers(store: Store, subscriptions: int, events: int, notifications: int) -> None:
    changes = store.changes(0)
    assert changes is not None
    assert (len(changes), gaps([each.sequence for each in changes])) == (subscriptions, [])
    journalled = [each.number for each in store.latest_events(10_000)]
    assert (len(journalled), gaps(journalled)) == (events, [])
    found = numbers(store, *(each.id for each in store.listed("", 10_000)))
    assert (len(found), gaps(found)) == (notifications, [])


def test_who_is_behind_is_told(opened: Callable[[], Store]) -> None:
    ours, theirs = opened(), opened()
    create(ours, "a")
    known = ours.sequence

    def reject(writing: Writing) -> None:
        writing.require_current(known)

    in_writing(ours, reject)
    create(ours, "b")
    in_writing(ours, reject)  # what it did itself it knows
    in_writing(theirs, lambda writing: writing.renew("a", NOW + HOUR))
    in_writing(ours, reject)  # a renewed subscription matches what it matched
    with pytest.raises(BehindError):
        in_writing(theirs, reject)
    create(theirs, "c")
    with pytest.raises(BehindError):
        in_writing(ours, reject)
    known = ours.sequence
    in_writing(theirs, lambda writing: writing.put_schema(1, "text"))
    with pytest.raises(BehindError):
        in_writing(ours, reject)


def test_who_is_so_far_behind_that_the_log_is_gone_is_told(opened: Callable[[], Store]) -> None:
    ours, theirs = opened(), opened()
    create(theirs, "a", "b")
    in_writing(theirs, lambda writing: writing.prune_changes(NOW + 1, up_to=2))
    for known in (0, 1):
        with pytest.raises(BehindError):
            in_writing(ours, lambda writing, known=known: writing.require_current(known))  # type: ignore[misc]
    in_writing(ours, lambda writing: writing.require_current(2))


def test_an_append_waits_for_a_change_and_is_then_behind(opened: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
    ours, theirs = opened(), opened()
    with theirs.writing(NOW) as writing:
        writing.create([subscription("a")])
        future = waiting(pool, ours, lambda own: own.require_current(0))
    with pytest.raises(BehindError):
        future.result(30)


def test_one_id_is_taken_by_one_of_two(opened: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
    ours, theirs = opened(), opened()
    with theirs.writing(NOW) as writing:
        writing.create([subscription("a")])
        future = waiting(pool, ours, lambda own: own.create([subscription("a", "price > 7")]))
    assert isinstance(future.result(30)[0], DuplicateIdError)
    found = ours.subscription("a")
    assert found is not None
    assert (found.where, ours.sequence) == ("price < 5", 1)


def test_one_version_of_the_schema_is_put_by_one_of_two(opened: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
    ours, theirs = opened(), opened()
    with theirs.writing(NOW) as writing:
        writing.put_schema(1, "theirs")
        future = waiting(pool, ours, lambda own: own.put_schema(1, "ours"))
    with pytest.raises(BehindError):
        future.result(30)
    assert ours.schema() == (1, "theirs")


def test_what_is_renewed_in_time_is_not_swept(opened: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
    ours, theirs = opened(), opened()
    create(ours, "a", "b", expires_at=NOW)
    with theirs.writing(NOW) as writing:
        writing.renew("a", NOW + HOUR)
        future = waiting(pool, ours, lambda own: own.remove_expired(NOW))
    assert future.result(30) == ["b"]
    assert [each.id for each in ours.listed("", 9)] == ["a"]


def test_what_another_removes_cannot_be_renewed(opened: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
    ours, theirs = opened(), opened()
    create(ours, "a")
    with theirs.writing(NOW) as writing:
        writing.remove("a")
        future = waiting(pool, ours, lambda own: own.renew("a", NOW + HOUR))
    with pytest.raises(UnknownIdError):
        future.result(30)


def test_a_delivery_and_an_append_at_once_lose_no_notification(
    opened: Callable[[], Store], pool: ThreadPoolExecutor
) -> None:
    ours, theirs = opened(), opened()
    create(ours, "a", delivery=WEBHOOK)
    publish(ours, event("a"))
    with theirs.writing(NOW) as writing:
        assert not writing.acknowledge("a", 1, [], NOW)
        deliveries = {"a": WEBHOOK}
        future = pool.submit(publish, ours, event("a"), now=NOW + SECOND, deliveries=deliveries)
        with pytest.raises(TimeoutError):
            future.result(SHORT)
    assert future.result(30).notifications
    assert ours.next_webhook() == NOW + SECOND


def test_nobody_waits_in_a_circle(opened: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
    ours, theirs = opened(), opened()
    create(ours, "a", "b", delivery=WEBHOOK)
    publish(ours, event("a", "b"))
    with ours.writing(NOW) as writing:
        writing.retry_later("a", 1, NOW, "HTTP 500")
        removed = waiting(pool, theirs, lambda own: own.remove("a"))
        writing.remove("b")
    removed.result(30)
    assert ours.listed("", 9) == []


def test_claims_at_the_same_time_do_not_overlap(opened: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
    stores = [opened() for _ in range(4)]
    ids = [f"w{number}" for number in range(40)]
    create(stores[0], *ids, delivery=WEBHOOK)
    publish(stores[0], event(*ids))
    barrier = threading.Barrier(4)

    def claim(store: Store) -> list[str]:
        found: list[str] = []
        barrier.wait()
        for _ in range(10):
            found += [each.subscription for each in store.claim(NOW, NOW + HOUR, 3)]
        return found

    found = list(pool.map(claim, stores))
    assert sorted(id for each in found for id in each) == sorted(ids)


@pytest.mark.processes
def test_whoever_listens_hears_of_what_others_commit(url: str) -> None:
    ours, theirs = open_store(url), open_store(url)
    assert isinstance(ours.database, PostgresDatabase)
    heard = ours.database.announced(0.05)
    assert next(heard) == ""
    with suppress(RuntimeError), theirs.writing(NOW) as writing:
        writing.create([subscription("a")])
        raise RuntimeError
    assert next(heard) == ""
    create(theirs, "a")
    assert next(heard) == theirs.origin
    heard.close()  # type: ignore[attr-defined]
    for each in (ours, theirs):
        each.close()


def test_a_webhook_that_is_changed_while_it_is_claimed_stays_claimed(opened: Callable[[], Store]) -> None:
    ours, theirs = opened(), opened()
    create(ours, "a", delivery=WEBHOOK)
    publish(ours, event("a"))
    assert [each.subscription for each in ours.claim(NOW, NOW + HOUR, 9)] == ["a"]
    in_writing(theirs, lambda writing: writing.change(subscription("a", delivery=replace(WEBHOOK, max_delay=9))))
    publish(theirs, event("a"))
    assert theirs.claim(NOW + SECOND, NOW + HOUR, 9) == []
