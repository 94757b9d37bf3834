"""Streams without HTTP: who may open how many, what one that falls behind does, and where a subscription ends."""

from __future__ import annotations

import asyncio

import pytest

from harken.errors import LimitError
from harken.server.streams import Stream, Streams
from harken.store import Notified


def notified(number: int, id: str = "a") -> Notified:
    return Notified(number, id, 0, 0, None, 1)


def test_how_many_may_be_open() -> None:
    streams = Streams()
    admissions = [streams.admit("alice", 3, 2) for _ in range(2)]
    with pytest.raises(LimitError) as caught:
        streams.admit("alice", 3, 2)
    assert caught.value.limit == "max_streams_per_caller"
    streams.admit("bob", 3, 2)
    with pytest.raises(LimitError) as caught:
        streams.admit("carol", 3, 2)
    assert caught.value.limit == "max_streams"
    admissions[0].close()
    streams.admit("carol", 3, 2)


def test_what_is_open_with_a_key_ends_with_it() -> None:
    streams = Streams()
    both, other, none = (streams.admit("alice", 9, 9, frozenset(keys)) for keys in (["a", "b"], ["c"], []))
    told: list[str] = []
    both.on_revoked, other.on_revoked = lambda: told.append("both"), lambda: told.append("other")
    assert streams.keys == {"a", "b", "c"}
    streams.revoke({"b", "nobody's"})
    assert (told, both.is_revoked, other.is_revoked, none.is_revoked) == (["both"], True, False, False)
    both.close()
    assert streams.keys == {"c"}


def test_one_that_does_not_keep_up_forgets_and_reads() -> None:
    stream = Stream({"a": 0}, 0)
    stream.is_behind = False
    for number in range(1, 300):
        stream.hand(notified(number))
        assert len(stream.held) <= 256
    assert stream.is_behind, "what it forgot is in the store"


def test_whoever_listens_is_handed_it_and_no_other() -> None:
    streams = Streams()
    one, both = Stream({"a": 0}, 0), Stream({"a": 0, "b": 0}, 0)
    for stream in (one, both):
        stream.is_behind = False
        streams.open(stream)
    assert streams.is_listened("a")
    streams.hand([notified(1, "a"), notified(2, "b"), notified(3, "c")])
    assert [each.number for each in one.held] == [1]
    assert [each.number for each in both.held] == [1, 2]
    streams.close(both)
    assert not streams.is_listened("b")
    streams.end("a")
    assert not one.subscriptions
    assert len(streams) == 1


def test_waiting_ends_when_there_is_something() -> None:
    async def waited() -> list[bool]:
        stream = Stream({"a": 0}, 0)
        found = [await stream.wait(0.01)]
        stream.hand(notified(1))
        return [*found, await stream.wait(60), await stream.wait(0.01)]

    assert asyncio.run(waited()) == [False, True, False]
