"""What a run reports: every batch, and every change of the subscriptions."""

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
    time: datetime
    counts: Counts
    seconds: float
    is_replay: bool = False
    """Whether an earlier process began it and did not finish it."""


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """A change of the subscriptions' source, and whether it was taken."""

    version: IndexVersion
    """The version that is current now."""
    added: int = 0
    replaced: int = 0
    removed: int = 0
    faults: tuple[SubscriptionFault, ...] = ()
    """Subscriptions that were left out or, if the change is refused, caused the refusal."""
    refused: str | None = None
    """Why the whole change was refused."""
    mismatches: Mismatches = NO_MISMATCHES
    """What the subscriptions ask for and the columns of the events do not have."""

    def __str__(self) -> str:
        if self.refused is not None:
            return f"a change of the subscriptions is refused, version {self.version.version} goes on: {self.refused}"
        parts = [f"{self.added:,} added", f"{self.replaced:,} replaced", f"{self.removed:,} removed"]
        left_out = [f"{len(self.faults):,} left out"] if self.faults else []
        is_new = bool(self.added or self.replaced or self.removed or self.faults)
        changed = [", ".join(parts + left_out)] if is_new or not self.mismatches else []
        shown = "; ".join([*changed, *([str(self.mismatches)] if self.mismatches else [])])
        return f"version {self.version.version} of the subscriptions: {shown}"


Report = BatchReport | RefreshReport
