"""Every number by which the columnar matcher is tuned, in one place: `Engine(settings={"chunk_events": 64})`."""

from __future__ import annotations

from dataclasses import dataclass

from harken.matchers.columnar.costs import DEFAULT_COSTS, LAYOUTS, Costs


@dataclass(frozen=True, slots=True)
class ColumnarSettings:
    """How the matcher plans, searches and merges. No answer depends on it: tests set it to reach rare cases."""

    # Planning
    costs: Costs = DEFAULT_COSTS
    """What the steps of a search are expected to take."""
    layouts: tuple[int, ...] = LAYOUTS
    """The layouts to choose from."""
    cached_bytes: int = 1 << 20
    """A cluster that compares more bytes than this leaves the cache, and is sketched."""
    most_sifted: int = 4_096
    """Slots in the average run of a sketch, at most."""
    filter_below: float = 1.0
    """A cluster has a filter if fewer of its rows than this are expected to agree with an event in all equalities."""
    buckets_an_asking: int = 512
    """Buckets that a column of a sieve would have if all rows asked for it: it has as many as rows ask for it."""
    least_buckets: int = 16
    most_buckets: int = 62
    """But it has no fewer and no more than these, not counting those at its ends. 62 at most."""

    # Searching
    chunk_events: int = 2_048
    """Events that are taken through an index together, at most: what one brings to the cache serves others."""
    most_runs: int = 1 << 20
    """Runs of all events of a chunk, at most: where events may have many, chunks are shorter."""
    most_visits: int = 1 << 19
    """Room for the blocks of pools that a chunk visits. What needs more is done in shorter chunks."""
    least_passed: int = 1 << 16
    """Room, at least, for the slots of a chunk that pass a comparison."""
    most_places: int = 1 << 32
    """Slots of an index, at most: where a run begins is kept in 32 bits."""
    first_ids: int = 1 << 15
    """Room that is taken before anything is found: enough for the ids of most single events."""
    cached_ids: int = 1 << 20
    """The ids of a chunk that has more than this are written past the cache."""
    projected: int = 4
    """Room for ids is enlarged to at most this many times what the first chunks need: they may match most."""
    finders_kept: int = 4
    """Finders of a layer that are kept to be used again; more threads than this make theirs anew."""
    compacted_rows: int = 8_192
    """Deleted rows are compacted after one event for every so many rows of an index: then it has paid. 0: never."""

    # Memory for answers
    least_buffer: int = 1 << 12
    """Ids in the smallest buffer."""
    roomy: int = 8
    """An answer does not hold a buffer more than this many times its size."""
    most_kept_ids: int = 1 << 28
    """Ids in all buffers that are kept, at most (1 GB), besides one buffer that is larger than that."""
    kept_turns: int = 64
    """A buffer that nobody took in this many turns is given up."""

    # Changing
    most_chained: float = 64
    """Few rows are not indexed if an event is expected to pass no more of them than this in their chains."""
    few_waiting: int = 16
    """As many subscriptions as this are coded one by one; more, column by column."""
    most_waiting: int = 256
    """Subscriptions that wait to be coded or deleted until there is an event, at most."""
    fixed_worth: int = 2_000
    """What a merge costs besides one verification for every row, in verifications."""
    merged_at_once: int = 100_000
    """Rows that are merged while a match waits, at most, unless that match alone is worth it."""
    share_behind: int = 4
    """The base is built anew once 1/share_behind of it is deleted, or as many rows are in later layers."""
    encoded_together: int = 1_024
    """One thread encodes a batch for all threads if it has at most this many events for each column; else each its own
    part."""


DEFAULT_SETTINGS = ColumnarSettings()
