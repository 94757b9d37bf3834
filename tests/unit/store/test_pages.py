"""Pages that end early: by the bytes of their events, or the length of their texts, but never before the first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harken.store import Store
from harken.store.database import fitting
from unit.store.contents import NOW, WEBHOOK, create, event, publish

SIZES = [100, 100, 100, 1_000, 100, 10]


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with a notification of `a` for each of the sizes, and one of `b` for every other event."""
    create(store, "a", "b")
    for place, size in enumerate(SIZES):
        publish(store, event("a", *(["b"] if place % 2 else []), body=b"x" * size))
    return store


def pages(store: Store, *ids: str, limit: int = 100, most_bytes: int | None = None) -> list[list[int]]:
    """The numbers of the events on each page, up to the end."""
    found, after = [], 0
    while True:
        page = store.notifications_page(dict.fromkeys(ids, 0), after, limit, most_bytes)
        if not page.notified:
            return found
        found.append([each.event_number for each in page.notified])
        assert page.end >= page.notified[-1].number
        if not page.has_more:
            assert page.end == store.last_notification
            return found
        after = page.end


@pytest.mark.parametrize(
    ("sizes", "most", "count"),
    [([], 5, 0), ([5], 5, 1), ([6], 5, 1), ([6, 1], 5, 1), ([2, 3, 1], 5, 2), ([2, 3], 5, 2), ([0, 0, 6], 5, 2)],
)
def test_how_many_fit(sizes: list[int], most: int, count: int) -> None:
    assert fitting(sizes, most) == count


def test_pages_end_by_bytes(filled: Store) -> None:
    assert pages(filled, "a") == [[1, 2, 3, 4, 5, 6]]
    assert pages(filled, "a", most_bytes=200) == [[1, 2], [3], [4], [5, 6]], "one that is too large comes alone"
    assert pages(filled, "a", most_bytes=0) == [[1], [2], [3], [4], [5], [6]]
    assert pages(filled, "a", limit=3, most_bytes=10_000) == [[1, 2, 3], [4, 5, 6]]


def test_an_event_counts_for_each_notification(filled: Store) -> None:
    assert pages(filled, "a", "b", most_bytes=300) == [[1, 2, 2], [3], [4], [4], [5, 6, 6]]


def test_events_that_are_gone_have_no_bytes(filled: Store) -> None:
    with filled.writing(NOW) as writing:
        writing.prune_journal(0, 110)
    assert pages(filled, "a", most_bytes=100) == [[1, 2, 3, 4, 5], [6]]


def test_webhooks_get_as_much(store: Store) -> None:
    create(store, "a", delivery=replace(WEBHOOK, max_delay=5.0))
    for size in SIZES:
        publish(store, event("a", body=b"x" * size))
    due = store.next_delivery("a", 9, 200)
    assert due is not None
    assert ([each.number for each in due.batch], due.is_full) == ([1, 2], True)
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 4, [], NOW)
    due = store.next_delivery("a", 9, 200)
    assert due is not None
    assert ([each.number for each in due.batch], due.is_full) == ([5, 6], False)
    with store.writing(NOW) as writing:
        writing.redeliver("a", [1, 2, 3])
    due = store.next_delivery("a", 9, 200)
    assert due is not None
    assert ([each.number for each in due.batch], due.is_redelivery) == ([1, 2], True)


def test_dead_letters(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    for size in SIZES:
        publish(store, event("a", body=b"x" * size))
    with store.writing(NOW) as writing:
        writing.give_up("a", range(1, 7), 1, "it failed")
    found, cursor = [], 0
    while cursor is not None:
        page, cursor = store.dead_page("a", cursor, 9, 200)
        found.append([each.notified.number for each in page])
    assert found == [[1, 2], [3], [4], [5, 6]]


def test_lists_of_subscriptions(store: Store) -> None:
    for place, length in enumerate((50, 50, 300, 20)):
        create(store, f"s{place}", where="x" * length)
    found, after = [], ""
    while after is not None:
        rows, after = store.listed_page(after, 9, most_length=100)
        found.append([each.id for each in rows])
    assert found == [["s0", "s1"], ["s2"], ["s3"]]
    assert store.listed_page("", 4, most_length=1_000)[1] == "s3", "there may be more after a full page"
