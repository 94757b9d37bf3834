"""A key that is removed: with API keys every request needs one, and what a key has opened ends within seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from harken.cli import app
from harken.server.credentials import new_credential
from unit.server.serving import Server, Taken, new_name, problem, running_server, wait_until

pytestmark = pytest.mark.together
HANGS = 60.0
"""What has not ended after this goes on for ever. The promise is five seconds; no test says how quick a machine is."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("revoking")


@pytest.fixture(scope="module")
def keyed(folder: Path) -> Iterator[Server]:
    """A server that asks for keys, which a client without one talks to."""
    with running_server(folder, "--api-keys") as server:
        yield server


@pytest.fixture(scope="module")
def admin(keyed: Server, folder: Path) -> Iterator[Server]:
    words = ["key", "create", "--store", str(folder / "harken.db"), "--owner", "root", "--scope", "admin"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    root = Server(keyed.url, {"Authorization": f"Bearer {result.stdout.strip()}"})
    with root.http:
        yield root


class KeyHolder(Server):
    """A client with a key of its own, which can be removed."""

    def __init__(self, url: str, key: dict[str, Any]) -> None:
        super().__init__(url, {"Authorization": f"Bearer {key['key']}"})
        self.key_id = key["id"]


def remove_over_http(admin: Server, folder: Path, id: str) -> None:
    assert admin.http.delete(f"/keys/{id}").status_code == 204


def remove_in_the_store(admin: Server, folder: Path, id: str) -> None:
    """As another process does."""
    result = CliRunner().invoke(app, ["key", "remove", "--store", str(folder / "harken.db"), id])
    assert result.exit_code == 0, result.output


Remove = Callable[[str], None]


@pytest.fixture(params=[remove_over_http, remove_in_the_store])
def remove(request: pytest.FixtureRequest, admin: Server, folder: Path) -> Remove:
    return lambda id: request.param(admin, folder, id)


@pytest.fixture
def holder(keyed: Server, admin: Server) -> Iterator[Callable[..., KeyHolder]]:
    """Makes keys, and clients that have them."""
    made: list[KeyHolder] = []

    def holder(*scopes: str) -> KeyHolder:
        answer = admin.post("/keys", {"owner": new_name(), "scopes": scopes})
        made.append(KeyHolder(keyed.url, answer.json()))
        return made[-1]

    yield holder
    for each in made:
        each.http.close()


# Every request needs a key


def test_a_ticket_alone_opens_nothing(keyed: Server, holder: Callable[..., KeyHolder]) -> None:
    taken = holder("subscribe").subscribe("a = 1")
    requests: list[tuple[str, str, Any]] = [
        ("GET", taken.path, None),
        ("PUT", taken.path, {"where": "a = 2"}),
        ("POST", f"{taken.path}/renew", {"valid_for": 60}),
        ("POST", f"{taken.path}/token", None),
        ("GET", f"{taken.path}/dead-letters", None),
        ("POST", f"{taken.path}/redeliver", {"dead": True}),
        ("POST", "/explain", {"subscription": taken.id, "event": {}}),
        ("GET", f"/notifications?subscription={taken.id}", None),
        ("GET", f"/stream?subscription={taken.id}", None),
        ("GET", "/notifications?subscription=nobody", None),
        ("DELETE", taken.path, None),
    ]
    for method, path, body in requests:
        problem(keyed.http.request(method, path, json=body, headers=taken.headers), 401)


def test_a_ticket_opens_for_any_key_that_may_subscribe(holder: Callable[..., KeyHolder]) -> None:
    taken = holder("subscribe").subscribe("a = 1")
    assert holder("subscribe").get(taken.path, taken).json()["where"] == "a = 1"
    publisher = holder("publish")
    problem(publisher.get(taken.path, taken), 403)
    problem(publisher.http.delete(taken.path, headers=taken.headers), 403)
    problem(holder("subscribe").get(taken.path, Taken("", new_credential("ht_"))), 403)


# What a key has opened ends with it


def lines_of(server: Server, path: str, begun: threading.Event, ended: threading.Event, **params: Any) -> None:
    """Read a stream to its end."""
    with server.http.stream("GET", path, params=params, timeout=HANGS) as answer:
        assert answer.status_code == 200, answer.read()
        for _ in answer.iter_lines():
            begun.set()
    ended.set()


def assert_it_ends(server: Server, path: str, remove: Callable[[], None], **params: Any) -> None:
    """A stream is open, and ends when a key is removed."""
    begun, ended = threading.Event(), threading.Event()
    reading = threading.Thread(target=lines_of, args=(server, path, begun, ended), kwargs=params, daemon=True)
    reading.start()
    assert begun.wait(HANGS)
    assert not ended.is_set()
    remove()
    assert ended.wait(HANGS), "it goes on"


def test_a_stream_ends_with_its_key(holder: Callable[..., KeyHolder], remove: Remove) -> None:
    one = holder("subscribe")
    taken = one.subscribe("a = 1")
    assert_it_ends(one, "/stream", lambda: remove(one.key_id), subscription=taken.id)
    wait_until(lambda: one.get(taken.path, taken).status_code == 401, HANGS)


def test_a_stream_by_ticket_and_key_ends_with_the_key(holder: Callable[..., KeyHolder], remove: Remove) -> None:
    taken, other = holder("subscribe").subscribe("a = 1"), holder("subscribe")
    other.http.headers.update(taken.headers)
    assert_it_ends(other, "/stream", lambda: remove(other.key_id), subscription=taken.id)


def test_the_feed_ends_with_its_key(holder: Callable[..., KeyHolder], remove: Remove) -> None:
    root = holder("admin")
    assert_it_ends(root, "/live", lambda: remove(root.key_id))


def test_a_token_ends_with_the_key_that_bought_it(
    keyed: Server, holder: Callable[..., KeyHolder], remove: Remove
) -> None:
    one, root = holder("subscribe"), holder("admin")
    taken = one.subscribe("a = 1")
    token = one.post(f"{taken.path}/token").json()["token"]
    assert_it_ends(keyed, "/stream", lambda: remove(one.key_id), subscription=taken.id, token=token)
    problem(keyed.get("/stream", subscription=taken.id, token=token), 401)
    feed = root.post("/token").json()["token"]
    assert_it_ends(keyed, "/live", lambda: remove(root.key_id), token=feed)
    problem(keyed.get("/live", token=feed), 401)


def test_a_long_poll_ends_with_its_key(holder: Callable[..., KeyHolder], remove: Remove, admin: Server) -> None:
    one = holder("subscribe")
    taken = one.subscribe("a = 1")
    answers: list[httpx.Response] = []

    def poll() -> None:
        params = {"subscription": taken.id, "wait": 55}
        answers.append(one.http.get("/notifications", params=params, timeout=2 * HANGS))

    before = admin.get("/stats").json()["streams"]
    polling = threading.Thread(target=poll, daemon=True)
    polling.start()
    while admin.get("/stats").json()["streams"] == before:
        assert polling.is_alive()
    remove(one.key_id)
    polling.join(2 * HANGS)
    problem(answers[0], 401)  # had it waited to its end, this were an empty page


def test_other_keys_go_on(holder: Callable[..., KeyHolder], remove: Remove) -> None:
    one, other = holder("subscribe"), holder("subscribe", "publish")
    taken = other.subscribe(f"topic = '{one.key_id}'")
    hers = one.subscribe("a = 1")
    with other.stream(taken) as frames:
        assert_it_ends(one, "/stream", lambda: remove(one.key_id), subscription=hers.id)
        other.publish({"topic": one.key_id})
        assert next(frames).data["subscription"] == taken.id
