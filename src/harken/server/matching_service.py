"""The thread that matches published events: those that arrive while one batch is matched make up the next."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from harken.engine import Engine
from harken.errors import HarkenError, LimitError
from harken.events import Decoded
from harken.events.decode import JsonDecoder
from harken.events.document_batches import document_batches
from harken.events.pieces import Piece
from harken.limits import Limits
from harken.live.results import BatchMatches
from harken.schema import Schema
from harken.schema.paths import DOCUMENT
from harken.server.batch_thread import BatchThread
from harken.server.committing import Committer
from harken.server.publications import IdempotencyKeyError, Incoming, one_line, rejection
from harken.server.served_index import ServedIndex
from harken.server.settings import ServerSettings
from harken.store import BehindError, NewEvent, Writing
from harken.store.store import microseconds
from harken.store.stored import XML
from harken.store.writing import Appended, Publication

log = logging.getLogger(__name__)
_MOST_EVENTS = 8_192
"""Most events of a batch that has several requests."""
_MOST_BATCHES = 2
"""Most batches that are matched and not on disk yet: one is being written, one waits."""
_SOURCE = "request"


@dataclass(slots=True)
class MatchOutcome:
    """The result of matching the events of one request."""

    ids: list[list[str]]
    """The subscriptions that match each event; none for a rejected event."""
    rejected: list[dict[str, Any]]
    failures: list[tuple[int, str, HarkenError]] = field(default_factory=list)
    """Subscriptions that failed on an event: position, id, error."""

    @property
    def accepted(self) -> int:
        return len(self.ids) - len(self.rejected)


@dataclass(slots=True)
class PublishOutcome:
    """The result of publishing one request."""

    answer: str
    """The body of the answer, as JSON."""
    accepted: int


@dataclass(slots=True)
class _Request:
    incoming: Incoming
    key: bytes | None
    request_hash: bytes | None
    future: asyncio.Future[PublishOutcome]

    @property
    def size(self) -> int:
        """The number of events in the request."""
        return len(self.incoming.pieces)


Settled = Sequence[tuple["asyncio.Future[PublishOutcome]", PublishOutcome | BaseException]]
"""The futures of requests that are done, each with its result or error."""


class MatchingService:
    """Matches in one thread and writes through the committer. Publishers are answered once their events are on disk."""

    def __init__(
        self,
        index: ServedIndex,
        committer: Committer,
        appended: Callable[[Appended], None],
        settle: Callable[[Settled], None],
        settings: ServerSettings,
    ) -> None:
        """The committing thread calls `appended` with what is on disk, and `settle` with requests that are done."""
        self._settle = settle
        self._index = index
        self._committer = committer
        self._appended = appended
        self._most_waiting = settings.max_waiting_events
        self._most_matches = settings.max_matches
        self._journal_bytes = settings.journal_bytes
        self._decoders = Decoders()
        self._writing = threading.Semaphore(_MOST_BATCHES)
        self.batches = 0
        self.failures = 0
        """Errors of subscriptions on events."""
        # A batch is taken once there is room to write it, so that requests that arrive until then are part of it.
        self._thread: BatchThread[_Request] = BatchThread(
            "harken-match",
            self._run,
            self._fail_batch,
            _MOST_EVENTS,
            size_of=attrgetter("size"),
            ready=self._writing.acquire,
        )

    def publish(
        self, incoming: Incoming, key: bytes | None, request_hash: bytes | None, future: asyncio.Future[PublishOutcome]
    ) -> None:
        """Queue events to be matched and journalled. The future is done once they are on disk.

        Raises StoreUnavailableError, and LimitError if too many events wait.
        """
        if self._thread.waiting > self._most_waiting:
            raise LimitError("too many events wait to be matched", limit="max_waiting_events")
        self._thread.put(_Request(incoming, key, request_hash, future))

    def close(self) -> None:
        """Match the requests that wait, and end the thread. Close the committer only afterwards."""
        self._thread.close()
        for _ in range(_MOST_BATCHES):
            self._writing.acquire()

    def _run(self, requests: list[_Request]) -> None:
        self.batches += 1
        self._match(requests)

    def _fail_batch(self, requests: list[_Request], error: BaseException) -> None:
        """Fail the requests of a batch that will not be written."""
        self._writing.release()
        self._fail(requests, error)

    def _match(self, requests: list[_Request]) -> None:
        """Match requests, and pass them to the committer."""
        sequence = self._index.sequence
        outcomes = self.matched([each.incoming for each in requests])
        self.failures += sum(len(each.failures) for each in outcomes)
        too_large = [place for place, each in enumerate(outcomes) if sum(map(len, each.ids)) > self._most_matches]
        if too_large:
            hint = "send fewer events at once"
            error = LimitError("the events match too many subscriptions", limit="max_matches", hint=hint)
            self._fail([requests[place] for place in too_large], error)
            requests = [each for place, each in enumerate(requests) if place not in too_large]
            outcomes = [each for place, each in enumerate(outcomes) if place not in too_large]
        publications = [_publication(*each) for each in zip(requests, outcomes, strict=True)]

        def append(writing: Writing) -> Appended:
            writing.require_current(sequence)
            removed = writing.removed_since(sequence)
            current = [_without(each, removed) for each in publications] if removed else publications
            return writing.append(current, self._index.deliveries, self._journal_bytes)

        future = self._committer.submit(append, self._appended)
        future.add_done_callback(lambda done: self._answer(requests, publications, outcomes, done))

    def matched(self, requests: Sequence[Incoming]) -> list[MatchOutcome]:
        """The outcome of matching the events of each request."""
        return match(self._index, self._decoders, requests)

    def _answer(
        self,
        requests: list[_Request],
        publications: list[Publication],
        outcomes: list[MatchOutcome],
        done: Future[Appended],
    ) -> None:
        """Settle the futures of requests after their transaction, in the committing thread."""
        error = done.exception()
        if isinstance(error, BehindError):
            self._match_again(requests)
            return
        if error is not None:
            self._fail_batch(requests, error)
            return
        self._writing.release()
        appended = done.result()
        settled: list[tuple[asyncio.Future[PublishOutcome], PublishOutcome | BaseException]] = []
        for place, (request, publication, outcome) in enumerate(zip(requests, publications, outcomes, strict=True)):
            if place in appended.conflicts:
                hint = "use a new key for every request, and the same one only to repeat a request unchanged"
                error = IdempotencyKeyError("an earlier request had this idempotency key and other content", hint=hint)
                settled.append((request.future, error))
                continue
            answer = appended.repeated.get(place, publication.answer)
            if place in appended.duplicates:
                answer = json.dumps({**json.loads(answer), "duplicates": appended.duplicates[place]})
            accepted = json.loads(answer)["accepted"] if place in appended.repeated else outcome.accepted
            settled.append((request.future, PublishOutcome(answer, accepted)))
        self._settle(settled)

    def _match_again(self, requests: list[_Request]) -> None:
        """Match again after another process has changed subscriptions."""
        try:
            self._index.follow()
            self._match(requests)
        except Exception as error:
            self._fail_batch(requests, error)

    def _fail(self, requests: Sequence[_Request], error: BaseException) -> None:
        self._settle([(each.future, error) for each in requests])


class Decoders(threading.local):
    """A JSON decoder for each thread, kept while the schema and the used attributes stay the same.

    The decoder remembers the types of columns.
    """

    def __init__(self) -> None:
        self._key: tuple[Any, ...] | None = None
        self._decoder: JsonDecoder | None = None

    def of(self, schema: Schema | None, limits: Limits, names: frozenset[str] | None) -> JsonDecoder:
        if self._decoder is None or self._key is None or schema is not self._key[0] or names != self._key[1]:
            self._key, self._decoder = (schema, names), JsonDecoder(schema, limits, names)
        return self._decoder


def match(index: ServedIndex, decoders: Decoders, requests: Sequence[Incoming]) -> list[MatchOutcome]:
    """Match the events of requests. Expired subscriptions are left out."""
    outcomes = [MatchOutcome([], []) for _ in requests]
    for is_xml in (False, True):
        chosen = [place for place, each in enumerate(requests) if (each.kind == XML) is is_xml]
        pieces = [piece for place in chosen for piece in requests[place].pieces]
        if not pieces:
            continue
        matches = matched(index.engine, decoders, pieces, is_xml)
        ids = matches.ids
        rejected = {each.position: each.error for each in matches.rejected}
        start = 0
        for place in chosen:
            count = len(requests[place].pieces)
            outcomes[place].ids = ids if count == len(ids) else ids[start : start + count]
            if rejected:
                in_request = ((at - start, error) for at, error in rejected.items() if start <= at < start + count)
                outcomes[place].rejected = [rejection(position, error) for position, error in in_request]
            start += count
        for position, id, error in matches.errors:
            log.warning("the subscription %r failed on an event: %s", id, error.message)
            outcomes[chosen[0]].failures.append((position, id, error))
    _drop_expired(index, outcomes)
    return outcomes


def matched(engine: Engine, decoders: Decoders, pieces: list[Piece], is_xml: bool) -> BatchMatches:
    """Decode and match events."""
    limits = engine.internals.limits

    def decode(schema: Schema | None, names: frozenset[str] | None) -> Decoded:
        if not is_xml:
            return decoders.of(schema, limits, names).decoded(pieces, _SOURCE)
        # Documents are decoded even if no subscription uses them, so that unreadable ones are rejected.
        used = None if names is None else names | {DOCUMENT[0]}
        (decoded,) = document_batches(pieces, _SOURCE, schema, limits, len(pieces) + 1, used)
        return decoded

    return engine.internals.match_decoding(decode)


def _drop_expired(index: ServedIndex, outcomes: list[MatchOutcome]) -> None:
    expired = index.expiry.due(microseconds())
    if expired:
        for outcome in outcomes:
            outcome.ids = [[id for id in ids if id not in expired] for ids in outcome.ids]


def _publication(request: _Request, outcome: MatchOutcome) -> Publication:
    incoming = request.incoming
    rejected = {each["position"] for each in outcome.rejected}
    keys = incoming.keys or [None] * len(incoming.pieces)
    kind = incoming.kind
    events = [
        NewEvent(kind, one_line(piece, kind), ids, key)
        for position, (piece, ids, key) in enumerate(zip(incoming.pieces, outcome.ids, keys, strict=True))
        if not rejected or position not in rejected
    ]
    if not rejected:
        answer = f'{{"accepted":{len(events)},"rejected":[]}}'
    else:
        answer = json.dumps({"accepted": len(events), "rejected": outcome.rejected})
    return Publication(events, request.key, answer, request.request_hash)


def _without(publication: Publication, removed: frozenset[str]) -> Publication:
    """A publication without matches of subscriptions that were removed since it was matched."""
    events = [each._replace(matches=[id for id in each.matches if id not in removed]) for each in publication.events]
    return publication._replace(events=events)
