"""Changes of the live set, as entries of a log: a subscription is added, replaced or removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harken.live.subscriptions import Record, Subscription


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a log. Applying the same entries again, in order, has no effect."""

    sequence: int
    """Sequence number in the log. Later changes have greater ones."""
    id: str
    record: Record | None
    """The subscription from now on; None if it is removed."""


def latest(changes: Iterable[Change]) -> dict[str, Record | None]:
    """The last change of each id: its record, or None if it is removed."""
    return {change.id: change.record for change in changes}


def changes_between(before: Mapping[str, Record], after: Mapping[str, Record], sequence: int = 0) -> list[Change]:
    """The changes that turn `before` into `after`, numbered from `sequence` + 1 on."""
    gone = [id for id in before if id not in after]
    new = [record for id, record in after.items() if id not in before or differ(before[id], record)]
    steps: list[tuple[str, Record | None]] = [*((id, None) for id in gone), *((record.id, record) for record in new)]
    return [Change(number, id, record) for number, (id, record) in enumerate(steps, sequence + 1)]


def differ(left: Record | Subscription, right: Record) -> bool:
    """Whether two subscriptions with the same id differ in text, language or fields."""
    return (left.where, left.language, left.fields) != (right.where, right.language, right.fields)
