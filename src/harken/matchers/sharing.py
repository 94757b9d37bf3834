"""Matching a batch of events in several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harken.events import EventBatch
from harken.matchers.base import FormOf, MatchResult, Snapshot


def match_shared(
    batch: EventBatch, threads: int, snapshot: Snapshot, form_of: FormOf
) -> list[tuple[EventBatch, MatchResult]]:
    """The matches of a batch, part by part: one part per thread, or one part if there are few events."""
    if threads <= 1 or len(batch) < 2 * threads:
        return [(batch, snapshot.match(batch, form_of))]
    match = snapshot.parts_of(batch, form_of)
    share = -(-len(batch) // threads)
    parts = [(first, min(first + share, len(batch))) for first in range(0, len(batch), share)]
    with ThreadPoolExecutor(threads - 1) as pool:  # the calling thread matches the first part
        others = [pool.submit(match, first, last) for first, last in parts[1:]]
        results = [match(*parts[0]), *(future.result() for future in others)]
    return [(batch[first:last], result) for (first, last), result in zip(parts, results, strict=True)]
