"""The measurements of an experiment, and how to look them up: a row is plain data, for one entrant at one place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

Row = dict[str, Any]
TIME = "us_per_event"
SIZE = "subscriptions"


class Rows:
    """Rows that can be asked for values. What was refused, or is not there, has none."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def where(self, **wanted: Any) -> Rows:
        """The rows that have these values."""
        return Rows(row for row in self if all(row.get(name) == value for name, value in wanted.items()))

    def each(self, field: str) -> list[Any]:
        """The different values of a field, in the order in which they come."""
        return list(dict.fromkeys(row[field] for row in self if field in row))

    def value(self, field: str, **wanted: Any) -> float | None:
        """The value of the first row that has one."""
        return next((row[field] for row in self.where(**wanted) if row.get(field) is not None), None)

    def points(self, field: str, by: str = SIZE, **wanted: Any) -> dict[Any, float]:
        """The values of a field by another, ascending."""
        found = {row[by]: row[field] for row in self.where(**wanted) if row.get(field) is not None}
        return dict(sorted(found.items()))

    def shared(self, field: str, entrants: Collection[str], by: str = SIZE, **wanted: Any) -> list[Any]:
        """The places at which all of the entrants have a value, ascending."""
        places = [set(self.points(field, by, entrant=entrant, **wanted)) for entrant in entrants]
        return sorted(set.intersection(*places))

    def stops(self, entrant: str) -> list[Row]:
        """The rows in which an entrant stopped at a limit."""
        return [row for row in self.where(entrant=entrant) if "limit" in row]

    def refusals(self, *entrants: str, **wanted: Any) -> list[str]:
        """Why entrants were refused."""
        return [
            f"{row['entrant']}: {row['refused']}"
            for row in self.where(**wanted)
            if "refused" in row and (not entrants or row["entrant"] in entrants)
        ]
