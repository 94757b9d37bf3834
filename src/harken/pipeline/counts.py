"""What came of events, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

DECODE, TYPE, VALIDATE, LATE, MATCH = "decode", "type", "validate", "late", "match"
STAGES = (DECODE, TYPE, VALIDATE, LATE, MATCH)
"""Where an event may be refused. One with an odd value, at `type`, is matched all the same. One that failed with a
single subscription, at `match`, goes on with the others."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What came of the events of a batch, or of several that are added up."""

    events: int = 0
    """All that came."""
    notifications: int = 0
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    """By stage; a stage without any is not there."""
    duplicates: int = 0
    """Events that were dropped because their id had come before."""
    late: int = 0
    """Events that came late, whether they were refused for it or not."""
    max_event_time: datetime | None = None
    odd_values: Mapping[str, int] = field(default_factory=dict)
    """By attribute: values of another kind than subscriptions ask for."""

    @property
    def refused(self) -> int:
        """All dead letters."""
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
        """The counts as plain data."""
        newest = self.max_event_time
        return asdict(self) | {"max_event_time": None if newest is None else newest.astimezone(UTC).isoformat()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The counts that plain data has. Raises TypeError or ValueError for other data."""
        newest = plain.get("max_event_time")
        return cls(**{**plain, "max_event_time": None if newest is None else datetime.fromisoformat(newest)})
