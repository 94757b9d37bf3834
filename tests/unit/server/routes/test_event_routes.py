"""Events over HTTP: published once, tried out, explained, checked and back-tested."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from harken import Engine
from unit.server.serving import NDJSON, SECONDS, Server, as_lines, new_name, problem, running_server

pytestmark = pytest.mark.together


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose journal has the events of one test only."""
    with running_server(tmp_path_factory.mktemp("own")) as found:
        yield found


# Publishing


def test_one_event_and_what_is_told_of_it(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}' AND price < 5")
    event = {"topic": topic, "price": 3.5, "nested": {"a": [1, None, "ü"]}}
    answer = server.post("/events", event)
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1, "rejected": []})
    (told,) = server.notified(taken)
    assert told.keys() == {"id", "subscription", "event", "event_id", "time"}
    assert (told["subscription"], told["event"]) == (taken.id, event)
    assert told["id"].isdecimal()
    assert told["event_id"].isdecimal()


@pytest.mark.parametrize(
    ("content_type", "body", "matched"),
    [
        ("application/json", '{"topic": "TOPIC"}', 1),
        ("application/json; charset=utf-8", '\ufeff \n{"topic":\n\r "TOPIC"}\n', 1),
        ("application/x-www-form-urlencoded", '{"topic": "TOPIC"}', 1),
        ("application/json", '[{"topic": "TOPIC"}, {}, {"topic": "TOPIC"}]', 2),
        ("application/json", "[]", 0),
        ("application/x-ndjson", '{"topic": "TOPIC"}\n\n{"topic": "TOPIC"}', 2),
        ("application/jsonl", '{"topic": "TOPIC"}\r\n{}\r\n', 1),
        ("application/x-ndjson", "", 0),
    ],
)
def test_bodies_of_events(server: Server, topic: str, content_type: str, body: str, matched: int) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    answer = server.send("/events", body.replace("TOPIC", topic).encode(), content_type)
    assert (answer.status_code, answer.json()["rejected"]) == (202, [])
    assert [each["event"]["topic"] for each in server.notified(taken)] == [topic] * matched


def test_a_document(server: Server, topic: str) -> None:
    taken = server.subscribe(f"/order[@topic = '{topic}'][total > 100]", language="xpath")
    document = f"<?xml version='1.0'?>\n<order topic='{topic}'>\n<total>250</total> ü</order>"
    for content_type in ("application/xml", "text/xml; charset=utf-8"):
        assert server.send("/events", document.encode(), content_type).json() == {"accepted": 1, "rejected": []}
    assert [each["event"] for each in server.notified(taken)] == [document] * 2
    found = problem(server.send("/events", "<order><total></order>", "application/xml"), 422)
    assert found["rejected"][0]["error"] == "DecodeError"
    with_type = problem(server.send("/events", "<!DOCTYPE a><a/>", "application/xml"), 422)
    assert "DOCTYPE" in with_type["detail"]


def test_bad_events_leave_the_others(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    texts = [
        f'{{"topic": "{topic}", "n": 0}}',
        "{",
        '{"a": 1e999}',
        "5",
        f'{{"topic": "{topic}", "n": 4}}',
        '{"topic": "\\ud800"}',
        '{"a": "\xff"}',
    ]
    answer = server.send("/events", "\n".join(texts).encode("latin-1"), NDJSON)
    assert answer.status_code == 202
    plain = answer.json()
    assert plain["accepted"] == 2
    assert [each["position"] for each in plain["rejected"]] == [1, 2, 3, 5, 6]
    first = plain["rejected"][0]
    assert (first["error"], first["line"], first["column"]) == ("DecodeError", 2, 2)
    assert all(each["message"] for each in plain["rejected"])
    assert [each["event"]["n"] for each in server.notified(taken)] == [0, 4]


@pytest.mark.parametrize(
    "body", ["5", "{", '{"a": NaN}', '{"a": 1, "a": 2}', '{"topic": 99999999999999999999}', "[1, {]"]
)
def test_events_of_which_none_is_accepted(server: Server, body: str) -> None:
    found = problem(server.send("/events", body, "application/json"), 422)
    assert found["type"] == "urn:harken:event-error"
    assert found["rejected"][0]["message"] in found["detail"]
    assert found["rejected"][0]["position"] == 0


def test_requests_that_are_rejected_as_a_whole(server: Server) -> None:
    problem(server.send("/events", "", "application/json"), 400)
    found = problem(server.send("/events", "a,b", "text/csv"), 415)
    assert "application/x-ndjson" in found["hint"]
    problem(server.http.post("/events?dry_run=perhaps", json={}), 422)
    problem(server.http.put("/events", json={}), 405)


# The same request, the same event


def test_a_repeated_request_publishes_once(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    body = [{"topic": topic, "n": 1}, {"topic": topic, "n": 2}]
    answers = [server.http.post("/events", json=body, headers={"Idempotency-Key": topic}) for _ in range(3)]
    assert [(each.status_code, each.json()) for each in answers] == [(202, {"accepted": 2, "rejected": []})] * 3
    assert [each["event"]["n"] for each in server.notified(taken)] == [1, 2]
    server.http.post("/events", json=body, headers={"Idempotency-Key": topic + "'"})
    assert len(server.notified(taken)) == 4


def test_another_request_with_the_same_key_is_rejected(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    one, other = (json.dumps({"topic": topic, "n": n}) for n in (1, 2))

    def sent(key: str, body: str, content_type: str = "application/json") -> httpx.Response:
        return server.send("/events", body, content_type, **{"Idempotency-Key": topic + key})

    assert sent("a", one).status_code == 202
    for answer in (sent("a", other), sent("a", "{"), sent("a", one, NDJSON), sent("a", f"[{one}]")):
        found = problem(answer, 422)
        assert found["type"] == "urn:harken:idempotency-key-error"
        assert "new key" in found["hint"]
    again = [sent("a", one), sent("a", one, "application/json; charset=utf-8")]
    assert [each.json() for each in again] == [{"accepted": 1, "rejected": []}] * 2
    assert [each["event"]["n"] for each in server.notified(taken)] == [1]

    first = problem(sent("b", "{"), 422)
    assert problem(sent("b", "{"), 422)["rejected"] == first["rejected"], "what was rejected is rejected again"
    assert "rejected" not in problem(sent("b", one), 422)
    assert sent("c", "[]").json() == {"accepted": 0, "rejected": []}
    problem(sent("c", one), 422)


def test_the_headers_of_a_cloudevent_belong_to_its_request(server: Server, topic: str) -> None:
    def sent(type: str) -> httpx.Response:
        attributes = {"ce-specversion": "1.0", "ce-id": topic, "ce-source": "/shop", "ce-type": type}
        return server.send("/events", "{}", "application/json", **{"Idempotency-Key": topic}, **attributes)

    assert [sent("order").status_code for _ in range(2)] == [202, 202]
    assert problem(sent("refund"), 422)["type"] == "urn:harken:idempotency-key-error"


def test_the_same_key_at_the_same_time_for_different_requests(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")

    async def publish() -> list[int]:
        async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as http:
            bodies = [{"topic": topic, "n": number % 5} for number in range(20)]
            sent = (http.post("/events", json=body, headers={"Idempotency-Key": topic}) for body in bodies)
            return [answer.status_code for answer in await asyncio.gather(*sent)]

    statuses = asyncio.run(publish())
    assert (statuses.count(202), statuses.count(422)) == (4, 16), "the first to arrive, and those that repeat it"
    assert len(server.notified(taken)) == 1


def test_the_same_key_at_the_same_time(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    statuses: list[int] = []

    def publish() -> None:
        with httpx.Client(base_url=server.url, timeout=SECONDS, trust_env=False) as http:
            for number in range(5):
                answer = http.post("/events", json={"topic": topic}, headers={"Idempotency-Key": f"{topic}-{number}"})
                statuses.append(answer.status_code)

    threads = [threading.Thread(target=publish) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [202] * 30
    assert len(server.notified(taken)) == 5


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_keys_that_cannot_be(server: Server, key: str) -> None:
    problem(server.http.post("/events", json={}, headers={"Idempotency-Key": key}), 422)


# Trying out


def test_a_dry_run_keeps_nothing(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    before = server.get("/stats").json()["events"]
    texts = f'{{"topic": "{topic}"}}\n{{\n{{}}'
    answer = server.send("/events?dry_run=true", texts, NDJSON)
    assert answer.status_code == 200
    assert answer.json()["matches"] == [[taken.id], [], []]
    assert [each["position"] for each in answer.json()["rejected"]] == [1]
    assert server.send("/events?dry_run=true", "{", "application/json").json()["matches"] == [[]]
    assert server.notified(taken) == []
    assert server.get("/stats").json()["events"] == before


def test_checking_a_text(server: Server) -> None:
    assert server.post("/check", {"where": "a = 1"}).json() == {"ok": True, "warnings": []}
    assert server.post("/check", {"where": "/a[b = 1]", "language": "xpath"}).json()["ok"] is True
    assert server.post("/check", {"where": "TRUE"}).json()["warnings"]
    found = problem(server.post("/check", {"where": "price <"}), 422)
    assert (found["line"], found["column"], found["excerpt"]) == (1, 8, "price <\n       ^")
    problem(server.post("/check", {"where": "price < 1 AND price > 2"}), 422)
    problem(server.post("/check", {"where": "a = 1", "language": "basic"}), 422)
    problem(server.post("/check", {}), 422)


def test_limits_of_the_language_are_named(server: Server) -> None:
    nested = "NOT (" * 200 + "a = 1" + ")" * 200
    assert problem(server.post("/check", {"where": nested}), 422)["limit"] == "max_nesting"
    assert problem(server.post("/check", {"where": "a = 1" + " " * 2_000_000}), 422)["limit"] == "max_text_length"


def test_explaining(server: Server) -> None:
    event = {"category": "Toy", "price": 7, "tags": ["a", "b"]}
    where = "category = 'Toy' AND (price < 5 OR tags = 'b')"
    engine = Engine()
    taken = server.subscribe(where)
    expected = engine.explain(text=where, event=event)
    for body in ({"where": where, "event": event}, {"subscription": taken.id, "event": event}):
        plain = server.post("/explain", body, taken).json()
        assert plain == {**expected.to_dict(), "text": str(expected)}
        assert plain["matched"] is True
    document = {"where": "/a[b = 1]", "language": "xpath", "event": "<a><b>1</b></a>"}
    assert server.post("/explain", document).json()["matched"] is True


@pytest.mark.parametrize(
    "body",
    [
        {"event": {}},
        {"where": "a = 1"},
        {"where": "a = 1", "subscription": "x", "event": {}},
        {"where": "a <", "event": {}},
        {"where": "a = 1", "event": [1]},
        {"where": "a = 1", "event": {"a": 99999999999999999999}},
        {"where": "/a", "language": "xpath", "event": "<a>"},
    ],
)
def test_what_cannot_be_explained(server: Server, body: dict[str, Any]) -> None:
    problem(server.post("/explain", body), 400 if body.get("event") == "<a>" else 422)


def test_half_of_a_character_is_not_explained(server: Server) -> None:
    body = '{"where": "a = 1", "event": {"a": "\\ud800"}}'
    problem(server.send("/explain", body, "application/json"), 422)


def test_back_tests(own_server: Server) -> None:
    assert own_server.post("/backtest", {"where": "n = 1"}).json() == {
        "looked_at": 0,
        "matched": 0,
        "examples": [],
        "from": None,
        "to": None,
    }
    own_server.publish(*({"n": n, "text": "ü\n"} for n in range(30)))
    own_server.send("/events", "<a><b>1</b></a>", "application/xml")
    own_server.send("/events", '{"n": "\\u0000 <"}', "application/json")
    own_server.http.post("/events?dry_run=true", json={"n": 7})
    found = own_server.post("/backtest", {"where": "n % 3 = 0", "limit": 2}).json()
    assert (found["looked_at"], found["matched"]) == (32, 10)
    assert [each["event"]["n"] for each in found["examples"]] == [27, 24], "the newest first"
    assert found["examples"][0].keys() == {"event_id", "time", "event"}
    assert found["from"] <= found["examples"][0]["time"] <= found["to"]
    fewer = own_server.post("/backtest", {"where": "n >= 0", "events": 5, "limit": 0}).json()
    assert (fewer["looked_at"], fewer["matched"], fewer["examples"]) == (5, 3, [])
    document = own_server.post("/backtest", {"where": "/a/b", "language": "xpath"}).json()
    assert [each["event"] for each in document["examples"]] == ["<a><b>1</b></a>"]
    odd = own_server.post("/backtest", {"where": "n LIKE '% <'"}).json()
    assert [each["event"]["n"] for each in odd["examples"]] == ["\0 <"]
    problem(own_server.post("/backtest", {"where": "n <"}), 422)
    problem(own_server.post("/backtest", {"where": "n = 1", "events": 0}), 422)
    problem(own_server.post("/backtest", {"where": "n = 1", "limit": 1_001}), 422)


def test_what_nobody_asks_for_may_be_odd(own_server: Server) -> None:
    """It is not decoded, and comes back as it was sent."""
    taken = own_server.subscribe("odd = 1")
    body = '{"odd": 1, "a": "\\ud800", "\\udfff": 99999999999999999999}'
    assert own_server.send("/events", body, "application/json").status_code == 202
    assert body in own_server.get("/notifications", taken, subscription=taken.id).text
    with own_server.stream(taken, after="0") as frames:
        assert body in next(frames).text
    assert body in own_server.post("/backtest", {"where": "odd = 1"}).text


def test_an_event_as_large_as_can_be(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    event = {"topic": topic, "text": "x" * 1_000_000, "name": new_name()}
    assert server.send("/events", json.dumps(event), "application/json").status_code == 202
    assert server.notified(taken)[0]["event"] == event
    found = problem(server.send("/events", json.dumps({"text": "x" * (17 << 20)}), "application/json"), 422)
    assert found["rejected"][0]["error"] == "LimitError"
    assert found["rejected"][0]["limit"] == "max_event_bytes"
    mixed = as_lines([{"topic": topic}, {"text": "x" * (17 << 20)}, {"topic": topic}])
    assert server.send("/events", mixed, NDJSON).json()["accepted"] == 2
