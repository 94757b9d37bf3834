"""Shared by the equality-preferring algorithms: rows clustered by the values of their equalities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.cluster_threads import ClusterThreads
from harken_lab.papers.counting import CountedLists
from harken_lab.papers.growing_lists import GrowingLists
from harken_lab.papers.kernels.equality_kernels import (
    CLUSTERS,
    ENTRIES,
    FREE_CLUSTERS,
    FREE_ENTRIES,
    NONE,
    EntryClusters,
    Probes,
    count_loose,
    delete_rows,
    insert_rows,
    place_all,
)
from harken_lab.papers.kernels.row_table import RowTable
from harken_lab.papers.labelled_rows import grown, longer, predicates_of
from harken_lab.papers.row_matcher import RowMatcher, RowSearch

_PLACES = 64


class EqualityClusters:
    """Rows in entries of clusters: owns and enlarges the arrays of kernels/equality_kernels.py."""

    def __init__(self) -> None:
        self._columns = GrowingLists()
        self._rows = GrowingLists()
        self.clear()

    def clear(self) -> None:
        """Remove all rows."""
        self._columns.clear()
        self._rows.clear()
        none, places = np.empty(0, np.int32), np.full(_PLACES, NONE, np.int64)
        self._clusters = EntryClusters(
            columns=self._columns.table,
            sizes=none,
            cluster_places=places,
            rows=self._rows.table,
            owners=none,
            entry_places=places.copy(),
            free_entries=none,
            free_clusters=none,
            state=np.zeros(4, np.int64),
        )

    @property
    def clusters(self) -> EntryClusters:
        """The arrays for kernels. Invalid after the next change."""
        return self._clusters._replace(columns=self._columns.table, rows=self._rows.table)

    @property
    def count(self) -> tuple[int, int]:
        """The number of clusters, and of entries."""
        state = self._clusters.state
        return int(state[CLUSTERS] - state[FREE_CLUSTERS]), int(state[ENTRIES] - state[FREE_ENTRIES])

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        clusters = self._clusters
        arrays = (clusters.sizes, clusters.cluster_places, clusters.owners, clusters.entry_places)
        free = (clusters.free_entries, clusters.free_clusters)
        return self._columns.nbytes + self._rows.nbytes + sum(each.nbytes for each in (*arrays, *free))

    def probes(self) -> Probes:
        """Scratch arrays for kernels."""
        count = int(self._clusters.state[CLUSTERS])
        return Probes(np.empty(count, np.int32), np.empty(count, np.int64))

    def insert(self, rows: NDArray[np.int32], table: RowTable) -> None:
        """Add rows of a table."""
        done = 0
        while True:
            done = insert_rows(self.clusters, table, rows, done)
            if done == len(rows):
                break
            self._grow(len(rows) - done, int(table.sizes[rows[done]]))

    def delete(self, rows: NDArray[np.int32], table: RowTable) -> None:
        """Remove rows, which are still in the table."""
        delete_rows(self.clusters, table, rows)

    def _grow(self, coming: int, columns: int) -> None:
        """Make room for the next row, which has `columns` columns, and some for the `coming` rows after it."""
        arrays = self._clusters
        clusters, entries = self.count
        if entries + 1 > min(len(arrays.owners), len(arrays.entry_places) // 2):
            # Assume that half of the coming rows need an entry of their own.
            self._ensure_entries(grown(entries, entries + coming // 2 + 1))
        if clusters + 1 > min(len(arrays.sizes), len(arrays.cluster_places) // 2):
            self._ensure_clusters(grown(clusters, clusters + 1))
        self._columns.ensure(len(self._clusters.sizes))
        self._rows.ensure(len(self._clusters.owners))
        self._columns.reserve(4 * columns + 2)
        self._rows.grow()
        self._rows.reserve(2 * coming)

    def _ensure_entries(self, count: int) -> None:
        arrays = self._clusters
        self._clusters = arrays._replace(
            owners=longer(arrays.owners, count, NONE),
            free_entries=longer(arrays.free_entries, count, 0),
            entry_places=_rehashed(arrays.entry_places, count),
        )

    def _ensure_clusters(self, count: int) -> None:
        arrays = self._clusters
        self._clusters = arrays._replace(
            sizes=longer(arrays.sizes, count, 0),
            free_clusters=longer(arrays.free_clusters, count, 0),
            cluster_places=_rehashed(arrays.cluster_places, count),
        )


Share = tuple[NDArray[np.int32], int]
"""The rows with equalities that a thread found for an event, and how many it examined."""


class EqualityMatcher(RowMatcher):
    """A matcher that clusters rows with an equality, and counts the predicates of rows without one."""

    bulk_share: int = 4

    def __init__(self, limits: Limits = DEFAULT_LIMITS, threads: int = 1) -> None:
        """`threads`: among how many the clusters of one event are divided."""
        super().__init__(limits)
        self._threads = ClusterThreads(threads)
        self._clusters = EqualityClusters()
        self._loose = CountedLists("lists")
        """The rows without an equality."""

    def _insert(self, rows: NDArray[np.int32]) -> None:
        with_equality, without = self._split(rows)
        self._clusters.insert(with_equality, self.rows.table)
        self._loose.insert(without, self.rows.table, self.rows.spans)

    def _delete(self, rows: NDArray[np.int32]) -> None:
        with_equality, without = self._split(rows)
        self._clusters.delete(with_equality, self.rows.table)
        self._loose.delete(without, self.rows.table)

    def _clear(self) -> None:
        self._clusters.clear()
        self._loose.clear()

    def _memory(self) -> dict[str, int]:
        return self._loose.memory | {"equality clusters": self._clusters.nbytes}

    def _details(self) -> dict[str, Any]:
        clusters, entries = self._clusters.count
        return {"clusters": clusters, "entries": entries, "without_equality": len(self._loose)}

    def _find_in_threads(self, search: RowSearch) -> int:
        """As `_find`, with the clusters of each event divided among threads."""
        codes, first, out, offsets, examined = search
        loose, scratch = self._loose.counted, self._loose.scratch()
        end = int(offsets[first])
        for event in range(first, len(offsets) - 1):
            if end + self.rows.count > len(out):
                return event
            for matches, candidates in self._shares(codes, event):
                out[end : end + len(matches)] = matches
                end += len(matches)
                examined[event] += candidates
            end = int(count_loose(loose, codes, event, scratch, out, end, examined))
            offsets[event + 1] = end
        return len(offsets) - 1

    @abstractmethod
    def _shares(self, codes: NDArray[np.uint32], event: int) -> list[Share]:
        """What each thread finds in its clusters."""

    def _split(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Split rows into those with an equality and those without."""
        owners, at = predicates_of(self.rows.table, rows)
        has_equality = np.zeros(len(rows), np.bool_)
        has_equality[owners[self.rows.table.low[at] == self.rows.table.high[at]]] = True
        return rows[has_equality], rows[~has_equality]


def _rehashed(old: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Rehash into a table whose size is a power of two, and of which at most half is used."""
    places = np.full(max(_PLACES, 1 << (2 * count - 1).bit_length()), NONE, np.int64)
    place_all(old, places)
    return places
