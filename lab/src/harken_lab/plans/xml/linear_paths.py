"""The tables of linear paths, of tag paths, and of which linear paths fit which tag paths.

Query_Linear_Path and LinearPath_BrInfo come from subscriptions, Tagpath_Map from documents. PathMatch and
TagPath_BrInfo are computed whenever either side has new paths (sections 3.4 and 3.5.1): the database finds pairs by
equal keys (`fit_keys`), and whether a pair fits is checked here. Nothing of it is kept in memory but which tag paths
some linear path fits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.language.xpath.linear import LinearPath
from harken.relational.table_state import TableState
from harken.relational.tables import create_table, delete_keys, insert_rows, row_key, rows_of_keys
from harken_lab.plans.xml import branches
from harken_lab.plans.xml.fit_keys import linear_path_key, tag_path_keys
from harken_lab.plans.xml.path_predicates import PathKey
from harken_lab.plans.xml.sax_rows import Points, inverted, positions

OF_SUBSCRIPTIONS = ("query_linear_path", "linearpath_brinfo")
OF_BOTH = ("tagpath_map", "tagpath_key", "pathmatch", "tagpath_brinfo")
"""Tables that have rows once there are tag paths."""
NO_PATH, NO_POINTS = 0, 0
"""The id of the linear path and tag path of the row that every document has, and the id of no branching points."""
COUNTERS = {"path": 1, "points": 1, "tag": 1, "tags": 0}
"""The counters of the matcher's state: the next ids, and how many tag paths there are."""
_WHOLE, _TEXT = Storage.WHOLE, Storage.TEXT
_TABLES: dict[str, dict[str, Storage]] = {
    "query_linear_path": {
        **dict.fromkeys(("id", "is_number", "name_key", "fit_key"), _WHOLE),
        **dict.fromkeys(("linearpath", "prefix", "middle", "postfix"), _TEXT),
    },
    "linearpath_brinfo": {"linearpath_id": _WHOLE, "brinfo": _TEXT, "brinfo_id": _WHOLE},
    "tagpath_map": {"tagpath_id": _WHOLE, "name_key": _WHOLE, "tagpath": _TEXT, "inv_tagpath": _TEXT},
    "tagpath_key": {"fit_key": _WHOLE, "tagpath_id": _WHOLE},
    "pathmatch": {"tagpath_id": _WHOLE, "linearpath_id": _WHOLE},
    "tagpath_brinfo": dict.fromkeys(("tagpath_id", "brinfo_id", "way", "branchpoint", "position"), _WHOLE),
}
_INDEXES = {
    "query_linear_path": {"id": "id", "name": "name_key", "fit": "fit_key"},
    "linearpath_brinfo": {"path": "linearpath_id"},
    "tagpath_map": {"id": "tagpath_id", "name": "name_key"},
    "tagpath_key": {"fit": "fit_key", "tag": "tagpath_id"},
    "pathmatch": {"tag": "tagpath_id, linearpath_id", "path": "linearpath_id, tagpath_id"},
    "tagpath_brinfo": {"tag": "tagpath_id, brinfo_id"},
}
_PATHS = """SELECT l.id, l.is_number, l.linearpath
FROM given CROSS JOIN query_linear_path l WHERE l.name_key = given.key"""
_BRINFOS = """SELECT b.linearpath_id, b.brinfo, b.brinfo_id
FROM given CROSS JOIN linearpath_brinfo b WHERE b.linearpath_id = given.key"""
_TAGS_OF_KEYS = """SELECT k.fit_key, t.tagpath_id, t.tagpath FROM given CROSS JOIN tagpath_key k
CROSS JOIN tagpath_map t WHERE k.fit_key = given.key AND t.tagpath_id = k.tagpath_id"""
_TAGS_OF_PATHS = """SELECT m.linearpath_id, t.tagpath_id, t.tagpath
FROM given CROSS JOIN pathmatch m CROSS JOIN tagpath_map t
WHERE m.linearpath_id = given.key AND t.tagpath_id = abs(m.tagpath_id)"""
_TAGS = "SELECT t.tagpath_id, t.tagpath FROM given CROSS JOIN tagpath_map t WHERE t.name_key = given.key"
_PATHS_OF_KEYS = """SELECT l.fit_key, l.id, l.is_number, l.linearpath
FROM given CROSS JOIN query_linear_path l WHERE l.fit_key = given.key"""
_UNUSED = (
    f"DELETE FROM linearpath_brinfo WHERE brinfo_id NOT IN (SELECT brinfo_id FROM {branches.TABLE})",
    "DELETE FROM pathmatch WHERE linearpath_id <> 0 AND linearpath_id NOT IN (SELECT id FROM query_linear_path)",
    "DELETE FROM tagpath_brinfo WHERE brinfo_id NOT IN (SELECT brinfo_id FROM linearpath_brinfo)",
)
PathUse = tuple[PathKey, Points]
"""A linear path and the branching points on it."""


class PathTables:
    """The tables, and which tag paths some linear path fits."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self.reached: set[int] = set()
        """Tag paths that some linear path fits; negative if it looks up nodes as numbers."""

    def create(self, database: Connection) -> None:
        """Create the tables, with the path that every document has."""
        for table, columns in _TABLES.items():
            create_table(database, table, columns, **_INDEXES.get(table, {}))
        _insert(database, "pathmatch", [(NO_PATH, NO_PATH)])
        self.reached = set()

    def reopen(self, database: Connection) -> None:
        """Read which tag paths are reached from the tables of a file."""
        self.reached = {tag for (tag,) in database.rows("SELECT DISTINCT tagpath_id FROM pathmatch") if tag != NO_PATH}

    # From subscriptions

    def ids(self, database: Connection, uses: Collection[PathUse]) -> dict[PathUse, tuple[int, int]]:
        """The ids of linear paths and of branching points on them; new ones are inserted, and fitted to tag paths."""
        paths, new_paths = self._path_ids(database, dict.fromkeys(key for key, _ in uses))
        points, new_points = self._point_ids(database, paths, [use for use in uses if use[1]], new_paths)
        self._fit(database, paths, new_paths, new_points)
        return {use: (paths[use[0]], points[use] if use[1] else NO_POINTS) for use in uses}

    def _path_ids(self, database: Connection, keys: Iterable[PathKey]) -> tuple[dict[PathKey, int], dict[int, PathKey]]:
        """The ids of linear paths, and the new ones among them."""
        texts = {(int(key.is_number), key.path.text): key for key in keys}
        paths: dict[PathKey, int] = {}
        for id, is_number, text in rows_of_keys(database, _PATHS, [row_key(*each) for each in texts]):
            if (is_number, text) in texts:
                paths[texts[is_number, text]] = id
        missing = [(each, key) for each, key in texts.items() if key not in paths]
        first = self._state.take("path", len(missing))
        new = {id: key for id, (_, key) in enumerate(missing, first)}
        paths |= {key: id for id, key in new.items()}
        rows = [
            (id, is_number, row_key(is_number, text), linear_path_key(key.path), *_pieces(key.path))
            for id, ((is_number, text), key) in enumerate(missing, first)
        ]
        _insert(database, "query_linear_path", rows)
        return paths, new

    def _point_ids(
        self, database: Connection, paths: dict[PathKey, int], uses: Sequence[PathUse], new_paths: Collection[int]
    ) -> tuple[dict[PathUse, int], dict[int, PathUse]]:
        """The ids of branching points, and the new ones among them."""
        wanted = {(paths[key], _brinfo(points)): (key, points) for key, points in uses}
        known_paths = {path for path, _ in wanted if path not in new_paths}
        ids: dict[PathUse, int] = {}
        for path, brinfo, id in rows_of_keys(database, _BRINFOS, known_paths):
            if (path, brinfo) in wanted:
                ids[wanted[path, brinfo]] = id
        missing = [(*each, use) for each, use in wanted.items() if use not in ids]
        first = self._state.take("points", len(missing))
        new = {id: use for id, (_, _, use) in enumerate(missing, first)}
        rows = [(path, brinfo, id) for id, (path, brinfo, _) in enumerate(missing, first)]
        _insert(database, "linearpath_brinfo", rows)
        return ids | {use: id for id, use in new.items()}, new

    def _fit(
        self,
        database: Connection,
        paths: dict[PathKey, int],
        new_paths: dict[int, PathKey],
        new_points: dict[int, PathUse],
    ) -> None:
        """Find the tag paths that new linear paths fit, and the positions of new branching points."""
        if not self._state["tags"] or not (new_paths or new_points):
            return
        tags = self._fitting_tags(database, new_paths)
        self._match(database, [(_signed(tag, new_paths[path]), path) for path in tags for tag, _ in tags[path]])
        known = {paths[key] for key, _ in new_points.values()} - new_paths.keys()
        for path, tag, text in rows_of_keys(database, _TAGS_OF_PATHS, known):
            tags.setdefault(path, []).append((tag, text))
        self._place(
            database,
            [(tag, text, use, id) for id, use in new_points.items() for tag, text in tags.get(paths[use[0]], ())],
        )

    def _fitting_tags(self, database: Connection, new_paths: dict[int, PathKey]) -> dict[int, list[tuple[int, str]]]:
        """The tag paths that new linear paths fit, with their texts."""
        by_key: dict[int, list[int]] = {}
        for path, key in new_paths.items():
            by_key.setdefault(linear_path_key(key.path), []).append(path)
        tags: dict[int, list[tuple[int, str]]] = {}
        for fit_key, tag, text in rows_of_keys(database, _TAGS_OF_KEYS, by_key):
            for path in by_key[fit_key]:
                if positions(new_paths[path].path, text):
                    tags.setdefault(path, []).append((tag, text))
        return tags

    def collect(self, database: Connection, used: str) -> None:
        """Delete linear paths and branching points that no predicate has. `used` is the query for the paths in use."""
        database.run(f"DELETE FROM query_linear_path WHERE id NOT IN ({used})")
        for statement in _UNUSED:
            database.run(statement)
        self.reopen(database)

    # From documents

    def add_tag_paths(self, database: Connection, tag_paths: Sequence[str]) -> list[int]:
        """The ids of tag paths, in order. New ones are inserted, with the linear paths that fit them."""
        wanted = dict.fromkeys(tag_paths, NO_PATH)
        for tag, text in rows_of_keys(database, _TAGS, map(row_key, wanted)):
            if text in wanted:
                wanted[text] = tag
        missing = [text for text, tag in wanted.items() if tag == NO_PATH]
        if missing:
            first = self._state.take("tag", len(missing))
            self._state["tags"] += len(missing)
            new = dict(zip(missing, range(first, first + len(missing)), strict=True))
            wanted |= new
            self._insert_tag_paths(database, new)
        return [wanted[text] for text in tag_paths]

    def _insert_tag_paths(self, database: Connection, new: dict[str, int]) -> None:
        _insert(database, "tagpath_map", [(tag, row_key(text), text, inverted(text)) for text, tag in new.items()])
        by_key: dict[int, list[str]] = {}
        for text in new:
            for fit_key in dict.fromkeys(tag_path_keys(text)):
                by_key.setdefault(fit_key, []).append(text)
        _insert(database, "tagpath_key", [(fit_key, new[text]) for fit_key, texts in by_key.items() for text in texts])
        fitting: list[tuple[int, PathKey, str]] = []
        for fit_key, path, is_number, linear_path in rows_of_keys(database, _PATHS_OF_KEYS, by_key):
            key = PathKey(LinearPath.parse(linear_path), bool(is_number))
            fitting += [(path, key, text) for text in by_key[fit_key] if positions(key.path, text)]
        self._match(database, [(_signed(new[text], key), path) for path, key, text in fitting])
        points: dict[int, list[tuple[int, Points]]] = {}
        for path, brinfo, id in rows_of_keys(database, _BRINFOS, {path for path, _, _ in fitting}):
            points.setdefault(path, []).append((id, _points(brinfo)))
        placed = [
            (new[text], text, (key, each), id) for path, key, text in fitting for id, each in points.get(path, ())
        ]
        self._place(database, placed)
        database.analyse(OF_BOTH)  # until then, a planner takes the tables to be empty

    def remove_tag_paths(self, database: Connection, tags: Collection[int]) -> None:
        """Delete single tag paths, and all rows that were computed from them."""
        signed = [*tags, *(-tag for tag in tags)]
        for table, ids in (
            ("tagpath_map", tags),
            ("tagpath_key", tags),
            ("pathmatch", signed),
            ("tagpath_brinfo", signed),
        ):
            delete_keys(database, table, "tagpath_id", ids)
        self.reached.difference_update(signed)
        self._state["tags"] -= len(tags)

    # From both

    def _match(self, database: Connection, rows: Sequence[tuple[int, int]]) -> None:
        """Insert into PathMatch pairs of a tag path and a linear path that fits it."""
        self.reached.update(tag for tag, _ in rows)
        _insert(database, "pathmatch", rows)

    def _place(self, database: Connection, placed: Sequence[tuple[int, str, PathUse, int]]) -> None:
        """Insert into TagPath_BrInfo the positions of branching points: a tag path, a use, and the points' id."""
        rows = []
        for tag, text, (key, points), points_id in placed:
            for way, places in enumerate(positions(key.path, text, points)):
                numbers = (number for number, _ in points)
                rows += [(_signed(tag, key), points_id, way, *each) for each in zip(numbers, places, strict=True)]
        _insert(database, "tagpath_brinfo", rows)


def _signed(tag: int, key: PathKey) -> int:
    return -tag if key.is_number else tag


def _pieces(path: LinearPath) -> tuple[str | None, ...]:
    """A path and its pieces, as in Fig. 3.4."""
    return path.text, path.prefix, path.middle, path.postfix


def _brinfo(points: Points) -> str:
    return "&".join(f"bp#{number}={step}" for number, step in points)


def _points(brinfo: str) -> tuple[tuple[int, int], ...]:
    """The branching points of a BrInfo."""
    pairs = (each.removeprefix("bp#").split("=") for each in brinfo.split("&"))
    return tuple((int(number), int(step)) for number, step in pairs)


def _insert(database: Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    insert_rows(database, table, _TABLES[table], rows)
