"""Running a server: health, metrics without anybody's names, sizes, the plan, the page, and the API's description."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from unit.server.serving import Server, new_name, problem

pytestmark = pytest.mark.together


def test_health(server: Server) -> None:
    assert server.get("/healthz").json() == {"status": "alive"}
    ready = server.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["status"] == "ready"
    assert ready.json()["subscriptions"] == server.get("/stats").json()["subscriptions"]


def samples(server: Server) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = server.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_metrics_count_and_name_nobody(server: Server, topic: str) -> None:
    before = samples(server)
    owner, label = new_name() + "-owner", new_name() + "-label"
    some = [server.subscribe(f"topic = '{topic}'", id=f"{topic}-{n}", owner=owner, labels={label: "x"}) for n in (1, 2)]
    server.publish({"topic": topic}, {"topic": topic}, {})
    problem(server.get(f"/subscriptions/{topic}-1"), 401)
    server.get(f"/nothing/{topic}")
    after = samples(server)

    def grown(name: str, **labels: str) -> float:
        key = name, tuple(sorted(labels.items()))
        return after[key] - before.get(key, 0)

    assert grown("harken_events_total") == 3
    assert grown("harken_notifications_total") == 4
    assert grown("harken_subscriptions") == 2
    assert grown("harken_http_requests_total", path="/subscriptions", status="201") == 2
    assert grown("harken_http_requests_total", path="/subscriptions/{id}", status="401") == 1
    assert grown("harken_http_requests_total", path="other", status="404") == 1
    assert grown("harken_http_seconds_count", path="/events") == 1
    assert after[("harken_ready", ())] == 1
    text = server.get("/metrics").text
    assert not any(name in text for name in (topic, owner, label, some[0].ticket))


def test_sizes(server: Server, topic: str) -> None:
    before = server.get("/stats").json()
    server.subscribe(f"topic = '{topic}'")
    server.publish({"topic": topic})
    after = server.get("/stats").json()
    assert after["subscriptions"] - before["subscriptions"] == 1
    assert after["events"] - before["events"] == after["journal_events"] - before["journal_events"] == 1
    assert after["journal_bytes"] > before["journal_bytes"]
    assert after["matches"] - before["matches"] == 1
    assert after["webhooks"].keys() == {"delivered", "failed", "dead"}


def test_the_plan(server: Server) -> None:
    def reject(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    server.subscribe("price < 5")
    answer = server.get("/plan")
    plan = json.loads(answer.text, parse_constant=reject)
    assert plan["algorithm"] == "columnar"
    assert plan["subscriptions"] == server.get("/stats").json()["subscriptions"]


def test_keys_need_a_server_that_asks_for_them(server: Server) -> None:
    for answer in (
        server.get("/keys"),
        server.post("/keys", {"owner": "me", "scopes": ["admin"]}),
        server.http.delete("/keys/x"),
    ):
        assert "--api-keys" in problem(answer, 403)["hint"]


def test_the_page(server: Server) -> None:
    answer = server.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_what_there_is_not(server: Server) -> None:
    assert problem(server.get("/nothing"), 404)["title"] == "NotFound"
    answer = server.http.delete("/events")
    assert problem(answer, 405)["title"] == "MethodNotAllowed"
    assert "POST" in answer.headers["allow"]


def test_every_path_is_described_with_its_problems(server: Server) -> None:
    described: dict[str, Any] = server.get("/openapi.json").json()
    assert described["info"]["title"] == "Harken"
    operations = {
        (method.upper(), path): each for path, methods in described["paths"].items() for method, each in methods.items()
    }
    assert {path for _, path in operations} >= {
        "/subscriptions",
        "/events",
        "/notifications",
        "/stream",
        "/live",
        "/schema",
    }
    for (method, path), each in operations.items():
        assert each["description"], f"{method} {path} says what it does"
        if path in ("/healthz", "/readyz", "/metrics"):
            continue
        problems = {status: found for status, found in each["responses"].items() if status[0] in "45"}
        assert problems.keys() >= {"429", "503"}, f"{method} {path}"
        for found in problems.values():
            assert "application/problem+json" in found["content"], f"{method} {path}"
