"""What the equality-preferring algorithms share: rows clustered by the values that they ask for."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.limits import DEFAULT_LIMITS, Limits
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
    delete_rows,
    insert_rows,
    place_all,
)
from harken_lab.papers.kernels.row_table import RowTable
from harken_lab.papers.labelled_rows import grown, longer, predicates_of
from harken_lab.papers.row_matcher import RowMatcher

_PLACES = 64


class EqualityClusters:
    """Rows in entries of clusters: the arrays behind kernels/papers/equality.py."""

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
        """How many clusters and how many entries there are."""
        state = self._clusters.state
        return int(state[CLUSTERS] - state[FREE_CLUSTERS]), int(state[ENTRIES] - state[FREE_ENTRIES])

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        found = self._clusters
        arrays = (found.sizes, found.cluster_places, found.owners, found.entry_places)
        free = (found.free_entries, found.free_clusters)
        return self._columns.nbytes + self._rows.nbytes + sum(each.nbytes for each in (*arrays, *free))

    def probes(self) -> Probes:
        """Working room for kernels."""
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
        """Make room for the next row, which has `columns` columns, and some for the `coming` rows behind it."""
        found = self._clusters
        clusters, entries = self.count
        if entries + 1 > min(len(found.owners), len(found.entry_places) // 2):
            # As if half of the coming rows needed an entry of their own.
            self._have_entries(grown(entries, entries + coming // 2 + 1))
        if clusters + 1 > min(len(found.sizes), len(found.cluster_places) // 2):
            self._have_clusters(grown(clusters, clusters + 1))
        self._columns.have(len(self._clusters.sizes))
        self._rows.have(len(self._clusters.owners))
        self._columns.reserve(4 * columns + 2)
        self._rows.grow()
        self._rows.reserve(2 * coming)

    def _have_entries(self, count: int) -> None:
        found = self._clusters
        self._clusters = found._replace(
            owners=longer(found.owners, count, NONE),
            free_entries=longer(found.free_entries, count, 0),
            entry_places=_placed(found.entry_places, count),
        )

    def _have_clusters(self, count: int) -> None:
        found = self._clusters
        self._clusters = found._replace(
            sizes=longer(found.sizes, count, 0),
            free_clusters=longer(found.free_clusters, count, 0),
            cluster_places=_placed(found.cluster_places, count),
        )


class EqualityMatcher(RowMatcher):
    """A matcher that clusters rows with an equality, and counts the predicates of rows without one."""

    bulk_share: ClassVar[int] = 4

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self._clusters = EqualityClusters()
        self._loose = CountedLists("lists")

    def _insert(self, rows: NDArray[np.int32]) -> None:
        with_equality, without = self._parted(rows)
        self._clusters.insert(with_equality, self.rows.table)
        self._loose.insert(without, self.rows.table, self.rows.spans)

    def _delete(self, rows: NDArray[np.int32]) -> None:
        with_equality, without = self._parted(rows)
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

    def _parted(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Split rows into those with an equality and those without."""
        owners, at = predicates_of(self.rows.table, rows)
        has_one = np.zeros(len(rows), np.bool_)
        has_one[owners[self.rows.table.low[at] == self.rows.table.high[at]]] = True
        return rows[has_one], rows[~has_one]


def _placed(old: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Rehash into a power of two of places, of which at most half are taken."""
    places = np.full(max(_PLACES, 1 << (2 * count - 1).bit_length()), NONE, np.int64)
    place_all(old, places)
    return places
