"""The tables of linear paths, of tag paths, and of which linear paths fit which tag paths.

Query_Linear_Path and LinearPath_BrInfo come from subscriptions, Tagpath_Map from documents. PathMatch and
TagPath_BrInfo are computed whenever either side has new paths (sections 3.4 and 3.5.1): the database finds pairs whose
beginning and end fit, by prefix and reversed postfix, and the middle is checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.language.xpath.linear import LinearPath
from harken.relational.tables import create_table, insert_rows
from harken_lab.plans.xml.path_predicates import PathKey
from harken_lab.plans.xml.sax_rows import Points, inverted, positions

OF_SUBSCRIPTIONS = ("query_linear_path", "linearpath_brinfo")
OF_BOTH = ("tagpath_map", "pathmatch", "tagpath_brinfo")
"""Tables that have rows once there are tag paths."""
NO_PATH, NO_POINTS = 0, 0
"""The id of the linear path and tag path of the row that every document has, and the id of no branching points."""
_WHOLE, _TEXT = Storage.WHOLE, Storage.TEXT
_TABLES: dict[str, dict[str, Storage]] = {
    "query_linear_path": {
        "id": _WHOLE,
        **dict.fromkeys(("linearpath", "prefix", "middle", "postfix", "head", "tail"), _TEXT),
    },
    "linearpath_brinfo": {"linearpath_id": _WHOLE, "brinfo": _TEXT, "brinfo_id": _WHOLE},
    "tagpath_map": {"tagpath_id": _WHOLE, "tagpath": _TEXT, "inv_tagpath": _TEXT},
    "pathmatch": {"tagpath_id": _WHOLE, "linearpath_id": _WHOLE},
    "tagpath_brinfo": dict.fromkeys(("tagpath_id", "brinfo_id", "way", "branchpoint", "position"), _WHOLE),
}
_INDEXES = {
    "query_linear_path": {"id": "id"},
    "linearpath_brinfo": {"path": "linearpath_id"},
    "pathmatch": {"tag": "tagpath_id, linearpath_id", "path": "linearpath_id, tagpath_id"},
    "tagpath_brinfo": {"tag": "tagpath_id, brinfo_id"},
}
_FEW = 256
"""Least number of unused linear paths that are collected."""


class _PathEntry(NamedTuple):
    """A linear path in the tables: its key, and its sets of branching points by their ids."""

    key: PathKey
    points: dict[int, Points]


class PathTables:
    """The five tables, and the part of their contents that is kept in memory."""

    def __init__(self) -> None:
        self._ids: dict[PathKey, int] = {}
        self._entries: dict[int, _PathEntry] = {}
        self._point_ids: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        self._uses: dict[tuple[int, int], int] = {}
        """By the ids of a linear path and of branching points, how many predicates have both."""
        self._unused: set[int] = set()
        self._next_path = self._next_points = 1
        self._new_paths: list[int] = []
        self._new_points: list[tuple[int, int]] = []
        self._tags: list[str] = [""]
        self.reached: set[int] = set()
        """Tag paths that some linear path fits; negative if it looks up nodes as numbers."""

    @property
    def linear_paths(self) -> int:
        return len(self._entries) - len(self._unused)

    @property
    def tag_paths(self) -> int:
        return len(self._tags) - 1

    def create(self, database: Connection) -> None:
        """Create the tables, with the path that every document has."""
        for table, columns in _TABLES.items():
            create_table(database, table, columns, **_INDEXES.get(table, {}))
        _insert(database, "pathmatch", [(NO_PATH, NO_PATH)])

    # From subscriptions

    def add_use(self, key: PathKey, points: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Count one more predicate with a linear path and branching points. Returns the ids of both."""
        path = self._ids.get(key)
        if path is None:
            path = self._ids[key] = self._next_path
            self._next_path += 1
            self._entries[path] = _PathEntry(key, {})
            self._new_paths.append(path)
        self._unused.discard(path)
        pair = path, self._points_id(path, tuple(points)) if points else NO_POINTS
        self._uses[pair] = self._uses.get(pair, 0) + 1
        return pair

    def _points_id(self, path: int, points: tuple[tuple[int, int], ...]) -> int:
        points_id = self._point_ids.get((path, points))
        if points_id is None:
            points_id = self._point_ids[path, points] = self._next_points
            self._next_points += 1
            self._entries[path].points[points_id] = points
            self._new_points.append((path, points_id))
        return points_id

    def remove_uses(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Undo `add_use` for removed predicates, one pair of ids for each."""
        for pair in pairs:
            self._uses[pair] -= 1
            if not self._uses[pair]:
                del self._uses[pair]
                path = pair[0]
                if not any((path, each) in self._uses for each in (NO_POINTS, *self._entries[path].points)):
                    self._unused.add(path)

    def store(self, database: Connection) -> None:
        """Insert new linear paths, and the tag paths that they fit. Collect unused linear paths if there are many."""
        if self._new_paths:
            _insert(
                database,
                "query_linear_path",
                [(path, *_pieces(self._entries[path].key.path)) for path in self._new_paths],
            )
        if self._new_points:
            _insert(
                database,
                "linearpath_brinfo",
                [(path, _brinfo(self._entries[path].points[each]), each) for path, each in self._new_points],
            )
        self._fit_new_subscriptions(database)
        if len(self._unused) > max(_FEW, self.linear_paths):
            self._collect(database)

    def _fit_new_subscriptions(self, database: Connection) -> None:
        """Find the tag paths that new linear paths fit, and the positions of new branching points."""
        paths, points = self._new_paths, self._new_points
        self._new_paths, self._new_points = [], []
        if not self.tag_paths:
            return
        matched: dict[int, list[int]] = {path: [] for path in paths}
        if paths:
            for path, tag in self._candidates(database, f"l.id >= {paths[0]}"):
                if self._fits(path, tag):
                    matched[path].append(tag)
            self._match(database, [(tag, path) for path, tags in matched.items() for tag in tags])
        for path in {path for path, _ in points if path not in matched}:
            query = f"SELECT abs(tagpath_id) FROM pathmatch WHERE linearpath_id = {path}"
            matched[path] = [tag for (tag,) in database.integers(query).tolist()]
        self._place(database, [(tag, *pair) for pair in points for tag in matched[pair[0]]])

    def _collect(self, database: Connection) -> None:
        """Delete linear paths that no predicate has, and all rows that were computed from them."""
        unused = sorted(self._unused)
        points = [each for path in unused for each in self._entries[path].points]
        mark = database.parameter(1)
        for table, column, ids in (
            ("query_linear_path", "id", unused),
            ("linearpath_brinfo", "linearpath_id", unused),
            ("pathmatch", "linearpath_id", unused),
            ("tagpath_brinfo", "brinfo_id", points),
        ):
            if ids:
                database.run_many(f"DELETE FROM {table} WHERE {column} = {mark}", [(each,) for each in ids])
        removed = set(points)
        self._point_ids = {key: each for key, each in self._point_ids.items() if each not in removed}
        for path in unused:
            del self._ids[self._entries.pop(path).key]
        self._unused.clear()

    # From documents

    def add_tag_paths(self, database: Connection, tag_paths: Sequence[str]) -> list[int]:
        """Insert new tag paths, with the linear paths that fit them. Returns their ids, in order."""
        first = len(self._tags)
        self._tags += tag_paths
        ids = list(range(first, len(self._tags)))
        rows = [(tag, path, inverted(path)) for tag, path in zip(ids, tag_paths, strict=True)]
        _insert(database, "tagpath_map", rows)
        candidates = self._candidates(database, f"t.tagpath_id >= {first}")
        fitting = [(tag, path) for path, tag in candidates if path in self._entries and self._fits(path, tag)]
        self._match(database, fitting)
        self._place(database, [(tag, path, each) for tag, path in fitting for each in self._entries[path].points])
        database.analyse(OF_BOTH)  # until then, a planner takes the tables to be empty
        return ids

    def clear_tag_paths(self, database: Connection) -> None:
        """Delete all tag paths."""
        for table in ("tagpath_map", "pathmatch", "tagpath_brinfo"):
            database.run(f"DELETE FROM {table}")
        _insert(database, "pathmatch", [(NO_PATH, NO_PATH)])
        self._tags, self.reached = [""], set()

    # From both

    def _candidates(self, database: Connection, condition: str) -> list[tuple[int, int]]:
        """Pairs of a linear path and a tag path whose beginnings and ends agree, up to the first wildcard."""
        query = (
            "SELECT l.id, t.tagpath_id FROM query_linear_path l JOIN tagpath_map t"
            " ON substr(t.tagpath, 1, length(l.head)) = l.head AND substr(t.inv_tagpath, 1, length(l.tail)) = l.tail"
            f" WHERE {condition}"
        )
        return [(path, tag) for path, tag in database.integers(query).tolist()]

    def _fits(self, path: int, tag: int) -> bool:
        return bool(positions(self._entries[path].key.path, self._tags[tag]))

    def _match(self, database: Connection, fitting: Sequence[tuple[int, int]]) -> None:
        """Insert into PathMatch pairs of a tag path and a linear path that fits it."""
        rows = [(-tag if self._entries[path].key.is_number else tag, path) for tag, path in fitting]
        self.reached.update(tag for tag, _ in rows)
        _insert(database, "pathmatch", rows)

    def _place(self, database: Connection, triples: Sequence[tuple[int, int, int]]) -> None:
        """Insert into TagPath_BrInfo the positions of points, for triples of tag path, linear path and points."""
        rows = []
        for tag, path, points_id in triples:
            key, points_by_id = self._entries[path]
            points = points_by_id[points_id]
            signed = -tag if key.is_number else tag
            for way, places in enumerate(positions(key.path, self._tags[tag], points)):
                numbers = (number for number, _ in points)
                rows += [(signed, points_id, way, *each) for each in zip(numbers, places, strict=True)]
        _insert(database, "tagpath_brinfo", rows)


def _pieces(path: LinearPath) -> tuple[str | None, ...]:
    """A path, its pieces as in Fig. 3.4, and the beginning and end of tag paths that fit, up to the first wildcard."""
    prefix, postfix = path.prefix, path.postfix
    tail = inverted(prefix) if postfix is None else postfix
    return path.text, prefix, path.middle, postfix, prefix.partition("*")[0], tail.partition("*")[0]


def _brinfo(points: Points) -> str:
    return "&".join(f"bp#{number}={step}" for number, step in points)


def _insert(database: Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    insert_rows(database, table, _TABLES[table], rows)
