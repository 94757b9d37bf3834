"""Notifications: read in their order from a cursor on, by those they were made for, and pruned with their events."""

from __future__ import annotations

import tracemalloc

from harken.store import Store
from unit.store.contents import HOUR, NOW, SECOND, WEBHOOK, create, event, numbers, publish, told


def test_a_cursor_leads_through_the_notifications_of_several_subscriptions(store: Store) -> None:
    create(store, "a", "b", "c")
    publish(store, *(event(*("ab" if number % 3 else "abc")) for number in range(12)))
    every = told(store, "a", "b")
    assert len(every) == 24
    pages: list[tuple[str, int]] = []
    after = 0
    while page := store.notifications({"a": 0, "b": 0}, after, 5):
        assert len(page) <= 5
        pages += [(each.subscription, each.event_number) for each in page]
        after = page[-1].number
    assert pages == every
    assert told(store, "a", after=numbers(store, "a")[9]) == [("a", 11), ("a", 12)]
    assert store.notifications({}, 0, 5) == store.notifications({"nobody": 0}, 0, 5) == []


def test_a_page_reads_no_more_events_than_it_tells(store: Store) -> None:
    ids = [f"s{number}" for number in range(50)]
    create(store, *ids)
    for _ in range(20):
        publish(store, event(*ids, body=b"x" * 50_000))
    tracemalloc.start()
    try:
        page = store.notifications(dict.fromkeys(ids, 0), 0, 20)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000, "of 50 MB"
    finally:
        tracemalloc.stop()
    assert [each.number for each in page] == list(range(1, 21))
    assert len({each.subscription for each in page}) == 20


def test_an_id_that_is_used_again_does_not_see_what_came_before(store: Store) -> None:
    create(store, "a", "b", delivery=WEBHOOK)
    publish(store, event("a", "b"))
    with store.writing(NOW) as writing:
        writing.remove("a")
    publish(store, event("a", "b"))  # it was matched before that
    create(store, "a", delivery=WEBHOOK)
    assert told(store, "a") == []
    found = store.webhook("a")
    assert found is not None
    assert found[0].acknowledged == store.last_notification == 4
    publish(store, event("a", "b"))
    assert told(store, "a", "b") == [("b", 1), ("b", 2), ("a", 3), ("b", 3)]


def test_notifications_are_found_by_number_for_their_own_subscription_only(store: Store) -> None:
    create(store, "a", "b")
    publish(store, event("a", "b"), event("a", "b"))
    assert [each.number for each in store.notifications_of("a", [3, 1, 2, 99])] == [1, 3]
    assert store.notifications_of("a", []) == store.notifications_of("nobody", [1]) == []


def test_many_are_found_by_number(store: Store) -> None:
    create(store, "a")
    publish(store, *[event("a")] * 10)
    assert [each.number for each in store.notifications_of("a", range(8, 100_000))] == [8, 9, 10]


def prune(store: Store, before: int = 0, most_bytes: int = 1 << 40, at_once: int = 5_000) -> tuple[int, int]:
    """How many events and packs of notifications went."""
    with store.writing(NOW) as writing:
        return writing.prune_journal(before, most_bytes, at_once), writing.prune_notifications(at_once)


def held(store: Store) -> list[int]:
    return [each.number for each in store.latest_events(1_000)]


def test_what_is_too_old_goes_with_its_notifications(store: Store) -> None:
    create(store, "a")
    for number in range(4):
        publish(store, event("a"), event(), now=NOW + number * SECOND)
    assert prune(store, NOW) == (0, 0)
    assert prune(store, NOW + 2 * SECOND) == (4, 2)
    assert (held(store), told(store, "a")) == ([5, 6, 7, 8], [("a", 5), ("a", 7)])
    assert store.sizes()["journal_events"] == 4
    publish(store, event("a"), now=NOW + HOUR)
    assert told(store, "a")[-1] == ("a", 9)


def test_what_is_too_much_goes_oldest_first(store: Store) -> None:
    create(store, "a")
    for _ in range(10):
        publish(store, event("a", body=b"x" * 100))
    assert prune(store, most_bytes=1_000) == (0, 0)
    assert prune(store, most_bytes=399) == (7, 7)
    assert (held(store), store.sizes()["journal_bytes"]) == ([8, 9, 10], 300)
    assert prune(store, most_bytes=0) == (3, 3)
    assert (held(store), store.sizes()["journal_bytes"]) == ([], 0)
    publish(store, event("a", body=b"later"))
    assert (held(store), store.sizes()["journal_bytes"], told(store, "a")) == ([11], 5, [("a", 11)])


def test_notifications_that_were_appended_together_go_together(store: Store) -> None:
    create(store, "a")
    publish(store, event("a", body=b"xx"), event("a", body=b"xx"))
    assert prune(store, most_bytes=3) == (1, 0)
    assert [(each.number, each.event is None) for each in store.notifications({"a": 0}, 0, 9)] == [
        (1, True),
        (2, False),
    ]
    assert prune(store, most_bytes=0) == (1, 1)
    assert numbers(store, "a") == []


def test_pruning_is_done_in_small_parts(store: Store, is_sqlite: bool) -> None:
    create(store, "a", "b")
    for _ in range(10):
        publish(store, event("a", "b"))
    parts = [prune(store, NOW + 1, at_once=4) for _ in range(6)]
    packs = 2 if is_sqlite else 4  # in the tail both are in one
    assert parts == [(4, packs), (4, packs), (2, packs), (0, packs), (0, packs), (0, 0)]


def test_an_event_without_notifications_and_a_notification_without_its_event(store: Store) -> None:
    create(store, "a")
    publish(store, event("a"), event("a"))
    with store.writing(NOW) as writing:
        assert writing.prune_journal(0, 2) == 1
    first, second = store.notifications({"a": 0}, 0, 9)
    assert (first.event, first.event_number) == (None, 1)
    assert second.event is not None


def test_a_webhook_that_waits_keeps_its_notifications(store: Store, is_sqlite: bool) -> None:
    create(store, "a", delivery=WEBHOOK)
    create(store, "b")
    for each in (event("a", "b"), event("b"), event("a", "b")):
        publish(store, each)
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 1, [], NOW)  # the second is still to come
    # In the tail the first is in one pack with the second, which is later than what was delivered.
    assert prune(store, NOW + 1) == ((3, 0) if is_sqlite else (3, 1))
    assert numbers(store, "a", "b") == ([1, 2, 3, 4, 5] if is_sqlite else [2, 3, 4, 5])
    assert [(each.number, each.event) for each in store.notifications({"a": 0}, 1, 9)] == [(4, None)]
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 4, [], NOW)
    assert prune(store) == ((0, 3) if is_sqlite else (0, 4))
    assert numbers(store, "a", "b") == []


def test_what_is_to_be_delivered_again_is_kept_until_it_is(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    for _ in range(4):
        publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 4, [], NOW)
        writing.redeliver("a", [2])
    assert prune(store, NOW + 1) == (4, 1)
    assert [each.number for each in store.redeliveries("a", 9)] == [2]
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 4, [2], NOW)
    assert prune(store) == (0, 3)


def test_what_was_given_up_goes_with_its_notification(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.give_up("a", [1, 2], 3, "it failed")
        writing.acknowledge("a", 2, [], NOW)
        writing.prune_journal(0, 2)
    with store.writing(NOW) as writing:
        assert writing.prune_notifications() == 1
    assert [each.notified.number for each in store.dead_notifications("a", 0, 9)] == [2]
    assert store.sizes()["dead_notifications"] == 1
