"""What every request passes through: ids, headers, other origins, bodies, rates, and every limit by its name."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from harken.server.gate import Rates
from unit.server.serving import (
    NDJSON,
    SECONDS,
    Server,
    as_lines,
    new_name,
    problem,
    running_server,
    settings,
    wait_until,
)

pytestmark = pytest.mark.together


@pytest.fixture(scope="module")
def narrow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with every limit so low that a test can reach it, for pages of one other origin."""
    options = settings(
        max_body_bytes=2_000,
        max_batch_events=10,
        max_subscriptions_per_owner=3,
        max_label_bytes=100,
        valid_for=500,
        max_valid_for=1_000,
    )
    folder = tmp_path_factory.mktemp("narrow")
    with running_server(folder, *options, "--cors", "https://shop.example") as found:
        yield found


# Ids and headers


def test_every_answer_has_an_id_and_is_safe(server: Server) -> None:
    answers = [
        server.get("/healthz"),
        server.get("/"),
        server.get("/nothing"),
        server.post("/check", {"where": "a <"}),
        server.post("/events", {}),
        server.http.delete("/events"),
        server.http.post("/events", json={}, headers={"Origin": "https://evil.example"}),
    ]
    assert len({each.headers["x-request-id"] for each in answers}) == len(answers)
    for each in answers:
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["referrer-policy"] == "no-referrer"
        assert "server" not in each.headers


@pytest.mark.parametrize(("given", "is_kept"), [("abc-1.2_X", True), ("x" * 65, False), ("a b", False), ("ü", False)])
def test_an_id_of_the_caller_is_kept_if_it_is_harmless(server: Server, given: str, is_kept: bool) -> None:
    answer = server.http.post("/check", json={"where": "a <"}, headers={"X-Request-Id": given.encode()})
    assert (problem(answer, 422)["request_id"] == given) is is_kept


# Other origins


def test_pages_of_other_origins_may_change_nothing(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    for origin in ("https://evil.example", "null", "http://localhost:1", server.url + "0"):
        for method, path, body in (
            ("POST", "/events", {"topic": topic}),
            ("POST", "/subscriptions", {"where": "a = 1"}),
            ("DELETE", taken.path, None),
            ("POST", "/check", {"where": "a = 1"}),
        ):
            headers = {"Origin": origin, **taken.headers}
            problem(server.http.request(method, path, json=body, headers=headers), 403)
    assert server.notified(taken) == []
    form = {"Origin": "https://evil.example", "Content-Type": "application/x-www-form-urlencoded"}
    problem(server.http.post("/events", content=json.dumps({"topic": topic}), headers=form), 403)


def test_its_own_page_may(server: Server) -> None:
    answer = server.http.post("/events", json={}, headers={"Origin": server.url})
    assert answer.status_code == 202
    assert "access-control-allow-origin" not in answer.headers


def test_nothing_is_shared_with_other_origins_unless_they_are_named(server: Server, narrow_server: Server) -> None:
    shop = {"Origin": "https://shop.example"}
    asked = {**shop, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "harken-ticket"}
    for answer in (server.http.get("/stats", headers=shop), server.http.options("/events", headers=asked)):
        assert not any(name.startswith("access-control") for name in answer.headers)
    assert narrow_server.http.get("/stats", headers=shop).headers["access-control-allow-origin"] == shop["Origin"]
    preflight = narrow_server.http.options("/events", headers=asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == shop["Origin"]
    assert "harken-ticket" in preflight.headers["access-control-allow-headers"].lower()
    assert narrow_server.http.post("/events", json={}, headers=shop).status_code == 202
    evil = {"Origin": "https://evil.example"}
    assert "access-control-allow-origin" not in narrow_server.http.get("/stats", headers=evil).headers
    problem(narrow_server.http.post("/events", json={}, headers=evil), 403)


# Bodies


def in_chunks(size: int) -> Iterator[bytes]:
    yield b'{"text": "'
    for _ in range(size // 100):
        yield b"x" * 100
    yield b'"}'


@pytest.mark.parametrize("path", ["/events", "/subscriptions", "/check", "/explain", "/backtest", "/schema/domains"])
def test_a_body_that_is_too_long(narrow_server: Server, path: str) -> None:
    for body in (b'{"where": "' + b"x" * 3_000 + b'"}', in_chunks(3_000)):
        headers = {"Content-Type": "application/json"}
        found = problem(narrow_server.http.post(path, content=body, headers=headers), 413)
        assert found["limit"] == "max_body_bytes"
        assert "2,000 bytes" in found["detail"]


def test_a_change_that_is_too_long(narrow_server: Server) -> None:
    taken = narrow_server.subscribe("a = 1")
    body = {"where": "a = 1", "labels": {"x": "y" * 3_000}}
    problem(narrow_server.http.put(taken.path, json=body, headers=taken.headers), 413)


def test_a_large_body_is_rejected_and_the_connection_stays_in_step(narrow_server: Server) -> None:
    for _ in range(3):
        problem(narrow_server.send("/events", b"x" * 5_000_000, "application/json"), 413)
        assert narrow_server.get("/healthz").json() == {"status": "alive"}


def test_bulk_has_no_such_limit(narrow_server: Server) -> None:
    rows = [{"where": f"n = {n}", "id": new_name()} for n in range(100)]
    answer = narrow_server.send("/subscriptions", as_lines(rows), NDJSON)
    assert len(answer.text.splitlines()) == 100
    problem(narrow_server.send("/events", as_lines([{"text": "x" * 3_000}]), NDJSON), 413)


@pytest.mark.parametrize("encoding", ["gzip", "GZip", "x-gzip"])
def test_a_body_may_come_as_gzip(server: Server, topic: str, encoding: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")

    def sent(path: str, body: bytes, content_type: str) -> httpx.Response:
        return server.send(path, gzip.compress(body), content_type, **{"Content-Encoding": encoding})

    assert (
        sent("/events", as_lines([{"topic": topic, "n": n} for n in range(3)]).encode(), NDJSON).json()["accepted"] == 3
    )
    assert [each["event"]["n"] for each in server.notified(taken)] == [0, 1, 2]
    assert sent("/check", b'{"where": "a = 1"}', "application/json").json()["ok"] is True
    rows = [{"where": "a = 1", "id": new_name()} for _ in range(50)]
    assert len(sent("/subscriptions", as_lines(rows).encode(), NDJSON).text.splitlines()) == 50
    large = json.dumps([{"topic": topic, "text": "x" * 100_000} for _ in range(20)]).encode()
    assert sent("/events", large, "application/json").json()["accepted"] == 20
    plain = server.send("/events", "{}", "application/json", **{"Content-Encoding": "identity"})
    assert plain.status_code == 202


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{}", 400), (gzip.compress(b"{}")[:-3], 400), (gzip.compress(b"{}") + b"more", 400), (b"", 400)],
    ids=["plain", "cut", "longer", "empty"],
)
def test_gzip_that_is_none(server: Server, body: bytes, status: int) -> None:
    for path in ("/events", "/subscriptions"):
        answer = server.send(path, body, "application/json", **{"Content-Encoding": "gzip"})
        found = problem(answer, status)
        assert not body or "gzip" in found["detail"]


def test_gzip_that_no_header_announces(server: Server) -> None:
    found = problem(server.send("/events", gzip.compress(b"{}"), "application/json"), 400)
    assert found["detail"] == "the body is compressed by gzip, and the request does not say so"
    assert found["hint"] == "send it with the header Content-Encoding: gzip"


def test_what_gzip_unpacks_to_is_bounded(narrow_server: Server) -> None:
    bomb = gzip.compress(b'{"text": "' + b"x" * 1_000_000 + b'"}')
    assert len(bomb) < 2_000
    for path in ("/events", "/check"):
        answer = narrow_server.send(path, bomb, "application/json", **{"Content-Encoding": "gzip"})
        assert problem(answer, 413)["limit"] == "max_body_bytes"


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip", "x"])
def test_other_encodings_are_rejected_with_those_that_are_taken(server: Server, encoding: str) -> None:
    answer = server.send("/events", b"x", "application/json", **{"Content-Encoding": encoding})
    found = problem(answer, 415)
    assert encoding in found["detail"]
    assert "gzip" in found["hint"]
    assert answer.headers["accept-encoding"] == "gzip"
    assert "accept-encoding" not in server.send("/events", b"x", "text/csv").headers, "that is another reason"


def test_a_client_that_leaves_in_the_middle_of_a_body(server: Server) -> None:
    async def leave(path: str) -> None:
        url = httpx.URL(server.url)
        _, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode())
        writer.write(b'Content-Length: 1000\r\n\r\n{"where')
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    for path in ("/events", "/subscriptions"):
        asyncio.run(leave(path))
        left = f'harken_http_requests_total{{path="{path}",status="499"}}'
        wait_until(lambda left=left: left in server.get("/metrics").text)
    asyncio.run(leave("/check"))
    assert 'status="500"' not in server.get("/metrics").text


def test_nul_in_paths_and_queries(server: Server) -> None:
    """PostgreSQL could not even be asked for it."""
    taken = server.subscribe("a = 1")
    for path in (
        "/subscriptions/%00",
        "/subscriptions?owner=%00",
        "/subscriptions?after=a%00",
        "/stream?subscription=%00",
    ):
        problem(server.http.get(path, headers=taken.headers), 422)


# Limits by their names


def test_how_many_events(narrow_server: Server) -> None:
    assert narrow_server.post("/events", [{}] * 10).json()["accepted"] == 10
    envelope = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
    for body, content_type in (
        (json.dumps([{}] * 11), "application/json"),
        (as_lines([{}] * 11), NDJSON),
        (json.dumps([envelope] * 11), "application/cloudevents-batch+json"),
    ):
        found = problem(narrow_server.send("/events", body, content_type), 413)
        assert found["limit"] == "max_batch_events"


def test_an_owner_who_subscribes_at_once_has_no_more(narrow_server: Server) -> None:
    draft = {"where": "a = 1", "owner": new_name()}

    async def asked() -> list[int]:
        async with httpx.AsyncClient(base_url=narrow_server.url, timeout=SECONDS, trust_env=False) as client:
            answers = await asyncio.gather(*(client.post("/subscriptions", json=draft) for _ in range(20)))
        return [each.status_code for each in answers]

    assert sorted(asyncio.run(asked())) == [201] * 3 + [403] * 17


def test_how_many_subscriptions_an_owner_has(narrow_server: Server) -> None:
    owner = new_name()
    some = [narrow_server.subscribe("a = 1", owner=owner) for _ in range(3)]
    found = problem(narrow_server.post("/subscriptions", {"where": "a = 1", "owner": owner}), 403)
    assert found["limit"] == "max_subscriptions_per_owner"
    rows = [
        {"where": "a = 1", "owner": each} for each in (owner, owner + "2", owner + "2", owner, owner + "2", owner + "2")
    ]
    report = [
        json.loads(each) for each in narrow_server.send("/subscriptions", as_lines(rows), NDJSON).text.splitlines()
    ]
    assert ["error" in each for each in report] == [True, False, False, True, False, True]
    narrow_server.http.delete(some[0].path, headers=some[0].headers)
    narrow_server.subscribe("a = 1", owner=owner)
    narrow_server.subscribe("a = 1")


def test_how_long_labels_are(narrow_server: Server) -> None:
    narrow_server.subscribe("a = 1", labels={"a": "x" * 80})
    found = problem(narrow_server.post("/subscriptions", {"where": "a = 1", "labels": {"a": "x" * 100}}), 422)
    assert found["limit"] == "max_label_bytes"


def test_how_long_a_subscription_is_valid(narrow_server: Server) -> None:
    narrow_server.subscribe("a = 1", valid_for=1_000)
    found = problem(narrow_server.post("/subscriptions", {"where": "a = 1", "valid_for": 1_001}), 422)
    assert found["limit"] == "max_valid_for"


def test_too_many_events_wait(tmp_path: Path) -> None:
    """Publishers are told to come back, and whatever is accepted is there."""
    with running_server(tmp_path, *settings(max_waiting_events=1)) as server:
        taken = server.subscribe("n >= 0")

        async def publish() -> list[httpx.Response]:
            limits = httpx.Limits(max_connections=60)
            async with httpx.AsyncClient(base_url=server.url, limits=limits, timeout=SECONDS, trust_env=False) as http:
                bodies = ([{"n": n, "text": "x" * 200}] * 200 for n in range(60))
                return await asyncio.gather(*(http.post("/events", json=body) for body in bodies))

        for _ in range(10):
            before = server.get("/stats").json()["events"]
            answers = asyncio.run(publish())
            statuses = [each.status_code for each in answers]
            assert set(statuses) <= {202, 429}
            assert server.get("/stats").json()["events"] - before == 200 * statuses.count(202)
            if 429 in statuses:
                break
        else:
            raise AssertionError("nobody had to wait")
        found = problem(next(each for each in answers if each.status_code == 429), 429)
        assert found["limit"] == "max_waiting_events"
        assert server.notified(taken, limit=1)


# Rates


@pytest.fixture(scope="module")
def paced_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(
        tmp_path_factory.mktemp("paced"), *settings(max_requests_per_second=1, request_burst=10)
    ) as found:
        yield found


def test_who_asks_too_often_is_told_to_come_back(paced_server: Server) -> None:
    def asked(number: int) -> httpx.Response:
        # An Authorization that nobody asks for does not make it another caller.
        return paced_server.http.get("/stats", headers={"Authorization": f"Bearer {number}"})

    answers = [asked(number) for number in range(30)]
    statuses = [each.status_code for each in answers]
    assert statuses[:10] == [200] * 10
    assert 429 in statuses
    found = problem(answers[statuses.index(429)], 429)
    assert found["limit"] == "max_requests_per_second"
    assert paced_server.get("/healthz").status_code == paced_server.get("/metrics").status_code == 200
    time.sleep(float(answers[-1].headers.get("retry-after", 1)))
    assert asked(0).status_code == 200


@pytest.fixture(scope="module")
def paced_by_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str, str]]:
    """A server that asks for keys, with almost no requests beyond the first ten; and two keys."""
    from typer.testing import CliRunner

    from harken.cli import app

    folder = tmp_path_factory.mktemp("paced-by-key")
    words = ["key", "create", "--store", str(folder / "harken.db"), "--owner", "alice", "--scope", "subscribe"]
    one, other = (CliRunner().invoke(app, words).stdout.strip() for _ in range(2))
    options = settings(max_requests_per_second=0.001, request_burst=10)
    with running_server(folder, "--api-keys", *options) as found:
        yield found, one, other


def test_bad_keys_are_counted_by_address(paced_by_key: tuple[Server, str, str]) -> None:
    server, one, other = paced_by_key

    def statuses(keys: list[str]) -> list[int]:
        return [server.http.get("/stats", headers={"Authorization": f"Bearer {each}"}).status_code for each in keys]

    assert statuses([one]) == [200], "a key that was not seen yet counts as its address does"
    assert statuses([f"hk_{number}" for number in range(40)]) == [401] * 9 + [429] * 31
    assert server.get("/stats").status_code == 429, "it is the same address without a key"
    assert statuses([one] * 11) == [200] * 10 + [429], "a key that is known has its own, wherever it comes from"
    assert statuses([other]) == [429], "whether this one is known was not looked up"


def test_a_bucket_fills_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("harken.server.gate.time.monotonic", lambda: now)
    rates = Rates(per_second=2.0, burst=3)
    assert [rates.take(b"a") for _ in range(4)] == [True, True, True, False]
    assert rates.take(b"b"), "each caller has its own"
    now += 0.4
    assert not rates.take(b"a")
    now += 0.2
    assert rates.take(b"a")
    now += 1_000
    assert [rates.take(b"a") for _ in range(4)] == [True, True, True, False], "no more than a burst"


# Bugs


def test_a_bug_is_answered_and_told_nobody(tmp_path: Path) -> None:
    """In this process, where one can be put in."""
    from harken.server.app import create_app
    from harken.server.settings import ServerSettings

    app = create_app(ServerSettings(store=str(tmp_path / "harken.db")))
    app.state.service.is_ready = True

    async def fail() -> None:
        raise RuntimeError("the secret recipe")

    app.add_api_route("/fail", fail)

    async def asked() -> tuple[httpx.Response, dict[str, Any]]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            answer = await http.get("/fail")
            return answer, problem(answer, 500)

    answer, found = asyncio.run(asked())
    assert "recipe" not in answer.text
    assert found["detail"] == "something went wrong inside the server"
    assert answer.headers["x-content-type-options"] == "nosniff"
    app.state.service.readers.close()
