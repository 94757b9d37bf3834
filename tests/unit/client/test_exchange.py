"""Retries: what is sent again, after how long, and what is raised in the end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from harken.client.answers import LineReport, Ticketed
from harken.client.client_errors import ServerError, UnreachableError
from harken.client.exchange import Access, Answer, Backoff, Flow, Outcome, Pause, Request, path_of, sent
from harken.errors import Place

STEADY = Backoff(first=1.0, longest=4.0, random=lambda: 0.0)
ACCESS = Access(backoff=STEADY)
LOST = UnreachableError("the connection was lost")
UNSENT = UnreachableError("nobody is there", is_unsent=True)
OK = Answer(200, {}, b"{}")


def rejection(status: int, retry_after: str | None = None, body: Any = None) -> Answer:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Answer(status, headers, b"" if body is None else json.dumps(body).encode())


def run(flow: Flow[Answer], *outcomes: Outcome) -> tuple[Answer | Exception, list[float], int]:
    """What a flow returns or raises, the pauses that it made, and how often it sent."""
    left, pauses, requests = list(outcomes), list[float](), 0
    outcome: Outcome | None = None
    while True:
        try:
            step = flow.send(outcome)
        except StopIteration as end:
            return end.value, pauses, requests
        except (ServerError, UnreachableError) as error:
            return error, pauses, requests
        outcome = None
        if isinstance(step, Pause):
            pauses.append(step.seconds)
        else:
            requests += 1
            outcome = left.pop(0)


def sending(*outcomes: Outcome, is_repeatable: bool = True) -> tuple[Answer | Exception, list[float], int]:
    return run(sent(ACCESS, Request("GET", "/x", is_repeatable=is_repeatable)), *outcomes)


def test_what_may_be_repeated_is_after_lost_connections_and_rejections_for_now() -> None:
    assert sending(LOST, rejection(503), OK) == (OK, [1.0, 2.0], 3)


def test_pauses_double_up_to_a_longest_and_vary() -> None:
    assert [STEADY.seconds(attempt) for attempt in range(5)] == [1.0, 2.0, 4.0, 4.0, 4.0]
    assert Backoff(1.0, 4.0, lambda: 1.0).seconds(1) == 1.0
    assert Backoff(1.0, 4.0).seconds(10_000) <= 4.0


def test_attempts_are_bounded() -> None:
    error, pauses, requests = sending(LOST, LOST, LOST, LOST)
    assert error is LOST
    assert (pauses, requests) == ([1.0, 2.0, 4.0], 4)


def test_what_may_not_be_repeated_is_not() -> None:
    for outcome in (LOST, rejection(503)):
        error, pauses, requests = sending(outcome, is_repeatable=False)
        assert isinstance(error, UnreachableError | ServerError)
        assert (pauses, requests) == ([], 1)


def test_what_was_never_sent_is_always_repeated() -> None:
    assert sending(UNSENT, UNSENT, OK, is_repeatable=False) == (OK, [1.0, 2.0], 3)
    error, _, requests = sending(UNSENT, LOST, OK, is_repeatable=False)
    assert (error, requests) == (LOST, 2), "what was sent may have been carried out"
    error, _, _ = sending(*[UNSENT] * 4, is_repeatable=False)
    assert error is UNSENT


def test_a_status_that_is_expected_is_an_answer() -> None:
    request = Request("GET", "/readyz", is_repeatable=True, expected=frozenset({503}))
    assert run(sent(ACCESS, request), LOST, rejection(503)) == (rejection(503), [1.0], 2)


def test_what_came_too_soon_was_not_carried_out_and_is_always_repeated() -> None:
    assert sending(rejection(429, "3"), OK, is_repeatable=False) == (OK, [3.0], 2)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422, 500, 301])
def test_other_rejections_are_raised_at_once(status: int) -> None:
    error, pauses, _ = sending(rejection(status))
    assert isinstance(error, ServerError)
    assert (error.status, pauses) == (status, [])


def test_retry_after_is_honoured_where_it_is_longer() -> None:
    assert sending(rejection(503, "7"), OK)[1] == [7.0]
    assert sending(rejection(503, "0"), OK)[1] == [1.0]
    assert sending(rejection(503, "soon"), OK)[1] == [1.0]
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert sending(rejection(503, then), OK)[1][0] == pytest.approx(30, abs=2)


def test_a_server_that_wants_too_much_time_is_not_waited_for() -> None:
    error, pauses, _ = sending(rejection(503, "3600"))
    assert isinstance(error, ServerError)
    assert (error.retry_after, pauses) == (3600.0, [])


def test_a_rejection_after_a_lost_answer_says_so() -> None:
    error, _, _ = sending(LOST, rejection(409))
    assert isinstance(error, ServerError)
    assert error.is_repeat
    for before in (rejection(503), UNSENT):
        error, _, _ = sending(before, rejection(409))
        assert isinstance(error, ServerError)
        assert not error.is_repeat


def test_a_problem_becomes_an_error_with_all_its_parts() -> None:
    body = {
        "type": "urn:harken:parse-error",
        "title": "Parse error",
        "status": 422,
        "detail": "expected a value",
        "line": 2,
        "column": 3,
        "excerpt": "a <\n  ^",
        "hint": "write one",
        "limit": "max_values",
        "request_id": "r-9",
    }
    error, _, _ = sending(rejection(422, body=body))
    assert isinstance(error, ServerError)
    assert str(error) == "expected a value (line 2, column 3)\n  a <\n    ^\nhint: write one"
    assert (error.status, error.type, error.request_id) == (422, "urn:harken:parse-error", "r-9")
    assert (error.place, error.excerpt, error.hint) == (Place(2, 3), "a <\n  ^", "write one")
    assert error.to_dict() == {
        "error": "ServerError",
        "message": "expected a value",
        "line": 2,
        "column": 3,
        "excerpt": "a <\n  ^",
        "hint": "write one",
        "status": 422,
        "type": "urn:harken:parse-error",
        "limit": "max_values",
        "request_id": "r-9",
    }


def test_an_answer_of_something_else_is_told_by_its_status_and_beginning() -> None:
    answer = Answer(504, {"x-request-id": "p-1"}, b"<html>\n  <b>no</b>" + b"x" * 1_000)
    error, _, _ = sending(*[answer] * 4)
    assert isinstance(error, ServerError)
    assert error.message == "the server answered 504 Gateway Timeout"
    assert (error.request_id, len(error.excerpt or "")) == ("p-1", 200)
    assert str(sending(rejection(599))[0]) == "the server answered 599"
    with pytest.raises(ServerError, match="the answer is not JSON"):
        _ = Answer(200, {}, b"<html>").json


def test_headers_of_a_request() -> None:
    access = Access(api_key="k", tickets={"a": "1", "b": "2"})
    assert access.headers("a", "b", "c") == {"Authorization": "Bearer k", "Harken-Ticket": "1, 2"}
    assert access.headers("a", ticket="9", Content_Type="x/y") == {
        "Authorization": "Bearer k",
        "Harken-Ticket": "9",
        "Content-Type": "x/y",
    }
    assert Access().headers("a") == {}


def test_secrets_are_not_shown() -> None:
    access = Access(api_key="secret-1", tickets={"a": "secret-2"})
    request = Request("GET", "/x", (), access.headers("a"))
    made = Ticketed("a", "secret-3", datetime.now(UTC), (), "secret-4")
    report = LineReport(1, "a", made.ticket, made.expires_at, (), made.webhook_secret)
    assert "secret" not in f"{access!r} {request!r} {made!r} {report!r}"


def test_addresses() -> None:
    assert Access("http://h:1/base/").url(Request("GET", "/x")) == "http://h:1/base/x"
    assert path_of("subscriptions", "a/b ?é", "renew") == "/subscriptions/a%2Fb%20%3F%C3%A9/renew"
    for wrong in ("", "localhost:8080", "ftp://h", "http://", "http://h:x", "http://[h", "http://:80"):
        with pytest.raises(UnreachableError, match="is not the address of a server"):
            Access(wrong)
