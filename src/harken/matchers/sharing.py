"""A batch of events shared among threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harken.events import EventBatch
from harken.matchers.base import FormOf, Matcher, MatchPart, MatchResult
from harken.matchers.roles import MatchesInParts


def part_of(matcher: Matcher, batch: EventBatch, form_of: FormOf) -> MatchPart:
    """What matches the events first:last of a batch."""
    if isinstance(matcher, MatchesInParts):
        return matcher.parts_of(batch, form_of)
    return lambda first, last: matcher.match(batch[first:last], form_of)


def match_shared(batch: EventBatch, threads: int, match: MatchPart) -> list[tuple[EventBatch, MatchResult]]:
    """What the events of a batch match, part by part: as many parts as there are threads."""
    share = -(-len(batch) // threads)
    parts = [(first, min(first + share, len(batch))) for first in range(0, len(batch), share)]
    with ThreadPoolExecutor(threads - 1) as pool:  # this thread is one of them
        others = [pool.submit(match, first, last) for first, last in parts[1:]]
        found = [match(*parts[0]), *(each.result() for each in others)]
    return [(batch[first:last], each) for (first, last), each in zip(parts, found, strict=True)]
