"""Saved searches: each looks for a word, for two words or for a part of a word in a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken_lab.workloads.words import WORDS, word
from harken_lab.workloads.workload import WrittenModel

_TITLE, _BODY = (5, 14), (20, 60)
"""The least and the most words of a title and of a body."""
_IN_TITLE = 0.7
_FOLLOWERS = 16
"""Different words that may follow a word."""


@dataclass(frozen=True)
class TextWorkload(WrittenModel):
    """A `title` and a `body`. Half of the searches contain a word; others are phrases, parts, beginnings and ends."""

    vocabulary: int = 20_000

    def __post_init__(self) -> None:
        if not _FOLLOWERS <= self.vocabulary <= WORDS:
            raise ValueError(f"`vocabulary` is {_FOLLOWERS} to {WORDS:,}, not {self.vocabulary:,}")

    def texts(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        words = rng.integers(0, self.vocabulary, rows).tolist()
        followers = rng.integers(0, _FOLLOWERS, rows).tolist()
        attributes = rng.random(rows).tolist()
        kinds = rng.random(rows).tolist()
        for number, follower, attribute, kind in zip(words, followers, attributes, kinds, strict=True):
            name = "title" if attribute < _IN_TITLE else "body"
            yield f"{name} LIKE '{self._pattern(number, follower, kind)}'"

    def _pattern(self, number: int, follower: int, kind: float) -> str:
        text = word(number)
        if kind < 0.5:
            return f"%{text}%"
        if kind < 0.7:
            return f"%{text} {word(self._next(number, follower))}%"
        if kind < 0.8:
            return f"%{text[1:]}%"
        return f"{text} %" if kind < 0.9 else f"% {text}"

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        return pa.table({"title": self._passages(_TITLE, rows, rng), "body": self._passages(_BODY, rows, rng)})

    def _passages(self, lengths: tuple[int, int], rows: int, rng: np.random.Generator) -> pa.Array:
        """Texts in which the words that follow a word have the same distribution as in searches for two words."""
        counts = rng.integers(*lengths, rows, endpoint=True).tolist()
        firsts = rng.integers(0, self.vocabulary, rows).tolist()
        steps = iter(rng.integers(0, _FOLLOWERS, sum(counts)).tolist())
        passages = []
        for count, first in zip(counts, firsts, strict=True):
            passage, number = [], first
            for _ in range(count):
                passage.append(word(number))
                number = self._next(number, next(steps))
            passages.append(" ".join(passage))
        return pa.array(passages, pa.string())

    def _next(self, number: int, follower: int) -> int:
        return (number * _FOLLOWERS + follower) % self.vocabulary
