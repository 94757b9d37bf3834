"""CloudEvents in their three modes, as the official SDK writes and reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event, to_binary_event, to_structured_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from unit.server.serving import Server, new_name, problem, running_server

pytestmark = pytest.mark.together

BATCH = "application/cloudevents-batch+json"
TIME = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
DOCUMENT = "<order><total>250</total>ü</order>"


def event(topic: str, data: Any = None, **attributes: Any) -> CloudEvent:
    every = {"id": new_name(), "source": "/shöp/till 1", "type": "order", "subject": topic, "time": TIME, **attributes}
    return CloudEvent(every, data)


def to_batch(*events: CloudEvent) -> HTTPMessage:
    """The SDK has no batches: they are arrays of what it writes."""
    texts = [JSONFormat().write(each).decode() for each in events]
    return HTTPMessage({"content-type": BATCH}, f"[{', '.join(texts)}]".encode())


def send(server: Server, message: HTTPMessage, **params: Any) -> httpx.Response:
    return server.http.post("/events", content=message.body, headers=message.headers, params=params)


MODES: dict[str, Callable[[CloudEvent], HTTPMessage]] = {
    "binary": to_binary_event,
    "structured": to_structured_event,
    "batch": to_batch,
}


@pytest.fixture(params=MODES)
def written(request: pytest.FixtureRequest) -> Callable[[CloudEvent], HTTPMessage]:
    """Writes an event in one of the modes."""
    return MODES[request.param]


def test_json_data(server: Server, topic: str, written: Callable[[CloudEvent], HTTPMessage]) -> None:
    where = f"type = 'order' AND subject = '{topic}' AND source = '/shöp/till 1' AND data.price > 5 AND data.tags = 'ü'"
    taken = server.subscribe(where)
    sent = event(topic, {"price": 7, "tags": ["a", "ü"]}, datacontenttype="application/json", extra='ß%20 "x"')
    answer = send(server, written(sent))
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1, "rejected": []})
    (told,) = server.notified(taken)
    received = JSONFormat().read(None, json.dumps(told["event"]))
    assert received.get_data() == sent.get_data()
    assert received.get_attributes() == sent.get_attributes()


def test_data_of_another_json_type(server: Server, topic: str) -> None:
    taken = server.subscribe(f"subject = '{topic}' AND data.a = 1")
    for content_type in ("application/vnd.shop+json; charset=utf-8", "text/json"):
        assert send(server, to_binary_event(event(topic, {"a": 1}, datacontenttype=content_type))).status_code == 202
    told = server.notified(taken)
    assert [each["event"]["datacontenttype"] for each in told] == [
        "application/vnd.shop+json; charset=utf-8",
        "text/json",
    ]


def test_xml_data(server: Server, topic: str, written: Callable[[CloudEvent], HTTPMessage]) -> None:
    taken = server.subscribe(f"subject = '{topic}' AND xpath_boolean(data, '/order[total > 100]')")
    other = server.subscribe(f"subject = '{topic}' AND xpath_boolean(data, '/order[total > 300]')")
    assert send(server, written(event(topic, DOCUMENT, datacontenttype="application/xml"))).status_code == 202
    (told,) = server.notified(taken)
    assert told["event"]["data"] == DOCUMENT
    assert server.notified(other) == []


def test_binary_data(server: Server, topic: str, written: Callable[[CloudEvent], HTTPMessage]) -> None:
    data = bytes(range(256))
    taken = server.subscribe(f"subject = '{topic}' AND datacontenttype = 'image/png' AND data IS NULL")
    assert send(server, written(event(topic, data, datacontenttype="image/png"))).status_code == 202
    (told,) = server.notified(taken)
    assert base64.b64decode(told["event"]["data_base64"]) == data
    assert JSONFormat().read(None, json.dumps(told["event"])).get_data() == data


def test_no_data(server: Server, topic: str, written: Callable[[CloudEvent], HTTPMessage]) -> None:
    taken = server.subscribe(f"subject = '{topic}' AND data IS NULL")
    assert send(server, written(event(topic))).status_code == 202
    (told,) = server.notified(taken)
    assert JSONFormat().read(None, json.dumps(told["event"])).get_data() is None


def test_an_event_is_the_same_by_its_source_and_id(
    server: Server, topic: str, written: Callable[[CloudEvent], HTTPMessage]
) -> None:
    taken = server.subscribe(f"subject = '{topic}'")
    first = event(topic, {"n": 1})
    id = first.get_id()
    for _ in range(2):
        send(server, written(first))
    answer = send(server, written(event(topic, {"n": 2}, id=id)))
    assert answer.json() == {"accepted": 1, "rejected": [], "duplicates": 1}
    send(server, written(event(topic, {"n": 3}, id=id, source="/other")))
    send(server, written(event(topic, {"n": 4})))
    assert [each["event"]["data"]["n"] for each in server.notified(taken)] == [1, 3, 4]


def test_the_same_event_twice_in_a_batch(server: Server, topic: str) -> None:
    taken = server.subscribe(f"subject = '{topic}'")
    one, other = event(topic, {"n": 1}), event(topic, {"n": 2})
    answer = send(server, to_batch(one, other, one, other, one))
    assert answer.json() == {"accepted": 5, "rejected": [], "duplicates": 3}
    send(server, to_binary_event(one))
    assert [each["event"]["data"]["n"] for each in server.notified(taken)] == [1, 2]


def test_a_batch_with_faults(server: Server, topic: str) -> None:
    taken = server.subscribe(f"subject = '{topic}'")
    good = [json.loads(JSONFormat().write(event(topic, {"n": n}))) for n in range(2)]
    without_id = {name: value for name, value in good[0].items() if name != "id"}
    body = [good[0], without_id, 5, {**good[1], "specversion": "0.3"}, {**good[1], "type": ""}, good[1]]
    answer = server.send("/events", json.dumps(body), BATCH)
    assert answer.status_code == 202
    assert answer.json()["accepted"] == 2
    assert [each["position"] for each in answer.json()["rejected"]] == [1, 2, 3, 4]
    assert "`id`" in answer.json()["rejected"][0]["message"]
    assert [each["event"]["data"]["n"] for each in server.notified(taken)] == [0, 1]
    assert server.send("/events", "[]", BATCH).json()["accepted"] == 0


def test_events_that_are_none(server: Server) -> None:
    message = to_binary_event(event("x", {"a": 1}, datacontenttype="application/json"))
    for name in ("ce-id", "ce-source", "ce-type"):
        headers = {key: value for key, value in message.headers.items() if key != name}
        found = problem(server.http.post("/events", content=message.body, headers=headers), 400)
        assert name.removeprefix("ce-") in found["detail"]
    for more in ({"ce-data": "1"}, {"ce-datacontenttype": "a/b"}, {"ce-a_b": "1"}, {"ce-specversion": "0.3"}):
        problem(server.http.post("/events", content=message.body, headers={**message.headers, **more}), 400)
    for body in (b'1, "id": "other"', b"{", b"1 2", b"\xff"):
        problem(server.http.post("/events", content=body, headers=message.headers), 400)
    text = {**message.headers, "content-type": "text/plain"}
    problem(server.http.post("/events", content=b"\xff", headers=text), 400)
    problem(server.send("/events", '{"specversion": "1.0"}', "application/cloudevents+json"), 422)


def test_a_dry_run_of_an_event(server: Server, topic: str, written: Callable[[CloudEvent], HTTPMessage]) -> None:
    taken = server.subscribe(f"subject = '{topic}' AND data.price > 5")
    answer = send(server, written(event(topic, {"price": 7})), dry_run="true")
    assert answer.json() == {"matches": [[taken.id]], "rejected": []}


def test_notifications_of_two_stores_have_different_sources(server: Server, topic: str, tmp_path: Path) -> None:
    """Their ids are small numbers: by source and id, which tell events apart, they would be the same."""
    envelopes = []
    with running_server(tmp_path) as other:
        for each in (server, other):
            taken = each.subscribe(f"topic = '{topic}'", delivery={"format": "cloudevents"})
            each.publish({"topic": topic}, {"topic": topic})
            envelopes.append(each.notified(taken))
    (mine, _), (first, second) = envelopes
    assert first["source"] == second["source"] != mine["source"]
    assert send(
        server, HTTPMessage({"content-type": BATCH}, json.dumps(envelopes[0] + envelopes[1]).encode())
    ).json() == {
        "accepted": 4,
        "rejected": [],
    }
    with running_server(tmp_path) as again:
        taken = again.subscribe(f"topic = '{topic}'", delivery={"format": "cloudevents"})
        again.publish({"topic": topic})
        assert again.notified(taken)[0]["source"] == first["source"], "it is the store's, not the process's"


def test_notifications_are_events_for_the_sdk(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'", delivery={"format": "cloudevents"})
    server.publish({"topic": topic, "n": 1})
    (told,) = server.notified(taken)
    message = HTTPMessage({"content-type": "application/cloudevents+json"}, json.dumps(told).encode())
    received = from_http_event(message)
    assert received.get_type() == "harken.notification"
    assert received.get_subject() == taken.id
    data = received.get_data()
    assert isinstance(data, dict)
    assert data["event"] == {"topic": topic, "n": 1}
    time = received.get_time()
    assert time is not None
    assert abs((datetime.now(UTC) - time).total_seconds()) < 60
    again = server.subscribe(f"type = 'harken.notification' AND data.event.topic = '{topic}'")
    assert send(server, to_structured_event(received)).status_code == 202, "and can be published again"
    assert len(server.notified(again)) == 1
