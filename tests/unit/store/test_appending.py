"""Events and what they matched: numbers without holes, nothing twice, throttles that count, webhooks that wake."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harken.store import Store, StoredDelivery, StoredThrottle
from harken.store.outbox import NewNotification
from harken.store.stored import CLOUDEVENT, IDLE, JSON, WAITING, XML
from harken.store.writing import NewEvent, Publication
from unit.store.contents import HOUR, NOW, SECOND, WEBHOOK, create, event, gaps, numbers, publish, told


def test_events_and_notifications_get_the_next_numbers(store: Store) -> None:
    create(store, "a", "b")
    first = publish(store, event("a", "b", body=b'{"price": 1}'), event())
    assert first.events == [(1, NOW, JSON, b'{"price": 1}'), (2, NOW, JSON, b"{}")]
    assert list(first.notifications) == [NewNotification(1, "a", 1, NOW, 0), NewNotification(2, "b", 1, NOW, 0)]
    assert (first.repeated, first.duplicates) == ({}, {})
    publish(store, event("b"), now=NOW + 5)
    (last,) = store.notifications({"b": 0}, 2, 9)
    assert (last.number, last.subscription, last.time, last.event_number) == (3, "b", NOW + 5, 3)
    assert last.event is not None
    assert (last.event.number, last.event.time, last.event.body) == (3, NOW + 5, b"{}")
    assert store.last_notification == 3
    assert [each.number for each in store.latest_events(2)] == [2, 3]
    assert store.sizes()["journal_events"] == 3
    assert store.sizes()["journal_bytes"] == len(b'{"price": 1}{}{}')


def test_bodies_are_kept_as_they_came(store: Store) -> None:
    bodies = [
        b"",
        b'{"a": "\\u0000"}',
        "{'grün': '🌿'}".encode(),
        bytes(range(256)),
        b"\\x00 \\N \t\n",
        b"x" * 1_000_000,
    ]
    kinds = [JSON, CLOUDEVENT, XML, JSON, JSON, JSON]
    publish(store, *(NewEvent(*each, ()) for each in zip(kinds, bodies, strict=True)))
    assert [(each.kind, each.body) for each in store.latest_events(9)] == list(zip(kinds, bodies, strict=True))
    publish(store, *(NewEvent(JSON, body, ()) for body in bodies * 3))  # so many are copied
    assert [each.body for each in store.latest_events(18)] == bodies * 3


def test_numbers_have_no_holes_in_many_requests_of_many_sizes(store: Store) -> None:
    create(store, "a", "b", "c")
    for size in (1, 0, 7, 8, 9, 600, 3):
        publish(store, *(event(*"abc"[: number % 4]) for number in range(size)))
    assert gaps([each.number for each in store.latest_events(10_000)]) == []
    assert gaps(numbers(store, "a", "b", "c")) == []
    assert (
        store.last_notification
        == len(numbers(store, "a", "b", "c"))
        == sum(n % 4 for s in (7, 8, 9, 600, 3, 1) for n in range(s))
    )


def test_a_request_that_is_repeated_gets_its_first_answer_and_changes_nothing(store: Store) -> None:
    create(store, "a")
    assert publish(store, event("a"), key=b"key", answer="first").repeated == {}
    again = publish(store, event("a"), event("a"), key=b"key", answer="second")
    assert (again.repeated, again.events, list(again.notifications)) == ({0: "first"}, [], [])
    with store.writing(NOW) as writing:
        twice = writing.append(
            [
                Publication([event("a")], b"other", "one"),
                Publication([event("a")], b"other", "two"),
                Publication([event("a")], None, "three"),
                Publication([event("a")], b"key", "four"),
            ],
            {},
        )
        later = writing.append([Publication([event("a")], b"other", "five")], {})  # in the same transaction
    assert twice.repeated == {1: "one", 3: "first"}
    assert later.repeated == {0: "one"}
    assert told(store, "a") == [("a", 1), ("a", 2), ("a", 3)]


def test_another_request_with_the_same_key_is_told_apart(store: Store) -> None:
    create(store, "a")
    with store.writing(NOW) as writing:
        first = writing.append(
            [Publication([event("a")], b"key", "first", b"this"), Publication([], b"old", "old")], {}
        )
    assert first.conflicts == set()
    with store.writing(NOW) as writing:
        found = writing.append(
            [
                Publication([event("a")], b"key", "second", b"this"),
                Publication([event("a")], b"key", "third", b"that"),
                Publication([event("a")], b"key", "fourth"),  # nobody compares
                Publication([event("a")], b"old", "fifth", b"that"),  # nobody had
                Publication([event("a")], b"new", "sixth", b"this"),
                Publication([event("a")], b"new", "seventh", b"that"),
            ],
            {},
        )
    assert (found.conflicts, found.repeated) == ({1, 5}, {0: "first", 2: "first", 3: "old"})
    assert told(store, "a") == [("a", 1), ("a", 2)]


def test_an_event_that_is_repeated_is_counted_and_left_out(store: Store) -> None:
    create(store, "a")
    first = publish(store, event("a", key=b"1"), event("a", key=b"1"), event("a"), event("a", key=b"2"))
    assert (first.duplicates, len(first.events)) == ({0: 1}, 3)
    with store.writing(NOW) as writing:
        more = writing.append(
            [
                Publication([event("a", key=b"1"), event("a", key=b"2"), event("a", key=b"3")]),
                Publication([event("a", key=b"4"), event("a", key=b"3")]),
            ],
            {},
        )
    assert more.duplicates == {0: 2, 1: 1}
    assert told(store, "a") == [("a", number) for number in (1, 2, 3, 4, 5)]


def test_more_keys_than_one_statement_can_name(store: Store) -> None:
    keys = [number.to_bytes(4, "big") for number in range(1_203)]
    publish(store, *(event(key=key) for key in keys))
    again = publish(store, *(event(key=key) for key in [*keys, b"new"]))
    assert (again.duplicates, len(again.events)) == ({0: 1_203}, 1)


def test_answers_are_kept_as_long_as_asked_for(store: Store) -> None:
    publish(store, key=b"old", answer="x", now=NOW)
    publish(store, event(key=b"event"), key=b"new", answer="y", now=NOW + HOUR)
    with store.writing(NOW + HOUR) as writing:
        assert writing.prune_answers(NOW + HOUR) == 1
    assert publish(store, key=b"old").repeated == {}
    assert publish(store, event(key=b"event"), key=b"new").repeated == {0: "y"}
    assert publish(store, event(key=b"event")).duplicates == {0: 1}


def test_a_throttle_lets_so_many_through_and_tells_how_many_it_did_not(store: Store) -> None:
    create(store, "a", delivery=StoredDelivery(throttle=StoredThrottle(2, 60)))
    create(store, "b")

    def at(seconds: int, count: int) -> list[tuple[str, int]]:
        appended = publish(store, *[event("a", "b")] * count, now=NOW + seconds * SECOND)
        return [(each.subscription, each.suppressed) for each in appended.notifications if each.subscription == "a"]

    assert at(0, 1) == [("a", 0)]
    assert at(10, 3) == [("a", 0)]  # two were suppressed
    assert at(59, 1) == []
    assert at(60, 3) == [("a", 3), ("a", 0)]
    assert at(119, 0) == at(119, 1) == []
    assert at(500, 1) == [("a", 2)]
    assert len(told(store, "b")) == 10
    assert [each.suppressed for each in store.notifications({"a": 0}, 0, 99)] == [0, 0, 3, 0, 2]
    assert gaps(numbers(store, "a", "b")) == []  # what is suppressed takes no number


def test_throttles_are_of_each_subscription(store: Store) -> None:
    create(store, "a", "b", delivery=StoredDelivery(throttle=StoredThrottle(1, 60)))
    assert len(publish(store, event("a", "b"), event("a")).notifications) == 2
    for id, suppressed in (("b", 0), ("a", 1)):
        (new,) = publish(store, event(id), now=NOW + 61 * SECOND).notifications
        assert (new.subscription, new.suppressed) == (id, suppressed)


@pytest.mark.parametrize("max_delay", [0.0, 2.5])
def test_a_webhook_is_woken_by_its_first_notification_and_not_put_off_by_later_ones(
    store: Store, max_delay: float
) -> None:
    create(store, "a", delivery=replace(WEBHOOK, max_delay=max_delay))
    create(store, "b")
    publish(store, event("b"))
    assert store.next_webhook() is None
    assert publish(store, event("a"), now=NOW).notifications
    publish(store, event("a"), now=NOW + SECOND)
    due = NOW + int(max_delay * SECOND)
    assert store.next_webhook() == due
    assert store.claim(due - 1, NOW + HOUR, 9) == []
    (claimed,) = store.claim(due, NOW + HOUR, 9)
    assert (claimed.subscription, claimed.acknowledged, claimed.state) == ("a", 0, WAITING)
    assert store.sizes()["webhooks_waiting"] == 1


def test_what_a_throttle_suppresses_wakes_nobody(store: Store) -> None:
    create(store, "a", delivery=replace(WEBHOOK, throttle=StoredThrottle(1, 60)))
    publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 1, [], NOW)
    publish(store, event("a"), now=NOW + SECOND)
    found = store.webhook("a")
    assert found is not None
    assert (found[0].state, store.next_webhook()) == (IDLE, None)
