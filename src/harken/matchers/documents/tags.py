"""The tag paths of documents in the names and keys of a vocabulary, with a memo of which linear paths match which.

Both sides grow: documents add tag paths, and subscriptions add names.
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
"""Number of tag paths per linear path that the memo has room for. More pairs are matched repeatedly."""


class BoundTags:
    """The tag paths of a process in the numbers of a vocabulary. Rebuilt when either has grown."""

    def __init__(self, paths: TagPaths, vocabulary: GrowingVocabulary, before: BoundTags | None = None) -> None:
        self.paths, self.count = paths, len(paths)
        self._vocabulary, self._changes = vocabulary, vocabulary.changes
        if before is not None and (before.paths is not paths or before._vocabulary is not vocabulary):
            before = None
        name, key = self._names_and_keys(before)
        kind = paths.kind[: self.count].astype(np.uint8)
        # The old memo stays valid after new names: no older linear path has them.
        memo: NDArray[np.uint64] = np.zeros(0, np.uint64) if before is None else before.map.memo
        size = min(_MOST_MEMO, max(_LEAST_MEMO, 1 << (_PAIRS_A_PATH * vocabulary.paths).bit_length()))
        if len(memo) < size:
            memo = np.zeros(size, np.uint64)
        uses_of_key = np.append(vocabulary.used().key_asked, np.uint8(0))
        uses_of_any = np.where(kind == 0, np.uint8(0), uses_of_key[kind])
        uses = uses_of_key[np.minimum(key, len(uses_of_key) - 1)] | uses_of_any << 4
        parent = paths.parent[: self.count].astype(np.int32)
        self.map: TagMap = TagMap(parent, kind, name, key, uses.astype(np.uint8), memo)
        self.words: Any = frozen(self.map)
        numeric = HAS_NUMBERS | IS_COMPARED
        self.numeric = uses & (numeric | numeric << 4) != 0
        """Whether the nodes at each tag path are compared by number."""

    def is_current(self, paths: TagPaths, vocabulary: GrowingVocabulary) -> bool:
        """Whether it covers all present tag paths and names."""
        is_same = self.paths is paths and self._vocabulary is vocabulary
        return is_same and (self.count, self._changes) == (len(paths), vocabulary.changes)

    def _names_and_keys(self, before: BoundTags | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The name and the key of each tag path. Those of `before` are reused."""
        paths, vocabulary = self.paths, self._vocabulary
        name, key = np.zeros(self.count, np.int32), np.full(self.count, _NO_KEY, np.int32)
        first = 1
        if before is not None and before._changes == self._changes:
            first = before.count
            name[:first], key[:first] = before.map.name, before.map.key
        for tag in range(first, self.count):
            kind, tag_name = int(paths.kind[tag]), paths.name(tag)
            above = paths.name(int(paths.parent[tag])) if kind == TEXT else b""
            name[tag] = vocabulary.names.get((kind, tag_name), 0)
            key[tag] = vocabulary.keys.get((kind, above if kind == TEXT else tag_name), _NO_KEY)
        key[0] = ROOT
        return name, key
