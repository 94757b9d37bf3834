"""A stream of notifications that outlives its connections, without input or output.

A stream that ends or breaks off is reopened after the last notification received. Duplicates are dropped.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Hashable, Iterator, Sequence

from harken.client.answers import Notification
from harken.client.client_errors import ServerError, UnreachableError
from harken.client.exchange import REJECTED_FOR_NOW, Access, Answer, Outcome, Request, error_of, given
from harken.client.server_sent import Frame, FrameParser

SILENCE = 45.0
"""Seconds without a byte after which a stream counts as lost: the server pings every 15."""

_REMEMBERED = 10_000

log = logging.getLogger(__name__)


class Listening:
    """A stream over all its connections.

    A client sends `request()`, passes to `received` first b"" and then each piece of the body, or else the outcome
    that came instead of them, and starts over after `pause()` seconds.
    """

    def __init__(self, access: Access, ids: Sequence[str], after: str | int | None, ticket: str | None) -> None:
        if not ids:
            raise TypeError("listen() takes the id of a subscription, or several")
        self._access = access
        self._ids = ids
        self._ticket = ticket
        self._after = after
        self._parser = FrameParser()
        self._seen = _Recent(_REMEMBERED)
        self._was_open = False
        self._failures = 0
        self._requested_pause = 0.0
        self._is_logged = False

    def request(self) -> Request:
        """The request for a stream that continues the one before."""
        self._parser = FrameParser(self._parser.id, self._parser.retry)
        headers = self._access.headers(*self._ids, ticket=self._ticket, Accept="text/event-stream")
        query = [("subscription", id) for id in self._ids]
        if self._parser.id:
            headers["Last-Event-ID"] = self._parser.id
        else:
            query += given(after=self._after)
        return Request("GET", "/stream", query, headers)

    def received(self, piece: bytes | Outcome) -> Iterator[Notification]:
        """The notifications that are complete now. Raises ServerError, or UnreachableError if no stream ever opened."""
        if not isinstance(piece, bytes):
            self._fail(error_of(piece) if isinstance(piece, Answer) else piece)
            return
        self._was_open = True
        if piece:
            self._failures, self._is_logged = 0, False
        for frame in self._parser.feed(piece):
            for notification in _notifications(frame):
                if self._seen.add((notification.subscription, notification.id)):
                    yield notification

    def pause(self) -> float:
        """Seconds to wait before the stream is reopened."""
        seconds = max(self._access.backoff.seconds(self._failures), self._parser.retry or 0.0, self._requested_pause)
        self._failures += 1
        self._requested_pause = 0.0
        log.info("the stream is reopened in %.1f s", seconds)
        return seconds

    def _fail(self, error: ServerError | UnreachableError) -> None:
        is_passing = isinstance(error, UnreachableError) or error.status in REJECTED_FOR_NOW
        if not is_passing or (not self._was_open and self._failures >= self._access.retries):
            raise error
        if isinstance(error, ServerError):
            self._requested_pause = min(error.retry_after or 0.0, self._access.longest_wait)
        if not self._is_logged:
            log.warning("the stream broke off and will be reopened: %s", error.message)
            self._is_logged = True


def _notifications(frame: Frame) -> Iterator[Notification]:
    if frame.event not in ("notification", "digest"):
        return
    try:
        plain = json.loads(frame.data)
        plain = plain["data"] if "specversion" in plain else plain  # a CloudEvent around it
        for each in plain["notifications"] if frame.event == "digest" else [plain]:
            yield Notification.of(each)
    except (ValueError, TypeError, KeyError) as error:
        raise ServerError(f"a frame of the stream cannot be read: {error!r}", status=200) from error


class _Recent:
    """A set of at most `most` items: a new one displaces the oldest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[Hashable, None] = {}

    def add(self, item: Hashable) -> bool:
        """Add an item; return whether it is new."""
        if item in self._kept:
            return False
        self._kept[item] = None
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return True
