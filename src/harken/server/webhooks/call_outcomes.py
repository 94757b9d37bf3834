"""The outcome of one attempt to deliver a webhook."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

LONGEST_WAIT = 86_400.0
"""Seconds. A receiver that requests a longer wait is called again after this one."""

_LONGEST_EXCERPT = 200
_SECONDS = re.compile(r"[0-9]+")
_GONE = 410
_ASK_TO_WAIT = (429, 503)


class OutcomeKind(StrEnum):
    """The kind of an outcome, which decides what happens next."""

    DELIVERED = "delivered"
    """The receiver answered with a 2xx: nothing more to do."""
    RETRY = "retry"
    """Any other answer, including a redirect, or none: try again later."""
    GONE = "gone"
    """The receiver answered 410: it wants no further messages."""
    REJECTED = "rejected"
    """The URL leads to an address that is not allowed; nothing was sent. Try again later: names change addresses."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of one attempt. `retry_after` is the wait in seconds that the receiver requested.

    `reason` is one short line for the subscriber to read. It may quote the receiver: escape it where it is shown.
    """

    kind: OutcomeKind
    reason: str
    status: int | None = None
    retry_after: float | None = None


def of_answer(status: int, retry_after: str | None, start: bytes) -> CallOutcome:
    """The outcome of an answer, by its status, its header `Retry-After` and the start of its body."""
    if 200 <= status < 300:
        return CallOutcome(OutcomeKind.DELIVERED, f"HTTP {status}", status)
    kind = OutcomeKind.GONE if status == _GONE else OutcomeKind.RETRY
    note = ", a redirect, which is not followed" if 300 <= status < 400 else ""
    excerpt = printable(start.decode("utf-8", "ignore"))
    reason = f"HTTP {status}{note}" + (f": {excerpt}" if excerpt else "")
    wait = _wait(retry_after) if retry_after is not None and status in _ASK_TO_WAIT else None
    return CallOutcome(kind, reason, status, wait)


def printable(text: str) -> str:
    """The first 200 characters of a text on one line. Runs of white space and unprintable characters become a space."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(shown.split())[:_LONGEST_EXCERPT]


def _wait(header: str) -> float | None:
    """The seconds to wait by a `Retry-After` header, which is a number of seconds or a date; None if it is neither."""
    text = header.strip()
    if text.isascii() and _SECONDS.fullmatch(text):
        # Converting thousands of digits is slow, or raises a ValueError.
        return LONGEST_WAIT if len(text) > 9 else min(float(text), LONGEST_WAIT)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return min(max(0.0, (date - datetime.now(UTC)).total_seconds()), LONGEST_WAIT)
