"""Listening: what is asked for after a break, what is dropped, and when it gives up."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from harken.client.client_errors import ServerError, UnreachableError
from harken.client.exchange import Access, Answer, Backoff
from harken.client.listening import Listening, _Recent

ACCESS = Access(tickets={"a": "t"}, backoff=Backoff(first=1.0, longest=4.0, random=lambda: 0.0))
LOST = UnreachableError("the connection was lost")
TIME = "2026-01-02T03:04:05.000006Z"


def plain(id: int, subscription: str = "a", **more: Any) -> dict[str, Any]:
    return {"id": str(id), "subscription": subscription, "event": {}, "event_id": "9", "time": TIME, **more}


def frame(id: int, event: str = "notification", data: Any = None) -> bytes:
    return f"id: {id}\nevent: {event}\ndata: {json.dumps(plain(id) if data is None else data)}\n\n".encode()


def opened(*ids: str, after: str | None = None) -> Listening:
    listening = Listening(ACCESS, ids or ("a",), after, None)
    listening.request()
    assert list(listening.received(b"")) == []
    return listening


def ids(listening: Listening, *pieces: bytes) -> list[str]:
    return [each.id for piece in pieces for each in listening.received(piece)]


def test_the_first_request_starts_now_or_behind_a_cursor() -> None:
    request = Listening(ACCESS, ("a", "b"), None, None).request()
    assert (request.path, request.query) == ("/stream", [("subscription", "a"), ("subscription", "b")])
    assert request.headers == {"Harken-Ticket": "t", "Accept": "text/event-stream"}
    assert ("after", "5") in Listening(ACCESS, ("a",), "5", None).request().query


def test_the_next_request_goes_on_behind_the_last_notification() -> None:
    listening = opened(after="5")
    assert ids(listening, frame(7), b"id: 8\nevent: notif") == ["7"]
    request = listening.request()
    assert request.headers["Last-Event-ID"] == "7"
    assert request.query == [("subscription", "a")]
    assert ids(listening, frame(8)) == ["8"]


def test_without_a_notification_it_begins_again_where_it_began() -> None:
    listening = opened(after="5")
    request = listening.request()
    assert ("after", "5") in request.query
    assert "Last-Event-ID" not in request.headers


def test_a_frame_with_an_id_alone_tells_where_now_is() -> None:
    listening = opened()
    assert ids(listening, b"id: 40\n\n") == []
    assert listening.request().headers["Last-Event-ID"] == "40"


def test_what_comes_twice_is_dropped() -> None:
    listening = opened()
    assert ids(listening, frame(1), frame(2), frame(1)) == ["1", "2"]
    listening.request()
    assert ids(listening, frame(2), frame(3)) == ["3"]


def test_subscriptions_are_told_apart() -> None:
    assert ids(opened("a", "b"), frame(1), frame(1, data=plain(1, "b"))) == ["1", "1"]


def test_memory_of_what_came_is_bounded() -> None:
    recent = _Recent(3)
    assert [recent.add(each) for each in (1, 2, 3, 1, 4)] == [True, True, True, False, True]
    assert recent.add(2) is False
    assert recent.add(1) is True


def test_digests_pings_and_strangers() -> None:
    digest = frame(5, "digest", {"subscription": "a", "notifications": [plain(4), plain(5, suppressed=2)]})
    listening = opened()
    found = list(listening.received(b": ping\n\n" + digest + frame(6, "rates", {})))
    assert [(each.id, each.suppressed) for each in found] == [("4", 0), ("5", 2)]
    assert listening.request().headers["Last-Event-ID"] == "6"


def test_a_cloudevent_has_the_notification_in_its_data() -> None:
    one = {"specversion": "1.0", "id": "x", "data": plain(3)}
    several = {"specversion": "1.0", "id": "y", "data": {"subscription": "a", "notifications": [plain(4), one]}}
    assert ids(opened(), frame(3, data=one), frame(4, "digest", several)) == ["3", "4"]


def test_a_frame_that_cannot_be_read_is_told() -> None:
    for data in ("nonsense", {"id": "1"}, []):
        with pytest.raises(ServerError, match="a frame of the stream cannot be read"):
            list(opened().received(frame(1, data=data)))


def test_pauses_grow_until_something_comes() -> None:
    listening = opened()
    assert [listening.pause() for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    assert ids(listening, b": ping\n") == []
    assert listening.pause() == 1.0
    assert ids(listening, b"retry: 3000\n") == []
    listening.request()
    assert listening.pause() == 3.0


def test_an_open_stream_is_never_given_up(caplog: pytest.LogCaptureFixture) -> None:
    listening = opened()
    with caplog.at_level(logging.WARNING, "harken"):
        for _ in range(50):
            assert list(listening.received(LOST)) == []
            assert listening.pause() <= 4.0
    assert caplog.messages == ["the stream broke off and will be reopened: the connection was lost"]


def test_a_server_that_rejects_for_now_is_asked_again_when_it_says() -> None:
    listening = opened()
    assert list(listening.received(Answer(503, {"retry-after": "9"}, b""))) == []
    assert [listening.pause(), listening.pause()] == [9.0, 2.0]
    assert list(listening.received(Answer(503, {"retry-after": "3600"}, b""))) == []
    assert listening.pause() == ACCESS.longest_wait


def test_a_stream_that_never_opens_is_given_up() -> None:
    listening = Listening(ACCESS, ("a",), None, None)
    for _ in range(ACCESS.retries):
        assert list(listening.received(LOST)) == []
        listening.pause()
    with pytest.raises(UnreachableError):
        list(listening.received(LOST))


@pytest.mark.parametrize("status", [401, 403, 404, 422])
def test_a_rejection_ends_it(status: int) -> None:
    listening = opened()
    with pytest.raises(ServerError) as caught:
        list(listening.received(Answer(status, {}, b"")))
    assert caught.value.status == status


def test_ids_are_needed() -> None:
    with pytest.raises(TypeError, match="takes the id of a subscription"):
        Listening(ACCESS, (), None, None)
