"""An index: rows of codes in clusters and pools, and the numbers of the subscriptions in their slots."""

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
    """Nothing of it ever changes but `dead`, and that is replaced as a whole: who is searching goes on with the old."""

    clusters: Clusters
    pools: Pools
    sieve: Sieve
    ids: NDArray[np.int32]
    """By slot: the number of the subscription, -1 where a block of a pool or sieve is not full. Padded by 64."""
    rows: int
    """The slots that are taken."""
    dead: NDArray[np.uint64]
    """A bit for every slot that was deleted."""
    _by_number: NDArray[np.int32] | None = None
    """The slots that are taken, by the number of their subscription; made when something is first deleted."""
    _deletions: Deletions | None = field(init=False, default=None)

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        return sum(
            each.nbytes
            for each in (*self.clusters, *self.pools, *self.sieve, *self.arrays())
            if isinstance(each, np.ndarray)
        )

    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        return self.ids, self.dead

    def most_predicates(self) -> int:
        """No fewer than its rows have in all."""
        clusters = self.clusters
        in_clusters = clusters.clusters[:, SLOT_COUNT] * (clusters.clusters[:, MASK_COUNT] + 1)
        blocks = np.diff(self.pools.block_starts) + len(self.pools.directory)
        in_pools = (blocks * self.pools.block_slots).sum()
        return int(in_clusters.sum() + len(clusters.list_columns) + in_pools + len(self.sieve.rows) // PREDICATE)

    def parts(self) -> int:
        """Its clusters, pools and sieve."""
        return len(self.clusters.clusters) + len(self.pools.pools) + bool(len(self.sieve.block_slots))

    def taken(self) -> NDArray[np.int32]:
        """The slots that are taken, ascending."""
        return np.flatnonzero(self.ids >= 0).astype(np.int32)

    def buried(self, dead: NDArray[np.uint64] | None = None) -> NDArray[np.int32]:
        """The slots that were deleted, ascending, by the present bitmap or another."""
        bits = (self.dead if dead is None else dead).view(np.uint8)
        return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int32)

    def deletions(self) -> Deletions:
        """What is deleted now. It stays as it is when more is deleted."""
        if self._deletions is None or self._deletions.bitmap is not self.dead:
            self._deletions = Deletions(self.clusters, self.pools, self.ids, self.rows, self.dead)
        return self._deletions

    def delete(self, numbers: NDArray[np.int32]) -> int:
        """Mark the slots of subscriptions as deleted. Returns how many there are."""
        if self._by_number is None:
            taken = self.taken()
            self._by_number = taken[np.argsort(self.ids[taken], kind="stable")]
        dead = self.dead.copy()
        found: int = bury(self.ids, self._by_number, numbers, dead)
        if found:
            self.dead = dead
        return found


def build(
    rows: CodedRows, numbers: NDArray[np.int32], plan: IndexPlan, most_places: int = DEFAULT_SETTINGS.most_places
) -> ColumnarIndex:
    """The index that the plan describes. Raises CapabilityError for one with more slots than places."""
    builder = ClusterBuilder(rows)
    for group in plan.groups:
        builder.add(group)
    clustered = np.concatenate([np.empty(0, np.int64), *builder.order])
    first_slot = -(-len(clustered) // BLOCK) * BLOCK
    pools, pooled = build_pools(rows, plan.pools, first_slot)
    sifted = np.concatenate([np.empty(0, np.int64), *(each.rows for each in plan.sieves)])
    laid = plan.sieves[0].laid if plan.sieves else None
    sieve, sieved = build_sieve(rows, sifted, laid, first_slot + len(pooled))
    blocked = np.concatenate([pooled, sieved])
    ids = aligned(first_slot + len(blocked) + ROWS, np.int32)
    ids[:] = -1
    ids[: len(clustered)] = numbers[clustered]
    filled = np.flatnonzero(blocked >= 0)
    ids[first_slot + filled] = numbers[blocked[filled]]
    dead = np.zeros(len(ids) // 64 + 2, np.uint64)
    index = ColumnarIndex(builder.arrays(), pools, sieve, ids, len(numbers), dead)
    if max(len(ids), 2 * _most_passed(index, 0)) > most_places:
        raise CapabilityError(f"one index cannot hold {len(index):,} rows: more than two billion are too many for it")
    return index


class Finder:
    """Finds the matches of encoded events in an index. One thread at a time uses it."""

    def __init__(self, index: ColumnarIndex, columns: int, settings: ColumnarSettings = DEFAULT_SETTINGS) -> None:
        self.index = index
        self._settings = settings
        self._columns = columns
        """The columns whose codes the index knows. Others may stand behind them."""
        # Each cluster may find a run, and each column has a bitmap, for each event of a chunk.
        runs = len(index.clusters.clusters)
        self._chunk = max(64, min(settings.chunk_events, settings.most_runs // max(1, columns, runs) // 64 * 64))
        self.seen = np.zeros(index.parts(), np.int64)
        """By cluster, then by pool, and of the sieve: the slots that were looked at so far."""
        self._search, self._kept = _search(index, columns, self._chunk, runs, settings, self.seen)
        """What is frozen needs its arrays alive."""
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
        """The numbers of all events behind each other, and how many slots were looked at for each.

        The numbers are in one of the buffers. Where those of each event end is written to `offsets`, which has one
        element more than there are events. The first `reserved` places of each event are left to be filled. Slots that
        are deleted are passed over: those that are now, unless others are given.
        """
        events = encoded.codes.shape[1]
        codes = np.ascontiguousarray(encoded.codes[: self._columns])
        has_value = encoded.has_value[: self._columns]
        candidates = np.zeros(events, np.int64)
        if reserved is None:
            reserved = np.zeros(events, np.int64)
        kept = deletions or self.index.deletions()  # to the end: what is frozen needs its arrays alive
        deleted = kept.frozen_for(events, self._settings.compacted_rows)
        batch = frozen_batch(Batch(has_value, skipped, reserved, offsets, candidates))
        ids = buffers.take(self._settings.first_ids)
        event, resumes = 0, False
        while True:
            event, needed = match_codes(self._frozen, deleted, batch, codes, ids, event, events, self._chunk, resumes)
            if event == events:
                return buffers.answer(ids, int(offsets[-1])), candidates
            # What was found so far tells what the rest will need.
            hoped = needed * events // min(events, event + self._chunk)
            ids = buffers.enlarge(ids, int(offsets[event]), min(hoped, self._settings.projected * needed), hoped)
            resumes = True

    def find_one(self, codes: NDArray[np.uint32], deletions: Deletions) -> tuple[list[int], int]:
        """The numbers of one event, which has one code a column, and how many slots were looked at."""
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
    """A batch of one event: each column may have a value, and nothing is skipped or reserved."""
    nothing = np.zeros(1, np.int64)
    return Batch(
        np.ones(columns, np.bool_), np.zeros(1, np.bool_), nothing, np.zeros(2, np.int64), np.zeros(1, np.int64)
    )


def _most_passed(index: ColumnarIndex, least: int) -> int:
    """The room for what passes a comparison: one event may pass in every slot, and every run takes a place more."""
    return max(len(index.ids) + len(index.clusters.clusters), least) + 2 * ROWS


def _search(
    index: ColumnarIndex, columns: int, chunk: int, runs: int, settings: ColumnarSettings, seen: NDArray[np.int64]
) -> tuple[IndexSearch, list[Any]]:
    """What searches an index, with space to work in, and what its stages need, which whoever calls this keeps alive.

    Stages that the index does not need are not compiled.
    """
    kept: list[Any] = []

    def stage_of(kernel: Any, needed: Any) -> Stage:
        kept.append(needed)
        return stage(kernel, needed)

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
    return search, kept


def _runs(index: ColumnarIndex, chunk: int, runs: int, settings: ColumnarSettings) -> Runs:
    # An odd number of lines in each row of runs: those of an event would else fall into few places of the cache.
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
    visits = min(max(settings.most_visits, blocks), blocks * chunk)  # of a block each, or of more
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
    """Space to match in a sieve."""
    blocks = len(sieve.block_slots)
    # One event may have something in all blocks; what needs more is done in shorter chunks.
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
