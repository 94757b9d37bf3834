"""The ways to look at the events of a batch, whatever these are made of.

`ObjectViews` has events as Python objects, `DictViews` as plain dicts, `ColumnViews` as columns of Arrow,
`DocumentViews` as XML documents. Who makes a batch chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from harken.events.arrow_columns import DenseColumn
from harken.events.cells import PathCells
from harken.events.event import Event
from harken.schema.paths import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Views(Protocol):
    """The events of a batch, one by one and by path."""

    @property
    def is_lazy(self) -> bool:
        """Whether an event is made only when it is asked for, so that columns are cheaper."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Event]: ...

    def event(self, index: int) -> Event:
        """The event at an index, which may be negative. Raises IndexError."""

    def part(self, rows: slice) -> Views:
        """The same views of some of the events."""

    def cells(self, path: Path) -> PathCells:
        """What `event.values(path)` gives for every event, as arrays."""

    def dense(self, path: Path) -> DenseColumn | None:
        """The same as it lies in memory, if every event has at most one value there, all of one kind; else None."""

    def counts(self, path: Path) -> NDArray[np.int64]:
        """How many values `event.values(path)` gives for every event."""

    def known_names(self) -> Iterable[str]:
        """The names that paths with a value begin with, and maybe others: no event has an attribute of another name."""

    def branching(self, prefix: Path) -> NDArray[np.bool_]:
        """For every event whether an array with several elements lies on the way along a path or at its end.

        Such an event has several bindings for paths that begin with the prefix.
        """
