"""Webhooks: claimed by one process at a time, delivered, put off, stopped, given up and asked for again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harken.store import Store, WebhookState
from harken.store.stored import IDLE, STOPPED, WAITING
from unit.store.contents import HOUR, NOW, SECOND, WEBHOOK, create, event, publish, subscription


def state(store: Store, id: str = "a") -> WebhookState:
    found = store.webhook(id)
    assert found is not None
    return found[0]


def claimed(store: Store, now: int = NOW, until: int = NOW + 30 * SECOND, limit: int = 100) -> list[str]:
    return [each.subscription for each in store.claim(now, until, limit)]


def test_a_webhook_begins_with_what_comes_after_it(store: Store) -> None:
    create(store, "other")
    publish(store, event("other"))
    create(store, "a", delivery=WEBHOOK)
    assert store.webhook("other") is None
    assert store.webhook("a") == (WebhookState("a", 1, IDLE, 0, 0, None), 0)


def test_two_processes_claim_different_webhooks(store: Store, opened: Callable[[], Store]) -> None:
    ids = [f"w{number:04}" for number in range(1_200)]
    create(store, *ids, delivery=WEBHOOK)
    publish(store, event(*ids))
    another = opened()
    first, second = claimed(store, limit=700), claimed(another, limit=700)
    assert (len(first), len(second)) == (700, 500)
    assert sorted(first + second) == ids
    assert claimed(store) == claimed(another) == []


def test_a_claim_runs_out(store: Store, opened: Callable[[], Store]) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    assert claimed(store, until=NOW + 30 * SECOND) == ["a"]
    another = opened()
    assert claimed(another, NOW + 29 * SECOND) == []
    assert another.next_webhook() == NOW + 30 * SECOND
    assert claimed(another, NOW + 30 * SECOND, NOW + HOUR) == ["a"]


def test_what_is_delivered_is_acknowledged_and_the_webhook_rests(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"), event("a"))
    with store.writing(NOW) as writing:
        writing.retry_later("a", 2, NOW + HOUR, "HTTP 500")
    assert state(store) == WebhookState("a", 0, WAITING, 2, NOW + HOUR, "HTTP 500", failures=1, failing_since=NOW)
    with store.writing(NOW) as writing:
        assert writing.acknowledge("a", 1, [], NOW + SECOND)
    assert state(store) == WebhookState("a", 1, WAITING, 0, NOW + SECOND, None)
    with store.writing(NOW) as writing:
        assert not writing.acknowledge("a", 2, [], NOW)
    assert (state(store), store.next_webhook()) == (WebhookState("a", 2, IDLE, 0, 0, None), None)
    with store.writing(NOW) as writing:
        writing.retry_later("a", 9, NOW, "too late")
    assert state(store).state == IDLE


def test_what_comes_while_the_last_is_delivered_is_not_forgotten(store: Store) -> None:
    """The deliverer read all that there was, and was about to rest when the next notification came."""
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    assert claimed(store) == ["a"]
    publish(store, event("a"), now=NOW + SECOND)
    with store.writing(NOW + 2 * SECOND) as writing:
        assert writing.acknowledge("a", 1, [], NOW + 2 * SECOND)
    assert state(store) == WebhookState("a", 1, WAITING, 0, NOW + 2 * SECOND, None)
    assert claimed(store, NOW + 2 * SECOND, NOW + HOUR) == ["a"]


def test_what_is_asked_for_again_while_the_last_is_delivered_is_not_forgotten(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"), event("a"))
    with store.writing(NOW) as writing:
        writing.redeliver("a", [1, 2])
        writing.acknowledge("a", 2, [1], NOW)
    assert state(store).state == WAITING
    assert [each.number for each in store.redeliveries("a", 9)] == [2]


def test_an_acknowledgement_never_goes_back(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, *[event("a")] * 3)
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 3, [], NOW)
        writing.acknowledge("a", 1, [], NOW)
    assert state(store).acknowledged == 3


def test_a_webhook_that_was_stopped_is_not_woken_and_what_came_stays(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.stop_webhook("a", "HTTP 410")
    publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 1, [], NOW)  # of a delivery that was under way
    assert state(store) == WebhookState("a", 0, STOPPED, 0, NOW, "HTTP 410", failures=1, failing_since=NOW)
    assert claimed(store, NOW + HOUR) == []


def test_what_was_given_up_is_told_and_can_be_asked_for_again(store: Store) -> None:
    create(store, "a", "b", delivery=WEBHOOK)
    publish(store, *[event("a", "b", body=b'{"n": 1}')] * 3)
    with store.writing(NOW + SECOND) as writing:
        writing.give_up("a", [1, 3], 12, "HTTP 500")
        writing.acknowledge("a", 3, [], NOW)
        writing.stop_webhook("a", "HTTP 410")
    dead = store.dead_notifications("a", 0, 9)
    assert [(each.notified.number, each.failed_at, each.attempts, each.reason) for each in dead] == [
        (1, NOW + SECOND, 12, "HTTP 500"),
        (3, NOW + SECOND, 12, "HTTP 500"),
    ]
    assert dead[0].notified.event is not None
    assert dead[0].notified.event.body == b'{"n": 1}'
    assert [each.notified.number for each in store.dead_notifications("a", 1, 9)] == [3]
    assert [each.notified.number for each in store.dead_notifications("a", 0, 1)] == [1]
    assert store.dead_notifications("b", 0, 9) == []
    with store.writing(NOW + 2 * SECOND) as writing:
        writing.redeliver("a", [1])
        writing.redeliver("a", [1])
    assert [each.number for each in store.redeliveries("a", 9)] == [1]
    assert state(store) == WebhookState(
        *("a", 3, WAITING, 0, NOW + 2 * SECOND, "HTTP 410"), failures=1, failing_since=NOW + SECOND
    )
    found = store.webhook("a")
    assert found is not None
    assert found[1] == 1
    assert claimed(store, NOW + 2 * SECOND) == ["b", "a"]


def test_failures_are_counted_until_a_call_succeeds(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    for number in (1, 2):
        with store.writing(NOW + number * SECOND) as writing:
            writing.retry_later("a", number, NOW + HOUR, f"HTTP 50{number}")
    with store.writing(NOW + 3 * SECOND) as writing:
        writing.give_up("a", [1], 3, "HTTP 503")
        writing.note_failure("a", "HTTP 503")
        assert not writing.acknowledge("a", 1, [], NOW, is_success=False)
    failing = WebhookState("a", 1, IDLE, 0, 0, "HTTP 503", failures=3, failing_since=NOW + SECOND)
    assert state(store) == failing, "one that was given up does not look healthy"
    publish(store, event("a"), now=NOW + 4 * SECOND)
    due = store.next_delivery("a", 9)
    assert due is not None
    assert due.failing_since == NOW + SECOND
    with store.writing(NOW + 5 * SECOND) as writing:
        assert not writing.acknowledge("a", 2, [], NOW)
    assert state(store) == WebhookState("a", 2, IDLE, 0, 0, None)


def test_a_webhook_that_moves_while_it_rests_begins_without_failures_too(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.note_failure("a", "HTTP 500")
        writing.acknowledge("a", 1, [], NOW, is_success=False)
    assert state(store).failures == 1
    with store.writing(NOW) as writing:
        writing.change(subscription("a", delivery=replace(WEBHOOK, url="https://example.org/elsewhere")))
    assert (state(store).state, state(store).failures, state(store).last_error) == (IDLE, 0, None)


def test_a_claim_tells_whose_subscription_it_is(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK, owner="alice")
    create(store, "b", delivery=WEBHOOK)
    publish(store, event("a", "b"))
    found = {each.subscription: each.owner for each in store.claim(NOW, NOW + HOUR, 9)}
    assert found == {"a": "alice", "b": None}


def test_burying_again_tells_the_last_reason_and_burying_nothing_does_nothing(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.give_up("a", [1], 1, "first")
        writing.give_up("a", [1], 2, "second")
        writing.give_up("a", [], 3, "nothing")
        writing.redeliver("a", [])
    assert [(each.attempts, each.reason) for each in store.dead_notifications("a", 0, 9)] == [(2, "second")]


def test_many_are_given_up_and_asked_for_again(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, *[event("a")] * 1_234)
    every = list(range(1, 1_235))
    with store.writing(NOW) as writing:
        writing.give_up("a", every, 1, "x")
    assert len(store.dead_notifications("a", 0, 9_999)) == 1_234
    with store.writing(NOW) as writing:
        writing.redeliver("a", every)
    assert [each.number for each in store.redeliveries("a", 9_999)] == every
    assert [each.number for each in store.redeliveries("a", 2)] == [1, 2]
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 1_234, every, NOW)
    assert (store.redeliveries("a", 9), store.dead_notifications("a", 0, 9)) == ([], [])


def test_a_change_of_the_subscription_begins_moves_and_ends_its_webhook(store: Store) -> None:
    create(store, "a")
    publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.change(subscription("a", delivery=WEBHOOK))
    assert state(store) == WebhookState("a", 1, IDLE, 0, 0, None)
    publish(store, event("a"))
    with store.writing(NOW) as writing:
        writing.change(subscription("a", delivery=replace(WEBHOOK, url="https://example.org/elsewhere")))
    assert (state(store).acknowledged, state(store).state) == (1, WAITING)
    with store.writing(NOW) as writing:
        writing.change(subscription("a"))
    assert (store.webhook("a"), store.next_webhook(), store.deliveries()) == (None, None, {})


def test_claims_are_put_off(store: Store) -> None:
    ids = [f"w{number:04}" for number in range(1_200)]
    create(store, *ids, delivery=WEBHOOK)
    publish(store, event(*ids))
    assert sorted(claimed(store, limit=2_000)) == ids
    with store.writing(NOW) as writing:
        writing.stop_webhook("w0001", "HTTP 410")
        writing.postpone(ids[:600], NOW + 5)
    assert claimed(store) == []
    assert sorted(claimed(store, NOW + 5, limit=2_000)) == ["w0000", *ids[2:600]]
    assert state(store, "w0001").state == STOPPED


def test_claims_of_an_earlier_process_are_dropped_but_for_those_that_wait_after_a_failure(store: Store) -> None:
    create(store, "a", "b", "c", delivery=WEBHOOK)
    publish(store, event("a", "b"))
    assert sorted(claimed(store, until=NOW + HOUR)) == ["a", "b"]
    with store.writing(NOW) as writing:
        writing.retry_later("b", 1, NOW + HOUR, "HTTP 500")
        writing.release_claims()
    assert claimed(store) == ["a"]
    assert state(store, "b").next_at == NOW + HOUR
    assert state(store, "c").state == IDLE


def test_what_is_next_is_told_with_whom_it_is_for(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    create(store, "b", delivery=replace(WEBHOOK, max_delay=5.0))
    create(store, "c")
    publish(store, event("a", "b", "c"), event("a", "b"))
    due = store.next_delivery("a", 9)
    assert due is not None
    assert ([each.number for each in due.batch], due.is_redelivery, due.delivery.url) == ([1], False, WEBHOOK.url)
    several = store.next_delivery("b", 9)
    assert several is not None
    assert [each.number for each in several.batch] == [2, 5]
    assert store.next_delivery("c", 9) is store.next_delivery("nobody", 9) is None
    with store.writing(NOW) as writing:
        writing.acknowledge("a", 4, [], NOW)
        writing.redeliver("a", [1])
        assert writing.exists(due.subscription)
    again = store.next_delivery("a", 9)
    assert again is not None
    assert ([each.number for each in again.batch], again.is_redelivery, again.acknowledged) == ([1], True, 5)


def test_an_id_that_is_used_again_is_not_the_same_subscription(store: Store) -> None:
    create(store, "a", delivery=WEBHOOK)
    publish(store, event("a"))
    before = store.subscription("a")
    assert before is not None
    with store.writing(NOW) as writing:
        writing.remove("a")
        assert not writing.exists(before)
    create(store, "a", delivery=WEBHOOK)
    with store.writing(NOW) as writing:
        assert not writing.exists(before)
        writing.redeliver("a", [1])  # somebody asked for it who had the id before
    due = store.next_delivery("a", 9)
    assert due is not None
    assert (due.batch, due.is_redelivery, due.acknowledged) == ([], False, 1)


def test_a_webhook_that_moves_begins_without_the_failures_of_the_place_before(store: Store) -> None:
    create(store, "a", "b", delivery=WEBHOOK)
    publish(store, event("a"))
    before = store.subscription("a")
    assert before is not None
    with store.writing(NOW) as writing:
        writing.stop_webhook("a", "HTTP 410")
        writing.change(subscription("a", "price < 6", delivery=WEBHOOK))
    assert state(store).state == STOPPED
    with store.writing(NOW + SECOND) as writing:
        writing.change(subscription("a", delivery=replace(WEBHOOK, url="https://example.org/elsewhere")))
        writing.change(subscription("b", delivery=replace(WEBHOOK, url="https://example.org/elsewhere")))
        assert writing.exists(before)
        assert not writing.exists(before, same_delivery=True)
    assert state(store) == WebhookState("a", 0, WAITING, 0, NOW + SECOND, None)
    assert state(store, "b").state == IDLE
