"""One call of `match` or `match_batch`: it takes a snapshot, matches, and turns numbers into ids."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Self

from harken.errors import EventError
from harken.events import Decoded, Event, EventBatch, without_bad_documents
from harken.live.live_set import LiveSet
from harken.live.results import BatchMatches, Matches, Reading
from harken.live.unparsed import Unparsed, of_batch, of_event
from harken.matchers.base import OneMatch
from harken.matchers.sharing import match_shared


class BatchCall:
    """Matches one batch with the live set as it is at the beginning."""

    def __init__(self, live: LiveSet) -> None:
        self._live = live
        self._reading = Reading(live.catalogue, live.numbering)  # first, so that no number of the snapshot is reused
        self.snapshot = live.snapshot()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.snapshot.indexes.release()

    def match(self, decoded: Decoded, started: float, threads: int, unparsed: Unparsed) -> BatchMatches:
        """Match the decoded events. Strings that are no timestamps or dates are counted in `unparsed` too."""
        live = self._live
        decoded = without_bad_documents(decoded, live.index.document_paths(), live.limits)
        batch = decoded.batch
        began = perf_counter()
        results = match_shared(batch, threads, self.snapshot.indexes, live.form_of())
        seconds = {"decode": began - started, "match": perf_counter() - began}
        counts = of_batch(batch, live.readings(), len(results) > 1)
        unparsed.add(counts)
        return BatchMatches(results, decoded.rejected, self._reading, seconds, counts)


def match_decoded(live: LiveSet, decoded: Decoded, started: float, threads: int, unparsed: Unparsed) -> BatchMatches:
    """Match events that were decoded before. Raises EventError if they lack an attribute that subscriptions use."""
    with BatchCall(live) as call:
        matches = call.match(decoded, started, threads, unparsed)
    _reject_narrow(decoded.batch.names, live.names_to_decode())
    return matches


def match_one(live: LiveSet, raw: Any, started: float, unparsed: Unparsed) -> Matches:
    """Match one event, or bare bytes as a document."""
    reading = live.numbering.begin()
    try:
        snapshot = live.snapshot()
        index, compiler = snapshot.indexes, snapshot.compiler
        try:
            is_bare = type(raw) is bytes and compiler.schema is None
            event = raw if is_bare else Event.of(raw, compiler.schema, compiler.limits, snapshot.decoded_names)
            began = perf_counter()
            form_of = live.form_of()
            is_quick = index.is_quick and not is_bare
            match = index.match_one(event, form_of) if is_quick else None
            if match is None:
                source = (raw,) if live.operating.operators else None
                batch = EventBatch.of_one(event, live.limits, snapshot.decoded_names, source)
                for path in live.index.document_paths():
                    for _, error in batch.documents(path, live.limits).errors:
                        raise error
                result = index.parts_of(batch, form_of)(0, 1) if is_quick else index.match(batch, form_of)
                match = OneMatch.of(result)
                unparsed.add(of_batch(batch, live.readings()))
            elif readings := live.readings():
                unparsed.add(of_event(event, readings))
        finally:
            index.release()
        ids = live.catalogue.ids_of(match.numbers)
        errors = [(live.catalogue.of(number).id, error) for _, number, error in match.errors] if match.errors else []
    finally:
        live.numbering.end(reading)
    seconds = {"decode": began - started, "match": perf_counter() - began}
    return Matches(ids, match.candidates, errors, seconds)


def _reject_narrow(names: frozenset[str] | None, needed: frozenset[str] | None) -> None:
    """Raise EventError if events were decoded without an attribute that subscriptions use."""
    if names is None or (needed is not None and needed <= names):
        return
    unseen = "all of it" if needed is None else ", ".join(f"`{name}`" for name in sorted(needed - names)[:5])
    raise EventError(f"the events were decoded without {unseen}", hint="decode them with the names of `attributes()`")
