"""Changes of the live set, as a log tells them: a subscription is there from now on, or is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harken.live.subscriptions import Record, Subscription


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a log. To make the same changes again, in order, changes nothing."""

    sequence: int
    """Its place in the log. Later changes have greater ones."""
    id: str
    record: Record | None
    """What the subscription is from now on; None if it is gone."""


def latest(changes: Iterable[Change]) -> dict[str, Record | None]:
    """What is left to do for each id when only its last change counts."""
    return {change.id: change.record for change in changes}


def changes_between(before: Mapping[str, Record], after: Mapping[str, Record], sequence: int = 0) -> list[Change]:
    """The changes that make one set of subscriptions another, numbered from `sequence` + 1 on."""
    gone = [id for id in before if id not in after]
    new = [record for id, record in after.items() if id not in before or differ(before[id], record)]
    found: list[tuple[str, Record | None]] = [*((id, None) for id in gone), *((record.id, record) for record in new)]
    return [Change(number, id, record) for number, (id, record) in enumerate(found, sequence + 1)]


def differ(left: Record | Subscription, right: Record) -> bool:
    """Whether two subscriptions of one id say different things."""
    return (left.where, left.language, left.fields) != (right.where, right.language, right.fields)
