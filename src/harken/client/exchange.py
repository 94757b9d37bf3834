"""Requests, answers and retries, without input or output.

A call is a *flow*: a generator that yields requests and pauses, is sent the outcome of each, and returns its result. A
client runs it, so that each call is written once, for clients that block and for clients that await.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

from harken.client.client_errors import ServerError, UnreachableError, error_of_problem, error_of_text

T = TypeVar("T")

DEFAULT_SERVER = "http://127.0.0.1:8080"
TICKET = "Harken-Ticket"
JSON = "application/json"
NDJSON = "application/x-ndjson"

REJECTED_FOR_NOW = frozenset({429, 502, 503, 504})
_TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the server. `path` is relative to the server's address."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # may have tickets and keys
    content: bytes | None = None
    is_repeatable: bool = False
    """Whether the request is idempotent."""
    wait: float = 0.0
    """Seconds that the server may take to answer, in addition to the client's timeout."""
    expected: frozenset[int] = frozenset()
    """Statuses besides 2xx that are no errors here."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its whole body. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def json(self) -> Any:
        """The body, read as JSON. Raises ServerError if it is not JSON: another program answered."""
        return self._read(self.content)

    @property
    def json_lines(self) -> Iterator[Any]:
        """The lines of the body, each read as JSON."""
        return (self._read(line) for line in self.content.split(b"\n") if line.strip())

    def _read(self, text: bytes) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            shown, request_id = text.decode(errors="replace"), self.headers.get("x-request-id")
            raise error_of_text("the answer is not JSON", shown, self.status, request_id) from None


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds to wait before a flow goes on."""

    seconds: float


Outcome: TypeAlias = Answer | UnreachableError
Flow: TypeAlias = Generator[Request | Pause, Outcome | None, T]
Pages: TypeAlias = Iterator[Flow[Sequence[T]]]
"""A flow for each page of a long answer. Take the next flow only after the one before has returned."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts: doubled each time up to `longest`, then shortened by up to half at random."""

    first: float = 0.25
    longest: float = 10.0
    random: Callable[[], float] = random.random

    def seconds(self, attempt: int) -> float:
        """The pause after an attempt, counted from 0."""
        return min(self.longest, self.first * 2.0 ** min(attempt, 30)) * (1 - self.random() / 2)


@dataclass(frozen=True, slots=True)
class Access:
    """The server that a client talks to, the client's credentials, and how it retries."""

    server: str = DEFAULT_SERVER
    api_key: str | None = field(default=None, repr=False)
    tickets: dict[str, str] = field(default_factory=dict, repr=False)
    """Tickets by the ids of their subscriptions."""
    retries: int = 3
    backoff: Backoff = field(default_factory=Backoff)
    longest_wait: float = 60.0
    """The longest pause, in seconds, that the server may request. If it requests more, its rejection is raised."""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.server)
            is_sound = parts.scheme in ("http", "https") and parts.hostname is not None and parts.port != 0
        except ValueError:
            is_sound = False
        if not is_sound:
            hint = f"it looks like {DEFAULT_SERVER}"
            raise UnreachableError(f"{self.server!r} is not the address of a server", hint=hint)

    def url(self, request: Request) -> str:
        """The URL of a request, without its query."""
        return self.server.rstrip("/") + request.path

    def headers(self, *ids: str, ticket: str | None = None, **more: str) -> dict[str, str]:
        """The headers of a request about these subscriptions. `ticket` takes precedence over remembered ones."""
        tickets = [self.tickets[id] for id in ids if id in self.tickets] if ticket is None else [ticket]
        with_tickets = {TICKET: ", ".join(tickets)} if tickets else {}
        with_key = {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}
        return {**with_key, **with_tickets, **{name.replace("_", "-"): value for name, value in more.items()}}


def path_of(*parts: str) -> str:
    """The path of these parts, percent-encoded."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def sent(access: Access, request: Request) -> Flow[Answer]:
    """Send a request and return the answer, a success or an expected one. Raises ServerError or UnreachableError.

    A repeatable request is retried after a lost connection or a temporary rejection. Any request is retried if it was
    certainly not carried out: it was never sent, or rejected because of too many requests (429).
    """
    is_repeat = False
    for attempt in range(access.retries + 1):
        outcome = yield request
        assert outcome is not None
        if isinstance(outcome, Answer) and (outcome.is_success or outcome.status in request.expected):
            return outcome
        error = outcome if isinstance(outcome, UnreachableError) else error_of(outcome)
        if isinstance(error, ServerError):
            error.is_repeat = is_repeat
        seconds = pause_after(access, error, attempt)
        if seconds is None or attempt == access.retries or not (request.is_repeatable or _was_not_carried_out(error)):
            raise error
        is_repeat = is_repeat or (isinstance(error, UnreachableError) and not error.is_unsent)
        yield Pause(seconds)
    raise AssertionError("the last attempt returns or raises")


def _was_not_carried_out(error: ServerError | UnreachableError) -> bool:
    """Whether the server has certainly done nothing."""
    return error.is_unsent if isinstance(error, UnreachableError) else error.status == _TOO_MANY_REQUESTS


def pages(
    access: Access, request: Request, field: str, read: Callable[[Mapping[str, Any]], T], after: str | None = None
) -> Pages[T]:
    """The pages of a list, from cursor to cursor. `field` has the rows of a page, and `read` reads one."""

    def page() -> Flow[Sequence[T]]:
        nonlocal after
        query = [*request.query, *given(after=after)]
        answer = yield from sent(access, replace(request, query=query, is_repeatable=True))
        plain = answer.json
        after = plain["next"] if plain["next"] != after else None
        return [read(each) for each in plain[field]]  # a page may be empty and the next one not

    while True:
        yield page()
        if after is None:
            return


def given(**arguments: object) -> list[tuple[str, str]]:
    """The part of a query for the arguments that are not None."""
    return [(name, str(value)) for name, value in arguments.items() if value is not None]


def pause_after(access: Access, error: ServerError | UnreachableError, attempt: int) -> float | None:
    """Seconds to wait before another attempt, or None if none can help."""
    if isinstance(error, UnreachableError):
        return access.backoff.seconds(attempt)
    if error.status not in REJECTED_FOR_NOW:
        return None
    requested = error.retry_after or 0.0
    return None if requested > access.longest_wait else max(requested, access.backoff.seconds(attempt))


def error_of(answer: Answer) -> ServerError:
    """The error that an answer describes."""
    request_id = answer.headers.get("x-request-id")
    retry_after = _seconds(answer.headers.get("retry-after"))
    try:
        problem = json.loads(answer.content)
    except ValueError:
        problem = None
    if isinstance(problem, dict):
        return error_of_problem(problem, answer.status, request_id, retry_after)
    return error_of_text(None, answer.content.decode(errors="replace"), answer.status, request_id, retry_after)


def _seconds(retry_after: str | None) -> float | None:
    """The header Retry-After, which is a number of seconds or a date."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (then.astimezone(UTC) - datetime.now(UTC)).total_seconds())
