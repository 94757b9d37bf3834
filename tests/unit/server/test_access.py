"""API keys: scopes, owners who see their own only, administration, and keys that are removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from harken.cli import app
from harken.server.credentials import KEY, new_credential
from unit.server.serving import (
    NDJSON,
    SECONDS,
    Server,
    Taken,
    as_lines,
    lines,
    new_name,
    problem,
    running_server,
    wait_until,
)

pytestmark = pytest.mark.together


def made(folder: Path, owner: str, *scopes: str) -> str:
    """A key that `harken key` makes."""
    words = [word for scope in scopes for word in ("--scope", scope)]
    result = CliRunner().invoke(app, ["key", "create", "--store", str(folder / "harken.db"), "--owner", owner, *words])
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def keyed(folder: Path) -> Iterator[Server]:
    """A server that asks for keys, which a client without one talks to."""
    made(folder, "nobody", "publish")  # before there is a server
    with running_server(folder, "--api-keys") as found:
        yield found


@pytest.fixture(scope="module")
def someone(keyed: Server, folder: Path) -> Iterator[Any]:
    """Clients with keys, by owner and scopes."""
    known: dict[tuple[str, ...], Server] = {}

    def someone(owner: str, *scopes: str) -> Server:
        if (owner, *scopes) not in known:
            key = made(folder, owner, *scopes)
            known[(owner, *scopes)] = Server(keyed.url, {"Authorization": f"Bearer {key}"})
        return known[(owner, *scopes)]

    yield someone
    for each in known.values():
        each.http.close()


@pytest.fixture(scope="module")
def admin(someone: Any) -> Server:
    return someone("root", "admin")


@pytest.fixture(scope="module")
def alice(someone: Any) -> Server:
    return someone("alice", "subscribe")


@pytest.fixture(scope="module")
def bob(someone: Any) -> Server:
    return someone("bob", "subscribe")


@pytest.fixture(scope="module")
def shop(someone: Any) -> Server:
    return someone("shop", "publish")


REQUESTS: list[tuple[str, str, Any, set[str]]] = [
    ("POST", "/events", {}, {"publish"}),
    ("POST", "/events?dry_run=true", {}, {"publish"}),
    ("POST", "/subscriptions", {"where": "a = 1"}, {"subscribe"}),
    ("GET", "/subscriptions", None, {"subscribe"}),
    ("POST", "/check", {"where": "a = 1"}, {"subscribe"}),
    ("POST", "/explain", {"where": "a = 1", "event": {}}, {"subscribe"}),
    ("POST", "/backtest", {"where": "a = 1"}, {"subscribe"}),
    ("GET", "/stats", None, {"subscribe"}),
    ("GET", "/plan", None, {"subscribe"}),
    ("GET", "/schema", None, {"publish", "subscribe"}),
    ("POST", "/schema/attributes", {"name": "weight", "domain": "float"}, {"publish"}),
    ("GET", "/keys", None, set()),
    ("POST", "/keys", {"owner": "x", "scopes": ["publish"]}, set()),
    ("DELETE", "/keys/nothing", None, set()),
    ("POST", "/token", None, set()),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "scopes"), REQUESTS, ids=[f"{each[0]} {each[1]}" for each in REQUESTS]
)
def test_what_each_scope_is_for(
    keyed: Server, someone: Any, method: str, path: str, body: Any, scopes: set[str]
) -> None:
    found = problem(keyed.http.request(method, path, json=body), 401)
    assert "Authorization" in found["hint"]
    for scope in ("publish", "subscribe", "admin"):
        answer = someone(f"only-{scope}", scope).http.request(method, path, json=body)
        if scope in scopes or scope == "admin":
            assert answer.status_code not in (401, 403), (scope, answer.text)
        else:
            problem(answer, 403)


def test_what_anybody_may(keyed: Server) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/"):
        assert keyed.get(path).status_code == 200


@pytest.mark.parametrize(
    "header", ["Bearer hk_wrong", "Bearer", "Basic YTpi", "hk_wrong", "Bearer é", "Bearer {guess}"]
)
def test_keys_that_are_not_known(keyed: Server, header: str) -> None:
    header = header.format(guess=new_credential(KEY))
    for method, path in (("POST", "/events"), ("GET", "/subscriptions"), ("GET", "/keys")):
        problem(keyed.http.request(method, path, headers={"Authorization": header.encode()}), 401)


def test_a_word_for_the_scheme_in_any_case(keyed: Server, shop: Server) -> None:
    key = shop.http.headers["authorization"].partition(" ")[2]
    answer = keyed.http.post("/events", json={}, headers={"Authorization": f"bEARER {key}"})
    assert answer.status_code == 202


def test_owners_see_their_own(alice: Server, bob: Server, admin: Server, topic: str) -> None:
    mine, his = (each.subscribe(f"topic = '{topic}'", labels={"k": topic}) for each in (alice, bob))

    def listed(server: Server, **params: Any) -> list[str]:
        answer = server.get("/subscriptions", label=f"k:{topic}", limit=1_000, **params)
        assert answer.status_code == 200, answer.text
        rows = answer.json()["subscriptions"]
        assert all(each["where"] for each in rows), "what is listed is whole"
        return [each["id"] for each in rows]

    assert listed(alice) == listed(alice, owner="alice") == [mine.id]
    assert listed(bob) == [his.id]
    assert sorted(listed(admin)) == sorted([mine.id, his.id])
    assert listed(admin, owner="bob") == [his.id]
    problem(alice.get("/subscriptions", owner="bob"), 403)
    assert alice.get(mine.path).json()["owner"] == "alice", "it is the key's, without a ticket"
    for method, path in (
        ("GET", his.path),
        ("DELETE", his.path),
        ("POST", f"{his.path}/token"),
        ("POST", f"{his.path}/renew"),
        ("GET", f"/notifications?subscription={his.id}"),
        ("GET", f"/stream?subscription={his.id}"),
    ):
        problem(alice.http.request(method, path), 403)
    problem(alice.get(f"/subscriptions/{new_name()}"), 404)
    assert admin.get(his.path).status_code == 200
    assert bob.get(mine.path, mine).status_code == 200, "a ticket opens, whoever has it"


def test_publishers_cannot_suppress_each_others_cloudevents(
    someone: Any, alice: Server, shop: Server, topic: str
) -> None:
    taken = alice.subscribe(f"subject = '{topic}'")
    attributes = {"specversion": "1.0", "id": topic, "source": "/till", "type": "order", "subject": topic}

    def sent(server: Server, n: int) -> Any:
        answer = server.send("/events", json.dumps({**attributes, "data": n}), "application/cloudevents+json")
        assert answer.status_code == 202
        return answer.json()

    mallory = someone("mallory", "publish")
    assert sent(mallory, 1) == sent(shop, 2) == {"accepted": 1, "rejected": []}
    assert sent(mallory, 3) == sent(shop, 4) == {"accepted": 1, "rejected": [], "duplicates": 1}
    assert [each["event"]["data"] for each in alice.notified(taken)] == [1, 2]


def test_a_ticket_needs_a_key_too(keyed: Server, alice: Server, bob: Server, topic: str) -> None:
    """Whoever is handed a ticket reads with it, if they have a key that may subscribe."""
    mine = alice.subscribe(f"topic = '{topic}'")
    problem(keyed.get(mine.path, mine), 401)
    problem(keyed.get("/notifications", mine, subscription=mine.id), 401)
    assert bob.get(mine.path, mine).status_code == 200
    assert bob.notified(mine) == []
    with bob.stream(mine):
        pass
    problem(keyed.get(mine.path), 401)
    problem(keyed.get(mine.path, Taken("", new_credential("ht_"))), 401)
    problem(bob.get(mine.path, Taken("", new_credential("ht_"))), 403)


def test_who_a_subscription_belongs_to(alice: Server, admin: Server) -> None:
    found = problem(alice.post("/subscriptions", {"where": "a = 1", "owner": "bob"}), 403)
    assert "owner" in found["detail"]
    report = lines(
        alice.send("/subscriptions", as_lines([{"where": "a = 1", "owner": "bob"}, {"where": "a = 1"}]), NDJSON)
    )
    assert report[0]["error"]["status"] == 403
    assert alice.get(f"/subscriptions/{report[1]['id']}").json()["owner"] == "alice"
    assert alice.subscribe("a = 1", owner="alice")
    others = admin.subscribe("a = 1", owner="carol")
    assert admin.get(others.path).json()["owner"] == "carol"


def test_a_dry_run_tells_of_ones_own(someone: Any, alice: Server, admin: Server, shop: Server, topic: str) -> None:
    mine, hers = alice.subscribe(f"topic = '{topic}'"), admin.subscribe(f"topic = '{topic}'", owner="carol")
    both = someone("alice", "publish", "subscribe")
    assert both.matches({"topic": topic}) == [[mine.id]]
    assert admin.matches({"topic": topic}) == [sorted([mine.id, hers.id])]
    assert shop.matches({"topic": topic}) == [[]]
    with_ticket = shop.http.post("/events?dry_run=true", json={"topic": topic}, headers=hers.headers)
    assert with_ticket.json()["matches"] == [[hers.id]]


def test_events_of_anybody_reach_subscriptions_of_anybody(alice: Server, shop: Server, topic: str) -> None:
    mine = alice.subscribe(f"topic = '{topic}'")
    shop.publish({"topic": topic, "n": 1})
    assert [each["event"]["n"] for each in alice.notified(mine)] == [1]
    with alice.http.stream("GET", "/stream", params={"subscription": mine.id, "after": "0"}) as answer:
        assert answer.status_code == 200, "the key of its owner opens a stream, too"


def test_idempotency_keys_belong_to_owners(someone: Any, alice: Server, topic: str) -> None:
    mine = alice.subscribe(f"topic = '{topic}'")
    for owner in ("shop", "shop", "till"):
        answer = someone(owner, "publish").http.post(
            "/events", json={"topic": topic}, headers={"Idempotency-Key": topic}
        )
        assert answer.status_code == 202
    assert len(alice.notified(mine)) == 2


def test_the_feed_is_for_administration(keyed: Server, admin: Server, alice: Server) -> None:
    problem(keyed.get("/live"), 401)
    problem(alice.get("/live"), 403)
    problem(alice.post("/token"), 403)
    with admin.stream(path="/live"):
        pass
    token = admin.post("/token").json()["token"]
    with keyed.stream(path="/live", token=token) as frames:
        assert next(frames).kind == "rates"
    mine = alice.subscribe("a = 1")
    own = alice.post(f"{mine.path}/token").json()["token"]
    problem(keyed.get("/live", token=own), 401)
    with keyed.stream(path="/stream", subscription=mine.id, token=own):
        pass


def test_keys_are_made_listed_and_removed(keyed: Server, admin: Server) -> None:
    owner = new_name()
    answer = admin.post("/keys", {"owner": owner, "scopes": ["subscribe", "publish"], "name": "tïll"})
    assert answer.status_code == 201
    made = answer.json()
    assert made["scopes"] == ["publish", "subscribe"]
    key = made.pop("key")
    assert key.startswith("hk_")
    listed = admin.get("/keys")
    assert made in listed.json()["keys"]
    assert key not in listed.text
    with httpx.Client(base_url=keyed.url, timeout=SECONDS, headers={"Authorization": f"Bearer {key}"}) as http:
        assert http.post("/events", json={}).status_code == 202
        removed = admin.http.delete(f"/keys/{made['id']}")
        assert (removed.status_code, removed.content) == (204, b"")
        problem(http.post("/events", json={}), 401)
    problem(admin.http.delete(f"/keys/{made['id']}"), 404)


@pytest.mark.parametrize(
    "body",
    [
        {"owner": "x", "scopes": []},
        {"owner": "x", "scopes": ["everything"]},
        {"owner": "", "scopes": ["admin"]},
        {"owner": "\x00", "scopes": ["admin"]},
        {"scopes": ["admin"]},
        {"owner": "x", "scopes": ["admin"], "key": "hk_mine"},
    ],
)
def test_keys_that_cannot_be(admin: Server, body: dict[str, Any]) -> None:
    problem(admin.post("/keys", body), 422)


def test_a_key_that_is_removed_elsewhere_works_no_more_within_seconds(shop: Server, folder: Path) -> None:
    key = made(folder, "short-lived", "publish")
    with httpx.Client(base_url=shop.url, timeout=SECONDS, headers={"Authorization": f"Bearer {key}"}) as http:
        assert http.post("/events", json={}).status_code == 202, "it works at once, although the server runs"
        (listed,) = (each for each in keys(folder) if each["owner"] == "short-lived")
        removed = CliRunner().invoke(app, ["key", "remove", "--store", str(folder / "harken.db"), listed["id"]])
        assert removed.exit_code == 0
        wait_until(lambda: http.post("/events", json={}).status_code == 401)


def keys(folder: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["key", "list", "--json", "--store", str(folder / "harken.db")])
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_no_key_is_in_the_log_or_the_metrics(keyed: Server, admin: Server, folder: Path) -> None:
    key = admin.http.headers["authorization"].partition(" ")[2]
    assert key not in (folder / "serve.log").read_text()
    assert key not in keyed.get("/metrics").text
    assert all(key.encode() not in path.read_bytes() for path in folder.glob("harken.db*") if path.is_file())
