"""The cells of derived attributes, computed by column, once per batch.

An event with several bindings for the sources of a derived attribute has the value of every binding. Such events are
rare and computed one by one. So are values for which Arrow and NumPy deviate from the language, such as non-ASCII
letters in `lower`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from harken.events.cells import Cells, PathCells, cells_by_kind
from harken.events.column_functions import OF_KIND, aligned, calculated, compared, joined, repeated, selected
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
"""Bindings to compute for one event at most; an event with more may have any value."""

_CellsByKind = dict[Kind, Cells]
"""The values of a tree, by kind. An event has at most one value in all."""


def derived_cells(batch: EventBatch, path: Path) -> PathCells:
    """The cells at the path of a derived attribute."""
    import numpy as np

    derived = derivation(path)
    if isinstance(derived, TimeReading):
        return _read_cells(batch.cells(derived.path), derived.read_as)
    branching = np.zeros(len(batch), np.bool_)
    for source in derived.sources:
        if not source.is_whole:
            branching |= batch.branching(source.path)
    has_several = bool(branching.any())
    by_kind = _Columns(batch, ~branching if has_several else None).of(derived.tree)
    open_rows = _add_branching(batch, derived, np.flatnonzero(branching), by_kind) if has_several else None
    present = np.zeros(len(batch), np.bool_)
    for cells in by_kind.values():
        present[cells.rows] = True
    return PathCells(tuple(by_kind[kind] for kind in Kind if kind in by_kind), present, open_rows)


def _read_cells(path_cells: PathCells, kind: Kind) -> PathCells:
    """Cells as timestamps or dates: the values of that kind, and the strings that can be read as one."""
    import numpy as np

    readable = [cells for cells in path_cells.cells if cells.kind in (kind, Kind.STRING)]
    if len(readable) == len(path_cells.cells) == 1 and readable[0].kind is kind:
        return path_cells
    read = [cells if cells.kind is kind else read_times(cells, kind) for cells in readable]
    present = np.zeros(len(path_cells.present), np.bool_)
    for cells in read:
        present[cells.rows] = True
    return PathCells((joined(read),) if present.any() else (), present)


def _add_branching(
    batch: EventBatch, derived: Derivation, rows: NDArray[np.intp], by_kind: _CellsByKind
) -> NDArray[np.int32] | None:
    """Add the values of events with several bindings. Returns the events with too many, None if there are none."""
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
        by_kind[cells.kind] = joined([by_kind[cells.kind], cells]) if cells.kind in by_kind else cells
    return np.array(too_many, np.int32) if too_many else None


class _Columns:
    """Computes trees for the events of a batch that have one binding."""

    def __init__(self, batch: EventBatch, mask: NDArray[np.bool_] | None) -> None:
        self._batch = batch
        self._mask = mask
        """A mask of the events to compute; None: all."""

    def of(self, tree: Any) -> _CellsByKind:
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
        results = [OF_KIND[name, kind](cells, *constants) for kind, cells in inner.items() if (name, kind) in OF_KIND]
        return {results[0].kind: joined(results)} if results else {}

    def _attribute(self, path: Path) -> _CellsByKind:
        columns = self._batch.cells(path).cells
        if self._mask is None:
            return {cells.kind: cells for cells in columns}
        return {cells.kind: selected(cells, self._mask[cells.rows]) for cells in columns}

    def _filled(self, tree: Any, rows: NDArray[np.int32]) -> _CellsByKind:
        """The values of a tree or, for a constant, the constant at each of the rows."""
        return self.of(tree) if has_attributes(tree) else repeated(constant_of(tree), rows)

    def _rows(self) -> NDArray[np.int32]:
        import numpy as np

        if self._mask is None:
            return np.arange(len(self._batch), dtype=np.int32)
        return np.flatnonzero(self._mask).astype(np.int32)

    def _lacking_mask(self, by_kind: _CellsByKind) -> NDArray[np.bool_]:
        """A mask of the events to compute that have no value in `by_kind`."""
        import numpy as np

        is_open = np.ones(len(self._batch), np.bool_) if self._mask is None else self._mask.copy()
        for cells in by_kind.values():
            is_open[cells.rows] = False
        return is_open

    def _coalesce(self, arguments: list[Any]) -> _CellsByKind:
        by_kind: _CellsByKind = {}
        for argument in arguments:
            is_open = self._lacking_mask(by_kind)
            for kind, cells in self._filled(argument, self._rows()).items():
                more = selected(cells, is_open[cells.rows])
                by_kind[kind] = joined([by_kind[kind], more]) if kind in by_kind else more
        return by_kind

    def _size(self, path: Path) -> _CellsByKind:
        import numpy as np

        counts = self._batch.views.counts(path)
        if self._mask is not None:
            counts = np.where(self._mask, counts, 0)
        rows = np.flatnonzero(counts)
        return {Kind.NUMBER: Cells(Kind.NUMBER, rows.astype(np.int32), counts[rows])}

    def _lacking(self, tree: Any, *kinds: str) -> _CellsByKind:
        import numpy as np

        rows = self._rows()
        by_kind = {kind: cells for kind, cells in self.of(tree).items() if kind in kinds}
        return {Kind.BOOLEAN: Cells(Kind.BOOLEAN, rows, self._lacking_mask(by_kind)[rows].astype(np.int64))}

    def _pairs(self, left: Any, right: Any) -> Iterable[tuple[Cells, Cells]]:
        """For each kind, the values of two trees in the events where both have one."""
        mine = self._filled(left, self._rows())
        theirs = self._filled(right, self._rows())
        for kind in mine.keys() & theirs.keys():
            yield aligned(mine[kind], theirs[kind])

    def _compare(self, left: Any, right: Any, domain: Any = None) -> _CellsByKind:
        order = None if domain is None else domain["order"]
        signs = [compared(mine, theirs, order) for mine, theirs in self._pairs(left, right)]
        return {Kind.NUMBER: joined(signs)} if signs else {}

    def _arithmetic(self, operator: str, left: Any, right: Any) -> _CellsByKind:
        for mine, theirs in self._pairs(left, right):
            if mine.kind is Kind.NUMBER:
                return {Kind.NUMBER: calculated(operator, mine, theirs)}
        return {}
