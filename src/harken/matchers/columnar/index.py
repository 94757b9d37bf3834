"""An index: rows of codes in clusters, pools and a sieve, and the subscription number of each slot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.codes.encode import EncodedBatch
from harken.errors import CapabilityError
from harken.kernels.clusters import MASK_COUNT, SLOT_COUNT, Clusters
from harken.kernels.columnar import IndexSearch, match_codes
from harken.kernels.copying import RunCopying, copy_runs
from harken.kernels.deletes import bury
from harken.kernels.frozen import frozen
from harken.kernels.pool import (
    BLOCK,
    PIECES,
    STAGED,
    STRETCH,
    STRETCH_BITS,
    WORDS,
    PieceWriting,
    Pools,
    PoolSearch,
    Unwritten,
    Visits,
    find_pieces,
    find_visits,
    write_pieces,
)
from harken.kernels.presence import PresentBits
from harken.kernels.runs import ClusterSearch, Runs, find_runs
from harken.kernels.sieve import GROUP, PREDICATE, Sieve, SieveRoom, SieveSearch, sift
from harken.kernels.stages import NO_STAGE, Batch, Stage, frozen_batch, stage
from harken.kernels.vector import LANES, ROWS, aligned
from harken.matchers.columnar.buffers import Buffers
from harken.matchers.columnar.cluster_building import ClusterBuilder
from harken.matchers.columnar.coded_rows import CodedRows
from harken.matchers.columnar.columnar_settings import DEFAULT_SETTINGS, ColumnarSettings
from harken.matchers.columnar.deletions import Deletions
from harken.matchers.columnar.plan import IndexPlan
from harken.matchers.columnar.pools import build_pools
from harken.matchers.columnar.sieves import build_sieve

_RUNS_A_LINE = 8


@dataclass(slots=True)
class ColumnarIndex:
    """Immutable except `dead`, which is replaced as a whole: a search in progress keeps the old bitmap."""

    clusters: Clusters
    pools: Pools
    sieve: Sieve
    ids: NDArray[np.int32]
    """The subscription number of each slot, -1 in the unused slots of a block. Padded by 64."""
    rows: int
    """Number of occupied slots."""
    dead: NDArray[np.uint64]
    """A bitmap of the deleted slots."""
    _by_number: NDArray[np.int32] | None = None
    """The occupied slots in the order of their subscription numbers; made at the first deletion."""
    _deletions: Deletions | None = field(init=False, default=None)

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        return sum(
            array.nbytes
            for array in (*self.clusters, *self.pools, *self.sieve, *self.arrays())
            if isinstance(array, np.ndarray)
        )

    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        return self.ids, self.dead

    def max_predicates(self) -> int:
        """An upper bound of the number of predicates of all rows."""
        clusters = self.clusters
        in_clusters = clusters.clusters[:, SLOT_COUNT] * (clusters.clusters[:, MASK_COUNT] + 1)
        blocks = np.diff(self.pools.block_starts) + len(self.pools.directory)
        in_pools = (blocks * self.pools.block_slots).sum()
        return int(in_clusters.sum() + len(clusters.list_columns) + in_pools + len(self.sieve.rows) // PREDICATE)

    def parts(self) -> int:
        """The number of its clusters, pools and sieves."""
        return len(self.clusters.clusters) + len(self.pools.pools) + bool(len(self.sieve.block_slots))

    def occupied_slots(self) -> NDArray[np.int32]:
        """The occupied slots, ascending."""
        return np.flatnonzero(self.ids >= 0).astype(np.int32)

    def deleted_slots(self, dead: NDArray[np.uint64] | None = None) -> NDArray[np.int32]:
        """The deleted slots, ascending, by the present bitmap or the given one."""
        bits = (self.dead if dead is None else dead).view(np.uint8)
        return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int32)

    def deletions(self) -> Deletions:
        """The present deletions. Later deletions do not affect them."""
        if self._deletions is None or self._deletions.bitmap is not self.dead:
            self._deletions = Deletions(self.clusters, self.pools, self.ids, self.rows, self.dead)
        return self._deletions

    def delete(self, numbers: NDArray[np.int32]) -> int:
        """Mark the slots of subscriptions as deleted. Returns the number of these slots."""
        if self._by_number is None:
            taken = self.occupied_slots()
            self._by_number = taken[np.argsort(self.ids[taken], kind="stable")]
        dead = self.dead.copy()
        count: int = bury(self.ids, self._by_number, numbers, dead)
        if count:
            self.dead = dead
        return count


def build(
    rows: CodedRows, numbers: NDArray[np.int32], plan: IndexPlan, most_places: int = DEFAULT_SETTINGS.most_places
) -> ColumnarIndex:
    """The index that the plan describes. Raises CapabilityError if it has more slots than `most_places`."""
    builder = ClusterBuilder(rows)
    for group in plan.groups:
        builder.add(group)
    clustered = np.concatenate([np.empty(0, np.int64), *builder.order])
    first_slot = -(-len(clustered) // BLOCK) * BLOCK
    pools, pooled = build_pools(rows, plan.pools, first_slot)
    sifted = np.concatenate([np.empty(0, np.int64), *(each.rows for each in plan.sieves)])
    layout_data = plan.sieves[0].layout_data if plan.sieves else None
    sieve, sieved = build_sieve(rows, sifted, layout_data, first_slot + len(pooled))
    blocked = np.concatenate([pooled, sieved])
    ids = aligned(first_slot + len(blocked) + ROWS, np.int32)
    ids[:] = -1
    ids[: len(clustered)] = numbers[clustered]
    filled = np.flatnonzero(blocked >= 0)
    ids[first_slot + filled] = numbers[blocked[filled]]
    dead = np.zeros(len(ids) // 64 + 2, np.uint64)
    index = ColumnarIndex(builder.arrays(), pools, sieve, ids, len(numbers), dead)
    if max(len(ids), 2 * _most_passed(index, 0)) > most_places:
        raise CapabilityError(f"one index cannot hold {len(index):,} rows: its limit is about two billion")
    return index


class Finder:
    """Finds the matches of encoded events in an index. For one thread at a time."""

    def __init__(self, index: ColumnarIndex, columns: int, settings: ColumnarSettings = DEFAULT_SETTINGS) -> None:
        self.index = index
        self._settings = settings
        self._columns = columns
        """Number of columns that the index is coded in. Events may have further columns behind them."""
        # For each event of a chunk, each cluster yields up to one run, and each column has a bitmap.
        runs = len(index.clusters.clusters)
        self._chunk = max(64, min(settings.chunk_events, settings.most_runs // max(1, columns, runs) // 64 * 64))
        self.seen = np.zeros(index.parts(), np.int64)
        """Number of slots examined so far, by cluster, then by pool, then of the sieve."""
        self._search, self._stage_arrays = _search(index, columns, self._chunk, runs, settings, self.seen)
        """Kept because frozen words need their arrays alive."""
        self._frozen = frozen(self._search)
        self._one = _one(columns)
        self._frozen_one = frozen_batch(self._one)
        self._ids_of_one = np.empty(settings.first_ids, np.int32)

    def find(
        self,
        encoded: EncodedBatch,
        skipped: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        buffers: Buffers,
        deletions: Deletions | None = None,
        reserved: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The numbers of the matches of all events, concatenated, and the number of slots examined for each event.

        The numbers are in one of the buffers, and `offsets`, with one element more than there are events, gets their
        bounds. The first `reserved` places of each event are left for the caller to fill. Deleted slots are skipped:
        the presently deleted ones, unless `deletions` are given.
        """
        events = encoded.codes.shape[1]
        codes = np.ascontiguousarray(encoded.codes[: self._columns])
        has_value = encoded.has_value[: self._columns]
        candidates = np.zeros(events, np.int64)
        if reserved is None:
            reserved = np.zeros(events, np.int64)
        # Referenced to the end, because frozen words need their arrays alive.
        alive = deletions or self.index.deletions()
        deleted = alive.frozen_for(events, self._settings.compacted_rows)
        batch = frozen_batch(Batch(has_value, skipped, reserved, offsets, candidates))
        ids = buffers.take(self._settings.first_ids)
        event, resumes = 0, False
        while True:
            event, needed = match_codes(self._frozen, deleted, batch, codes, ids, event, events, self._chunk, resumes)
            if event == events:
                return buffers.answer(ids, int(offsets[-1])), candidates
            # Extrapolate the room for all events from the chunks so far.
            hoped = needed * events // min(events, event + self._chunk)
            ids = buffers.enlarge(ids, int(offsets[event]), min(hoped, self._settings.projected * needed), hoped)
            resumes = True

    def find_one(self, codes: NDArray[np.uint32], deletions: Deletions) -> tuple[list[int], int]:
        """The numbers of the matches of one event with one code per column, and the number of slots examined."""
        if len(codes) > self._columns:
            codes = codes[: self._columns]
        deleted = deletions.frozen_for(1, self._settings.compacted_rows)
        one = self._one
        done, needed = match_codes(
            self._frozen, deleted, self._frozen_one, codes, self._ids_of_one, 0, 1, 1, False
        )  # fmt: skip
        if not done:
            self._ids_of_one = np.empty(needed, np.int32)
            match_codes(self._frozen, deleted, self._frozen_one, codes, self._ids_of_one, 0, 1, 1, True)
        return self._ids_of_one[: one.offsets.item(1)].tolist(), one.candidates.item(0)


def _one(columns: int) -> Batch:
    """A batch of one event: every column may have a value, and nothing is skipped or reserved."""
    nothing = np.zeros(1, np.int64)
    return Batch(
        np.ones(columns, np.bool_), np.zeros(1, np.bool_), nothing, np.zeros(2, np.int64), np.zeros(1, np.int64)
    )


def _most_passed(index: ColumnarIndex, least: int) -> int:
    """The room for slots that pass a comparison: one event may pass all, and every run takes one more place."""
    return max(len(index.ids) + len(index.clusters.clusters), least) + 2 * ROWS


def _search(
    index: ColumnarIndex, columns: int, chunk: int, runs: int, settings: ColumnarSettings, seen: NDArray[np.int64]
) -> tuple[IndexSearch, list[Any]]:
    """The search of an index with its work space, and the arguments of its stages, which the caller keeps alive.

    Stages that the index does not need are not compiled.
    """
    stage_arrays: list[Any] = []

    def stage_of(kernel: Any, arguments: Any) -> Stage:
        stage_arrays.append(arguments)
        return stage(kernel, arguments)

    clusters, pools, sieve, ids = index.clusters, index.pools, index.sieve, index.ids
    room_for_runs = _runs(index, chunk, runs, settings)
    presence = PresentBits(np.empty((columns + 1, chunk // 64), np.uint64), np.empty(columns, np.bool_))
    counts, staged, word = np.empty(chunk, np.int64), aligned((STAGED + 2) * LANES, np.int32), aligned(WORDS, np.uint64)
    looked_at = np.empty(index.parts(), np.int64)
    unwritten = Unwritten(aligned(chunk * LANES, np.int32), np.empty(chunk, np.int64))
    in_pools, in_sieve = len(clusters.clusters), len(clusters.clusters) + len(pools.pools)
    visiting = combining = writing = sifting = writing_sifted = NO_STAGE
    if len(pools.pools):
        visits = _visits(pools, chunk, settings)
        bitmap_of = np.empty((chunk, columns), np.uint32)
        searched = PoolSearch(pools, visits, presence, bitmap_of, word, counts, looked_at[in_pools:in_sieve])
        visiting, combining = stage_of(find_visits, searched), stage_of(find_pieces, searched)
        writing = stage_of(
            write_pieces, PieceWriting(pools.first_slot, ids, visits, staged, unwritten, counts, settings.cached_ids)
        )
    if len(sieve.block_slots):
        room = _sieve_room(sieve, columns, chunk, settings)
        sifting = stage_of(sift, SieveSearch(sieve, room, presence, word, counts, looked_at[in_sieve:]))
        writing_sifted = stage_of(
            write_pieces,
            PieceWriting(sieve.first_slot, ids, room.visits, staged, unwritten, counts, settings.cached_ids),
        )
    search = IndexSearch(
        stage_of(find_runs, ClusterSearch(clusters, ids, room_for_runs, presence, counts, looked_at[:in_pools])),
        stage_of(copy_runs, RunCopying(room_for_runs, ids, counts, staged, settings.cached_ids)),
        visiting,
        combining,
        writing,
        sifting,
        writing_sifted,
        counts,
        looked_at,
        np.zeros(3, np.int64),
        seen,
    )
    return search, stage_arrays


def _runs(index: ColumnarIndex, chunk: int, runs: int, settings: ColumnarSettings) -> Runs:
    # An odd number of cache lines per row of runs: else the runs of an event would fall into few cache sets.
    width = (-(-chunk // _RUNS_A_LINE) | 1) * _RUNS_A_LINE
    return Runs(
        aligned(runs * width, np.uint64).reshape(runs, width),
        np.zeros(chunk, np.int64),
        np.zeros(chunk, np.int64),
        np.empty(_most_passed(index, settings.least_passed), np.uint64),
        np.arange(chunk, dtype=np.int32),
        np.empty(chunk + ROWS, np.int32),
        np.empty(chunk, np.int64),
        np.empty(chunk, np.int64),
    )


def _visits(pools: Pools, chunk: int, settings: ColumnarSettings) -> Visits:
    blocks = len(pools.block_starts)
    visits = min(max(settings.most_visits, blocks), blocks * chunk)  # at least one for each block
    return Visits(
        np.empty((blocks >> STRETCH_BITS) + 2, np.int64),
        np.empty(visits, np.int32),
        np.empty(visits, np.int32),
        np.empty(visits, np.int32),
        np.empty((visits, 3), np.int32),
        np.empty(visits, np.int64),
        np.empty(visits * PIECES, np.uint32),
    )


def _sieve_room(sieve: Sieve, columns: int, chunk: int, settings: ColumnarSettings) -> SieveRoom:
    """Work space to search a sieve."""
    blocks = len(sieve.block_slots)
    # Room for one event that visits all blocks. Chunks that need more are cut.
    visits = min(max(settings.most_visits // GROUP, blocks), blocks * chunk)
    pieces = min(max(settings.most_visits, blocks), blocks * chunk) * PIECES + GROUP * PIECES
    nothing = np.empty(0, np.int32)
    summaries = -(-blocks // BLOCK)
    return SieveRoom(
        Visits(
            np.empty(-(-blocks // STRETCH) + 1, np.int64),
            np.empty(visits, np.int32),
            nothing,
            nothing,
            np.empty((0, 3), np.int32),
            np.empty(visits, np.int64),
            np.empty(pieces, np.uint32),
        ),
        np.empty((chunk, columns), np.uint32),
        np.empty((chunk, columns), np.uint32),
        np.empty((chunk, columns), np.uint32),
        np.empty((chunk, columns), np.uint32),
        np.empty((chunk, summaries * WORDS), np.uint64),
        np.empty(GROUP * BLOCK, np.int64),
        np.empty(GROUP * WORDS, np.uint64),
        np.empty(GROUP, np.int64),
        np.tile(sieve.columns, summaries),
        aligned(WORDS, np.uint64),
    )
