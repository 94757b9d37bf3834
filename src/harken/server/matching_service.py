"""The thread that matches what is published: what arrived while the last batch was matched is one batch."""

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
from harken.errors import EventError, HarkenError, LimitError
from harken.events import Decoded
from harken.events.decode import JsonDecoder
from harken.events.document_batches import document_batches
from harken.events.pieces import Piece
from harken.live.results import BatchMatches
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
"""Events of one batch, about."""
_MOST_BATCHES = 2
"""Batches that are matched and not on disk yet: one that is being written, one that waits for that."""
_SOURCE = "request"


@dataclass(slots=True)
class MatchOutcome:
    """What came of matching the events of one request."""

    ids: list[list[str]]
    """The subscriptions of each event, none for one that was rejected."""
    rejected: list[dict[str, Any]]
    failures: list[tuple[int, str, HarkenError]] = field(default_factory=list)
    """Subscriptions that failed on an event: position, id, error."""

    @property
    def accepted(self) -> int:
        return len(self.ids) - len(self.rejected)


@dataclass(slots=True)
class PublishOutcome:
    """What came of publishing one request."""

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
        """The number of its events."""
        return len(self.incoming.pieces)


Settled = Sequence[tuple["asyncio.Future[PublishOutcome]", PublishOutcome | BaseException]]
"""Requests that are done, each with what to answer."""


class MatchingService:
    """Matches in one thread, and has the committer write: a publisher is answered once its events are on disk."""

    def __init__(
        self,
        index: ServedIndex,
        committer: Committer,
        appended: Callable[[Appended], None],
        settle: Callable[[Settled], None],
        settings: ServerSettings,
    ) -> None:
        """`appended` is told, in the committing thread, of everything that is on disk, and `settle` of requests."""
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
        """How often a subscription failed on an event."""
        # A batch is taken once there is room to write it: what comes while the last one is written is part of it.
        self._thread: BatchThread[_Request] = BatchThread(
            "harken-match",
            self._run,
            self._give_up,
            _MOST_EVENTS,
            size_of=attrgetter("size"),
            ready=self._writing.acquire,
        )

    def publish(
        self, incoming: Incoming, key: bytes | None, request_hash: bytes | None, future: asyncio.Future[PublishOutcome]
    ) -> None:
        """Have events matched and journalled; the future is settled once they are.

        Raises StoreUnavailableError, and LimitError if too many wait.
        """
        if self._thread.waiting > self._most_waiting:
            raise LimitError("too many events wait to be matched", limit="max_waiting_events")
        self._thread.put(_Request(incoming, key, request_hash, future))

    def close(self) -> None:
        """Match what waits, and end. The committer has to run until then."""
        self._thread.close()
        for _ in range(_MOST_BATCHES):
            self._writing.acquire()

    def _run(self, requests: list[_Request]) -> None:
        self.batches += 1
        self._match(requests)

    def _give_up(self, requests: list[_Request], error: BaseException) -> None:
        """Fail requests whose batch is not written."""
        self._writing.release()
        self._fail(requests, error)

    def _match(self, requests: list[_Request]) -> None:
        """Match requests, and hand them to the committer."""
        known = self._index.sequence
        outcomes = self.matched([each.incoming for each in requests])
        self.failures += sum(len(each.failures) for each in outcomes)
        crowded = [place for place, each in enumerate(outcomes) if sum(map(len, each.ids)) > self._most_matches]
        if crowded:
            hint = "send fewer events at once"
            error = LimitError("the events match too many subscriptions", limit="max_matches", hint=hint)
            self._fail([requests[place] for place in crowded], error)
            requests = [each for place, each in enumerate(requests) if place not in crowded]
            outcomes = [each for place, each in enumerate(outcomes) if place not in crowded]
        publications = [_publication(*each) for each in zip(requests, outcomes, strict=True)]

        def append(writing: Writing) -> Appended:
            writing.refuse_unless_current(known)
            gone = writing.gone_since(known)
            found = [_without(each, gone) for each in publications] if gone else publications
            return writing.append(found, self._index.deliveries, self._journal_bytes)

        future = self._committer.submit(append, self._appended)
        future.add_done_callback(lambda done: self._answer(requests, publications, outcomes, done))

    def matched(self, requests: Sequence[Incoming]) -> list[MatchOutcome]:
        """What the events of each request match."""
        return match(self._index, self._decoders, requests)

    def _answer(
        self,
        requests: list[_Request],
        publications: list[Publication],
        outcomes: list[MatchOutcome],
        done: Future[Appended],
    ) -> None:
        """Tell publishers what came of it, in the committing thread."""
        error = done.exception()
        if isinstance(error, BehindError):
            self._match_again(requests)
            return
        if error is not None:
            self._give_up(requests, error)
            return
        self._writing.release()
        appended = done.result()
        settled: list[tuple[asyncio.Future[PublishOutcome], PublishOutcome | BaseException]] = []
        for place, (request, publication, outcome) in enumerate(zip(requests, publications, outcomes, strict=True)):
            if place in appended.conflicts:
                hint = "take a new key for every request, and the same only to repeat it as it was"
                error = IdempotencyKeyError("another request came with this idempotency key before", hint=hint)
                settled.append((request.future, error))
                continue
            answer = appended.repeated.get(place, publication.answer)
            if place in appended.duplicates:
                answer = json.dumps({**json.loads(answer), "duplicates": appended.duplicates[place]})
            accepted = json.loads(answer)["accepted"] if place in appended.repeated else outcome.accepted
            settled.append((request.future, PublishOutcome(answer, accepted)))
        self._settle(settled)

    def _match_again(self, requests: list[_Request]) -> None:
        """Another process has changed subscriptions: take that over first."""
        try:
            self._index.follow()
            self._match(requests)
        except Exception as error:
            self._give_up(requests, error)

    def _fail(self, requests: Sequence[_Request], error: BaseException) -> None:
        self._settle([(each.future, error) for each in requests])


class Decoders(threading.local):
    """What makes events of JSON, which remembers the types of columns while what is asked for stays the same.

    Every thread has its own.
    """

    def __init__(self) -> None:
        self._key: tuple[Any, ...] | None = None
        self._decoder: JsonDecoder | None = None

    def of(self, engine: Engine) -> JsonDecoder:
        key = engine.schema, engine.attributes()
        if self._decoder is None or self._key is None or key[0] is not self._key[0] or key[1] != self._key[1]:
            self._key, self._decoder = key, JsonDecoder(engine.schema, engine.limits, key[1])
        return self._decoder


def match(index: ServedIndex, decoders: Decoders, requests: Sequence[Incoming]) -> list[MatchOutcome]:
    """The subscriptions of every event of every request that have not expired."""
    outcomes = [MatchOutcome([], []) for _ in requests]
    for is_xml in (False, True):
        chosen = [place for place, each in enumerate(requests) if (each.kind == XML) is is_xml]
        pieces = [piece for place in chosen for piece in requests[place].pieces]
        if not pieces:
            continue
        found = matched(index.engine, decoders, pieces, is_xml)
        ids = found.ids
        refused = {each.position: each.error for each in found.refused}
        start = 0
        for place in chosen:
            count = len(requests[place].pieces)
            own = ids if count == len(ids) else ids[start : start + count]
            outcomes[place].ids = own
            if refused:
                own_faults = ((at - start, error) for at, error in refused.items() if start <= at < start + count)
                outcomes[place].rejected = [rejection(at, error) for at, error in own_faults]
            start += count
        for position, id, error in found.errors:
            log.warning("the subscription %r failed on an event: %s", id, error.message)
            outcomes[chosen[0]].failures.append((position, id, error))
    _drop_expired(index, outcomes)
    return outcomes


def matched(engine: Engine, decoders: Decoders, pieces: list[Piece], is_xml: bool) -> BatchMatches:
    """Decode and match. If a subscription comes meanwhile that asks for more, both are done again."""
    while True:
        decoder = decoders.of(engine)
        decoded = _documents(engine, pieces, decoder.names) if is_xml else decoder.decoded(pieces, _SOURCE)
        try:
            return engine.match_decoded(decoded)
        except EventError:
            if engine.attributes() == decoder.names:
                raise


def _documents(engine: Engine, pieces: list[Piece], names: frozenset[str] | None) -> Decoded:
    """XML documents are read also if nobody asks for them: what cannot be read is rejected."""
    seen = None if names is None else names | {DOCUMENT[0]}
    (decoded,) = document_batches(pieces, _SOURCE, engine.schema, engine.limits, len(pieces) + 1, seen)
    return decoded


def _drop_expired(index: ServedIndex, outcomes: list[MatchOutcome]) -> None:
    gone = index.expiry.due(microseconds())
    if gone:
        for outcome in outcomes:
            outcome.ids = [[id for id in ids if id not in gone] for ids in outcome.ids]


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


def _without(publication: Publication, gone: frozenset[str]) -> Publication:
    """A publication for everybody but those who have left since it was matched."""
    events = [each._replace(matches=[id for id in each.matches if id not in gone]) for each in publication.events]
    return publication._replace(events=events)
