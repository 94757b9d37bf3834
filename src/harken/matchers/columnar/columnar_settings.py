"""Every number by which the columnar matcher is tuned, in one place: `Engine(settings={"chunk_events": 64})`."""

from __future__ import annotations

from dataclasses import dataclass

from harken.matchers.columnar.costs import DEFAULT_COSTS, LAYOUTS, Costs


@dataclass(frozen=True, slots=True)
class ColumnarSettings:
    """How the matcher plans, searches and merges. No answer depends on it: tests set it to reach rare cases."""

    # Planning
    costs: Costs = DEFAULT_COSTS
    """Expected nanoseconds of each step of a search."""
    layouts: tuple[int, ...] = LAYOUTS
    """The layouts that the planner may use."""
    cached_bytes: int = 1 << 20
    """Clusters that compare more bytes than this do not stay in the cache, and are sketched."""
    most_sifted: int = 4_096
    """Maximum number of slots in the average run of a sketch."""
    filter_below: float = 1.0
    """A cluster gets a filter if an event is expected to agree with fewer of its rows than this in all equalities."""
    buckets_an_asking: int = 512
    """Number of buckets of a sieve's column that all rows test. Other columns have proportionally fewer."""
    least_buckets: int = 16
    most_buckets: int = 62
    """Bounds of the number of buckets of a column, not counting those at its ends. At most 62."""

    # Searching
    chunk_events: int = 2_048
    """Maximum number of events searched together: they share what is in the cache."""
    most_runs: int = 1 << 20
    """Maximum number of runs of a chunk. Chunks are shorter if events may have many runs."""
    most_visits: int = 1 << 19
    """Room for the blocks of pools that a chunk visits. Chunks that need more are cut."""
    least_passed: int = 1 << 16
    """Minimum room for the slots of a chunk that pass a comparison."""
    most_places: int = 1 << 32
    """Maximum number of slots of an index: a run begins at a 32-bit offset."""
    first_ids: int = 1 << 15
    """Initial room for ids: enough for most single events."""
    cached_ids: int = 1 << 20
    """If a chunk has more ids than this, they are written past the cache."""
    projected: int = 4
    """Maximum factor by which the room for ids exceeds the need of the chunks so far: these may match most."""
    finders_kept: int = 4
    """Maximum number of free finders kept per index."""
    compacted_rows: int = 8_192
    """Deleted rows are compacted after one event per this many rows of an index, when it pays. 0: never."""

    # Memory for answers
    least_buffer: int = 1 << 12
    """Size of the smallest buffer, in ids."""
    roomy: int = 8
    """An answer is copied out of a buffer that is more than this many times larger."""
    most_kept_ids: int = 1 << 28
    """Maximum number of ids in all kept buffers (1 GB), not counting one larger buffer."""
    kept_turns: int = 64
    """A buffer that was not used in this many turns is freed."""

    # Changing
    most_chained: float = 64
    """Few rows stay in chains, unindexed, if an event is expected to test at most this many of them."""
    few_waiting: int = 16
    """Up to this many subscriptions are coded one by one; more, column by column."""
    most_waiting: int = 256
    """Maximum number of subscriptions that wait for the next event to be coded or deleted."""
    fixed_worth: int = 2_000
    """Fixed cost of a merge, in verifications. Each row adds one verification."""
    merged_at_once: int = 100_000
    """Maximum number of rows that are merged while a match waits, unless that match alone justifies a merge."""
    share_behind: int = 4
    """The base is rebuilt once more than 1/share_behind of it is deleted, or later layers have that many rows."""
    encoded_together: int = 1_024
    """One thread encodes a batch for all threads if it has at most this many events per column of the index; else each
    thread encodes its part."""


DEFAULT_SETTINGS = ColumnarSettings()
