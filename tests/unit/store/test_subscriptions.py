"""Subscriptions in a store: made, changed, renewed, removed, swept, and found by id, ticket and owner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harken.errors import DuplicateIdError, LimitError, UnknownIdError
from harken.store import ApiKey, Store, StoredDelivery, StoredSubscription, StoredThrottle
from harken.store.stored import GONE, PUT, RENEWED
from unit.store.contents import HOUR, NOW, SECOND, WEBHOOK, create, event, publish, subscription, told

WHOLE = StoredSubscription(
    "grün 🌿",
    "price < 5 AND name LIKE 'a%'",
    "sql",
    expires_at=NOW + HOUR,
    created_at=NOW,
    owner="Ann",
    labels={"team": "süd", "level": "1"},
    delivery=StoredDelivery("https://example.org/?a=%s&b=?", "whsec", "cloudevents", 2.5, StoredThrottle(3, 60.0)),
    ticket=bytes(range(32)),
    valid_for=HOUR,
)


def kinds(store: Store) -> list[tuple[str, str]]:
    changes = store.changes(0)
    assert changes is not None
    return [(each.kind, each.id) for each in changes]


def test_a_subscription_is_found_as_it_was_made(store: Store) -> None:
    with store.writing(NOW) as writing:
        assert writing.create([WHOLE, subscription("plain")]) == [WHOLE, subscription("plain")]
    assert store.subscription("grün 🌿") == WHOLE
    assert store.subscription("plain") == subscription("plain")
    assert store.subscription("nobody") is None
    assert store.deliveries() == {"grün 🌿": WHOLE.delivery}
    record = WHOLE.record()
    assert (record.id, record.where, record.language) == (WHOLE.id, WHOLE.where, "sql")
    assert record.fields == {"owner": "Ann", "labels": {"team": "süd", "level": "1"}}
    assert subscription("plain").record().fields == {}


def test_an_id_is_taken_once_within_a_call_and_across(store: Store) -> None:
    with store.writing(NOW) as writing:
        made = writing.create([subscription("a"), subscription("b"), subscription("a", "price > 7")])
    assert [type(each) for each in made] == [StoredSubscription, StoredSubscription, DuplicateIdError]
    with store.writing(NOW) as writing:
        made = writing.create([subscription("b", "price > 7"), subscription("c")])
    assert [type(each) for each in made] == [DuplicateIdError, StoredSubscription]
    assert "'b' is taken" in str(made[0])
    assert [(each.id, each.where) for each in store.listed("", 9)] == [(id, "price < 5") for id in "abc"]
    assert kinds(store) == [(PUT, "a"), (PUT, "b"), (PUT, "c")]
    with store.writing(NOW) as writing:
        assert writing.create([]) == []


def test_an_id_whose_subscription_has_expired_is_free(store: Store) -> None:
    create(store, "a", "b", delivery=WEBHOOK, owner="Ann")
    publish(store, event("a", "b"))
    later = [subscription(id, "price > 7", expires_at=NOW + 3 * HOUR, owner="Ann") for id in ("a", "c", "a")]
    with store.writing(NOW + HOUR) as writing:
        made = writing.create(later, {"Ann": 3})
    assert [type(each) for each in made] == [StoredSubscription, StoredSubscription, DuplicateIdError]
    assert kinds(store) == [(PUT, "a"), (PUT, "b"), (GONE, "a"), (PUT, "a"), (PUT, "c")]
    found = store.subscription("a")
    assert found is not None
    assert (found.where, found.since) == ("price > 7", 2)
    assert (told(store, "a"), store.webhook("a")) == ([], None), "nothing of the one before is left"
    assert store.webhook("b") is not None, "others that have expired are the sweep's"


def test_a_validity_is_kept_with_its_subscription(store: Store) -> None:
    create(store, "a", valid_for=HOUR)
    with store.writing(NOW) as writing:
        writing.change(subscription("a", valid_for=2 * HOUR))
    assert store.subscription("a") == subscription("a", valid_for=2 * HOUR)
    for valid_for in (3 * HOUR, None):
        with store.writing(NOW) as writing:
            writing.renew("a", NOW + HOUR, valid_for)
        assert store.subscription("a") == subscription("a", valid_for=valid_for)


def test_an_owner_has_no_more_than_he_may(store: Store) -> None:
    some = [subscription(id, owner="ann") for id in "abc"]
    with store.writing(NOW) as writing:
        made = writing.create([*some, subscription("d", owner="bob"), subscription("e")], {"ann": 2})
    assert [type(each) for each in made] == [*[StoredSubscription] * 2, LimitError, *[StoredSubscription] * 2]
    assert "'ann' has 2 subscriptions already" in str(made[2])
    with store.writing(NOW) as writing:
        (found,) = writing.create([subscription("f", owner="ann")], {"ann": 2})
        assert isinstance(found, LimitError)
        writing.remove("a")
        (found,) = writing.create([subscription("f", owner="ann")], {"ann": 2})
        assert isinstance(found, StoredSubscription)
    assert kinds(store) == [*((PUT, id) for id in "abde"), (GONE, "a"), (PUT, "f")]


def test_many_are_made_at_once(store: Store) -> None:
    ids = [f"id{number:05}" for number in range(3_001)]
    create(store, *ids)
    assert store.sequence == len(ids)
    assert [each.id for each in store.listed("id02990", 100)] == ids[2_991:]
    assert sorted(each.id for each in store.subscriptions_of([*ids, "nobody"])) == ids
    with store.writing(NOW) as writing:
        assert sum(isinstance(each, DuplicateIdError) for each in writing.create(list(map(subscription, ids)))) == 3_001
    assert store.sequence == len(ids)


def test_a_change_keeps_ticket_owner_creation_and_notifications(store: Store) -> None:
    create(store, "a", owner="Ann", labels={"x": "1"})
    publish(store, event("a"))
    before = store.subscription("a")
    assert before is not None
    other = subscription(
        "a", "size = 1", language="xpath", expires_at=NOW + 1, created_at=7, owner="Bob", ticket=b"other", labels={}
    )
    with store.writing(NOW + SECOND) as writing:
        writing.change(other)
    expected = replace(before, where="size = 1", language="xpath", expires_at=NOW + 1, labels={})
    assert store.subscription("a") == expected
    assert told(store, "a") == [("a", 1)]
    assert kinds(store) == [(PUT, "a"), (PUT, "a")]


def test_what_is_not_there_cannot_be_changed_and_the_transaction_goes_on(store: Store) -> None:
    with store.writing(NOW) as writing:
        for change in (
            lambda: writing.change(subscription("nobody")),
            lambda: writing.renew("nobody", NOW),
            lambda: writing.remove("nobody"),
        ):
            with pytest.raises(UnknownIdError, match="no subscription 'nobody'"):
                change()
        writing.create([subscription("a")])
    assert kinds(store) == [(PUT, "a")]


def test_renewing_moves_the_end_and_is_logged(store: Store) -> None:
    create(store, "a", "b")
    with store.writing(NOW) as writing:
        writing.renew("a", NOW + 5 * HOUR)
    assert store.subscription("a") == subscription("a", expires_at=NOW + 5 * HOUR)
    assert store.expiring(NOW + 9 * HOUR, 10) == [("b", NOW + HOUR), ("a", NOW + 5 * HOUR)]
    assert store.expiring(NOW + 9 * HOUR, 1) == [("b", NOW + HOUR)]
    assert store.expiring(NOW + HOUR, 10) == []
    assert kinds(store)[2:] == [(RENEWED, "a")]


def test_removing_leaves_nothing_behind(store: Store) -> None:
    delivery = replace(WEBHOOK, throttle=StoredThrottle(1, 60))
    create(store, "a", "b", delivery=delivery)
    publish(store, event("a", "b"), event("a", "b"))
    with store.writing(NOW) as writing:
        writing.give_up("a", [1], 3, "it failed")
        writing.redeliver("a", [3])
        writing.give_up("a", [1], 3, "it failed")
        writing.remove("a")
    assert store.subscription("a") is None
    assert store.webhook("a") is None
    assert store.webhook("b") is not None
    assert list(store.deliveries()) == ["b"]
    assert kinds(store) == [(PUT, "a"), (PUT, "b"), (GONE, "a")]
    create(store, "a", delivery=delivery)
    assert (store.redeliveries("a", 9), store.dead_notifications("a", 0, 9)) == ([], [])
    (new,) = publish(store, event("a")).notifications
    assert new.suppressed == 0  # its throttle begins anew


def test_what_has_expired_is_swept_oldest_first_and_not_more_than_asked_for(store: Store) -> None:
    for number, id in enumerate("dcba"):
        create(store, id, expires_at=NOW + number * SECOND)
    with store.writing(NOW) as writing:
        assert writing.remove_expired(NOW - 1) == []
    assert store.sequence == 4
    with store.writing(NOW) as writing:
        assert writing.remove_expired(NOW + 2 * SECOND, most=2) == ["d", "c"]
    with store.writing(NOW) as writing:
        assert writing.remove_expired(NOW + 2 * SECOND) == ["b"]
    assert [each.id for each in store.listed("", 9)] == ["a"]
    assert (store.last_expiry(NOW + 2 * SECOND), store.last_expiry(NOW + HOUR)) == (0, NOW + 3 * SECOND)
    assert kinds(store)[4:] == [(GONE, "d"), (GONE, "c"), (GONE, "b")]


def test_lists_are_read_page_by_page_in_the_order_of_code_points(store: Store) -> None:
    ids = ["", "A", "Z", "a", "a b", "a-b", "ab", "z", "é", "ﬁ", "🌿"][1:]
    create(store, *reversed(ids), owner="Ann")
    create(store, "b", owner="Bob", language="xpath")
    pages, after = [], ""
    while page := store.listed(after, 3, owner="Ann"):
        pages.append([each.id for each in page])
        after = pages[-1][-1]
    assert [id for page in pages for id in page] == sorted(ids)
    assert [len(page) for page in pages] == [3, 3, 3, 1]
    assert [each.id for each in store.listed("", 9, language="xpath")] == ["b"]
    assert store.listed("", 9, owner="Ann", language="xpath") == []
    assert (store.owned("Ann"), store.owned("Bob"), store.owned("Eve")) == (len(ids), 1, 0)


def test_keys_are_kept_as_digests(store: Store) -> None:
    ann = ApiKey("k1", "Ann", frozenset({"publish", "subscribe"}), "laptop", NOW)
    root = ApiKey("k2", "Root", frozenset({"admin"}), None, NOW - 1)
    with store.writing(NOW) as writing:
        writing.add_key(ann, b"digest of k1")
        writing.add_key(root, b"digest of k2")
    assert store.keys() == [root, ann]
    assert (store.key(b"digest of k1"), store.key(b"another")) == (ann, None)
    with store.writing(NOW) as writing:
        assert writing.remove_key("k1")
        assert not writing.remove_key("k1")
    assert (store.key(b"digest of k1"), store.keys()) == (None, [root])
