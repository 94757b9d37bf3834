"""Both clients over real connections: what they send, what they make of answers, and what they do when none comes."""

from __future__ import annotations

import inspect
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import httpx
import pytest

import harken
from harken.client import (
    AsyncClient,
    Backoff,
    Changed,
    Client,
    Notification,
    Published,
    ServerError,
    Ticketed,
    UnreachableError,
)
from harken.errors import MissingExtraError, Place
from services.processes import free_port
from services.stand import Reply, Stand, problem

from .conftest import EXPIRES, MakeClient

THEN = datetime(2030, 1, 2, 3, 4, 5, 6, UTC)
TICKETED = Reply(201, {"id": "alice", "ticket": "t1", "expires_at": EXPIRES, "warnings": ["w"], "webhook_secret": "s"})
LOST = Reply(is_lost=True)


def notification(id: int) -> dict[str, Any]:
    return {"id": str(id), "subscription": "a", "event": {"n": id}, "event_id": f"e{id}", "time": EXPIRES}


def frame(id: int) -> bytes:
    return f"id: {id}\nevent: notification\ndata: {json.dumps(notification(id))}\n\n".encode()


def stream(*pieces: bytes) -> Reply:
    return Reply(headers={"Content-Type": "text/event-stream"}, pieces=pieces)


# Subscriptions


def test_subscribe(client: Any, stand: Stand) -> None:
    stand.will(TICKETED)
    delivery = {"webhook": {"url": "http://x"}, "throttle": {"count": 1, "seconds": 60}}
    made = client.subscribe(
        "price < 5",
        id="alice",
        owner="Al",
        labels={"k": "v"},
        valid_for=timedelta(hours=1),
        delivery=delivery,
    )
    assert made == Ticketed("alice", "t1", THEN, ("w",), "s")
    assert client.tickets == {"alice": "t1"}
    (seen,) = stand.seen
    assert (seen.method, seen.path, seen.headers["content-type"]) == ("POST", "/subscriptions", "application/json")
    assert seen.json == {
        "where": "price < 5",
        "language": "sql",
        "id": "alice",
        "owner": "Al",
        "labels": {"k": "v"},
        "valid_for": 3600.0,
        "delivery": delivery,
    }


def test_a_bad_text_is_told_with_its_place(client: Any, stand: Stand) -> None:
    stand.will(problem(422, "expected a value", line=1, column=9, excerpt="price < \n        ^", hint="write one"))
    with pytest.raises(ServerError) as caught:
        client.subscribe("price < ")
    error = caught.value
    assert isinstance(error, harken.HarkenError)
    assert (error.status, error.place, error.request_id) == (422, Place(1, 9), "r-1")
    assert str(error).startswith("expected a value (line 1, column 9)\n  price <")


def test_a_subscription_without_an_id_is_made_once_or_not_at_all(client: Any, stand: Stand) -> None:
    stand.will(LOST, TICKETED)
    with pytest.raises(UnreachableError, match=r"the connection to .* was lost") as caught:
        client.subscribe("price < 5")
    assert not caught.value.is_unsent
    assert len(stand.seen) == 1


def test_what_never_left_the_client_is_tried_again(make_client: MakeClient) -> None:
    port = free_port()
    opened: list[Stand] = []
    with ExitStack() as held:

        def open_late() -> None:
            opened.append(Stand(port))
            opened[0].will(TICKETED)
            held.enter_context(opened[0])

        client = make_client(f"http://127.0.0.1:{port}", backoff=Backoff(first=0.1, longest=0.1), retries=100)
        timer = threading.Timer(0.3, open_late)
        timer.start()
        assert client.subscribe("price < 5").ticket == "t1"  # without an id
        timer.join()
        assert len(opened[0].seen) == 1


def test_with_an_id_it_is_tried_again(client: Any, stand: Stand) -> None:
    stand.will(LOST, TICKETED)
    assert client.subscribe("price < 5", id="alice").ticket == "t1"
    stand.will(LOST, problem(409, "the id is taken"))
    with pytest.raises(ServerError, match="the id is taken") as caught:
        client.subscribe("price < 5", id="alice")
    assert caught.value.hint == "an earlier attempt of this call got no answer: it may have made the subscription"


def test_tickets_travel_with_the_calls_about_their_subscriptions(client: Any, stand: Stand) -> None:
    client.tickets["a/b"] = "t"
    plain = {"id": "a/b", "language": "sql", "expires_at": EXPIRES, "where": "x = 1", "labels": {"k": "v"}}
    changed = Reply(json={"id": "a/b", "expires_at": EXPIRES})
    stand.will(Reply(json=plain), changed, changed, Reply(204))
    state = client.subscription("a/b")
    assert (state.where, state.expires_at, state.labels, state.owner) == ("x = 1", THEN, {"k": "v"}, None)
    assert client.change("a/b", "x = 2") == Changed("a/b", THEN)
    assert client.renew("a/b", 60, ticket="other") == Changed("a/b", THEN)
    assert client.unsubscribe("a/b") is None
    assert client.tickets == {}
    assert [(each.method, each.path, each.headers["harken-ticket"]) for each in stand.seen] == [
        ("GET", "/subscriptions/a/b", "t"),
        ("PUT", "/subscriptions/a/b", "t"),
        ("POST", "/subscriptions/a/b/renew", "other"),
        ("DELETE", "/subscriptions/a/b", "t"),
    ]
    assert [each.json for each in stand.seen[1:3]] == [{"where": "x = 2", "language": "sql"}, {"valid_for": 60}]


def test_an_unsubscription_whose_answer_was_lost_is_one(client: Any, stand: Stand) -> None:
    stand.will(LOST, problem(404, "there is none"))
    client.unsubscribe("a", ticket="t")
    stand.will(problem(404, "there is none"))
    with pytest.raises(ServerError, match="there is none"):
        client.unsubscribe("a", ticket="t")


def test_an_api_key_travels_with_every_call(make_client: MakeClient, stand: Stand) -> None:
    stand.will(Reply(json={"ok": True, "warnings": ["odd"]}))
    assert make_client(stand.url, api_key="k").check("x = 1") == ("odd",)
    assert stand.seen[0].headers["authorization"] == "Bearer k"
    assert "harken-ticket" not in stand.seen[0].headers


def test_lists_are_read_page_by_page(client: Any, stand: Stand) -> None:
    rows = [{"id": id, "language": "sql", "expires_at": EXPIRES} for id in "abc"]
    stand.will(
        Reply(json={"subscriptions": rows[:2], "next": "7"}), Reply(json={"subscriptions": rows[2:], "next": None})
    )
    found = client.subscriptions(owner="me", labels={"k": "v"}, page_size=2)
    assert next(iter(found)).id == "a"
    assert len(stand.seen) == 1
    assert [each.id for each in found] == ["b", "c"]
    query = [("owner", "me"), ("limit", "2"), ("label", "k:v")]
    assert [each.query for each in stand.seen] == [query, [*query, ("after", "7")]]


def test_an_empty_page_is_not_the_last(client: Any, stand: Stand) -> None:
    row = {"id": "a", "language": "sql", "expires_at": EXPIRES}
    client.tickets.update({str(each): f"t{each}" for each in range(300)})
    stand.will(
        Reply(json={"subscriptions": [], "next": "7"}),
        Reply(json={"subscriptions": [row], "next": "8"}),
        Reply(json={"subscriptions": [], "next": "8"}),
    )
    assert [each.id for each in client.subscriptions(labels={"k": "v"})] == ["a"]
    assert [each.headers["harken-ticket"].count(",") for each in stand.seen] == [199, 199, 199]


def test_many_subscriptions_are_sent_and_reported_in_batches(client: Any, stand: Stand) -> None:
    def given() -> Iterator[dict[str, Any]]:
        yield {"id": "s0", "where": "x = 0", "valid_for": timedelta(seconds=5)}
        yield {"id": "s1", "where": object()}
        yield from ({"id": f"s{each}", "where": f"x = {each}"} for each in range(2, 600))

    def answer(numbers: range, *more: dict[str, Any]) -> Reply:
        good = [
            {"id": f"s{number}", "ticket": f"t{number}", "expires_at": EXPIRES} for number in numbers if number != 1
        ]
        return Reply(
            body=b"".join(
                json.dumps({"line": line, **each}).encode() + b"\n" for line, each in enumerate([*good, *more], 1)
            )
        )

    bad = {"id": "s599", "error": {"status": 409, "detail": "the id is taken", "type": "urn:harken:x"}}
    stand.will(answer(range(501)), answer(range(501, 599), bad))
    reports = client.subscribe_many(given())
    one = next(iter(reports))
    assert (one.line, one.error.message) == (2, "this cannot be written as JSON: it has a object")
    found = {each.line: each for each in reports}
    assert sorted(found) == [1, *range(3, 601)]
    assert all(found[line].id == f"s{line - 1}" for line in found)
    assert found[600].error.status == 409
    assert str(found[600].error) == "the id is taken"
    assert client.tickets == {f"s{each}": f"t{each}" for each in range(599) if each != 1}
    assert [len(each.lines) for each in stand.seen] == [500, 99]
    assert stand.seen[0].lines[0] == {"id": "s0", "where": "x = 0", "valid_for": 5.0}
    assert {each.headers["content-type"] for each in stand.seen} == {"application/x-ndjson"}


def test_a_subscription_without_a_report_is_told(client: Any, stand: Stand) -> None:
    stand.will(Reply(body=json.dumps({"line": 2, "id": "b", "ticket": "t", "expires_at": EXPIRES}).encode()))
    found = sorted(client.subscribe_many([{"where": "x = 1"}, {"where": "x = 2"}]), key=lambda each: each.line)
    assert [(each.line, each.ticket) for each in found] == [(1, None), (2, "t")]
    assert "did not say what became of this" in str(found[0].error)


# Events


def test_publish_one(client: Any, stand: Stand) -> None:
    stand.will(Reply(202, {"accepted": 1, "rejected": []}))
    assert client.publish({"price": 3}) == Published(1)
    (seen,) = stand.seen
    assert (seen.path, seen.json, seen.headers["content-type"]) == ("/events", {"price": 3}, "application/json")
    assert len(seen.headers["idempotency-key"]) == 32


def test_publish_is_tried_again_with_the_same_key(client: Any, stand: Stand) -> None:
    busy = Reply(429, headers={"Retry-After": "0"})
    stand.will(LOST, Reply(503), busy, Reply(202, {"accepted": 0, "rejected": [], "duplicates": 1}))
    assert client.publish({"price": 3}) == Published(0, (), 1)
    assert len({each.headers["idempotency-key"] for each in stand.seen}) == 1
    assert len(stand.seen) == 4


def test_retries_are_bounded(make_client: MakeClient, stand: Stand) -> None:
    stand.will(*[LOST] * 9)
    with pytest.raises(UnreachableError):
        make_client(stand.url, retries=1).publish({"price": 3})
    assert len(stand.seen) == 2


def test_publish_many_in_batches(client: Any, stand: Stand) -> None:
    rejected = [{"position": 3, "error": "DecodeError", "message": "no", "line": 1, "column": 2, "hint": "h"}]
    stand.will(
        Reply(202, {"accepted": 1_000, "rejected": []}),
        Reply(202, {"accepted": 4, "rejected": rejected}),
    )
    events: list[Any] = [{"n": n} for n in range(1_005)]
    events.insert(2, {"n": object()})
    done = client.publish((each for each in events), idempotency_key="mine")
    assert done.accepted == 1_004
    assert [(each.position, each.error) for each in done.rejected] == [(2, "InvalidValueError"), (1_004, "DecodeError")]
    assert (done.rejected[1].place, done.rejected[1].hint) == (Place(1, 2), "h")
    assert [each.headers["idempotency-key"] for each in stand.seen] == ["mine", "mine-1001"]
    assert [each.lines[0]["n"] for each in stand.seen] == [0, 1_000]


def test_if_nothing_was_accepted_it_raises(client: Any, stand: Stand) -> None:
    rejected = [{"position": 0, "error": "DecodeError", "message": "not XML", "line": 3, "column": 1}]
    rejected = problem(422, "no event was accepted", rejected=rejected)
    stand.will(rejected)
    with pytest.raises(ServerError, match="not XML") as caught:
        client.publish(b"<x>")
    assert (caught.value.place, caught.value.status) == (Place(3, 1), 422)
    assert [each.message for each in caught.value.rejected] == ["not XML"]
    assert stand.seen[0].headers["content-type"] == "application/xml"
    stand.will(rejected, Reply(202, {"accepted": 1, "rejected": []}))
    done = client.publish([b"<x>", b"<y/>"])
    assert (done.accepted, [each.position for each in done.rejected]) == (1, [0])
    stand.will(rejected, rejected)
    with pytest.raises(ServerError, match="all 2 events were rejected: not XML") as caught:
        client.publish([b"<x>", b"<y>"])
    assert [each.position for each in caught.value.rejected] == [0, 1]


def test_a_text_of_several_events_is_sent_as_it_is(client: Any, stand: Stand) -> None:
    rejected = [{"position": 1, "error": "DecodeError", "message": "no"}]
    stand.will(
        Reply(202, {"accepted": 1, "rejected": rejected}), Reply(json={"matches": [["a"], []], "rejected": rejected})
    )
    text = b'{"n": 1}\n{bad\n'
    assert [each.position for each in client.publish(text, content_type="application/x-ndjson").rejected] == [1]
    assert client.match(text, content_type="application/x-ndjson") == [["a"], []]
    assert [each.body for each in stand.seen] == [text, text]


def test_no_events_are_no_request(client: Any, stand: Stand) -> None:
    assert client.publish([]) == Published(0)
    assert client.match([]) == []
    assert stand.seen == []


def test_match_is_a_dry_run(client: Any, stand: Stand) -> None:
    stand.will(Reply(json={"matches": [["a"], [], ["b"]], "rejected": [{"position": 1, "error": "E", "message": "m"}]}))
    found = client.match([{"n": 1}, {"n": 2}, {"n": 3}])
    assert found == [["a"], [], ["b"]]
    assert [each.position for each in found.rejected] == [1]
    assert stand.seen[0].query == [("dry_run", "true")]
    assert "idempotency-key" not in stand.seen[0].headers


def test_explain_backtest_and_check(client: Any, stand: Stand) -> None:
    tree = {"text": "x = 1", "truth": True}
    example = {"event_id": "7", "time": EXPIRES, "event": {"x": 1}}
    stand.will(
        Reply(json={"matched": True, "tree": tree, "text": "✓ x = 1"}),
        Reply(json={"matched": False, "tree": tree, "text": "✗ /x"}),
        Reply(json={"looked_at": 9, "matched": 1, "examples": [example], "from": EXPIRES, "to": None}),
    )
    told = client.explain({"x": 1}, where="x = 1")
    assert (told.matched, told.tree, str(told)) == (True, tree, "✓ x = 1")
    client.tickets["s"] = "t"
    assert not client.explain(b"<x/>", subscription="s").matched
    found = client.backtest("x = 1", events=9)
    assert (found.looked_at, found.matched, found.earliest, found.latest) == (9, 1, THEN, None)
    assert (found.examples[0].event_id, found.examples[0].time) == ("7", THEN)
    assert [each.json for each in stand.seen] == [
        {"where": "x = 1", "event": {"x": 1}},
        {"subscription": "s", "event": "<x/>"},
        {"where": "x = 1", "language": "sql", "limit": 20, "events": 9},
    ]
    assert stand.seen[1].headers["harken-ticket"] == "t"
    with pytest.raises(TypeError, match="one of where= and subscription="):
        client.explain({"x": 1})


# Notifications


def test_a_page_of_notifications(client: Any, stand: Stand) -> None:
    client.tickets.update(a="1", b="2")
    stand.will(Reply(json={"notifications": [notification(4)], "next": "4"}))
    page = client.notifications("a", "b", after=3, limit=10, wait=2)
    assert page.notifications == (Notification("4", "a", {"n": 4}, "e4", THEN),)
    assert page.next == "4"
    assert page.notifications[0].to_dict() == notification(4)
    query = [("subscription", "a"), ("subscription", "b"), ("after", "3"), ("limit", "10"), ("wait", "2")]
    assert (stand.seen[0].query, stand.seen[0].headers["harken-ticket"]) == (query, "1, 2")


def test_a_long_poll_may_take_longer_than_the_timeout(make_client: MakeClient, stand: Stand) -> None:
    def slow() -> Iterator[bytes]:
        threading.Event().wait(0.3)
        yield b'{"notifications": [], "next": "0"}'

    stand.will(Reply(pieces=slow()), Reply(pieces=slow()))
    client = make_client(stand.url, timeout=0.1, retries=0)
    assert client.notifications("a", wait=60).notifications == ()
    with pytest.raises(UnreachableError, match="did not answer in time"):
        client.notifications("a")


def test_listen_goes_on_where_the_stream_broke_off(client: Any, stand: Stand) -> None:
    client.tickets["a"] = "t"
    stand.will(
        stream(b": ping\n\n", frame(1), frame(2)[:20]),
        LOST,
        Reply(503),
        stream(frame(2), frame(3)),
        stream(frame(3), frame(4)),
    )
    listening = client.listen("a", after=0)
    assert [each.id for each in islice(listening, 4)] == ["1", "2", "3", "4"]
    listening.close()
    asked = [each.headers.get("last-event-id") for each in stand.seen]
    assert asked == [None, "1", "1", "1", "3"]
    assert stand.seen[0].query == [("subscription", "a"), ("after", "0")]
    assert all(each.headers["harken-ticket"] == "t" for each in stand.seen)


def test_listen_ends_where_it_may_not(client: Any, stand: Stand) -> None:
    stand.will(stream(frame(1)), problem(404, "the subscription has expired"))
    listening = client.listen("a")
    assert next(listening).event == {"n": 1}
    with pytest.raises(ServerError, match="the subscription has expired"):
        next(listening)


def test_leaving_a_stream_closes_its_connection(client: Any, stand: Stand) -> None:
    was_left = threading.Event()

    def endless() -> Iterator[bytes]:
        yield frame(1)
        try:
            while True:
                threading.Event().wait(0.01)
                yield b": ping\n\n"
        finally:
            was_left.set()

    stand.will(Reply(pieces=endless()))
    listening = client.listen("a")
    assert next(listening).id == "1"
    listening.close()
    assert was_left.wait(60)


def test_dead_letters_and_redelivery(client: Any, stand: Stand) -> None:
    letter = {"id": "5", "event": {}, "time": EXPIRES, "failed_at": EXPIRES, "attempts": 8, "reason": "500"}
    stand.will(Reply(json={"dead_letters": [letter], "next": None}), Reply(202, {"redelivered": 1}))
    (found,) = client.dead_letters("a", ticket="t")
    assert (found.id, found.failed_at, found.attempts, found.reason) == ("5", THEN, 8, "500")
    assert found.event_gone is None
    assert client.redeliver("a", notifications=["5"], ticket="t") == 1
    assert stand.seen[1].json == {"notifications": ["5"]}


def test_events_that_the_journal_has_no_more(client: Any, stand: Stand) -> None:
    gone = {"event": None, "event_gone": "too old", "time": EXPIRES}
    notification = {"id": "5", "subscription": "a", "event_id": "3", **gone}
    letter = {"id": "5", "failed_at": EXPIRES, "attempts": 8, "reason": "500", **gone}
    stand.will(Reply(json={"notifications": [notification], "next": "5"}))
    stand.will(Reply(json={"dead_letters": [letter], "next": None}))
    (notified,) = client.notifications("a", ticket="t").notifications
    assert (notified.event, notified.event_gone) == (None, "too old")
    assert notified.to_dict()["event_gone"] == "too old"
    (dead,) = client.dead_letters("a", ticket="t")
    assert (dead.event, dead.event_gone) == (None, "too old")


# The server


def test_schema_and_health(client: Any, stand: Stand) -> None:
    extended = Reply(201, {"version": 2})
    stand.will(Reply(json={"version": 1, "toml": ""}), extended, extended, extended, extended)
    assert client.schema()["version"] == 1
    assert client.add_domain("size", {"values": ["s", "m"]}) == 2
    assert client.add_attribute("size", "size") == 2
    assert client.add_event_type("order", {"size": "mandatory unique"}) == 2
    assert client.add_optional_attribute("order", "colour", multiple=True) == 2
    assert [(each.path, each.json) for each in stand.seen[1:]] == [
        ("/schema/domains", {"name": "size", "values": ["s", "m"]}),
        ("/schema/attributes", {"name": "size", "domain": "size"}),
        ("/schema/event-types", {"name": "order", "attributes": {"size": "mandatory unique"}}),
        ("/schema/optional-attributes", {"event_type": "order", "attribute": "colour", "multiple": True}),
    ]
    stand.will(Reply(json={"ok": True}), Reply(200), problem(503, "starting"), problem(500, "broken"))
    assert client.health() == {"ok": True}
    assert client.is_ready() is True
    assert client.is_ready() is False
    with pytest.raises(ServerError, match="broken"):
        client.is_ready()


def test_nobody_there(make_client: MakeClient) -> None:
    with pytest.raises(UnreachableError, match=r"the server at http://127.0.0.1:9 cannot be reached") as caught:
        make_client("http://127.0.0.1:9", retries=0).health()
    assert caught.value.hint == "is `harken serve` running there?"
    assert caught.value.is_unsent
    with pytest.raises(UnreachableError, match="cannot be reached"):
        next(make_client("http://127.0.0.1:9", retries=1).listen("a"))


def test_a_ticket_that_is_none(client: Any, stand: Stand) -> None:
    stand.will(problem(401, "unknown ticket"))
    with pytest.raises(ServerError, match="unknown ticket"):
        client.subscription("a", ticket="é✓")
    with pytest.raises(UnreachableError, match="has characters that HTTP does not allow") as caught:
        client.subscription("a", ticket="secret\nword")
    assert "secret" not in str(caught.value)


# As names of the package


def test_the_package_has_both_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (harken.Client, harken.AsyncClient) == (Client, AsyncClient)
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = harken.Nonsense
    monkeypatch.setitem(sys.modules, "httpx", None)
    for kind in (Client, AsyncClient):
        with pytest.raises(MissingExtraError) as caught:
            kind()
        assert caught.value.hint == "pip install 'harken[client]'"


def test_both_have_the_same_methods_with_the_same_arguments() -> None:
    def methods(kind: type) -> dict[str, list[inspect.Parameter]]:
        public = {name: each for name, each in vars(kind).items() if not name.startswith("_") and callable(each)}
        return {name: list(inspect.signature(each).parameters.values()) for name, each in public.items()}

    assert methods(Client) == methods(AsyncClient)
    assert len(methods(Client)) > 20


def test_help_shows_a_method_and_not_its_flow() -> None:
    shown = inspect.signature(Client.renew)
    assert list(shown.parameters) == ["self", "id", "valid_for", "ticket"]
    assert shown.return_annotation == "Changed"
    assert inspect.signature(Client.subscriptions).return_annotation == "Iterator[SubscriptionState]"
    assert inspect.signature(AsyncClient.subscriptions).return_annotation == "AsyncIterator[SubscriptionState]"
    assert (Client.renew.__name__, Client.renew.__doc__) == ("renew", AsyncClient.renew.__doc__)


def test_a_client_of_httpx_may_be_brought_along(stand: Stand) -> None:
    stand.will(Reply(json={"ok": True}))
    with httpx.Client(headers={"X-Mine": "1"}) as http:
        with Client(stand.url, http=http) as client:
            assert client.health() == {"ok": True}
        assert not http.is_closed
    assert stand.seen[0].headers["x-mine"] == "1"


def test_clients_close_what_is_theirs(stand: Stand) -> None:
    stand.will(Reply(json={}))
    with Client(stand.url) as client:
        client.health()
    assert client._http.is_closed
