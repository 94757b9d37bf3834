"""The tag paths of documents in the names and keys of a vocabulary, and the memo of which linear path fits which.

It is kept up to date from both sides: with tag paths that documents bring, and with names that subscriptions bring.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.events.xml import TagPaths
from harken.kernels.documents import HAS_NUMBERS, IS_COMPARED, TEXT, TagMap
from harken.kernels.frozen import frozen
from harken.matchers.documents.vocabulary import ROOT, GrowingVocabulary

_NO_KEY = 2**31 - 1
_LEAST_MEMO, _MOST_MEMO = 1 << 12, 1 << 22
_PAIRS_A_PATH = 8
"""Tag paths that are met with a linear path, at most, before pairs are worked out twice."""


class BoundTags:
    """What a vocabulary knows of the tag paths of a process. Made anew when either has grown."""

    def __init__(self, paths: TagPaths, vocabulary: GrowingVocabulary, before: BoundTags | None = None) -> None:
        self.paths, self.known = paths, len(paths)
        self._vocabulary, self._changes = vocabulary, vocabulary.changes
        if before is not None and (before.paths is not paths or before._vocabulary is not vocabulary):
            before = None
        name, key = self._names_and_keys(before)
        kind = paths.kind[: self.known].astype(np.uint8)
        # Names that came since change nothing for pairs that are known: no older linear path has them.
        memo: NDArray[np.uint64] = np.zeros(0, np.uint64) if before is None else before.map.memo
        size = min(_MOST_MEMO, max(_LEAST_MEMO, 1 << (_PAIRS_A_PATH * vocabulary.paths).bit_length()))
        if len(memo) < size:
            memo = np.zeros(size, np.uint64)
        of_key = np.append(vocabulary.used().key_asked, np.uint8(0))
        of_any = np.where(kind == 0, np.uint8(0), of_key[kind])
        asked = of_key[np.minimum(key, len(of_key) - 1)] | of_any << 4
        parent = paths.parent[: self.known].astype(np.int32)
        self.map: TagMap = TagMap(parent, kind, name, key, asked.astype(np.uint8), memo)
        self.words: Any = frozen(self.map)
        numeric = HAS_NUMBERS | IS_COMPARED
        self.numeric = asked & (numeric | numeric << 4) != 0
        """Whether the numbers of nodes at a tag path are asked for."""

    def is_current(self, paths: TagPaths, vocabulary: GrowingVocabulary) -> bool:
        """Whether it knows all that there is by now."""
        is_same = self.paths is paths and self._vocabulary is vocabulary
        return is_same and (self.known, self._changes) == (len(paths), vocabulary.changes)

    def _names_and_keys(self, before: BoundTags | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The name and the key of each tag path; those that were known before need not be looked up again."""
        paths, vocabulary = self.paths, self._vocabulary
        name, key = np.zeros(self.known, np.int32), np.full(self.known, _NO_KEY, np.int32)
        first = 1
        if before is not None and before._changes == self._changes:
            first = before.known
            name[:first], key[:first] = before.map.name, before.map.key
        for tag in range(first, self.known):
            kind, own = int(paths.kind[tag]), paths.name(tag)
            above = paths.name(int(paths.parent[tag])) if kind == TEXT else b""
            name[tag] = vocabulary.names.get((kind, own), 0)
            key[tag] = vocabulary.keys.get((kind, above if kind == TEXT else own), _NO_KEY)
        key[0] = ROOT
        return name, key
