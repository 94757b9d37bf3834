"""Counts of events and of what they resulted in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from harken.live.notifications import STAGES


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one batch, or of several batches added up."""

    events: int = 0
    """Number of events that were read."""
    notifications: int = 0
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    """Number of dead letters by stage; stages without any are left out."""
    duplicates: int = 0
    """Events that were dropped because an earlier event had their id."""
    late: int = 0
    """Late events, whether they were rejected or matched."""
    max_event_time: datetime | None = None
    """The time of the newest event."""
    odd_values: Mapping[str, int] = field(default_factory=dict)
    """By attribute: number of values of another kind than subscriptions compare with."""

    @property
    def dead_letter_count(self) -> int:
        """The number of dead letters of all stages."""
        return sum(self.dead_letters.values())

    def __add__(self, other: Counts) -> Counts:
        times = [each.max_event_time for each in (self, other) if each.max_event_time is not None]
        stages = {stage: self.dead_letters.get(stage, 0) + other.dead_letters.get(stage, 0) for stage in STAGES}
        odd = Counter(self.odd_values) + Counter(other.odd_values)
        return Counts(
            self.events + other.events,
            self.notifications + other.notifications,
            {stage: count for stage, count in stages.items() if count},
            self.duplicates + other.duplicates,
            self.late + other.late,
            max(times, default=None),
            dict(sorted(odd.items())),
        )

    def to_dict(self) -> dict[str, Any]:
        """The counts as JSON data."""
        newest = self.max_event_time
        return asdict(self) | {"max_event_time": None if newest is None else newest.astimezone(UTC).isoformat()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The counts that `to_dict` returned. Raises TypeError or ValueError for other data."""
        newest = plain.get("max_event_time")
        return cls(**{**plain, "max_event_time": None if newest is None else datetime.fromisoformat(newest)})
