"""Packs of notifications: a tail that grows and is spread over the lanes, and readers who see no difference."""

from __future__ import annotations

from random import Random

import pytest

from harken.store import Store, outbox

from .contents import NOW, create, event, publish

IDS = [f"s{number}" for number in range(12)]


def lanes(store: Store) -> list[int]:
    """The lanes of all packs."""
    with store.database.reading() as transaction:
        return [row[0] for row in transaction.rows("SELECT lane FROM notifications ORDER BY lane, last")]


@pytest.fixture(params=[(64, 16_384), (3, 1_000), (1_000, 10), (1, 1)], ids=lambda each: f"tail of {each}")
def tail(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many packs and notifications the tail may have."""
    packs, notifications = request.param
    monkeypatch.setattr(outbox, "_TAIL_PACKS", packs)
    monkeypatch.setattr(outbox, "_TAIL_NOTIFICATIONS", notifications)
    return packs, notifications


@pytest.mark.parametrize("seed", range(3))
def test_every_reader_finds_what_was_appended(store: Store, tail: tuple[int, int], seed: int) -> None:
    random = Random(seed)
    create(store, *IDS)
    expected: list[tuple[int, str, int, int]] = []
    for turn in range(20):
        matches = [random.sample(IDS, random.randrange(4)) for _ in range(random.choice([1, 2, 8]))]
        added = publish(store, *(event(*ids) for ids in matches), now=NOW + turn)
        expected += [(each.number, each.subscription, each.event, each.time) for each in added.notifications]
    assert [number for number, *_ in expected] == list(range(1, len(expected) + 1))
    for _ in range(40):
        ids = random.sample(IDS, random.choice([1, 1, 3]))
        after, limit = random.randrange(len(expected) + 1), random.choice([1, 3, 1_000])
        own = [each for each in expected if each[1] in ids and each[0] > after][:limit]
        found = store.notifications(dict.fromkeys(ids, 0), after, limit)
        assert [(each.number, each.subscription, each.event_number, each.time) for each in found] == own
    for id in IDS:
        asked = random.sample(range(1, len(expected) + 1), 10)
        own_numbers = sorted(number for number, owner, *_ in expected if owner == id and number in asked)
        assert [each.number for each in store.notifications_of(id, asked)] == own_numbers


def test_the_tail_is_spread_when_it_is_full(store: Store, is_sqlite: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_TAIL_PACKS", 3)
    monkeypatch.setattr(outbox, "_TAIL_NOTIFICATIONS", 100)
    create(store, *IDS)
    found = []
    for _ in range(5):
        publish(store, event("s1", "s2"))
        found.append(lanes(store).count(outbox.TAIL))
    assert found == ([1, 2, 3, 0, 1] if is_sqlite else [0] * 5)
    assert set(lanes(store)) - {outbox.TAIL} == {outbox.lane_of("s1"), outbox.lane_of("s2")}
    publish(store, *[event(*IDS)] * 9)
    assert lanes(store).count(outbox.TAIL) == 0, "more than the tail may have is never in it"


def test_packs_of_the_tail_and_of_lanes_are_let_go_of(store: Store, tail: tuple[int, int]) -> None:
    create(store, *IDS)
    for turn in range(8):
        publish(store, event("s1", "s2"), event("s3"), now=NOW + turn)
    with store.writing(NOW) as writing:
        assert writing.prune_journal(NOW + 5, 1 << 40) == 10
        while writing.prune_notifications():
            pass
    assert [each.number for each in store.notifications({"s1": 0, "s3": 0}, 0, 99)] == [16, 18, 19, 21, 22, 24]
    with store.writing(NOW) as writing:
        writing.prune_journal(NOW + 9, 1 << 40)
        while writing.prune_notifications():
            pass
    assert lanes(store) == []
