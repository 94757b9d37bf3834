"""A document as rows of a table, and the paper's database functions on them (Tian et al., SIGMOD 2004, 3.3–3.5).

A row is a node: the names and the ids on the path from the root to it, and its value. A linear path is aligned with a
row's tag path in all ways that fit; the positions of its branching points then say which nodes these are. Branches meet
if all of them can have the same nodes at their branching points. Plain Python, and slow: tests use it as an oracle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from harken.events.xml.documents import Documents
from harken.language.xpath.ast import NodeKind
from harken.language.xpath.linear import LinearPath, node_text

Points = Sequence[tuple[int, int]]
"""Branching points: the number of each, and its step in a linear path, from 1."""


class SaxRow(NamedTuple):
    """A row of Fig. 3.6."""

    tag_path: str
    """`/a/b/x/@y`; `/` for the root node."""
    id_path: tuple[int, ...]
    """The nodes on the path, numbered in document order from 1; empty for the root."""
    value: str

    @property
    def id_text(self) -> str:
        return ".".join(map(str, self.id_path))


class Relation(NamedTuple):
    """Columns, which are numbers of branching points, and rows of node ids (Fig. 3.14)."""

    columns: tuple[int, ...]
    rows: frozenset[tuple[int, ...]]


class PlacedBranch(NamedTuple):
    """A branch aligned with a row (Fig. 3.13): its branching points, their possible positions, and the row's ids."""

    numbers: tuple[int, ...]
    positions: Sequence[tuple[int, ...]]
    id_path: tuple[int, ...]

    def relation(self) -> Relation:
        """The combinations of nodes that the branching points may be."""
        rows = (tuple(self.id_path[position - 1] for position in each) for each in self.positions)
        return Relation(self.numbers, frozenset(rows))


def sax_rows(documents: Documents, place: int = 0, *, has_elements: bool = False) -> list[SaxRow]:
    """The texts and attributes of a document, in document order; with `has_elements`, its elements and the root too.

    The value of an element or the root is all text below it.
    """
    paths, parent = documents.paths, documents.parent
    first, last = int(documents.first[place]), int(documents.first[place + 1])
    node_paths: list[tuple[str, tuple[int, ...]]] = [("", ())]
    rows = [SaxRow("/", (), _value(documents, first))] if has_elements else []
    for node in range(first + 1, last):
        tag = int(documents.path[node])
        kind = int(paths.kind[tag])
        above, ids = node_paths[int(parent[node]) - first]
        path = f"{above}/{node_text(kind, paths.name(tag).decode())}", (*ids, node - first)
        node_paths.append(path)
        if has_elements or kind != NodeKind.ELEMENT:
            rows.append(SaxRow(*path, _value(documents, node)))
    return rows


def inverted(tag_path: str) -> str:
    """The Inv_Tagpath of Fig. 3.7, which begins with the leaf: `@y/x/b/a`."""
    return "/".join(reversed(tag_path[1:].split("/")))


def positions(path: LinearPath, tag_path: str, points: Points = ()) -> list[tuple[int, ...]]:
    """The positions of a linear path's branching points in a tag path, from 1: a tuple for each alignment of the two.

    An empty list if the linear path does not fit. Without branching points, one empty tuple if it does.
    """
    nodes = tag_path[1:].split("/") if tag_path != "/" else []
    branching_steps = {step for _, step in points}
    # By the position of the last aligned step: the positions of the branching points up to there.
    reached: dict[int, set[tuple[int, ...]]] = {0: {()}}
    for number, step in enumerate(path.steps, 1):
        aligned: dict[int, set[tuple[int, ...]]] = {}
        for at, alignments in reached.items():
            last = len(nodes) if step.is_descendant else min(at + 1, len(nodes))
            for position in range(at + 1, last + 1):
                if _fits(node_text(step.kind, step.name), nodes[position - 1]):
                    more = (position,) if number in branching_steps else ()
                    aligned.setdefault(position, set()).update(each + more for each in alignments)
        reached = aligned
    return sorted(reached.get(len(nodes), ()))


def position_text(numbers: Iterable[int], alignments: Iterable[Sequence[int]]) -> str:
    """The BP_Position of Fig. 3.11: `{bp#1,bp#2},{2,4},{3,4}`."""
    arrays = [[f"bp#{number}" for number in numbers], *alignments]
    return ",".join("{" + ",".join(map(str, each)) + "}" for each in arrays)


def branches_meet(branches: Iterable[PlacedBranch]) -> bool:
    """BrPred: whether the natural join of the branches' relations is not empty."""
    return bool(natural_join(branch.relation() for branch in branches).rows)


def natural_join(relations: Iterable[Relation]) -> Relation:
    """Join all relations on columns of the same number."""
    return reduce(_joined, relations, Relation((), frozenset({()})))


def _joined(left: Relation, right: Relation) -> Relation:
    common = [column for column in right.columns if column in left.columns]
    added = [place for place, column in enumerate(right.columns) if column not in left.columns]
    by_common: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for row in right.rows:
        own = dict(zip(right.columns, row, strict=True))
        key = tuple(own[column] for column in common)
        by_common.setdefault(key, []).append(tuple(row[place] for place in added))
    places = [left.columns.index(column) for column in common]
    rows = (row + more for row in left.rows for more in by_common.get(tuple(row[place] for place in places), ()))
    return Relation((*left.columns, *(right.columns[place] for place in added)), frozenset(rows))


def _fits(step: str, node: str) -> bool:
    """Whether a step fits a node of a tag path, by their texts."""
    if step == "*":
        return node != "text()" and not node.startswith("@")
    return node.startswith("@") if step == "@*" else step == node


def _value(documents: Documents, node: int) -> str:
    return documents.text[documents.begin[node] : documents.end[node]].tobytes().decode()
