"""The measurements of an experiment, and how to look them up.

A row is plain data about one contestant, named in the field `entrant`, at one size of one workload.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

Row = dict[str, Any]
TIME = "us_per_event"
SIZE = "subscriptions"


class WorkloadRows:
    """Rows with look-ups. The row of a contestant that was rejected has no figures."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def where(self, **wanted: Any) -> WorkloadRows:
        """The rows that have all of these values."""
        return WorkloadRows(row for row in self if all(row.get(name) == value for name, value in wanted.items()))

    def each(self, field: str) -> list[Any]:
        """The different values of a field, in order of appearance."""
        return list(dict.fromkeys(row[field] for row in self if field in row))

    def value(self, field: str, **wanted: Any) -> float | None:
        """The first value of a field; None if no row has one."""
        return next((row[field] for row in self.where(**wanted) if row.get(field) is not None), None)

    def points(self, field: str, by: str = SIZE, **wanted: Any) -> dict[Any, float]:
        """The values of one field by those of another, ascending."""
        values = {row[by]: row[field] for row in self.where(**wanted) if row.get(field) is not None}
        return dict(sorted(values.items()))

    def shared(self, field: str, contestants: Collection[str], **wanted: Any) -> list[Any]:
        """The sizes at which all contestants have a value, ascending."""
        sizes = [set(self.points(field, entrant=each, **wanted)) for each in contestants]
        return sorted(set.intersection(*sizes))

    def stops(self, contestant: str) -> list[Row]:
        """The rows in which a contestant stopped at a limit."""
        return [row for row in self.where(entrant=contestant) if "limit" in row]

    def rejections(self, *contestants: str) -> list[str]:
        """The reasons why contestants were rejected."""
        return [
            f"{row['entrant']}: {row['rejected']}"
            for row in self
            if "rejected" in row and row["entrant"] in contestants
        ]
