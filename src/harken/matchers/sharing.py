"""A batch of events shared among threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harken.events import EventBatch
from harken.matchers.base import FormOf, MatchResult, Snapshot


def match_shared(
    batch: EventBatch, threads: int, snapshot: Snapshot, form_of: FormOf
) -> list[tuple[EventBatch, MatchResult]]:
    """What the events of a batch match, part by part: as many parts as threads, unless there are too few events."""
    if threads <= 1 or len(batch) < 2 * threads:
        return [(batch, snapshot.match(batch, form_of))]
    match = snapshot.parts_of(batch, form_of)
    share = -(-len(batch) // threads)
    parts = [(first, min(first + share, len(batch))) for first in range(0, len(batch), share)]
    with ThreadPoolExecutor(threads - 1) as pool:  # this thread is one of them
        others = [pool.submit(match, first, last) for first, last in parts[1:]]
        found = [match(*parts[0]), *(each.result() for each in others)]
    return [(batch[first:last], each) for (first, last), each in zip(parts, found, strict=True)]
