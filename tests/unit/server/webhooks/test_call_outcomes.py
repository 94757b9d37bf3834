"""What an answer means: by its status, by how long the receiver asks to wait, and what of it is quoted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from harken.server.webhooks.call_outcomes import OutcomeKind, of_answer


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, OutcomeKind.DELIVERED),
        (204, OutcomeKind.DELIVERED),
        (299, OutcomeKind.DELIVERED),
        (101, OutcomeKind.RETRY),
        (301, OutcomeKind.RETRY),
        (304, OutcomeKind.RETRY),
        (400, OutcomeKind.RETRY),
        (404, OutcomeKind.RETRY),
        (410, OutcomeKind.GONE),
        (429, OutcomeKind.RETRY),
        (500, OutcomeKind.RETRY),
        (999, OutcomeKind.RETRY),
    ],
)
def test_status_decides(status: int, kind: OutcomeKind) -> None:
    outcome = of_answer(status, None, b"")
    assert (outcome.kind, outcome.status, outcome.retry_after) == (kind, status, None)
    assert outcome.reason.startswith(f"HTTP {status}")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("86400", 86_400.0),
        ("86401", 86_400.0),
        ("9" * 5_000, 86_400.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed Oct 21 07:28:00 2015", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        ("Fri, 31 Dec 99999999999 23:59:59 GMT", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("", None),
        ("1, 2", None),
    ],
)
def test_wait_is_read_and_bounded_to_a_day(header: str, expected: float | None) -> None:
    assert of_answer(429, header, b"").retry_after == expected
    assert of_answer(503, header, b"").retry_after == expected


def test_wait_until_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    wait = of_answer(503, date, b"").retry_after
    assert wait is not None
    assert 80 < wait <= 90


@pytest.mark.parametrize("status", [200, 302, 404, 410, 500])
def test_wait_is_only_taken_from_answers_that_ask_for_it(status: int) -> None:
    assert of_answer(status, "120", b"").retry_after is None


def test_reason_quotes_at_most_200_printable_characters_on_one_line() -> None:
    quoted = of_answer(500, None, b"no\r\n\x1b[31m \x00good\xff \xe2\x80\xae" + b"x" * 70_000).reason
    assert quoted.startswith("HTTP 500: no [31m good xxx")
    assert len(quoted) == len("HTTP 500: ") + 200
    assert quoted.isprintable()


def test_reason_of_what_was_delivered_quotes_nothing() -> None:
    assert of_answer(200, None, b"thanks").reason == "HTTP 200"


def test_redirect_is_named() -> None:
    assert "not followed" in of_answer(302, None, b"").reason
