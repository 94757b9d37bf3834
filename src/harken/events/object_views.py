"""Views of events that are Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from harken.events.arrow_columns import DenseColumn
from harken.events.cells import PathCells, cells_by_kind
from harken.events.event import Event
from harken.schema.paths import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ObjectViews:
    """Events in canonical form."""

    __slots__ = ("_events", "_reached")

    is_lazy = False

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._reached: dict[Path, _Reached] = {}

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def event(self, index: int) -> Event:
        return self._events[index]

    def part(self, rows: slice) -> ObjectViews:
        return ObjectViews(self._events[rows])

    def cells(self, path: Path) -> PathCells:
        import numpy as np

        reached = _step(self._at(path[:-1]), path[-1]) if path else self._at(path)
        rows = np.array(reached.rows, np.int32)
        present = np.zeros(len(self), np.bool_)
        present[rows] = True
        return PathCells(tuple(cells_by_kind(rows, reached.values, reached.types)), present)

    def dense(self, path: Path) -> DenseColumn | None:
        return None

    def counts(self, path: Path) -> NDArray[np.int64]:
        import numpy as np

        return np.bincount(np.array(self._at(path).rows, np.int64), minlength=len(self))

    def known_names(self) -> Iterable[str]:
        return set().union(*(event.attributes for event in self._events))

    def branching(self, prefix: Path) -> NDArray[np.bool_]:
        import numpy as np

        branching = np.zeros(len(self), np.bool_)
        for length in range(1, len(prefix) + 1):
            branching[self._at(prefix[:length]).branching] = True
        return branching

    def _at(self, path: Path) -> _Reached:
        """The values at a path, cached for longer paths with this prefix."""
        reached = self._reached.get(path)
        if reached is None:
            if path:
                reached = _step(self._at(path[:-1]), path[-1])
            else:
                attributes = [event.attributes for event in self._events]
                reached = _Reached(range(len(attributes)), attributes, {dict} if attributes else set(), [])
            self._reached[path] = reached
        return reached


class _Reached(NamedTuple):
    """The values at a path in all events, through arrays."""

    rows: Sequence[int]
    """The event of each value, ascending."""
    values: list[Any]
    types: set[type]
    branching: list[int]
    """Events in which the last key of the path holds an array of several elements."""


def _step(holders: _Reached, key: str) -> _Reached:
    rows, values = holders.rows, holders.values
    if holders.types != {dict}:
        kept = [type(value) is dict for value in values]
        rows, values = list(compress(rows, kept)), list(compress(values, kept))
    values = [holder.get(key) for holder in values]
    types = set(map(type, values))
    branching: list[int] = []
    if list in types:
        rows, values, branching = _through_lists(rows, values)
        types = set(map(type, values))
    if type(None) in types:
        rows = list(compress(rows, [value is not None for value in values]))
        values = [value for value in values if value is not None]
        types.remove(type(None))
    return _Reached(rows, values, types, branching)


def _through_lists(rows: Sequence[int], values: list[Any]) -> tuple[list[int], list[Any], list[int]]:
    """Flatten arrays: the row of each element, the elements, and the rows of arrays with several elements."""
    flat_rows: list[int] = []
    flat: list[Any] = []
    branching: list[int] = []
    for row, value in zip(rows, values, strict=True):
        if type(value) is list:
            before = len(flat)
            waiting = value[::-1]
            while waiting:
                element = waiting.pop()
                if type(element) is list:
                    waiting.extend(reversed(element))
                else:
                    flat_rows.append(row)
                    flat.append(element)
            if len(flat) > before + 1:
                branching.append(row)
        else:
            flat_rows.append(row)
            flat.append(value)
    return flat_rows, flat, branching
