"""Matching by one snapshot of the index: one event, a batch, or parts of a batch in several threads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import thread_time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harken.codes.encode import encode, of_one, several_of_one
from harken.codes.encode_one import codes_of_one
from harken.events import Event, EventBatch
from harken.matchers.base import FormOf, MatchPart, MatchResult, OneMatch, Snapshot
from harken.matchers.columnar.batch_match import Match
from harken.matchers.columnar.match_one import find_one
from harken.matchers.columnar.sample import Sample
from harken.matchers.columnar.versions import ColumnarSnapshot

if TYPE_CHECKING:
    from harken.matchers.columnar.matcher import Columnar


@dataclass(frozen=True)
class ColumnarView(Snapshot):
    """A snapshot of the index. Its matcher learns from the events that it matches."""

    matcher: Columnar
    snapshot: ColumnarSnapshot
    sample: Sample
    """In the codes of the snapshot's version."""
    changes: int
    may_merge: bool = True

    @property
    def is_quick(self) -> bool:
        return True

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        if len(batch) == 1 and not batch.is_lazy:
            match = self.match_one(batch[0], form_of)
            if match is not None:
                return match.result()
        return self._ready(batch, form_of)(0, len(batch))

    def match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        snapshot, version = self.snapshot, self.snapshot.version
        if snapshot.is_empty:
            return OneMatch([], 0, [])
        codes = codes_of_one(event, version.columns, version.dictionaries, version.named)
        candidates = None if codes is None else find_one(snapshot, codes)
        if codes is None or candidates is None:
            return self._match_alone(event, codes, form_of)
        if candidates.stale and (merged := self._merged(candidates.stale)) is not None:
            return merged.match_one(event, form_of)
        self.sample.learn(codes)
        return candidates.result(event, form_of, self.matcher.limits)

    def parts_of(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        """A function that matches the events first:last of a batch, for several threads.

        Encoding is partly Python: all of it for Python events, and the first part of every column of a table. Threads
        would block each other, so one thread encodes the whole batch unless its columns are long.
        """
        if batch.is_lazy and len(batch) > self.matcher.settings.encoded_together * len(self.snapshot.version.columns):
            return lambda first, last: self._ready(batch[first:last], form_of)(0, last - first)
        return self._ready(batch, form_of)

    def _match_alone(self, event: Event, codes: NDArray[np.uint32] | None, form_of: FormOf) -> OneMatch | None:
        """Match one event that may have several bindings, or by an index with several layers or rows to verify."""
        version = self.snapshot.version
        encoded = several_of_one(event, version.columns, version.dictionaries) if codes is None else of_one(codes)
        if encoded is None:
            return None
        match = Match(self.snapshot, encoded, EventBatch.of((event,), (0,)), self.matcher.buffers)
        stale = match.find()
        if stale and (merged := self._merged(stale)) is not None:
            return merged.match_one(event, form_of)
        self.sample.learn(encoded.codes)
        result = match.result(form_of, self.matcher.limits)
        return OneMatch.of(result)

    def _ready(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        """Encode a batch. Returns a function that matches parts of it."""
        started = thread_time()
        snapshot, matcher = self.snapshot, self.matcher
        if snapshot.is_empty:
            return lambda first, last: MatchResult.empty(last - first)
        version = snapshot.version
        encoded = encode(batch, version.columns, version.dictionaries, version.named)
        self.sample.learn(encoded.codes)

        encoding = (thread_time() - started) / max(1, len(batch))

        def matched(first: int, last: int) -> MatchResult:
            began = thread_time()
            codes = encoded if last - first == len(batch) else encoded.part(first, last)
            part = batch[first:last]
            match = Match(snapshot, codes, part, matcher.buffers)
            stale = match.find()
            if stale and (merged := self._merged(stale)) is not None:
                return merged._ready(part, form_of)(0, last - first)
            result = match.result(form_of, matcher.limits)
            matcher.spent.add(last - first, len(result.numbers), encoding * (last - first) + thread_time() - began)
            return result

        return matched

    def _merged(self, stale: int) -> ColumnarView | None:
        """A view after a merge, if `stale` rows to verify are enough for one; its rows are the same.

        None without a merge, or if subscriptions changed since this view was taken.
        """
        if not self.may_merge or not self.matcher.merge_if_worth(self.snapshot.version, stale):
            return None
        later = self.matcher.snapshot()
        return replace(later, may_merge=False) if later.changes == self.changes else None
