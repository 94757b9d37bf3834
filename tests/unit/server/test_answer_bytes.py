"""Answers and digests are bounded in bytes, and what the journal has no more is told with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from unit.server.faults.receivers import Receiver
from unit.server.serving import Server, Taken, new_name, running_server, settings, wait_until

pytestmark = pytest.mark.together
TEXT = "x" * 1_000


@pytest.fixture(scope="module")
def narrow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = settings(max_answer_bytes=5_000, max_digest_bytes=3_000)
    folder = tmp_path_factory.mktemp("narrow")
    with running_server(folder, *options, "--allow-webhooks-to", "127.0.0.0/8") as server:
        yield server


@pytest.fixture
def topic() -> str:
    return new_name()


def fill(server: Server, topic: str, count: int = 12, large: int | None = None) -> None:
    """Publish events of about a thousand bytes, and one that is larger than any answer."""
    for n in range(count):
        server.publish({"topic": topic, "n": n, "text": TEXT * 10 if n == large else TEXT})


def walk(server: Server, taken: Taken, **params: Any) -> list[list[int]]:
    """The events of page after page."""
    found: list[list[int]] = []
    cursor = "0"
    while (page := server.page(taken, after=cursor, **params))["notifications"]:
        found.append([each["event"]["n"] for each in page["notifications"]])
        assert int(page["next"]) >= int(page["notifications"][-1]["id"])
        cursor = page["next"]
    return found


def test_a_page_ends_early_with_its_cursor(narrow_server: Server, topic: str) -> None:
    taken = narrow_server.subscribe(f"topic = '{topic}'")
    fill(narrow_server, topic, large=6)
    for wait in (0, 1):
        first = narrow_server.page(taken, limit=1_000, wait=wait)["notifications"]
        assert [each["event"]["n"] for each in first] == [0, 1, 2, 3]
    assert walk(narrow_server, taken, limit=1_000) == [[0, 1, 2, 3], [4, 5], [6], [7, 8, 9, 10], [11]]
    assert walk(narrow_server, taken, limit=3) == [[0, 1, 2], [3, 4, 5], [6], [7, 8, 9], [10, 11]]


def test_a_stream_brings_all_the_same(narrow_server: Server, topic: str) -> None:
    taken = narrow_server.subscribe(f"topic = '{topic}'")
    fill(narrow_server, topic, large=6)
    with narrow_server.stream(taken, after="0") as frames:
        assert [next(frames).data["event"]["n"] for _ in range(12)] == list(range(12))


def test_digests_of_a_stream_are_split(narrow_server: Server, topic: str) -> None:
    """Each with the cursor from which the next goes on."""
    taken = narrow_server.subscribe(f"topic = '{topic}'", delivery={"max_delay": 0.2})
    fill(narrow_server, topic, 8, large=4)
    told: list[list[int]] = []
    last = "0"
    while sum(map(len, told)) < 8:
        with narrow_server.stream(taken, headers={"Last-Event-ID": last}) as frames:
            digest = next(frames)
        told.append([each["event"]["n"] for each in digest.data["notifications"]])
        assert digest.id == digest.data["notifications"][-1]["id"]
        last = digest.id
    assert told == [[0, 1], [2, 3], [4], [5, 6], [7]]


def test_digests_of_a_webhook_are_split(narrow_server: Server, topic: str) -> None:
    """They follow each other at once: the delay is over for all that they have."""
    with Receiver() as receiver:
        delivery = receiver.delivery(f"/{topic}", max_delay=2)
        taken = narrow_server.subscribe(f"topic = '{topic}'", delivery=delivery)
        narrow_server.publish(*({"topic": topic, "n": n, "text": TEXT * 10 if n == 4 else TEXT} for n in range(8)))
        wait_until(lambda: len(receiver.at(f"/{topic}")) == 5)
        digests = [each.content["notifications"] for each in receiver.at(f"/{topic}")]
        assert [[each["event"]["n"] for each in digest] for digest in digests] == [[0, 1], [2, 3], [4], [5, 6], [7]]
        narrow_server.http.delete(taken.path, headers=taken.headers)


def test_a_list_of_subscriptions_ends_early(narrow_server: Server) -> None:
    owner = new_name()
    where = f"text = '{TEXT * 3}'"
    ids = sorted(narrow_server.subscribe(where, owner=owner).id for _ in range(5))
    found: list[str] = []
    pages = 0
    after = ""
    while after is not None:
        page = narrow_server.get("/subscriptions", owner=owner, limit=1_000, after=after).json()
        found += [each["id"] for each in page["subscriptions"]]
        pages, after = pages + 1, page["next"]
    assert (found, pages) == (ids, 5)


def test_an_event_that_is_gone_is_told_with_a_reason(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("short")
    with running_server(folder, *settings(journal_bytes=2_500)) as server:
        # A webhook that waits keeps the notifications.
        hook = {"webhook": {"url": "https://hooks.example.com/"}, "max_delay": 3_600}
        plain, cloud = server.subscribe("n >= 0", delivery=hook), server.subscribe("n >= 0")
        fill(server, "any", 4)
        assert server.get("/stats").json()["journal_bytes"] <= 2_500, "at once"
        first, *_, last = server.notified(plain)
        assert first["event"] is None
        assert "journal_bytes" in first["event_gone"]
        assert (last["event"]["n"], "event_gone" in last) == (3, False)
        (envelope, *_) = server.notified(cloud, format="cloudevents")
        assert (envelope["data"]["event"], envelope["data"]["event_gone"]) == (None, first["event_gone"])
        with server.stream(cloud, after="0") as frames:
            assert next(frames).data["event_gone"] == first["event_gone"]
