"""The change log: every change has the next number, and a follower that has the log has the subscriptions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from harken.store import BehindError, Store, StoredSubscription
from harken.store.stored import GONE, PUT, RENEWED, SCHEMA
from unit.store.contents import HOUR, NOW, SECOND, create, gaps, subscription


def change(store: Store, id: str, where: str, now: int = NOW) -> None:
    with store.writing(now) as writing:
        writing.change(subscription(id, where))


def remove(store: Store, id: str, now: int = NOW) -> None:
    with store.writing(now) as writing:
        writing.remove(id)


def everything(store: Store) -> tuple[int, dict[str, StoredSubscription]]:
    with store.all_subscriptions() as (sequence, subscriptions):
        return sequence, {each.id: each for each in subscriptions}


def test_changes_are_read_from_any_sequence_on(store: Store) -> None:
    create(store, "a", "b")
    change(store, "a", "price > 7")
    remove(store, "b")
    found = store.changes(0)
    assert found is not None
    assert [(each.sequence, each.kind, each.id) for each in found] == [
        (1, PUT, "a"),
        (2, PUT, "b"),
        (3, PUT, "a"),
        (4, GONE, "b"),
    ]
    now = store.subscription("a")
    assert [each.subscription for each in found] == [now, None, now, None]
    for after in range(5):
        assert store.changes(after) == found[after:]
        assert store.changes(after, 2) == found[after : after + 2]
    assert store.sequence == 4


def test_an_id_that_is_used_again_is_gone_in_between(store: Store) -> None:
    create(store, "a")
    remove(store, "a")
    create(store, "a", where="price > 7")
    found = store.changes(0)
    assert found is not None
    again = store.subscription("a")
    assert [(each.kind, each.subscription) for each in found] == [(PUT, again), (GONE, None), (PUT, again)]


def test_a_log_that_does_not_reach_back_says_so(store: Store) -> None:
    for number, id in enumerate("abcd"):
        with store.writing(NOW + number * SECOND) as writing:
            writing.create([subscription(id)])
    with store.writing() as writing:
        assert writing.prune_changes(NOW + 3 * SECOND, up_to=2) == 2
    assert store.changes(0) is store.changes(1) is None
    assert [each.id for each in store.changes(2) or ()] == ["c", "d"]
    with store.writing() as writing:
        assert writing.prune_changes(NOW + 3 * SECOND, up_to=99) == 1  # the last one is not old enough
        assert writing.prune_changes(NOW + HOUR, up_to=4) == 0  # nor would it go if it were
    assert [each.id for each in store.changes(3) or ()] == ["d"]
    assert store.changes(2) is None
    assert store.changes(4) == []
    assert store.changes(5) is None  # it was read from another store
    assert everything(store)[0] == store.sequence == 4
    create(store, "e")
    assert [(each.sequence, each.id) for each in store.changes(4) or ()] == [(5, "e")]
    assert store.origin_of(4) == store.origin_of(5) == store.origin
    assert store.origin_of(3) is store.origin_of(6) is None


def test_everything_is_of_one_moment(store: Store, opened: Callable[[], Store]) -> None:
    create(store, *(f"id{number}" for number in range(5_000)))
    with store.all_subscriptions() as (sequence, subscriptions):
        first = next(subscriptions)
        another = opened()
        remove(another, "id4999" if first.id != "id4999" else "id0")
        create(another, "later")
        rest = [each.id for each in subscriptions]
    assert sequence == 5_000
    assert len({first.id, *rest}) == len(rest) + 1 == 5_000
    assert "later" not in rest
    assert store.sequence == 5_002


def test_a_schema_is_a_change_and_each_version_is_made_once(store: Store) -> None:
    create(store, "1")
    with store.writing(NOW) as writing:
        writing.put_schema(1, "first")
        writing.put_schema(2, "second")
    with store.writing(NOW) as writing:
        with pytest.raises(BehindError):
            writing.put_schema(2, "another")
        assert writing.sequence == 3
    assert store.schema() == (2, "second")
    found = store.changes(1)
    assert found is not None
    assert [(each.kind, each.id, each.subscription) for each in found] == [(SCHEMA, "1", None), (SCHEMA, "2", None)]


def test_a_follower_of_the_log_has_what_the_store_has(store: Store, opened: Callable[[], Store]) -> None:
    chance = random.Random(20)
    follower, sequence, held = opened(), 0, dict[str, StoredSubscription]()
    log: list[int] = []
    for turn in range(120):
        with store.writing(NOW) as writing:
            for _ in range(chance.randrange(4)):
                _change_something(writing, chance, turn)
        if chance.random() < 0.3:
            while changes := follower.changes(sequence, limit=chance.choice([1, 5, 100])):
                for each in changes:
                    held.pop(each.id, None)
                    if each.subscription is not None:
                        held[each.id] = each.subscription
                log += [each.sequence for each in changes]
                sequence = changes[-1].sequence
            assert (sequence, held) == everything(store)
    assert len(log) > 60
    assert gaps(log) == []


def _change_something(writing: object, chance: random.Random, turn: int) -> None:
    from harken.errors import UnknownIdError
    from harken.store import Writing

    assert isinstance(writing, Writing)
    given = replace(subscription(chance.choice("abcdef")), where=f"price = {turn}")
    try:
        match chance.randrange(4):
            case 0:
                writing.create([given])
            case 1:
                writing.change(given)
            case 2:
                writing.remove(given.id)
            case _:
                writing.renew(given.id, NOW + turn)
    except UnknownIdError:
        pass


def test_renewing_tells_the_subscription_as_it_is(store: Store) -> None:
    create(store, "a")
    with store.writing(NOW) as writing:
        writing.renew("a", NOW + 9)
    (found,) = store.changes(1) or ()
    assert (found.kind, found.subscription) == (RENEWED, subscription("a", expires_at=NOW + 9))
