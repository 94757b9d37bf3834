"""Views of events that are bare XML documents: the only attribute is `document`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from harken.errors import HarkenError
from harken.events.arrow_columns import DenseColumn
from harken.events.cells import PathCells
from harken.events.event import Event
from harken.events.object_views import ObjectViews
from harken.limits import Limits
from harken.schema.paths import DOCUMENT, Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.events.xml.documents import Documents


class DocumentViews:
    """Documents as bytes. Their text is decoded only when the attribute itself is read."""

    __slots__ = ("_limits", "_made", "_names", "_raw")

    is_lazy = True

    def __init__(self, raw: Sequence[bytes], limits: Limits, names: frozenset[str] | None = None) -> None:
        """With `names`, events have the attribute `document` only if it is among them."""
        self._raw = raw
        self._limits = limits
        self._names = names
        self._made: ObjectViews | None = None

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[Event]:
        return (Event.of(each, None, self._limits, self._names) for each in self._raw)

    def event(self, index: int) -> Event:
        return Event.of(self._raw[index], None, self._limits, self._names)

    def part(self, rows: slice) -> DocumentViews:
        return DocumentViews(self._raw[rows], self._limits, self._names)

    def unreadable(self) -> Iterator[tuple[int, HarkenError]]:
        """The index and the error of each document whose text cannot be decoded."""
        for index in range(len(self)):
            try:
                self.event(index)
            except HarkenError as error:
                yield index, error

    def documents(self, path: Path, limits: Limits) -> Documents | None:
        import numpy as np

        from harken.events.xml.documents import read_documents

        if path != DOCUMENT:
            return None
        offsets = np.zeros(len(self._raw) + 1, np.int64)
        np.cumsum([len(each) for each in self._raw], out=offsets[1:])
        data = np.frombuffer(b"".join(self._raw), np.uint8)
        return read_documents(data, offsets, np.arange(len(self._raw), dtype=np.int32), limits)

    def cells(self, path: Path) -> PathCells:
        return self._objects().cells(path)

    def dense(self, path: Path) -> DenseColumn | None:
        return None

    def counts(self, path: Path) -> NDArray[np.int64]:
        return self._objects().counts(path)

    def known_names(self) -> Iterable[str]:
        return DOCUMENT

    def branching(self, prefix: Path) -> NDArray[np.bool_]:
        import numpy as np

        return np.zeros(len(self), np.bool_)

    def _objects(self) -> ObjectViews:
        if self._made is None:
            self._made = ObjectViews(tuple(self))
        return self._made
