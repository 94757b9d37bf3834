"""Rows by the values of their equalities: the equality clusters of Le Subscribe (section 3.1, equality-preferred).

Rows with equalities on the same columns are in one cluster. Those that also have the same values are in one entry of
it, found by a hash of the cluster and the labels. An event looks up one entry in each cluster whose columns it has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel
from harken.kernels.vector import prefetch_read
from harken_lab.papers.kernels.counting_kernels import FEW_INCREMENTS, count_event, runs_of
from harken_lab.papers.kernels.lists import ListTable, append_to, has_room, needed, release, remove_from
from harken_lab.papers.kernels.number_kernels import give_number_back, take_number
from harken_lab.papers.kernels.row_table import holds

NONE = -1
FREE_ENTRIES, ENTRIES, FREE_CLUSTERS, CLUSTERS = range(4)
_LOW_BITS, _HASH_BITS = 0xFFFF_FFFF, 0x7FFF_FFFF
_SCATTER = 0x1E37_79B1
_LEAST_LIST = 2


class EntryClusters(NamedTuple):
    """The clusters and their entries. Both are found by open addressing; tables have a power of two of places."""

    columns: ListTable
    """The columns of each cluster, ascending."""
    sizes: NDArray[np.int32]
    """How many entries each cluster has. A cluster without entries is free."""
    cluster_places: NDArray[np.int64]
    """Hash and number of a cluster, as in `entry_places`."""
    rows: ListTable
    """The rows of each entry."""
    owners: NDArray[np.int32]
    """The cluster of each entry."""
    entry_places: NDArray[np.int64]
    """Hash and number of an entry in one integer, or -1. Most mismatches differ in the hash."""
    free_entries: NDArray[np.int32]
    free_clusters: NDArray[np.int32]
    state: NDArray[np.int64]
    """For entries, then for clusters: how many numbers are free, and the next number if none is free."""


class Probes(NamedTuple):
    """Scratch: the clusters in which an event looks up an entry, and the hashes of its values there."""

    clusters: NDArray[np.int32]
    hashes: NDArray[np.int64]


@kernel
def mixed(hash, value):
    """Mix one more value into a hash of 31 bits. Products of 32 by 29 bits never overflow."""
    product = ((hash ^ np.int64(value)) & _LOW_BITS) * _SCATTER
    return (product ^ product >> 29) & _HASH_BITS


@inner
def _hash_of_columns(table, row):
    mixture = np.int64(1)
    for at in range(table.starts[row], table.starts[row] + table.sizes[row]):
        if table.low[at] == table.high[at]:
            mixture = mixed(mixture, table.columns[at] + 1)
    return mixture


@inner
def _hash_of_labels(table, row, cluster):
    mixture = np.int64(cluster)
    for at in range(table.starts[row], table.starts[row] + table.sizes[row]):
        if table.low[at] == table.high[at]:
            mixture = mixed(mixture, table.low[at])
    return mixture


@kernel
def _cluster_of(clusters, table, row, hash):
    """The cluster for a row's equalities, or -1."""
    places, columns = clusters.cluster_places, clusters.columns
    place = hash & (places.size - 1)
    while places[place] != NONE:
        if places[place] >> 32 == hash:
            cluster = np.int32(places[place] & _LOW_BITS)
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
    return np.int32(NONE)


@inner
def _entry_of(clusters, table, cluster, hash, row):
    """The entry of a cluster whose rows have the same values as a row, or -1."""
    places = clusters.entry_places
    place = hash & (places.size - 1)
    while places[place] != NONE:
        if places[place] >> 32 == hash:
            entry = np.int32(places[place] & _LOW_BITS)
            like = clusters.rows.cells[clusters.rows.starts[entry]]
            if clusters.owners[entry] == cluster and _has_same_values(table, like, row):
                return entry
        place = (place + 1) & (places.size - 1)
    return np.int32(NONE)


@inner
def _has_same_values(table, first, second):
    """Whether the equalities of two rows of one cluster have the same values."""
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
def _place(places, hash, entry):
    place = hash & (places.size - 1)
    while places[place] != NONE:
        place = (place + 1) & (places.size - 1)
    places[place] = np.int64(hash) << 32 | entry


@inner
def _displace(places, hash, entry):
    """Remove an entry, and move up later ones that a search would no longer reach."""
    mask = places.size - 1
    gap = hash & mask
    while places[gap] != np.int64(hash) << 32 | entry:
        gap = (gap + 1) & mask
    place = gap
    while True:
        place = (place + 1) & mask
        if places[place] == NONE:
            break
        home = (places[place] >> 32) & mask
        # An entry stays if its home lies (cyclically) between the gap and its place.
        if (place - home) & mask >= (place - gap) & mask:
            places[gap] = places[place]
            gap = place
    places[gap] = NONE


@kernel
def place_all(old, places):
    """Rehash all entries of `old` into the empty `places`."""
    for i in range(old.size):
        if old[i] != NONE:
            _place(places, old[i] >> 32, old[i] & _LOW_BITS)


@kernel
def insert_rows(clusters, table, rows, first):
    """Add rows, from `first` on, to their entries. Returns the first row without room, or the end."""
    state = clusters.state
    for i in range(first, rows.size):
        row = rows[i]
        if state[ENTRIES] - state[FREE_ENTRIES] + 1 > min(clusters.owners.size, clusters.entry_places.size // 2):
            return i
        if state[CLUSTERS] - state[FREE_CLUSTERS] + 1 > min(clusters.sizes.size, clusters.cluster_places.size // 2):
            return i
        of_columns = _hash_of_columns(table, row)
        cluster = _cluster_of(clusters, table, row, of_columns)
        if cluster == NONE:
            if not has_room(clusters.columns, 4 * np.int64(table.sizes[row]) + 2):
                return i
            cluster = _new_cluster(clusters, table, row, of_columns)
        hash = _hash_of_labels(table, row, cluster)
        entry = NONE if clusters.sizes[cluster] == 0 else _entry_of(clusters, table, cluster, hash, row)
        if not has_room(clusters.rows, _LEAST_LIST if entry == NONE else needed(clusters.rows, entry)):
            if clusters.sizes[cluster] == 0:
                _drop_cluster(clusters, cluster, of_columns)
            return i
        if entry == NONE:
            entry = _new_entry(clusters, cluster, hash)
        append_to(clusters.rows, entry, row)
    return rows.size


@inner
def _new_cluster(clusters, table, row, hash):
    cluster = take_number(clusters.free_clusters, clusters.state, FREE_CLUSTERS)
    for at in range(table.starts[row], table.starts[row] + table.sizes[row]):
        if table.low[at] == table.high[at]:
            append_to(clusters.columns, cluster, table.columns[at])
    clusters.sizes[cluster] = 0
    _place(clusters.cluster_places, hash, cluster)
    return cluster


@inner
def _new_entry(clusters, cluster, hash):
    entry = take_number(clusters.free_entries, clusters.state, FREE_ENTRIES)
    clusters.owners[entry] = cluster
    clusters.sizes[cluster] += 1
    _place(clusters.entry_places, hash, entry)
    return entry


@inner
def _drop_cluster(clusters, cluster, hash):
    _displace(clusters.cluster_places, hash, cluster)
    clusters.columns.sizes[cluster] = 0
    release(clusters.columns, cluster)
    give_number_back(clusters.free_clusters, clusters.state, FREE_CLUSTERS, cluster)


@kernel
def delete_rows(clusters, table, rows):
    """Remove rows from their entries, and free empty entries and clusters."""
    for i in range(rows.size):
        row = rows[i]
        of_columns = _hash_of_columns(table, row)
        cluster = _cluster_of(clusters, table, row, of_columns)
        hash = _hash_of_labels(table, row, cluster)
        entry = _entry_of(clusters, table, cluster, hash, row)
        remove_from(clusters.rows, entry, row)
        if clusters.rows.sizes[entry] == 0:
            _displace(clusters.entry_places, hash, entry)
            release(clusters.rows, entry)
            clusters.owners[entry] = NONE
            give_number_back(clusters.free_entries, clusters.state, FREE_ENTRIES, entry)
            clusters.sizes[cluster] -= 1
            if clusters.sizes[cluster] == 0:
                _drop_cluster(clusters, cluster, of_columns)


@kernel
def _probe(clusters, codes, event, first, step, probes):
    """List every `step`th cluster, from `first` on, whose columns an event has, and prefetch their places.

    Returns how many there are.

    A value that is no constant has an odd label, which no entry has.
    """
    columns, places = clusters.columns, clusters.entry_places
    count = 0
    for cluster in range(first, clusters.state[CLUSTERS], step):
        if clusters.sizes[cluster] == 0:
            continue
        hash = np.int64(cluster)
        fits = True
        for at in range(columns.starts[cluster], columns.starts[cluster] + columns.sizes[cluster]):
            label = codes[columns.cells[at], event]
            if label == 0 or label & np.uint32(1):
                fits = False
                break
            hash = mixed(hash, label)
        if fits:
            prefetch_read(places, hash & (places.size - 1))
            probes.clusters[count] = cluster
            probes.hashes[count] = hash
            count += 1
    return count


@inner
def _entry_for(clusters, table, cluster, hash, codes, event):
    """The entry of a cluster whose values an event has, or -1."""
    places = clusters.entry_places
    place = hash & (places.size - 1)
    while places[place] != NONE:
        if places[place] >> 32 == hash:
            entry = np.int32(places[place] & _LOW_BITS)
            like = clusters.rows.cells[clusters.rows.starts[entry]]
            same = clusters.owners[entry] == cluster
            for at in range(table.starts[like], table.starts[like] + table.sizes[like]):
                if table.low[at] == table.high[at]:
                    same &= codes[table.columns[at], event] == table.low[at]
            if same:
                return entry
        place = (place + 1) & (places.size - 1)
    return np.int32(NONE)


@kernel
def count_others(partial, codes, event, scratch):
    """Count the predicates that hold. Returns how many integers of runs there are, and how often it counted."""
    index, lists, packed, counters, _, _ = partial
    runs = scratch.runs
    used = runs_of(index, lists, packed, codes, event, scratch)
    increments = np.int64(0)
    for i in range(0, used, 2):
        for at in range(runs[i], runs[i + 1]):
            counters.counts[np.uint32(lists.cells[at])] += 1
        increments += runs[i + 1] - runs[i]
    return used, increments


@kernel
def forget_counts(partial, scratch, used, increments):
    """Take back what `count_others` counted."""
    if increments * FEW_INCREMENTS >= partial.size:
        partial.counters.counts[: partial.size] = 0
        return
    for i in range(0, used, 2):
        for at in range(scratch.runs[i], scratch.runs[i + 1]):
            partial.counters.counts[np.uint32(partial.lists.cells[at])] = 0


@kernel
def count_loose(loose, codes, event, scratch, out, end, examined):
    """Append the rows without equalities that hold for an event. Returns where they end."""
    return count_event(loose, codes, event, scratch, out, end, examined)


@kernel
def with_counts(clusters, table, slots, counters, codes, event, first, step, probes, out, end):
    """Append the rows whose equalities hold, and whose counts are those that they need.

    Returns where they end, and the number of rows whose equalities hold. `first` and `step` are as in `_probe`.
    """
    counts, needed_of, _ = counters
    never = needed_of[needed_of.size - 1]
    candidates = np.int64(0)
    for i in range(_probe(clusters, codes, event, first, step, probes)):
        entry = _entry_for(clusters, table, probes.clusters[i], probes.hashes[i], codes, event)
        if entry == NONE:
            continue
        start = clusters.rows.starts[entry]
        for at in range(start, start + clusters.rows.sizes[entry]):
            row = np.uint32(clusters.rows.cells[at])
            slot = np.uint32(slots[row])
            # A row that has only equalities needs no count.
            if counts[slot] == needed_of[slot] or needed_of[slot] == never:
                out[end] = row
                end += 1
        candidates += clusters.rows.sizes[entry]
    return end, candidates


@kernel
def with_tests(clusters, table, codes, event, first, step, probes, out, end):
    """As `with_counts`, for the rows whose other predicates hold, tested one by one."""
    candidates = np.int64(0)
    for i in range(_probe(clusters, codes, event, first, step, probes)):
        entry = _entry_for(clusters, table, probes.clusters[i], probes.hashes[i], codes, event)
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
        candidates += clusters.rows.sizes[entry]
    return end, candidates


@kernel
def match_preferred(
    clusters, table, partial, slots, loose, row_count, codes, first, scratch, probes, out, offsets, examined
):
    """Equality-preferred: count the other predicates of all rows, then compare counts where the equalities hold.

    `partial` has the rows with equalities, and counts all their predicates but these; `slots` are their slots. `loose`
    has the rows without equalities. Writes the rows that match each event, from `first` on. Returns the first event
    without room, or the end.
    """
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if end + row_count > out.size:
            return event
        used, increments = count_others(partial, codes, event, scratch)
        end, candidates = with_counts(clusters, table, slots, partial.counters, codes, event, 0, 1, probes, out, end)
        forget_counts(partial, scratch, used, increments)
        examined[event] += increments + candidates
        end = count_event(loose, codes, event, scratch, out, end, examined)
        offsets[event + 1] = end
    return codes.shape[1]


@kernel
def match_quarantined(clusters, table, loose, row_count, codes, first, scratch, probes, out, offsets, examined):
    """Quarantining: test the other predicates of rows whose equalities hold; count only rows without equalities."""
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if end + row_count > out.size:
            return event
        end, candidates = with_tests(clusters, table, codes, event, 0, 1, probes, out, end)
        examined[event] += candidates
        end = count_event(loose, codes, event, scratch, out, end, examined)
        offsets[event + 1] = end
    return codes.shape[1]
