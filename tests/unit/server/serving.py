"""A server as a process of its own, and what tests ask of it over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from services.serving import serving

SECONDS = 60.0
"""After this an answer does not come any more. It says nothing of how quick a server is."""
NDJSON = "application/x-ndjson"
PROBLEM = "application/problem+json"
_numbers = count()


@dataclass(frozen=True)
class Taken:
    """A subscription that was taken."""

    id: str
    ticket: str
    expires_at: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)
    location: str = ""

    @property
    def path(self) -> str:
        return f"/subscriptions/{quote(self.id, safe='')}"

    @property
    def headers(self) -> dict[str, str]:
        return {"Harken-Ticket": self.ticket}


@dataclass(frozen=True)
class Frame:
    """One event of a stream of server-sent events. Comments have the kind `comment`."""

    kind: str
    text: str
    id: str | None = None

    @property
    def data(self) -> Any:
        return json.loads(self.text)


class Server:
    """A server that runs, and a client of it."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=SECONDS, trust_env=False, headers=headers)

    def get(self, path: str, taken: Taken | None = None, **params: Any) -> httpx.Response:
        return self.http.get(path, params=params, headers=None if taken is None else taken.headers)

    def post(self, path: str, content: Any = None, taken: Taken | None = None) -> httpx.Response:
        return self.http.post(path, json=content, headers=None if taken is None else taken.headers)

    def send(self, path: str, body: bytes | str, content_type: str, **headers: str) -> httpx.Response:
        """Post a body as it is."""
        return self.http.post(path, content=body, headers={"Content-Type": content_type, **headers})

    def subscribe(self, where: str, **fields: Any) -> Taken:
        """Take a subscription, which has to be possible."""
        answer = self.post("/subscriptions", {"where": where, "id": new_name(), **fields})
        assert answer.status_code == 201, answer.text
        plain = answer.json()
        return Taken(plain["id"], plain["ticket"], plain["expires_at"], plain, answer.headers["location"])

    def publish(self, *events: Mapping[str, Any]) -> None:
        """Publish events, all of which have to be accepted."""
        answer = self.post("/events", list(events))
        assert answer.status_code == 202, answer.text
        assert answer.json() == {"accepted": len(events), "rejected": []}

    def matches(self, *events: Mapping[str, Any]) -> list[list[str]]:
        """The ids that events would match."""
        answer = self.http.post("/events", params={"dry_run": "true"}, json=list(events))
        assert answer.status_code == 200, answer.text
        plain = answer.json()
        assert plain["rejected"] == []
        return [sorted(ids) for ids in plain["matches"]]

    def notified(self, *taken: Taken, **params: Any) -> list[dict[str, Any]]:
        """The notifications of subscriptions."""
        found: list[dict[str, Any]] = self.page(*taken, **params)["notifications"]
        return found

    def page(self, *taken: Taken, **params: Any) -> dict[str, Any]:
        answer = self.http.get(
            "/notifications",
            params={"subscription": [each.id for each in taken], **params},
            headers={"Harken-Ticket": ",".join(each.ticket for each in taken)},
        )
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    @contextmanager
    def stream(
        self, *taken: Taken, path: str = "/stream", headers: Mapping[str, str] | None = None, **params: Any
    ) -> Iterator[Iterator[Frame]]:
        """The frames of a stream, from its welcome on, which is read already."""
        tickets = {"Harken-Ticket": ",".join(each.ticket for each in taken)} if taken else {}
        asked = {"subscription": [each.id for each in taken], **params} if taken else params
        with self.http.stream("GET", path, params=asked, headers={**tickets, **(headers or {})}) as answer:
            if answer.status_code != 200:
                raise AssertionError(answer.read().decode())
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            frames = _frames(answer.iter_lines())
            welcome = next(frames)
            assert (welcome.kind, welcome.text) == ("comment", "welcome")
            yield frames


def new_name() -> str:
    """A name that no other test has: tests share a server."""
    return f"t{next(_numbers)}"


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The problem that an answer tells, which has to have this status."""
    assert answer.status_code == status, (answer.status_code, answer.text[:1_000])
    assert answer.headers["content-type"] == PROBLEM
    found: dict[str, Any] = answer.json()
    assert found["status"] == status
    assert found["request_id"] == answer.headers["x-request-id"]
    assert found.keys() >= {"type", "title", "detail"}
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
    if status in (429, 503):
        assert int(answer.headers["retry-after"]) >= 1
    return found


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    """The objects of an answer of JSON lines."""
    assert answer.status_code == 200, answer.text[:1_000]
    assert answer.headers["content-type"].partition(";")[0] == NDJSON
    return [json.loads(line) for line in answer.text.splitlines()]


def as_lines(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in rows)


def wait_until(holds: Callable[[], Any], seconds: float = SECONDS) -> None:
    """Wait until something holds, and fail if it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not become true within {seconds:g} s"
        time.sleep(0.02)


def settings(**values: object) -> list[str]:
    """Settings as options of `harken serve`."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


@contextmanager
def running_server(folder: Path, *options: str, headers: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server on a store in a folder. What is there stays when it ends."""
    with serving(folder, *options) as url:
        server = Server(url, headers)
        with server.http:
            yield server


def _frames(texts: Iterator[str]) -> Iterator[Frame]:
    fields: dict[str, str] = {}
    for line in texts:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            kind, text = ("comment", fields[""]) if "event" not in fields else (fields["event"], fields["data"])
            yield Frame(kind, text, fields.get("id"))
            fields = {}
