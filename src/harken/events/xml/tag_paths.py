"""The distinct tag paths of a process, each with a number: the names from the root of a document to a node.

Tag paths are only added, under a lock. Readers use the last published state and ignore numbers beyond it; they see what
other threads add when they read the state again.
"""

from __future__ import annotations

import secrets
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.concurrency.forking import PART, fork_lock
from harken.kernels import scanning
from harken.kernels import xml as kernels
from harken.kernels.frozen import frozen

MOST_PATHS = 131_072
"""With more tag paths, the next batch starts with an empty table, so that random names cannot fill the memory."""
MOST_NAME_BYTES = 1 << 24
_FIRST_PATHS = 1_024
_FIRST_NAME_BYTES = 1 << 14
_NO_ROOM = -2
_SEED = secrets.randbits(32)


class KnownPaths(NamedTuple):
    """The state that readers see: the table, its words for kernels, and the parts of it that are filled."""

    table: kernels.TagPathTable
    words: Any
    known: int
    name_bytes: int


class Workspace(NamedTuple):
    """A thread's buffers for kernels, and their words."""

    buffers: kernels.ParseBuffers
    words: Any


class TagPaths:
    """Tag paths by number. 0 is the root node, which has no parent."""

    def __init__(self) -> None:
        self.lock = fork_lock(PART)
        self._numbers: dict[tuple[int, int, bytes], int] = {}
        table = _table(_FIRST_PATHS, _FIRST_NAME_BYTES)
        table.parent[0] = -1
        self.state = KnownPaths(table, frozen(table), 1, 0)

    def __len__(self) -> int:
        return self.state.known

    @property
    def parent(self) -> NDArray[np.int32]:
        """The number of each tag path's parent; -1 for the root."""
        state = self.state
        return state.table.parent[: state.known]

    @property
    def kind(self) -> NDArray[np.uint8]:
        """The kind of each tag path: 0 the root, 1 an element, 2 an attribute, 3 a text."""
        state = self.state
        return state.table.kind[: state.known]

    @property
    def is_full(self) -> bool:
        state = self.state
        return state.known > MOST_PATHS or state.name_bytes > MOST_NAME_BYTES

    def name(self, path: int) -> bytes:
        """The expanded name of a tag path in UTF-8; empty for the root and for texts."""
        table, _, count, _ = self.state
        if not 0 <= path < count:
            raise IndexError(f"there is no tag path {path}")
        return table.names[table.name_at[path] : table.name_at[path + 1]].tobytes()

    def number(self, parent: int, kind: int, name: bytes) -> int:
        """The number of the tag path with this parent, kind and name, which is added if it is new."""
        key = parent, kind, name
        known_number = self._numbers.get(key)
        return self._add(key) if known_number is None else known_number

    def _add(self, key: tuple[int, int, bytes]) -> int:
        parent, kind, name = key
        source = np.frombuffer(bytearray(name), np.uint8)
        space = workspace()
        with self.lock:
            while True:
                self.set_cursor(space)
                number = int(kernels.find_or_add(self.state.words, space.words, source, parent, kind, True))
                if number != _NO_ROOM:
                    break
                self.grow(len(name))
            self.publish(space)
            self._numbers[key] = number
        return number

    def set_cursor(self, space: Workspace) -> None:
        """Set a kernel's cursor to the published state."""
        cursor = space.buffers.cursor
        cursor[kernels.PATHS], cursor[kernels.NAMES] = self.state.known, self.state.name_bytes

    def publish(self, space: Workspace) -> None:
        """Publish the tag paths that a kernel has added. The caller holds the lock."""
        cursor = space.buffers.cursor
        table, words, _, _ = self.state
        self.state = KnownPaths(table, words, int(cursor[kernels.PATHS]), int(cursor[kernels.NAMES]))

    def grow(self, name_bytes: int = 0) -> None:
        """Copy the table to larger arrays; readers continue with the old ones. The caller holds the lock."""
        old, _, count, used = self.state
        paths = 2 * len(old.parent) if 2 * count > len(old.parent) else len(old.parent)
        size = len(old.names)
        while size < 2 * used or size < used + 2 * max(name_bytes, kernels.MAX_NAME) + scanning.WIDTH:
            size *= 2
        table = _table(paths, size)
        table.parent[:count] = old.parent[:count]
        table.kind[:count] = old.kind[:count]
        table.name_at[: count + 1] = old.name_at[: count + 1]
        table.names[:used] = old.names[:used]
        for name in ("text_of", "opening", "following"):
            getattr(table, name)[:count] = getattr(old, name)[:count]
        words = frozen(table)
        kernels.place_paths(words, count)
        self.state = KnownPaths(table, words, count, used)


def _table(paths: int, name_bytes: int) -> kernels.TagPathTable:
    return kernels.TagPathTable(
        parent=np.zeros(paths, np.int32),
        kind=np.zeros(paths, np.uint8),
        name_at=np.zeros(paths + 1, np.int64),
        names=np.zeros(name_bytes, np.uint8),
        text_of=np.zeros(paths, np.int32),
        opening=np.zeros(paths, np.int32),
        following=np.zeros(paths, np.int32),
        slots=np.zeros(4 * paths, np.int32),
        seed=_SEED,
    )


class _Local(local):
    def __init__(self) -> None:
        levels, attributes, bindings = kernels.MOST_LEVELS, kernels.MOST_ATTRIBUTES, kernels.MOST_BINDINGS
        sizes: dict[str, int] = {"cursor": 8, "expanded": kernels.MAX_NAME + 8}
        sizes |= dict.fromkeys(("node", "name", "length"), levels + 2)
        sizes |= dict.fromkeys(("attribute", "attribute_end", "colon", "hashed", "value", "value_end"), attributes + 1)
        sizes |= dict.fromkeys(("prefix", "prefix_length", "uri", "uri_length", "level"), bindings)
        narrow: dict[str, Any] = {"node": np.int32, "expanded": np.uint8}
        buffers = kernels.ParseBuffers(
            **{name: np.zeros(size, narrow.get(name, np.int64)) for name, size in sizes.items()}
        )
        self.space = Workspace(buffers, frozen(buffers))


_local = _Local()


def workspace() -> Workspace:
    """The workspace of this thread."""
    return _local.space


_current: TagPaths | None = None
_renewing = fork_lock(PART)


def current_tag_paths() -> TagPaths:
    """The tag paths to read the next batch with."""
    global _current  # noqa: PLW0603 - one for the process
    paths = _current
    if paths is None or paths.is_full:
        fresh = TagPaths()  # not under the lock: a fork waits for all locks, and a new lock waits for the fork
        with _renewing:
            if _current is None or _current.is_full:
                _current = fresh
            paths = _current
    return paths
