"""The events of a batch one by one and by column: one protocol for all representations.

`ObjectViews` has events as Python objects, `DictViews` as plain dicts, `ColumnViews` as columns of Arrow,
`DocumentViews` as XML documents.
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
        """Whether events are made on demand, so that columns are cheaper than events."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Event]: ...

    def event(self, index: int) -> Event:
        """The event at an index, which may be negative. Raises IndexError."""

    def part(self, rows: slice) -> Views:
        """The views of some of the events."""

    def cells(self, path: Path) -> PathCells:
        """`event.values(path)` of every event, as arrays."""

    def dense(self, path: Path) -> DenseColumn | None:
        """The column at a path as one array. None unless each event has at most one value there, all of one kind."""

    def counts(self, path: Path) -> NDArray[np.int64]:
        """Number of values at a path, for every event."""

    def known_names(self) -> Iterable[str]:
        """A superset of the names of the top-level attributes that have values."""

    def branching(self, prefix: Path) -> NDArray[np.bool_]:
        """For every event whether an array with several elements lies on the prefix or at its end.

        Such an event has several bindings for paths that begin with the prefix.
        """
