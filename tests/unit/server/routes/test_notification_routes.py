"""Notifications by cursor and as a stream: all of them, once, in their order; digests, throttles, pings, the feed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import httpx
import pytest

from unit.server.serving import SECONDS, Frame, Server, new_name, problem, running_server, settings, wait_until

pytestmark = pytest.mark.together


@pytest.fixture(scope="module")
def short_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with short periods and few streams."""
    options = settings(ping_period=0.3, token_valid_for=4, max_streams=4, max_streams_per_caller=3, max_page=7)
    with running_server(tmp_path_factory.mktemp("short"), *options, *settings(max_stream_subscriptions=5)) as found:
        yield found


def numbers(told: list[dict[str, Any]]) -> list[int]:
    return [each["event"]["n"] for each in told]


# By cursor


def test_pages_have_all_once_in_their_order(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    server.publish(*({"topic": topic, "n": n} for n in range(25)))
    found: list[dict[str, Any]] = []
    cursor = "0"
    while True:
        page = server.page(taken, after=cursor, limit=10)
        if not page["notifications"]:
            break
        assert page == server.page(taken, after=cursor, limit=10), "to ask again gives the same"
        assert page["next"] == page["notifications"][-1]["id"]
        found += page["notifications"]
        cursor = page["next"]
    assert page["next"] == cursor
    assert numbers(found) == list(range(25))
    ids = [int(each["id"]) for each in found]
    assert ids == sorted(set(ids))
    assert all(datetime.fromisoformat(each["time"]).tzinfo for each in found)


def test_several_subscriptions_in_one_question(server: Server, topic: str) -> None:
    even, odd, other = (server.subscribe(f"topic = '{topic}' AND n % 2 = {rest}") for rest in (0, 1, 5))
    server.publish(*({"topic": topic, "n": n} for n in range(6)))
    found = server.notified(even, odd, other)
    assert numbers(found) == [0, 1, 2, 3, 4, 5]
    assert [each["subscription"] for each in found] == [even.id, odd.id] * 3
    assert numbers(server.notified(even, odd, limit=3)) == [0, 1, 2]
    assert server.notified(even, even, limit=1) == found[:1], "an id that comes twice counts once"
    both = {"Harken-Ticket": even.ticket}
    problem(server.http.get("/notifications", params={"subscription": [even.id, odd.id]}, headers=both), 403)


@pytest.mark.parametrize(
    "params",
    [
        {"after": "x"},
        {"after": "-1"},
        {"after": "1" * 19},
        {"after": "٣"},
        {"limit": 0},
        {"limit": 1_001},
        {"wait": -1},
        {"wait": 61},
        {"wait": "nan"},
        {"format": "letters"},
    ],
)
def test_questions_that_are_wrong(server: Server, params: dict[str, Any]) -> None:
    taken = server.subscribe("a = 1")
    problem(server.get("/notifications", taken, subscription=taken.id, **params), 422)
    if "after" in params:
        problem(server.get("/stream", taken, subscription=taken.id, **params), 422)


def test_a_question_without_a_subscription(server: Server) -> None:
    for path in ("/notifications", "/stream"):
        problem(server.get(path), 422)


def test_a_long_poll_ends_with_the_first_notification(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    found: list[Any] = []
    poll = threading.Thread(target=lambda: found.append(server.page(taken, wait=55)))
    poll.start()
    time.sleep(0.3)
    assert found == []
    server.publish({"topic": topic, "n": 1})
    poll.join()
    assert numbers(found[0]["notifications"]) == [1], "a poll that nobody wakes ends with nothing"
    again = server.page(taken, wait=15)
    assert again == found[0], "what is there is told"
    began = time.monotonic()
    assert server.page(taken, after=again["next"], wait=0.4) == {"notifications": [], "next": again["next"]}
    assert time.monotonic() - began > 0.3


def test_the_format_of_cloudevents(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'", delivery={"format": "cloudevents"})
    server.publish({"topic": topic, "n": 1})
    (envelope,) = server.notified(taken)
    (plain,) = server.notified(taken, format="plain")
    assert envelope == {
        "specversion": "1.0",
        "type": "harken.notification",
        "source": envelope["source"],
        "id": plain["id"],
        "subject": taken.id,
        "time": plain["time"],
        "datacontenttype": "application/json",
        "data": plain,
    }
    assert re.fullmatch(r"/stores/[0-9a-f]{32}/subscriptions", envelope["source"])
    with server.stream(taken, after="0") as frames:
        assert next(frames).data == envelope
    with server.stream(taken, after="0", format="plain") as frames:
        assert next(frames).data == plain


def test_each_subscription_of_a_stream_has_its_own_format(server: Server, topic: str) -> None:
    plain = server.subscribe(f"topic = '{topic}'")
    cloud = server.subscribe(f"topic = '{topic}'", delivery={"format": "cloudevents"})
    server.publish({"topic": topic})
    for order in ((plain, cloud), (cloud, plain)):
        with server.stream(*order, after="0") as frames:
            assert sorted("specversion" in each.data for each in islice(frames, 2)) == [False, True]


def test_a_throttle_counts_what_it_suppresses(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'", delivery={"throttle": {"count": 2, "seconds": 4}})
    server.publish(*({"topic": topic, "n": n} for n in range(5)))
    server.publish({"topic": topic, "n": 5})
    first = server.notified(taken)
    assert numbers(first) == [0, 1]
    assert all("suppressed" not in each for each in first)
    time.sleep(4.1)
    server.publish({"topic": topic, "n": 6}, {"topic": topic, "n": 7})
    second = server.notified(taken, after=first[-1]["id"])
    assert [(each["event"]["n"], each.get("suppressed")) for each in second] == [(6, 4), (7, None)]


# Streams


def test_a_stream_tells_what_comes(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    server.publish({"topic": topic, "n": 0})
    with server.stream(taken) as frames:
        server.publish(*({"topic": topic, "n": n} for n in (1, 2)))
        server.publish({"topic": topic, "n": 3})
        found = list(islice(frames, 3))
    assert [each.data["event"]["n"] for each in found] == [1, 2, 3], "without a cursor it begins now"
    assert [each.kind for each in found] == ["notification"] * 3
    assert [each.data for each in found] == server.notified(taken)[1:]
    assert [each.id for each in found] == [each.data["id"] for each in found]


def test_a_stream_that_is_opened_again_misses_none_and_repeats_none(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    total = 3_000
    publishing = threading.Thread(target=_publish, args=(server.url, topic, total))
    publishing.start()
    seen: list[int] = []
    last = "0"
    for turn in range(1_000):
        with server.stream(taken, headers={"Last-Event-ID": last}) as frames:
            for frame in islice(frames, 1 + 97 * turn % 211):
                assert frame.id is not None
                seen.append(frame.data["event"]["n"])
                last = frame.id
                if len(seen) >= total:
                    break
        if len(seen) >= total:
            break
    publishing.join()
    assert seen == list(range(total))


def _publish(url: str, topic: str, count: int) -> None:
    with httpx.Client(base_url=url, timeout=SECONDS, trust_env=False) as http:
        for start in range(0, count, 10):
            events = [{"topic": topic, "n": n} for n in range(start, start + 10)]
            assert http.post("/events", json=events).status_code == 202


def test_the_header_wins_over_the_query(server: Server, topic: str) -> None:
    """A browser that reconnects sends both."""
    taken = server.subscribe(f"topic = '{topic}'")
    server.publish(*({"topic": topic, "n": n} for n in range(3)))
    first = server.notified(taken)[0]["id"]
    with server.stream(taken, after="0", headers={"Last-Event-ID": first}) as frames:
        assert next(frames).data["event"]["n"] == 1


def test_a_stream_that_nobody_has_told_anything_yet_has_a_cursor(server: Server, topic: str) -> None:
    """Whoever loses the connection before the first notification does not miss it."""
    taken = server.subscribe(f"topic = '{topic}'")
    params = {"subscription": taken.id}
    with server.http.stream("GET", "/stream", params=params, headers=taken.headers) as answer:
        welcome = next(answer.iter_text())
    cursor = dict(line.partition(": ")[::2] for line in welcome.splitlines())["id"]
    server.publish({"topic": topic, "n": 1})
    with server.stream(taken, headers={"Last-Event-ID": cursor}) as frames:
        assert next(frames).data["event"]["n"] == 1


def test_many_subscriptions_on_one_stream(server: Server, topic: str) -> None:
    some = [server.subscribe(f"topic = '{topic}' AND n >= {n}") for n in range(40)]
    with server.stream(*some) as frames:
        server.publish({"topic": topic, "n": 39})
        assert sorted(each.data["subscription"] for each in islice(frames, 40)) == sorted(each.id for each in some)
        server.publish({"topic": topic, "n": 0})
        assert next(frames).data["subscription"] == some[0].id


def test_a_stream_ends_with_its_last_subscription(server: Server, topic: str) -> None:
    one, other = (server.subscribe(f"topic = '{topic}'") for _ in range(2))
    with server.stream(one, other) as frames:
        server.http.delete(one.path, headers=one.headers)
        server.publish({"topic": topic})
        assert next(frames).data["subscription"] == other.id
        server.http.delete(other.path, headers=other.headers)
        assert list(frames) == []


def test_a_stream_ends_when_its_subscription_expires(server: Server) -> None:
    taken = server.subscribe("a = 1", valid_for=1.5)
    with server.stream(taken) as frames:
        pings = list(islice(frames, 5))  # one a quarter of a minute, if it goes on
        assert len(pings) < 5
        assert all(each.text == "ping" for each in pings)


def test_a_digest_has_all_of_a_while(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'", delivery={"max_delay": 1})
    with server.stream(taken) as frames:
        began = time.monotonic()
        for n in range(3):
            server.publish({"topic": topic, "n": n})
        digest = next(frames)
        assert time.monotonic() - began > 0.8
        server.publish({"topic": topic, "n": 3})
        following = next(frames)
    assert (digest.kind, digest.data["subscription"]) == ("digest", taken.id)
    assert numbers(digest.data["notifications"]) == [0, 1, 2]
    assert digest.id == digest.data["notifications"][-1]["id"]
    assert numbers(following.data["notifications"]) == [3]
    with server.stream(taken, after="0") as frames:
        assert numbers(next(frames).data["notifications"]) == [0, 1, 2, 3], "what has waited long enough comes at once"
    with server.stream(taken, after="0", format="cloudevents") as frames:
        envelope = next(frames).data
    assert (envelope["type"], envelope["subject"]) == ("harken.digest", taken.id)
    assert numbers(envelope["data"]["notifications"]) == [0, 1, 2, 3]


def test_what_waits_for_its_digest_is_not_lost_with_the_connection(server: Server, topic: str) -> None:
    """A plain notification that is later has a cursor from which the digest is told again."""
    late = server.subscribe(f"topic = '{topic}' AND n = 1", delivery={"max_delay": 600})
    soon = server.subscribe(f"topic = '{topic}' AND n = 2")
    with server.stream(late, soon) as frames:
        server.publish({"topic": topic, "n": 1}, {"topic": topic, "n": 2})
        told = next(frames)
    assert told.data["subscription"] == soon.id
    assert int(told.id or 0) < int(server.notified(late)[0]["id"])


def test_pings_go_on_while_a_digest_waits(short_server: Server, topic: str) -> None:
    taken = short_server.subscribe(f"topic = '{topic}'", delivery={"max_delay": 600})
    with short_server.stream(taken) as frames:
        for _ in range(2):
            assert next(frames) == Frame("comment", "ping")
        short_server.publish({"topic": topic})
        for _ in range(5):
            assert next(frames) == Frame("comment", "ping")


def test_a_client_that_does_not_read_holds_up_nobody(server: Server, topic: str) -> None:
    slow = server.subscribe(f"topic = '{topic}'")
    quick = server.subscribe(f"topic = '{topic}'")
    text = "x" * 20_000
    with server.stream(slow) as unread, server.stream(quick) as frames:
        for n in range(400):
            server.publish({"topic": topic, "n": n, "text": text})
            assert next(frames).data["event"]["n"] == n
        assert [each.data["event"]["n"] for each in islice(unread, 400)] == list(range(400)), "later, it has them all"


# Limits


def test_how_many_streams(short_server: Server) -> None:
    taken = short_server.subscribe("a = 1")
    wait_until(lambda: short_server.get("/stats").json()["streams"] == 0)
    with short_server.stream(taken), short_server.stream(taken), short_server.stream(path="/live"):
        found = problem(short_server.get("/stream", taken, subscription=taken.id), 429)
        assert found["limit"] == "max_streams_per_caller"
        problem(short_server.get("/live"), 429)
    wait_until(lambda: short_server.get("/stats").json()["streams"] == 0)
    with short_server.stream(taken):
        pass


def test_whoever_waits_for_notifications_counts_as_a_stream(short_server: Server) -> None:
    taken = short_server.subscribe("a = 1")
    wait_until(lambda: short_server.get("/stats").json()["streams"] == 0)
    asked = {"subscription": taken.id, "wait": 0.1}
    with short_server.stream(taken), short_server.stream(taken), short_server.stream(path="/live"):
        assert problem(short_server.get("/notifications", taken, **asked), 429)["limit"] == "max_streams_per_caller"
        assert short_server.page(taken)["notifications"] == [], "who does not wait is answered"
    wait_until(lambda: short_server.get("/stats").json()["streams"] == 0)
    for _ in range(5):
        assert short_server.page(taken, wait=0.01)["notifications"] == []


def test_how_many_subscriptions(short_server: Server) -> None:
    some = [short_server.subscribe("a = 1") for _ in range(6)]
    tickets = {"Harken-Ticket": ",".join(each.ticket for each in some)}
    for path in ("/stream", "/notifications"):
        params = {"subscription": [each.id for each in some]}
        found = problem(short_server.http.get(path, params=params, headers=tickets), 422)
        assert found["limit"] == "max_stream_subscriptions"


def test_how_many_rows(short_server: Server, topic: str) -> None:
    taken = short_server.subscribe(f"topic = '{topic}'")
    for _ in range(8):
        short_server.subscribe("a = 1")
    short_server.publish(*({"topic": topic, "n": n} for n in range(9)))
    page = short_server.page(taken, limit=100)
    assert numbers(page["notifications"]) == list(range(7))
    assert numbers(short_server.notified(taken, after=page["next"])) == [7, 8]
    listed = short_server.get("/subscriptions", limit=100).json()
    assert len(listed["subscriptions"]) == 7
    assert listed["next"] == listed["subscriptions"][-1]["id"]


def test_a_token_runs_out(short_server: Server) -> None:
    taken = short_server.subscribe("a = 1")
    token = short_server.post(f"{taken.path}/token", None, taken).json()["token"]
    with short_server.stream(path="/stream", subscription=taken.id, token=token) as frames:
        time.sleep(4.1)
        problem(short_server.get("/stream", subscription=taken.id, token=token), 401)
        assert next(frames).text == "ping", "what was opened stays open"


# The feed


def test_the_feed_has_rates_and_a_sample(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    with server.stream(path="/live") as frames:
        first = next(frames)
        assert first.kind == "rates"
        keys = {"events_per_second", "matches_per_second", "subscriptions", "streams", "time"}
        assert first.data.keys() == keys
        server.publish({"topic": topic, "n": 1})
        sample = next(each for each in frames if each.kind == "event" and each.data["event"].get("topic") == topic)
        assert sample.data.keys() == {"event_id", "time", "event", "matches", "matched"}
        assert (sample.data["matches"], sample.data["matched"]) == ([taken.id], 1)
        rates = next(each for each in frames if each.kind == "rates")
        assert rates.data["events_per_second"] > 0
        following = next(each for each in frames if each.kind == "rates")
        before, after = (datetime.fromisoformat(each.data["time"]) for each in (rates, following))
        assert after - before > timedelta(seconds=0.5), "about one a second"
        server.publish(*({"topic": topic, "n": n} for n in range(500)))
        shown = 0
        for each in islice(frames, 100):
            shown += each.kind == "event"
            if each.kind == "rates" and each.data["events_per_second"] > 50:
                break
        assert each.kind == "rates", "the rate of the burst is told"
        assert 0 < shown <= 20, "and a sample of it"


def test_a_token_of_the_feed(server: Server) -> None:
    answer = server.post("/token")
    assert answer.status_code == 200
    with server.stream(path="/live", token=answer.json()["token"]):
        pass
    id = new_name()
    server.subscribe("a = 1", id=id)
    problem(server.get("/stream", subscription=id, token=answer.json()["token"]), 401)
