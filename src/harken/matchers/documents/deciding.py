"""Decide the candidates that programs only cover: each by its condition, over a tree of its document."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.errors import LimitError
from harken.events.xml import Documents
from harken.matchers.documents.node_tree import NodeTree
from harken.matchers.documents.snapshot import DocumentSnapshot


class DocumentMatches(NamedTuple):
    """The matches of each document of a batch."""

    offsets: NDArray[np.int64]
    """The matches of document i are `numbers[offsets[i] : offsets[i + 1]]`."""
    numbers: NDArray[np.int32]
    ran: NDArray[np.int64]
    """Number of programs that each document ran."""
    errors: tuple[tuple[int, int, LimitError], ...] = ()
    """Subscriptions that failed on a document: (index of the document, number, error)."""


def decided(
    snapshot: DocumentSnapshot,
    documents: Documents,
    offsets: NDArray[np.int64],
    programs: NDArray[np.int64],
    ran: NDArray[np.int64],
    most_visits: int,
) -> DocumentMatches:
    """The matches among candidate programs of each document, where some programs are only covers."""
    numbers = snapshot.numbers[programs]
    doubtful = np.flatnonzero(snapshot.has_condition[programs])
    holds = np.ones(len(programs), np.bool_)
    errors: list[tuple[int, int, LimitError]] = []
    tree, current = None, -1
    for candidate, document in zip(
        doubtful.tolist(), (np.searchsorted(offsets, doubtful, side="right") - 1).tolist(), strict=True
    ):
        if tree is None or document != current:
            tree, current = NodeTree(documents, document, most_visits), document
        try:
            holds[candidate] = snapshot.condition(int(programs[candidate])).holds(tree)
        except LimitError as error:
            holds[candidate] = False
            errors.append((document, int(numbers[candidate]), error))
    before = np.zeros(len(holds) + 1, np.int64)
    np.cumsum(holds, out=before[1:])
    return DocumentMatches(before[offsets], numbers[holds], ran, tuple(errors))
