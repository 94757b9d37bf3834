"""The cells of derived attributes: worked out in columns, once a batch.

An event that has several bindings for the attributes that one is derived from has the values of all of these. Such
events are few, and looked at one by one; so are values that no function of Arrow or NumPy treats just as the language
says, such as letters beyond ASCII in `lower`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from harken.events.cells import Cells, PathCells, cells_by_kind
from harken.events.column_functions import OF_KIND, aligned, calculated, compared, joined, repeated, taken
from harken.events.times_in_text import read_times
from harken.schema.derived import Derivation, TimeReading, constant_of, derivation, has_attributes, is_attribute
from harken.schema.paths import Path
from harken.schema.scalar_functions import ARITHMETIC
from harken.schema.values import Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.events.batch import EventBatch

MOST_VALUES = 4_096
"""So many bindings of one event are tried; one that has more may have any value."""

_Found = dict[Kind, Cells]
"""The values of a tree, by kind. An event has at most one of all."""


def derived_cells(batch: EventBatch, path: Path) -> PathCells:
    """The cells at the path of a derived attribute."""
    import numpy as np

    derived = derivation(path)
    if isinstance(derived, TimeReading):
        return _read_cells(batch.cells(derived.path), derived.read_as)
    several = np.zeros(len(batch), np.bool_)
    for source in derived.sources:
        if not source.is_whole:
            several |= batch.branching(source.path)
    has_several = bool(several.any())
    found = _Columns(batch, ~several if has_several else None).of(derived.tree)
    open_rows = _add_several(batch, derived, np.flatnonzero(several), found) if has_several else None
    present = np.zeros(len(batch), np.bool_)
    for cells in found.values():
        present[cells.rows] = True
    return PathCells(tuple(found[kind] for kind in Kind if kind in found), present, open_rows)


def _read_cells(found: PathCells, kind: Kind) -> PathCells:
    """The cells at a path as timestamps or dates: those that are such, and strings that are read as such."""
    import numpy as np

    asked = [cells for cells in found.cells if cells.kind in (kind, Kind.STRING)]
    if len(asked) == len(found.cells) == 1 and asked[0].kind is kind:
        return found
    as_asked = [cells if cells.kind is kind else read_times(cells, kind) for cells in asked]
    present = np.zeros(len(found.present), np.bool_)
    for cells in as_asked:
        present[cells.rows] = True
    return PathCells((joined(as_asked),) if present.any() else (), present)


def _add_several(
    batch: EventBatch, derived: Derivation, rows: NDArray[np.intp], found: _Found
) -> NDArray[np.int32] | None:
    """Add the values of events with several bindings. Returns those that have too many, if there are such."""
    import numpy as np

    owners: list[int] = []
    values: list[Any] = []
    too_many: list[int] = []
    for row in rows.tolist():
        possible = derived.possible(batch[row].attributes, MOST_VALUES)
        if possible is None:
            too_many.append(row)
        else:
            owners += [row] * len(possible)
            values += possible
    for cells in cells_by_kind(np.array(owners, np.int32), values, set(map(type, values))):
        found[cells.kind] = joined([found[cells.kind], cells]) if cells.kind in found else cells
    return np.array(too_many, np.int32) if too_many else None


class _Columns:
    """Works out trees for the events of a batch that have one binding."""

    def __init__(self, batch: EventBatch, chosen: NDArray[np.bool_] | None) -> None:
        self._batch = batch
        self._chosen = chosen
        """The events that are looked at; None: all."""

    def of(self, tree: Any) -> _Found:
        """The values of a tree that has attributes."""
        if is_attribute(tree):
            return self._attribute(tuple(tree["at"]))
        name, *arguments = tree
        if name == "coalesce":
            return self._coalesce(arguments)
        if name == "size":
            return self._size(tuple(arguments[0]["at"]))
        if name == "lacks":
            return self._lacking(*arguments)
        if name == "compare":
            return self._compare(*arguments)
        if name in ARITHMETIC:
            return self._arithmetic(name, *arguments)
        if name == "cidr_contains":
            arguments.reverse()
        inner, constants = self.of(arguments[0]), [constant_of(each) for each in arguments[1:]]
        found = [OF_KIND[name, kind](cells, *constants) for kind, cells in inner.items() if (name, kind) in OF_KIND]
        return {found[0].kind: joined(found)} if found else {}

    def _attribute(self, path: Path) -> _Found:
        found = self._batch.cells(path).cells
        if self._chosen is None:
            return {cells.kind: cells for cells in found}
        return {cells.kind: taken(cells, self._chosen[cells.rows]) for cells in found}

    def _filled(self, tree: Any, rows: NDArray[np.int32]) -> _Found:
        """The values of a tree at these rows, if it is a constant, or all that it has."""
        return self.of(tree) if has_attributes(tree) else repeated(constant_of(tree), rows)

    def _rows(self) -> NDArray[np.int32]:
        import numpy as np

        if self._chosen is None:
            return np.arange(len(self._batch), dtype=np.int32)
        return np.flatnonzero(self._chosen).astype(np.int32)

    def _without(self, found: _Found) -> NDArray[np.bool_]:
        """For every event of the batch whether it is looked at and has no value here."""
        import numpy as np

        is_open = np.ones(len(self._batch), np.bool_) if self._chosen is None else self._chosen.copy()
        for cells in found.values():
            is_open[cells.rows] = False
        return is_open

    def _coalesce(self, arguments: list[Any]) -> _Found:
        found: _Found = {}
        for argument in arguments:
            is_open = self._without(found)
            for kind, cells in self._filled(argument, self._rows()).items():
                more = taken(cells, is_open[cells.rows])
                found[kind] = joined([found[kind], more]) if kind in found else more
        return found

    def _size(self, path: Path) -> _Found:
        import numpy as np

        counts = self._batch.views.counts(path)
        if self._chosen is not None:
            counts = np.where(self._chosen, counts, 0)
        rows = np.flatnonzero(counts)
        return {Kind.NUMBER: Cells(Kind.NUMBER, rows.astype(np.int32), counts[rows])}

    def _lacking(self, tree: Any, *kinds: str) -> _Found:
        import numpy as np

        rows = self._rows()
        found = {kind: cells for kind, cells in self.of(tree).items() if kind in kinds}
        return {Kind.BOOLEAN: Cells(Kind.BOOLEAN, rows, self._without(found)[rows].astype(np.int64))}

    def _pairs(self, left: Any, right: Any) -> Iterable[tuple[Cells, Cells]]:
        """The values of two trees where both have one of the same kind, event by event."""
        mine = self._filled(left, self._rows())
        theirs = self._filled(right, self._rows())
        for kind in mine.keys() & theirs.keys():
            yield aligned(mine[kind], theirs[kind])

    def _compare(self, left: Any, right: Any, domain: Any = None) -> _Found:
        order = None if domain is None else domain["order"]
        found = [compared(mine, theirs, order) for mine, theirs in self._pairs(left, right)]
        return {Kind.NUMBER: joined(found)} if found else {}

    def _arithmetic(self, operator: str, left: Any, right: Any) -> _Found:
        for mine, theirs in self._pairs(left, right):
            if mine.kind is Kind.NUMBER:
                return {Kind.NUMBER: calculated(operator, mine, theirs)}
        return {}
