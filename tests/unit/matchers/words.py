"""A kind of index that no other module knows of, in a language of its own: events with a word in their `text`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.events import EventBatch
from harken.language.capabilities import Capability
from harken.language.compiled import Compiled
from harken.matchers.base import Entry, FormOf, MatchResult, Snapshot
from harken.matchers.segmented import Segment, Segmented

Words = list[tuple[int, str]]


@dataclass(frozen=True)
class WordPlan:
    word: str
    kind: ClassVar[str] = "words"
    always: ClassVar[bool] = False
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def names(self) -> set[str]:
        return {"text"}


class WordFrontEnd:
    def __init__(self, *_: object) -> None: ...

    def compile(self, text: str) -> Compiled:
        return Compiled(text, "word", WordPlan(text))

    def stats(self) -> Mapping[str, Any]:
        return {}


class WordIndex:
    """Places by word."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.numbers = np.array([number for number, _ in words], np.int32)
        self.place_of = {number: place for place, (number, _) in enumerate(words)}
        self.places: dict[str, list[int]] = {}
        for place, (_, word) in enumerate(words):
            self.places.setdefault(word, []).append(place)

    def __len__(self) -> int:
        return len(self.words)


class WordMatcher(Segmented[str, Words, WordIndex]):
    """Finds words of texts."""

    def record(self, entry: Entry) -> str:
        plan = entry.compiled.plan
        assert isinstance(plan, WordPlan)
        return plan.word

    def written(self, waiting: Iterable[tuple[int, str]]) -> Words:
        return list(waiting)

    def records(self, segment: Segment[WordIndex]) -> Words:
        return [each for each, alive in zip(segment.index.words, segment.alive, strict=True) if alive]

    def built(self, parts: Sequence[Words], *, is_all: bool) -> WordIndex:
        return WordIndex([each for part in parts for each in part])

    def snapshot(self) -> WordSnapshot:
        return WordSnapshot(self.now())

    def learn(self, batch: EventBatch) -> None: ...

    def stats(self) -> dict[str, Any]:
        return {"subscriptions": len(self), "segments": [len(each) for each in self.now()]}


@dataclass(frozen=True)
class WordSnapshot(Snapshot):
    segments: tuple[Segment[WordIndex], ...]

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        found = [
            [n for each in self.segments for n in _search(each, str(event.attributes.get("text")))] for event in batch
        ]
        counts: NDArray[np.int64] = np.array([0, *map(len, found)])
        return MatchResult(np.cumsum(counts), np.array([*chain(*found)], np.int32), counts[1:])


def _search(segment: Segment[WordIndex], text: str) -> list[int]:
    places = {place for word in text.split() for place in segment.index.places.get(word, ()) if segment.alive[place]}
    found: list[int] = segment.index.numbers[sorted(places)].tolist()
    return found
