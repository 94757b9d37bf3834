"""The reports of a run: one for every batch, and one for every change of the subscriptions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from harken.live.mismatch import NO_MISMATCHES, Mismatches
from harken.pipeline.counts import Counts
from harken.spark.building import SubscriptionFault
from harken.spark.index_versions import IndexVersion


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A batch that is done."""

    batch: int
    version: IndexVersion
    """The index version with which it was matched."""
    time: datetime
    """The match time of its notifications."""
    counts: Counts
    seconds: float
    is_replay: bool = False
    """Whether the batch had begun before, without being finished."""


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """A change of the subscriptions' source, applied or rejected."""

    version: IndexVersion
    """The current version after the change."""
    added: int = 0
    replaced: int = 0
    removed: int = 0
    faults: tuple[SubscriptionFault, ...] = ()
    """Faults of the subscriptions that were left out or that caused the rejection of the change."""
    rejected: str | None = None
    """Why the whole change was rejected; None if it was applied."""
    mismatches: Mismatches = NO_MISMATCHES
    """What the subscriptions use and the events do not have."""

    def __str__(self) -> str:
        if self.rejected is not None:
            return f"a change of the subscriptions is rejected, version {self.version.version} stays: {self.rejected}"
        parts = [f"{self.added:,} added", f"{self.replaced:,} replaced", f"{self.removed:,} removed"]
        left_out = [f"{len(self.faults):,} left out"] if self.faults else []
        is_new = bool(self.added or self.replaced or self.removed or self.faults)
        changed = [", ".join(parts + left_out)] if is_new or not self.mismatches else []
        shown = "; ".join([*changed, *([str(self.mismatches)] if self.mismatches else [])])
        return f"version {self.version.version} of the subscriptions: {shown}"


Report = BatchReport | RefreshReport
