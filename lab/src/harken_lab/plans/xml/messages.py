"""Documents as rows of SAX_Parse_Result: a node, its tag path and its value (section 3.3).

A node is its place among those of the batch; the arrays of the documents know the way to it, the paper's IdPath.

Only nodes that some linear path reaches become rows. A node that is looked up as a number is a second row, whose tag
path has the opposite sign and whose value is the number's key. Every document has one row that leads nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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


class TagNumbers:
    """The ids that tag paths have in the tables: those that occurred in documents that were matched."""

    def __init__(self, paths: TagPaths) -> None:
        self.paths = paths
        self._texts = {0: ""}
        self.ids = np.empty(0, np.int64)
        """By the numbers that tag paths have in this process; `NO_PATH` for those that have no id."""

    def take(self, occurring: NDArray[np.int64], take_tags: Callable[[Sequence[str]], list[int]]) -> None:
        """Have the tables know the tag paths that occur in documents. What others of the process have brought does
        not count: among many nested elements it could be laid on a linear path in very many ways."""
        self.ids = np.append(self.ids, np.full(len(self.paths) - len(self.ids), NO_PATH, np.int64))
        new = occurring[self.ids[occurring] == NO_PATH]
        if len(new):
            self.ids[new] = take_tags([self._text(path) or "/" for path in new.tolist()])

    def _text(self, path: int) -> str:
        found = self._texts.get(path)
        if found is None:
            name = node_text(int(self.paths.kind[path]), self.paths.name(path).decode())
            found = self._texts[path] = f"{self._text(int(self.paths.parent[path]))}/{name}"
        return found


class Messages:
    """The documents of a batch, as columns of the table."""

    def __init__(self, documents: Documents, tags: TagNumbers, reached: Iterable[int]) -> None:
        self._documents = documents
        ids = tags.ids
        listed = np.fromiter(reached, np.int64)
        self._ids = ids
        self._is_text = np.isin(ids, listed)
        self._is_number = np.isin(-ids, listed)

    def columns(self, first: int, last: int) -> dict[str, tuple[Storage, list[Any]]]:
        """Some of the documents, from the first on to before the last."""
        documents = self._documents.part(first, last)
        tag = documents.path
        owner = np.repeat(np.arange(first, last), np.diff(documents.first))
        number = numbers(documents, self._is_text | self._is_number)
        texts = np.flatnonzero(self._is_text[tag])
        compared = np.flatnonzero(self._is_number[tag] & ~np.isnan(number))
        leading_nowhere = last - first
        found = {
            "event_id": [*owner[texts].tolist(), *owner[compared].tolist(), *range(first, last)],
            "tagpath_id": [
                *(self._ids[tag[texts]].tolist()),
                *(-self._ids[tag[compared]]).tolist(),
                *[NO_PATH] * leading_nowhere,
            ],
            "node_id": [*(np.append(texts, compared) + self._documents.first[first]).tolist(), *[0] * leading_nowhere],
            "value": [
                *map(text_key, _texts(documents, texts)),
                *map(number_key, number[compared].tolist()),
                *[""] * leading_nowhere,
            ],
            "number": [
                *(None if isnan(each) else each for each in number[texts].tolist()),
                *[None] * (len(compared) + leading_nowhere),
            ],
        }
        return {name: (storage, found[name]) for name, storage in COLUMNS.items()}


def _texts(documents: Documents, nodes: NDArray[np.int64]) -> Iterator[str]:
    """The string-values of nodes."""
    text = documents.text.tobytes()
    slices = zip(documents.begin[nodes].tolist(), documents.end[nodes].tolist(), strict=True)
    return (text[begin:end].decode() for begin, end in slices)
