"""Documents as rows of SAX_Parse_Result: a node, its tag path and its value (section 3.3).

The id of a node is its place among the nodes of the batch. The path to it, the paper's IdPath, is in the arrays of the
documents.

Only nodes that some linear path reaches become rows. A node that is looked up as a number has a second row, whose tag
path has the opposite sign and whose value is the number's key. Every document has one more row, with the tag path
NO_PATH.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.databases.dialects import Storage
from harken.events.xml import Documents, TagPaths, numbers
from harken.language.xpath.linear import node_text
from harken_lab.plans.xml.linear_paths import NO_PATH
from harken_lab.plans.xml.path_predicates import number_key, text_key

TABLE = "sax_parse_result"
COLUMNS = {
    "event_id": Storage.WHOLE,
    "tagpath_id": Storage.WHOLE,
    "node_id": Storage.WHOLE,
    "value": Storage.TEXT,
    "number": Storage.NUMBER,
}


class TagPathIds:
    """The ids of this process's tag paths in the tables. Only those of documents that were matched have one."""

    def __init__(self, paths: TagPaths) -> None:
        self.paths = paths
        self._texts = {0: ""}
        self.ids = np.empty(0, np.int64)
        """The id of each tag path, by its number in this process; `NO_PATH` if it has none."""
        self._seen = np.empty(0, np.int64)
        """The last batch in which each tag path occurred, by its number in this process."""
        self._batch = 0

    def add(self, occurring: NDArray[np.int64], add_tag_paths: Callable[[Sequence[str]], list[int]]) -> None:
        """Look up the tag paths that occur in the documents to match, and add new ones to the tables.

        Tag paths that other users of the process have brought are left out: one of many nested elements could fit a
        linear path in very many ways.
        """
        count = len(self.paths) - len(self.ids)
        self.ids = np.append(self.ids, np.full(count, NO_PATH, np.int64))
        self._seen = np.append(self._seen, np.zeros(count, np.int64))
        self._batch += 1
        self._seen[occurring] = self._batch
        new = occurring[self.ids[occurring] == NO_PATH]
        if len(new):
            self.ids[new] = add_tag_paths([self._text(path) or "/" for path in new.tolist()])

    def oldest(self, stored: Collection[int], count: int) -> list[int]:
        """Of the stored tag paths, up to `count` that occurred longest ago; none of the last batch."""
        known = np.flatnonzero(self.ids != NO_PATH)
        seen = dict(zip(self.ids[known].tolist(), self._seen[known].tolist(), strict=True))
        old = [tag for tag in stored if seen.get(tag, 0) < self._batch]
        return sorted(old, key=lambda tag: (seen.get(tag, 0), tag))[:count]

    def forget(self, tags: Collection[int]) -> None:
        """Forget the ids of tag paths that were removed from the tables."""
        self.ids[np.isin(self.ids, np.fromiter(tags, np.int64))] = NO_PATH

    def _text(self, path: int) -> str:
        text = self._texts.get(path)
        if text is None:
            name = node_text(int(self.paths.kind[path]), self.paths.name(path).decode())
            text = self._texts[path] = f"{self._text(int(self.paths.parent[path]))}/{name}"
        return text


class Messages:
    """The documents of a batch as rows of the table, column by column."""

    def __init__(self, documents: Documents, tags: TagPathIds, reached: Iterable[int]) -> None:
        self._documents = documents
        ids = tags.ids
        signed = np.fromiter(reached, np.int64)
        self._ids = ids
        self._is_text = np.isin(ids, signed)
        self._is_number = np.isin(-ids, signed)

    def columns(self, first: int, last: int) -> dict[str, tuple[Storage, list[Any]]]:
        """The rows of the documents first:last, as columns."""
        documents = self._documents.part(first, last)
        tag = documents.path
        owner = np.repeat(np.arange(first, last), np.diff(documents.first))
        number = numbers(documents, self._is_text | self._is_number)
        texts = np.flatnonzero(self._is_text[tag])
        compared = np.flatnonzero(self._is_number[tag] & ~np.isnan(number))
        count = last - first
        columns = {
            "event_id": [*owner[texts].tolist(), *owner[compared].tolist(), *range(first, last)],
            "tagpath_id": [
                *(self._ids[tag[texts]].tolist()),
                *(-self._ids[tag[compared]]).tolist(),
                *[NO_PATH] * count,
            ],
            "node_id": [*(np.append(texts, compared) + self._documents.first[first]).tolist(), *[0] * count],
            "value": [
                *map(text_key, _texts(documents, texts)),
                *map(number_key, number[compared].tolist()),
                *[""] * count,
            ],
            "number": [
                *(None if isnan(each) else each for each in number[texts].tolist()),
                *[None] * (len(compared) + count),
            ],
        }
        return {name: (storage, columns[name]) for name, storage in COLUMNS.items()}


def _texts(documents: Documents, nodes: NDArray[np.int64]) -> Iterator[str]:
    """The string-values of nodes."""
    text = documents.text.tobytes()
    slices = zip(documents.begin[nodes].tolist(), documents.end[nodes].tolist(), strict=True)
    return (text[begin:end].decode() for begin, end in slices)
