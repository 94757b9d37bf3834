"""Rows by the values for which they ask: the equality clusters of Le Subscribe (section 3.1, equality-preferred).

Rows with equalities on the same columns are in one cluster, and those that also ask for the same values are in one
entry of it, found by a hash of the cluster and the labels. An event asks each cluster whose columns it has once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.counting import FEW_INCREMENTS, count_event, runs_of
from harken.kernels.lists import ListTable, append_to, has_room, needed, release, remove_from
from harken.kernels.row_table import holds

NONE = -1
FREE_ENTRIES, ENTRIES, FREE_CLUSTERS, CLUSTERS = range(4)
_LOW_BITS = 0xFFFF_FFFF
_SCATTER = 0x1E37_79B1
_LEAST_LIST = 2


class Clusters(NamedTuple):
    """The clusters and their entries. Both are found by open addressing, in powers of two of places."""

    columns: ListTable
    """The columns of each cluster, ascending."""
    sizes: NDArray[np.int32]
    """How many entries each cluster has; it is free if it has none."""
    cluster_hashes: NDArray[np.int64]
    cluster_places: NDArray[np.int32]
    rows: ListTable
    """The rows of each entry."""
    owners: NDArray[np.int32]
    """The cluster of each entry."""
    entry_hashes: NDArray[np.int64]
    entry_places: NDArray[np.int32]
    free_entries: NDArray[np.int32]
    free_clusters: NDArray[np.int32]
    state: NDArray[np.int64]
    """How many numbers of entries are free, which comes next when none is; and of clusters."""


@kernel
def mixed(hash, value):
    """A hash of 32 bits and one more value. Products of 32 bits by 29 never overflow."""
    product = ((hash ^ np.int64(value)) & _LOW_BITS) * _SCATTER
    return (product ^ product >> 29) & _LOW_BITS


@kernel
def _hash_of_columns(table, row):
    found = np.int64(1)
    for at in range(table.starts[row], table.starts[row] + table.sizes[row]):
        if table.low[at] == table.high[at]:
            found = mixed(found, table.columns[at] + 1)
    return found


@kernel
def _hash_of_labels(table, row, cluster):
    found = np.int64(cluster)
    for at in range(table.starts[row], table.starts[row] + table.sizes[row]):
        if table.low[at] == table.high[at]:
            found = mixed(found, table.low[at])
    return found


@kernel
def _cluster_of(clusters, table, row, hash):
    """The cluster of a row, or -1."""
    places, columns = clusters.cluster_places, clusters.columns
    place = hash & (places.size - 1)
    while places[place] != NONE:
        cluster = places[place]
        if clusters.cluster_hashes[cluster] == hash:
            at, stop = columns.starts[cluster], columns.starts[cluster] + columns.sizes[cluster]
            same = True
            for i in range(table.starts[row], table.starts[row] + table.sizes[row]):
                if table.low[i] == table.high[i]:
                    same &= at < stop and columns.cells[at] == table.columns[i]
                    at += 1
                    if not same:
                        break
            if same and at == stop:
                return cluster
        place = (place + 1) & (places.size - 1)
    return NONE


@kernel
def _entry_of(clusters, table, cluster, hash, row):
    """The entry of a cluster that asks for the same values as a row, or -1."""
    places = clusters.entry_places
    place = hash & (places.size - 1)
    while places[place] != NONE:
        entry = places[place]
        if clusters.entry_hashes[entry] == hash and clusters.owners[entry] == cluster:
            like = clusters.rows.cells[clusters.rows.starts[entry]]
            if _asks_the_same(table, like, row):
                return entry
        place = (place + 1) & (places.size - 1)
    return NONE


@kernel
def _asks_the_same(table, first, second):
    """Whether two rows of one cluster ask for the same values."""
    left, right = table.starts[first], table.starts[second]
    left_end, right_end = left + table.sizes[first], right + table.sizes[second]
    while True:
        while left < left_end and table.low[left] != table.high[left]:
            left += 1
        while right < right_end and table.low[right] != table.high[right]:
            right += 1
        if left == left_end or right == right_end:
            return left == left_end and right == right_end
        if table.low[left] != table.low[right]:
            return False
        left += 1
        right += 1


@kernel
def _place(places, number, hash):
    place = hash & (places.size - 1)
    while places[place] != NONE:
        place = (place + 1) & (places.size - 1)
    places[place] = number


@kernel
def _displace(places, hashes, number):
    """Take a number out, and move up those behind it that would not be found any more."""
    mask = places.size - 1
    gap = hashes[number] & mask
    while places[gap] != number:
        gap = (gap + 1) & mask
    place = gap
    while True:
        place = (place + 1) & mask
        if places[place] == NONE:
            break
        home = hashes[places[place]] & mask
        # It stays if its home lies behind the gap, on the way round to where it is.
        if (place - home) & mask >= (place - gap) & mask:
            places[gap] = places[place]
            gap = place
    places[gap] = NONE


@kernel
def place_all(places, hashes, is_used, count):
    """Fill empty places with all numbers below `count` that are used."""
    for number in range(count):
        if is_used[number]:
            _place(places, number, hashes[number])


@kernel
def insert_rows(clusters, table, rows, first):
    """Put rows, from the first on, into their entries. Returns the row that found no room, or their end."""
    state = clusters.state
    for i in range(first, rows.size):
        row = rows[i]
        if state[ENTRIES] - state[FREE_ENTRIES] + 1 > min(clusters.owners.size, clusters.entry_places.size // 2):
            return i
        if state[CLUSTERS] - state[FREE_CLUSTERS] + 1 > min(clusters.sizes.size, clusters.cluster_places.size // 2):
            return i
        hash = _hash_of_columns(table, row)
        cluster = _cluster_of(clusters, table, row, hash)
        if cluster == NONE:
            if not has_room(clusters.columns, 4 * np.int64(table.sizes[row]) + 2):
                return i
            cluster = _new_cluster(clusters, table, row, hash)
        hash = _hash_of_labels(table, row, cluster)
        entry = NONE if clusters.sizes[cluster] == 0 else _entry_of(clusters, table, cluster, hash, row)
        if not has_room(clusters.rows, _LEAST_LIST if entry == NONE else needed(clusters.rows, entry)):
            if clusters.sizes[cluster] == 0:
                _drop_cluster(clusters, cluster)
            return i
        if entry == NONE:
            entry = _new_entry(clusters, cluster, hash)
        append_to(clusters.rows, entry, row)
    return rows.size


@kernel
def _new_cluster(clusters, table, row, hash):
    state = clusters.state
    if state[FREE_CLUSTERS]:
        state[FREE_CLUSTERS] -= 1
        cluster = clusters.free_clusters[state[FREE_CLUSTERS]]
    else:
        cluster = np.int32(state[CLUSTERS])
        state[CLUSTERS] += 1
    for at in range(table.starts[row], table.starts[row] + table.sizes[row]):
        if table.low[at] == table.high[at]:
            append_to(clusters.columns, cluster, table.columns[at])
    clusters.cluster_hashes[cluster] = hash
    clusters.sizes[cluster] = 0
    _place(clusters.cluster_places, cluster, hash)
    return cluster


@kernel
def _new_entry(clusters, cluster, hash):
    state = clusters.state
    if state[FREE_ENTRIES]:
        state[FREE_ENTRIES] -= 1
        entry = clusters.free_entries[state[FREE_ENTRIES]]
    else:
        entry = np.int32(state[ENTRIES])
        state[ENTRIES] += 1
    clusters.entry_hashes[entry] = hash
    clusters.owners[entry] = cluster
    clusters.sizes[cluster] += 1
    _place(clusters.entry_places, entry, hash)
    return entry


@kernel
def _drop_cluster(clusters, cluster):
    _displace(clusters.cluster_places, clusters.cluster_hashes, cluster)
    clusters.columns.sizes[cluster] = 0
    release(clusters.columns, cluster)
    clusters.free_clusters[clusters.state[FREE_CLUSTERS]] = cluster
    clusters.state[FREE_CLUSTERS] += 1


@kernel
def delete_rows(clusters, table, rows):
    """Take rows out of their entries, and let go of entries and clusters that are empty."""
    for i in range(rows.size):
        row = rows[i]
        cluster = _cluster_of(clusters, table, row, _hash_of_columns(table, row))
        entry = _entry_of(clusters, table, cluster, _hash_of_labels(table, row, cluster), row)
        remove_from(clusters.rows, entry, row)
        if clusters.rows.sizes[entry] == 0:
            _displace(clusters.entry_places, clusters.entry_hashes, entry)
            release(clusters.rows, entry)
            clusters.owners[entry] = NONE
            clusters.free_entries[clusters.state[FREE_ENTRIES]] = entry
            clusters.state[FREE_ENTRIES] += 1
            clusters.sizes[cluster] -= 1
            if clusters.sizes[cluster] == 0:
                _drop_cluster(clusters, cluster)


@kernel
def _entry_for(clusters, table, cluster, codes, event):
    """The entry of a cluster whose values an event has, or -1."""
    columns = clusters.columns
    hash = np.int64(cluster)
    for at in range(columns.starts[cluster], columns.starts[cluster] + columns.sizes[cluster]):
        label = codes[columns.cells[at], event]
        if label == 0:
            return NONE
        hash = mixed(hash, label)
    places = clusters.entry_places
    place = hash & (places.size - 1)
    while places[place] != NONE:
        entry = places[place]
        if clusters.entry_hashes[entry] == hash and clusters.owners[entry] == cluster:
            like = clusters.rows.cells[clusters.rows.starts[entry]]
            same = True
            for at in range(table.starts[like], table.starts[like] + table.sizes[like]):
                if table.low[at] == table.high[at]:
                    same &= codes[table.columns[at], event] == table.low[at]
            if same:
                return entry
        place = (place + 1) & (places.size - 1)
    return NONE


@kernel
def match_preferred(clusters, table, partial, slots, loose, room, codes, first, space, out, offsets, examined):
    """Equality-preferred: count the other predicates of all rows, then compare those whose equalities hold.

    `partial` are rows with equalities, which are not counted, and `slots` are theirs; `loose` are those without any.
    Writes the rows of each event, from the first on. Returns the event without room, or their end.
    """
    index, lists, packed, counters, _, size = partial
    counts, wanted, _ = counters
    never = wanted[wanted.size - 1]
    runs = space.runs
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if end + room > out.size:
            return event
        used = runs_of(index, lists, packed, codes, event, space)
        increments = np.int64(0)
        for i in range(0, used, 2):
            for at in range(runs[i], runs[i + 1]):
                counts[np.uint32(lists.cells[at])] += 1
            increments += runs[i + 1] - runs[i]
        for cluster in range(clusters.state[CLUSTERS]):
            if clusters.sizes[cluster] == 0:
                continue
            entry = _entry_for(clusters, table, cluster, codes, event)
            if entry == NONE:
                continue
            start = clusters.rows.starts[entry]
            for at in range(start, start + clusters.rows.sizes[entry]):
                row = np.uint32(clusters.rows.cells[at])
                slot = np.uint32(slots[row])
                # A row of nothing but equalities needs no count.
                if counts[slot] == wanted[slot] or wanted[slot] == never:
                    out[end] = row
                    end += 1
            examined[event] += clusters.rows.sizes[entry]
        if increments * FEW_INCREMENTS < size:
            for i in range(0, used, 2):
                for at in range(runs[i], runs[i + 1]):
                    counts[np.uint32(lists.cells[at])] = 0
        else:
            counts[:size] = 0
        examined[event] += increments
        end = count_event(loose, codes, event, space, out, end, examined)
        offsets[event + 1] = end
    return codes.shape[1]


@kernel
def match_quarantined(clusters, table, loose, room, codes, first, space, out, offsets, examined):
    """Quarantining: test the other predicates of rows whose equalities hold, and count only rows that have none."""
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if end + room > out.size:
            return event
        for cluster in range(clusters.state[CLUSTERS]):
            if clusters.sizes[cluster] == 0:
                continue
            entry = _entry_for(clusters, table, cluster, codes, event)
            if entry == NONE:
                continue
            start = clusters.rows.starts[entry]
            for place in range(start, start + clusters.rows.sizes[entry]):
                row = np.uint32(clusters.rows.cells[place])
                met = True
                for at in range(table.starts[row], table.starts[row] + table.sizes[row]):
                    low, high = table.low[at], table.high[at]
                    if low != high and not holds(low, high, codes[table.columns[at], event]):
                        met = False
                        break
                if met:
                    out[end] = row
                    end += 1
            examined[event] += clusters.rows.sizes[entry]
        end = count_event(loose, codes, event, space, out, end, examined)
        offsets[event + 1] = end
    return codes.shape[1]
