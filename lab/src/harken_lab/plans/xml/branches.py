"""BrPred: whether branches meet (section 3.5.2), as a stage after the query that compares values.

The paper packs one row of every branch into a tuple, and checks tuple by tuple: n equal nodes in each of k branches
make n^k tuples. Here all rows of a branch are one relation, of the nodes that its branching points may be, and the
relations are joined once: the natural join of unions is the union of the natural joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from harken.databases.dialects import Storage
from harken.events.xml import Documents
from harken_lab.plans.xml.path_predicates import COMPARISON

CANDIDATES = "candidates"
CANDIDATE_COLUMNS = {"event_id": Storage.WHOLE, "sub_id": Storage.WHOLE}
TABLE = "query_branchpoint"
COLUMNS = {
    "sub_id": Storage.WHOLE,
    "place": Storage.WHOLE,
    "brinfo_id": Storage.WHOLE,
    "linearpath_id": Storage.WHOLE,
    "op": Storage.TEXT,
    "value": Storage.TEXT,
    "number": Storage.NUMBER,
}
"""One row for each branch that has branching points."""
QUERY = f"""SELECT c.event_id, c.sub_id, b.place, s.node_id, t.way, t.branchpoint, t.position
FROM {CANDIDATES} c CROSS JOIN {TABLE} b CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
CROSS JOIN tagpath_brinfo t
WHERE b.sub_id = c.sub_id AND m.linearpath_id = b.linearpath_id
  AND s.event_id = c.event_id AND s.tagpath_id = m.tagpath_id AND {COMPARISON.format(p="b.", s="s.")}
  AND t.tagpath_id = m.tagpath_id AND t.brinfo_id = b.brinfo_id
ORDER BY c.event_id, c.sub_id, b.place, s.node_id, t.way, t.position"""
"""The positions of the branching points of each branch on the path to each node that it reaches, from the root."""

Relation = tuple[tuple[int, ...], set[tuple[int, ...]]]
"""Numbers of branching points, in the order of their path, and the combinations of nodes that they may be."""


def meeting(rows: NDArray[np.int64], documents: Documents) -> Iterator[tuple[int, int]]:
    """The pairs of event and subscription whose branches meet, from the rows of the query."""
    paths = _NodePaths(documents)
    for pair, own in groupby(rows.tolist(), key=lambda row: (row[0], row[1])):
        if branches_meet(_relation(branch, paths) for _, branch in groupby(own, key=lambda row: row[2])):
            yield pair


def branches_meet(relations: Iterable[Relation]) -> bool:
    """Whether the natural join of relations is not empty.

    Branches that share a branching point share all points above it. So relations are joined from the deepest points up:
    those with the same columns are intersected, and then the last column is dropped.
    """
    waiting: dict[tuple[int, ...], set[tuple[int, ...]]] = {}

    def join(columns: tuple[int, ...], rows: set[tuple[int, ...]]) -> bool:
        others = waiting.get(columns)
        waiting[columns] = rows if others is None else others & rows
        return bool(waiting[columns])

    if not all(join(*each) for each in relations):
        return False
    while waiting:
        columns = max(waiting, key=len)
        rows = waiting.pop(columns)
        if len(columns) > 1 and not join(columns[:-1], {row[:-1] for row in rows}):
            return False
    return True


def _relation(rows: Iterable[list[int]], paths: _NodePaths) -> Relation:
    """The relation of one branch, from its rows of the query."""
    numbers: tuple[int, ...] = ()
    nodes = set()
    for (node, _), points in groupby(rows, key=lambda row: (row[3], row[4])):
        listed = [(row[5], row[6]) for row in points]
        numbers = tuple(number for number, _ in listed)
        path = paths.to(node)
        nodes.add(tuple(path[position - 1] for _, position in listed))
    return numbers, nodes


class _NodePaths:
    """The nodes on the path from the root to a node, computed once for each node."""

    def __init__(self, documents: Documents) -> None:
        self._parent = documents.parent
        self._paths: dict[int, tuple[int, ...]] = {}

    def to(self, node: int) -> tuple[int, ...]:
        """The nodes on the path to a node, without the root."""
        path = self._paths.get(node)
        if path is None:
            above = int(self._parent[node])
            path = self._paths[node] = () if above < 0 else (*self.to(above), node)
        return path
