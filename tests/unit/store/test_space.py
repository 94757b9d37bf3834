"""How much a store takes on disk: the journal keeps to its bytes at once, and what is free goes back to the system."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Event, Thread

import pytest

from harken.store import Store, open_store
from harken.store.writing import Publication
from unit.store.contents import NOW, create, event, publish, told

BODY = b"x" * 50_000
MIB = 1 << 20


def append(store: Store, count: int, most_bytes: int, body: bytes = BODY) -> int:
    """Publish events as the server does, in one transaction. Returns how many had to go."""
    with store.writing(NOW) as writing:
        appended = writing.append([Publication([event("a", body=body)] * count)], {}, most_bytes)
    return appended.dropped


def on_disk(path: Path) -> int:
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))


def shrink(store: Store) -> int:
    """Give everything back that is to be, and return in how many steps."""
    return sum(1 for _ in iter(store.database.shrink, False))


# Every database


def test_the_journal_keeps_to_its_bytes_at_once(store: Store) -> None:
    create(store, "a")
    for number in range(1, 30):
        dropped = append(store, 1, 10 * len(BODY))
        assert store.sizes()["journal_bytes"] == min(number, 10) * len(BODY)
        assert dropped == (number > 10)
    assert [each.number for each in store.latest_events(99)] == list(range(20, 30))
    assert told(store, "a")[0] == ("a", 1), "notifications go by and by"


def test_the_last_transaction_is_kept_however_large(store: Store) -> None:
    create(store, "a")
    append(store, 3, 10)
    assert store.sizes()["journal_events"] == 3
    assert append(store, 2, 10) == 3
    assert [each.number for each in store.latest_events(9)] == [4, 5]


def test_many_small_events_make_room_for_a_large_one(store: Store) -> None:
    create(store, "a")
    publish(store, *[event(body=b"{}")] * 2_000)
    append(store, 1, 50_100)
    assert store.sizes()["journal_bytes"] <= 50_100
    assert store.sizes()["journal_events"] == 51


# SQLite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_a_journal_at_its_limit_does_not_let_the_file_grow(path: Path) -> None:
    """What was reported: at 20 MB the file had 657 MB."""
    store = open_store(str(path))
    create(store, "a")
    for _ in range(200):
        append(store, 10, 2 * MIB)  # 100 MB in all
    assert on_disk(path) < 32 * MIB
    store.close()


def test_what_is_free_goes_back_to_the_system(path: Path) -> None:
    store = open_store(str(path))
    create(store, "a")
    for _ in range(100):
        append(store, 20, 1 << 40)
    assert on_disk(path) > 90 * MIB
    with store.writing(NOW) as writing:
        writing.prune_journal(NOW + 1, 0)
    assert 10 < shrink(store) < 100, "some pages at a time"
    assert path.stat().st_size < 24 * MIB, "some is kept, to be used again"
    assert append(store, 1, 1 << 40) == 0
    assert len(store.latest_events(9)) == 1
    store.close()


def test_a_file_that_is_in_use_is_left_as_it_is(path: Path) -> None:
    """A little that is free is used again soon."""
    store = open_store(str(path))
    create(store, "a")
    append(store, 200, 1 << 40)
    with store.writing(NOW) as writing:
        writing.prune_journal(0, 100 * len(BODY))
    assert not store.database.shrink()
    store.close()


def test_a_store_of_an_earlier_harken_is_left_as_it_is(path: Path) -> None:
    """It cannot give anything back before somebody calls VACUUM."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE early (name TEXT)")
    connection.close()
    store = open_store(str(path))
    create(store, "a")
    for _ in range(20):
        append(store, 20, 1 << 40)
    with store.writing(NOW) as writing:
        writing.prune_journal(NOW + 1, 0)
    assert not store.database.shrink()
    store.close()


def test_readers_do_not_let_the_log_grow(path: Path) -> None:
    """While somebody always reads, SQLite cannot begin its log anew by itself."""
    store = open_store(str(path))
    create(store, "a")
    stops = Event()

    def read() -> None:
        while not stops.is_set():
            with store.database.reading() as transaction:
                transaction.rows("SELECT COUNT(*) FROM events")

    readers = [Thread(target=read) for _ in range(4)]
    for each in readers:
        each.start()
    wal = path.with_name(f"{path.name}-wal")
    try:
        for _ in range(30):
            append(store, 100, 2 * MIB)  # 150 MB in all
            store.database.shrink()
        for _ in range(100):
            if wal.stat().st_size <= 64 * MIB:
                break
            store.database.shrink()
        assert wal.stat().st_size <= 64 * MIB
    finally:
        stops.set()
        for each in readers:
            each.join()
    store.close()
