"""Counts of strings that are compared with timestamps or dates and are none: such a comparison is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from harken.concurrency.forking import PART, fork_lock
from harken.events import Event, EventBatch
from harken.schema.derived import TimeReading, reading
from harken.schema.paths import Path, format_path

UnparsedCounts = Mapping[Path, int]
"""Number of strings by the path of a time reading."""
NONE_UNPARSED: UnparsedCounts = {}
_MAY_HOLD_STRINGS = (str, list, dict)


class Unparsed:
    """The counts of an engine since it was made or loaded."""

    def __init__(self) -> None:
        self._counts: Counter[Path] = Counter()
        self._adding = fork_lock(PART)

    def add(self, counts: UnparsedCounts) -> None:
        if counts:
            with self._adding:
                self._counts.update(counts)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """The counts by attribute and kind."""
        with self._adding:
            return by_attribute(self._counts)


def by_attribute(counts: UnparsedCounts) -> dict[str, dict[str, int]]:
    """The counts by attribute and the kind that its strings are not: {"at": {"timestamp": 3}}."""
    by_name: dict[str, dict[str, int]] = {}
    for path, count in counts.items():
        read = reading(path)
        if read is not None:
            by_name.setdefault(format_path(read.path), {})[str(read.read_as)] = count
    return by_name


def of_event(event: Event, readings: Sequence[TimeReading]) -> UnparsedCounts:
    """The counts of one event."""
    attributes = event.attributes
    counts: dict[Path, int] = {}
    for each in readings:
        if type(attributes.get(each.path[0])) in _MAY_HOLD_STRINGS:
            count = each.unparsed(attributes)
            if count:
                counts[each.own_path] = count
    return counts


def of_batch(batch: EventBatch, readings: Sequence[TimeReading], is_shared: bool = False) -> UnparsedCounts:
    """The counts of a matched batch. `is_shared`: several threads matched parts of it."""
    if is_shared:
        for each in readings:
            if batch.dense(each.own_path) is None:
                batch.cells(each.own_path)
    return {path: count for path, count in batch.unparsed(readings).items() if count}
