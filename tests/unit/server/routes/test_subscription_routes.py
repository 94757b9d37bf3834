"""Subscriptions over HTTP: taken, read, listed, changed, renewed, expired, and who may do that."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from harken.server.credentials import TICKET, new_credential
from unit.server.serving import Server, Taken, new_name, problem, wait_until

pytestmark = pytest.mark.together

ODD_IDS = [
    "ünï",
    "💥",
    "日本",
    "a/b",
    "/",
    "a//b/renew",
    "a b",
    "a%2Fb",
    "a?b#c",
    "a;b,c",
    "x" * 200,
    "it's",
    '"',
    "\\",
    "…",
]


def test_what_a_new_subscription_is_answered(server: Server) -> None:
    id = new_name()
    before = datetime.now(UTC)
    answer = server.post("/subscriptions", {"where": "price < 5", "id": id})
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/subscriptions/{id}"
    plain = answer.json()
    assert plain.keys() == {"id", "ticket", "expires_at"}
    assert re.fullmatch(r"ht_[\w-]{43}", plain["ticket"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", plain["expires_at"])
    left = datetime.fromisoformat(plain["expires_at"]) - before
    assert timedelta(days=1) <= left < timedelta(days=1, minutes=1)


def test_an_id_is_made_where_none_is_given(server: Server, topic: str) -> None:
    answers = [server.post("/subscriptions", {"where": f"topic = '{topic}'"}).json() for _ in range(2)]
    assert len({each["id"] for each in answers}) == 2
    assert server.matches({"topic": topic}) == [sorted(each["id"] for each in answers)]


def test_what_a_subscription_reads(server: Server) -> None:
    fields: dict[str, Any] = {
        "labels": {"team": "toys", "ß": "°"},
        "owner": "alice",
        "delivery": {"format": "cloudevents", "max_delay": 2.5, "throttle": {"count": 3, "seconds": 60}},
    }
    taken = server.subscribe("price < 5", **fields)
    plain = server.get(taken.path, taken).json()
    created = plain.pop("created_at")
    assert abs((datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds()) < 60
    assert plain == {"id": taken.id, "where": "price < 5", "language": "sql", "expires_at": taken.expires_at, **fields}


def test_a_warning_is_told(server: Server) -> None:
    body = {"where": "TRUE", "valid_for": 0.000001}
    (warning,) = server.post("/subscriptions", body).json()["warnings"]
    assert "every event" in warning


@pytest.mark.parametrize("name", ODD_IDS)
def test_odd_ids_work_everywhere(server: Server, topic: str, name: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'", id=name)
    try:
        assert server.get(taken.location, taken).json()["id"] == name
        assert server.get(taken.path, taken).json()["id"] == name
        assert server.matches({"topic": topic}) == [[name]]
        server.publish({"topic": topic})
        (told,) = server.notified(taken)
        assert told["subscription"] == name
        assert server.post(f"{taken.path}/renew", {"valid_for": 60}, taken).json()["id"] == name
        assert server.get(f"{taken.path}/dead-letters", taken).json() == {"dead_letters": [], "next": None}
        token = server.post(f"{taken.path}/token", None, taken).json()["token"]
        with server.stream(path="/stream", subscription=name, token=token, after="0") as frames:
            assert next(frames).data["subscription"] == name
        assert server.http.put(taken.path, json={"where": "a = 1"}, headers=taken.headers).status_code == 200
    finally:
        assert server.http.delete(taken.path, headers=taken.headers).status_code == 204
    problem(server.get(taken.path, taken), 404)


@pytest.mark.parametrize(
    "name", ["", "x" * 201, "\x01", "a\nb", "a\x00b", "\x7f", "a\u2028b", ".", "..", "\u200e", "\x1f"]
)
def test_ids_that_cannot_be(server: Server, name: str) -> None:
    problem(server.post("/subscriptions", {"where": "a = 1", "id": name}), 422)


def test_where_the_last_slash_of_an_id_is_a_part_of_the_path(server: Server) -> None:
    """`a/renew` is an id, and `a` with `/renew` behind it is not the same."""
    one, other = new_name(), new_name()
    taken = server.subscribe("a = 1", id=f"{one}/renew")
    problem(server.http.post(f"/subscriptions/{one}/renew", headers=taken.headers), 404)
    assert server.post(f"{taken.path}/renew", {}, taken).status_code == 200
    assert server.subscribe("a = 1", id=other).id == other


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"where": 5},
        {"where": "a = 1", "unknown": 1},
        {"where": "a = 1", "id": 5},
        {"where": "a = 1", "owner": ""},
        {"where": "a = 1", "owner": "x" * 201},
        {"where": "a = 1", "owner": "\x00"},
        {"where": "a = 1", "labels": {"a": 1}},
        {"where": "a = 1", "labels": ["a"]},
        {"where": "a = 1", "valid_for": 0},
        {"where": "a = 1", "valid_for": -1},
        {"where": "a = 1", "valid_for": 1e11},
        {"where": "a = 1", "valid_for": "long"},
        {"where": "a = 1", "delivery": {"format": "letters"}},
        {"where": "a = 1", "delivery": {"max_delay": -1}},
        {"where": "a = 1", "delivery": {"max_delay": 1e6}},
        {"where": "a = 1", "delivery": {"throttle": {"count": 0, "seconds": 1}}},
        {"where": "a = 1", "delivery": {"throttle": {"count": 1}}},
        {"where": "a = 1", "delivery": {"webhook": {}}},
        {"where": "a = 1", "delivery": {"webhook": {"url": "ftp://example.com"}}},
        {"where": "a = 1", "delivery": {"webhook": {"url": "http://127.0.0.1:9/x"}}},
        {"where": "a = 1", "delivery": {"webhook": {"url": "http://169.254.169.254/"}}},
        {"where": "a = 1", "delivery": {"webhook": {"url": "https://example.com/", "secret": "whsec_short"}}},
        {"where": "a = 1", "language": "cobol"},
        {"where": ""},
        {"where": "a = 1\x00"},
        [],
        "a = 1",
        5,
    ],
)
def test_bodies_that_are_rejected(server: Server, body: Any) -> None:
    problem(server.post("/subscriptions", body), 422)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"where": "a = 1"} x'])
def test_bodies_that_are_not_json(server: Server, body: bytes) -> None:
    for path in ("/subscriptions", "/check"):
        found = problem(server.send(path, body, "application/json"), 400 if body or path == "/subscriptions" else 422)
        assert found["detail"]


@pytest.mark.parametrize(
    "field", ['"labels": {"a": "\\ud800"}', '"labels": {"\\ud800": "a"}', '"id": "\\ud800"', '"owner": "\\udfff"']
)
def test_half_of_a_character_is_rejected(server: Server, field: str) -> None:
    """No answer could have it: UTF-8 has no bytes for it."""
    for method, path in (("POST", "/subscriptions"), ("PUT", server.subscribe("a = 1").path)):
        body = f'{{"where": "a = 1", {field}}}'
        answer = server.http.request(method, path, content=body, headers={"Content-Type": "application/json"})
        problem(answer, 422)


def test_where_a_text_is_wrong(server: Server) -> None:
    taken = server.subscribe("a = 1")
    body = {"where": "price < 5 ADN sold"}
    answers = [
        server.post("/subscriptions", body),
        server.post("/check", body),
        server.http.put(taken.path, json=body, headers=taken.headers),
    ]
    for answer in answers:
        found = problem(answer, 422)
        assert (found["type"], found["title"]) == ("urn:harken:parse-error", "ParseError")
        assert (found["line"], found["column"]) == (1, 11)
        assert found["excerpt"] == "price < 5 ADN sold\n          ^"
        assert found["hint"] == "did you mean `AND`?"
    assert server.get(taken.path, taken).json()["where"] == "a = 1", "a change that is rejected changes nothing"


def test_content_types(server: Server) -> None:
    body = '{"where": "a = 1"}'
    for content_type in ("application/json; charset=utf-8", "application/x-www-form-urlencoded", "text/json"):
        assert server.send("/subscriptions", body, content_type).status_code == 201
    assert server.http.post("/subscriptions", content=body).status_code == 201
    assert server.send("/check", body, "application/x-www-form-urlencoded").status_code == 200, "as `curl -d` sends it"
    assert server.http.post("/check", content=body).status_code == 200
    for path in ("/subscriptions", "/check"):
        problem(server.send(path, body, "text/csv"), 415)


def test_an_id_is_taken_once(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    found = problem(server.post("/subscriptions", {"where": "a = 1", "id": taken.id}), 409)
    assert found["type"] == "urn:harken:duplicate-id-error"
    assert server.matches({"topic": topic}) == [[taken.id]]


# Changing


def test_a_subscription_is_changed(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}' AND n = 1", labels={"a": "b"}, owner="alice", valid_for=100)
    body = {"where": f"topic = '{topic}' AND n = 2", "labels": {"c": "d"}, "valid_for": 1_000}
    answer = server.http.put(taken.path, json=body, headers=taken.headers)
    assert answer.status_code == 200
    assert answer.json().keys() == {"id", "expires_at"}
    plain = server.get(taken.path, taken).json()
    assert (plain["where"], plain["labels"], plain["owner"]) == (body["where"], {"c": "d"}, "alice")
    assert plain["expires_at"] == answer.json()["expires_at"] > taken.expires_at
    assert server.matches({"topic": topic, "n": 1}, {"topic": topic, "n": 2}) == [[], [taken.id]]
    found = problem(server.http.put(taken.path, json={**body, "id": "other"}, headers=taken.headers), 422)
    assert "id" in found["detail"]


def test_a_change_takes_another_language(server: Server) -> None:
    taken = server.subscribe("a = 1")
    body = {"where": "/order[total > 100]", "language": "xpath"}
    assert server.http.put(taken.path, json=body, headers=taken.headers).status_code == 200
    answer = server.send("/events?dry_run=true", "<order><total>250</total></order>", "application/xml")
    assert taken.id in answer.json()["matches"][0]


def test_the_secret_of_a_new_webhook_is_told_once(server: Server) -> None:
    webhook = {"url": "https://hooks.example.com/"}
    taken = server.subscribe("a = 'webhook'", delivery={"webhook": webhook})
    assert taken.answer["webhook_secret"].startswith("whsec_")
    assert "secret" not in server.get(taken.path, taken).text

    def changed(delivery: dict[str, Any] | None) -> str | None:
        answer = server.http.put(taken.path, json={"where": "a = 1", "delivery": delivery}, headers=taken.headers)
        assert answer.status_code == 200, answer.text
        found: str | None = answer.json().get("webhook_secret")
        return found

    assert changed({"webhook": webhook}) is None, "it keeps its secret"
    given = "whsec_" + "QUJD" * 10
    assert changed({"webhook": {**webhook, "secret": given}}) == given
    assert changed(None) is None
    made = changed({"webhook": webhook})
    assert made is not None
    assert made.startswith("whsec_"), "a webhook that is new has a new secret, which only this answer tells"


def test_unsubscribing(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    answer = server.http.delete(taken.path, headers=taken.headers)
    assert (answer.status_code, answer.content) == (204, b"")
    assert server.matches({"topic": topic}) == [[]]
    problem(server.http.delete(taken.path, headers=taken.headers), 404)
    problem(server.get(taken.path, taken), 404)


def test_who_has_the_id_next_does_not_see_what_was_before(server: Server, topic: str) -> None:
    first = server.subscribe(f"topic = '{topic}'")
    server.publish({"topic": topic, "n": 1})
    assert len(server.notified(first)) == 1
    token = server.post(f"{first.path}/token", None, first).json()["token"]
    server.http.delete(first.path, headers=first.headers)
    second = server.subscribe(f"topic = '{topic}'", id=first.id)
    assert server.notified(second) == []
    server.publish({"topic": topic, "n": 2})
    assert [each["event"]["n"] for each in server.notified(second)] == [2]
    problem(server.get("/notifications", first, subscription=first.id), 403)
    problem(server.get("/stream", subscription=first.id, token=token), 401)


# Validity


def test_a_subscription_that_expires_matches_no_more_at_once(server: Server, topic: str) -> None:
    short = server.subscribe(f"topic = '{topic}'", valid_for=4)
    long = server.subscribe(f"topic = '{topic}'", valid_for=60)
    server.publish({"topic": topic, "n": 1})
    assert [each["event"]["n"] for each in server.notified(short)] == [1]
    deadline = datetime.fromisoformat(short.expires_at).timestamp()
    while time.time() <= deadline:
        time.sleep(max(0.0, deadline - time.time()))
    assert server.matches({"topic": topic}) == [[long.id]], "the moment it has expired"
    server.publish({"topic": topic, "n": 2})
    assert [each["event"]["n"] for each in server.notified(long)] == [1, 2]
    for answer in (
        server.get(short.path, short),
        server.get("/notifications", short, subscription=short.id),
        server.get("/stream", short, subscription=short.id),
        server.post(f"{short.path}/renew", {"valid_for": 60}, short),
        server.http.delete(short.path, headers=short.headers),
    ):
        problem(answer, 404)
    assert short.id not in {each["id"] for each in server.get("/subscriptions", limit=1_000).json()["subscriptions"]}
    wait_until(lambda: server.post("/subscriptions", {"where": "a = 1", "id": short.id}).status_code == 201)


def test_a_renewed_subscription_lives_on(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'", valid_for=4)
    answer = server.post(f"{taken.path}/renew", {"valid_for": 60}, taken)
    assert answer.status_code == 200
    assert answer.json()["expires_at"] > taken.expires_at
    time.sleep(4.1)
    assert server.matches({"topic": topic}) == [[taken.id]]
    assert server.get(taken.path, taken).json()["expires_at"] == answer.json()["expires_at"]
    sooner = server.post(f"{taken.path}/renew", {"valid_for": 0.2}, taken).json()["expires_at"]
    assert sooner < answer.json()["expires_at"]
    time.sleep(0.3)
    assert server.matches({"topic": topic}) == [[]]


def test_renewing_without_saying_how_long(server: Server) -> None:
    taken = server.subscribe("a = 1", valid_for=60)
    for body in (None, {}, {"valid_for": None}):
        until = server.post(f"{taken.path}/renew", body, taken).json()["expires_at"]
        left = datetime.fromisoformat(until) - datetime.now(UTC)
        assert timedelta(hours=23) < left <= timedelta(days=1)
    problem(server.post(f"{taken.path}/renew", {"valid_for": -1}, taken), 422)
    problem(server.post(f"{taken.path}/renew", {"valid_for": 400 * 86_400}, taken), 422)


def test_an_id_is_free_the_moment_its_subscription_has_expired(server: Server, topic: str) -> None:
    for number in range(20):  # it may be swept between two of them, and mostly is not
        short = server.subscribe(f"topic = '{topic}'", id=f"{topic}-{number}", valid_for=0.05)
        wait_until(lambda short=short: server.get(short.path, short).status_code == 404)
        answer = server.post("/subscriptions", {"where": f"topic = '{topic}' AND n = {number}", "id": short.id})
        assert answer.status_code == 201, answer.text
        problem(server.get(short.path, short), 403)
        assert server.matches({"topic": topic, "n": number}, {"topic": topic, "n": -1}) == [[short.id], []]


def left_of(answer: httpx.Response) -> timedelta:
    """How long a subscription is valid still."""
    assert answer.status_code in (200, 201), answer.text
    left: timedelta = datetime.fromisoformat(answer.json()["expires_at"]) - datetime.now(UTC)
    return left


def test_a_change_keeps_the_validity_unless_it_says_another(server: Server) -> None:
    week, day, hour = timedelta(days=7), timedelta(days=1), timedelta(hours=1)
    minutes = timedelta(minutes=10)
    taken = server.subscribe("a = 1", valid_for=week.total_seconds())

    def changed(**more: Any) -> timedelta:
        return left_of(server.http.put(taken.path, json={"where": "a = 2", **more}, headers=taken.headers))

    assert week - minutes < changed() <= week
    assert week - minutes < changed(valid_for=None) <= week
    assert hour - minutes < changed(valid_for=hour.total_seconds()) <= hour
    assert hour - minutes < changed() <= hour, "what was said last"
    left_of(server.post(f"{taken.path}/renew", {"valid_for": week.total_seconds()}, taken))
    assert week - minutes < changed() <= week
    left_of(server.post(f"{taken.path}/renew", None, taken))
    assert day - minutes < changed() <= day
    taken = server.subscribe("a = 1")
    assert day - minutes < changed() <= day, "nothing was said"


def test_a_validity_that_is_too_long(server: Server) -> None:
    found = problem(server.post("/subscriptions", {"where": "a = 1", "valid_for": 400 * 86_400}), 422)
    assert found["limit"] == "max_valid_for"


# Tickets


def test_who_has_no_ticket_or_another(server: Server) -> None:
    mine, other = server.subscribe("a = 1"), server.subscribe("a = 1")
    gone = server.subscribe("a = 1")
    server.http.delete(gone.path, headers=gone.headers)
    guessed = Taken("", new_credential(TICKET))
    requests = [
        ("GET", mine.path, None),
        ("PUT", mine.path, {"where": "a = 1"}),
        ("DELETE", mine.path, None),
        ("POST", f"{mine.path}/renew", {}),
        ("POST", f"{mine.path}/token", None),
        ("GET", f"{mine.path}/dead-letters", None),
        ("POST", f"{mine.path}/redeliver", {"dead": True}),
        ("GET", f"/notifications?subscription={mine.id}", None),
        ("GET", f"/stream?subscription={mine.id}", None),
        ("POST", "/explain", {"subscription": mine.id, "event": {}}),
    ]
    for method, path, body in requests:
        found = problem(server.http.request(method, path, json=body), 401)
        assert "Harken-Ticket" in found["hint"]
        for wrong in (other, gone, guessed):
            problem(server.http.request(method, path, json=body, headers=wrong.headers), 403)
    assert server.get(mine.path, mine).status_code == 200, "nothing has happened to it"


def test_of_ids_that_there_are_not(server: Server) -> None:
    taken = server.subscribe("a = 1")
    nobody = f"/subscriptions/{new_name()}"
    problem(server.get(nobody), 401)
    problem(server.get(nobody, taken), 404)
    problem(server.http.put(nobody, json={"where": "a = 1"}, headers=taken.headers), 404)


def test_several_tickets_in_one_header(server: Server) -> None:
    some = [server.subscribe("a = 1") for _ in range(3)]
    tickets = {"Harken-Ticket": " , ".join(each.ticket for each in some)}
    for each in some:
        assert server.http.get(each.path, headers=tickets).status_code == 200
    body = {"subscription": some[1].id, "event": {"a": 1}}
    assert server.http.post("/explain", json=body, headers=tickets).json()["matched"] is True


# Listing


def test_listing_by_pages(server: Server) -> None:
    owner = new_name()
    some = [server.subscribe("a = 1", owner=owner, id=f"{owner}-{number}") for number in range(7)]
    found: list[str] = []
    params: dict[str, Any] = {"owner": owner, "limit": 3}
    for _ in range(3):
        page = server.get("/subscriptions", **params).json()
        found += [each["id"] for each in page["subscriptions"]]
        params["after"] = page["next"]
    assert found == [each.id for each in some]
    assert page["next"] is None
    assert server.get("/subscriptions", owner=new_name()).json() == {"subscriptions": [], "next": None}


def test_what_is_listed_of_others(server: Server) -> None:
    owner = new_name()
    mine, other = (server.subscribe("a = 1", owner=owner, labels={"k": "v"}) for _ in range(2))
    rows = {each["id"]: each for each in server.get("/subscriptions", mine, owner=owner).json()["subscriptions"]}
    assert rows[other.id] == {"id": other.id, "language": "sql", "expires_at": other.expires_at}
    assert rows[mine.id] == server.get(mine.path, mine).json()


def test_filters_of_the_list(server: Server) -> None:
    owner = new_name()

    def listed(taken: Taken, **params: Any) -> list[str]:
        answer = server.get("/subscriptions", taken, owner=owner, **params)
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()["subscriptions"]]

    red = server.subscribe("a = 1", owner=owner, labels={"colour": "red", "size": "a:b"})
    blue = server.subscribe("a = 1", owner=owner, labels={"colour": "blue"})
    path = server.subscribe("/a", owner=owner, language="xpath")
    assert listed(red, language="xpath") == [path.id]
    assert listed(red, language="sql") == [red.id, blue.id]
    assert listed(red, label="colour:red") == [red.id]
    assert listed(red, label=["colour:red", "size:a:b"]) == [red.id]
    assert listed(red, label=["colour:red", "size:c"]) == []
    assert listed(red, label="colour:blue") == [], "others' labels are nobody's business"
    problem(server.get("/subscriptions", label="colour"), 422)
    problem(server.get("/subscriptions", limit=0), 422)
    problem(server.get("/subscriptions", limit=1_001), 422)


# Tokens


def test_a_token_opens_the_stream_of_its_subscription_only(server: Server) -> None:
    mine, other = server.subscribe("a = 1"), server.subscribe("a = 1")
    answer = server.post(f"{mine.path}/token", None, mine)
    assert answer.status_code == 200
    token = answer.json()["token"]
    left = datetime.fromisoformat(answer.json()["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=4) < left <= timedelta(minutes=5)
    with server.stream(path="/stream", subscription=mine.id, token=token):
        pass
    problem(server.get("/stream", subscription=other.id, token=token), 401)
    problem(server.get("/stream", subscription=[mine.id, other.id], token=token), 401)
    problem(server.get(mine.path, token=token), 401)
    both = [token, server.post(f"{other.path}/token", None, other).json()["token"]]
    with server.stream(path="/stream", subscription=[mine.id, other.id], token=both):
        pass


def test_forged_tokens(server: Server) -> None:
    taken = server.subscribe("a = 1")
    token = server.post(f"{taken.path}/token", None, taken).json()["token"]
    head, _, tail = token.partition(".")
    flipped = ("B" if tail[5] == "A" else "A").join((tail[:5], tail[6:]))
    forged = [
        "",
        ".",
        "x",
        "..",
        head,
        f".{tail}",
        f"{head}.",
        f"{head}.{flipped}",
        f"{head}A.{tail}",
        "é.ß",
        "A" * 9_999,
    ]
    for each in [*forged, taken.ticket]:
        problem(server.get("/stream", subscription=taken.id, token=each), 401)
