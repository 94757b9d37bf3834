"""Views of events that are flat dicts of plain values: columns are made at once, events on demand.

Most events are of this form. `ObjectViews` has events with objects, arrays or times, and those that may be rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from harken.events.arrow_columns import DenseColumn
from harken.events.cells import Cells, PathCells, cells_by_kind, embedded
from harken.events.event import Event
from harken.limits import Limits
from harken.schema.paths import Path
from harken.schema.values import Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NONE = type(None)
_PLAIN = {str, int, float, bool, _NONE}
_Column = DenseColumn | PathCells
_WITH_GAPS = ({int, _NONE}, {str, _NONE})
_SPARSE = 16
"""Maximal number of columns per attribute of the first event; beyond it, columns are slower."""


class DictViews:
    """Events as they came, checked so that none of them can be rejected."""

    __slots__ = ("_columns", "_limits", "_names", "_raw")

    is_lazy = False  # their columns are there already

    def __init__(
        self, raw: list[dict[str, Any]], names: frozenset[str], limits: Limits, columns: dict[str, _Column]
    ) -> None:
        self._raw = raw
        self._names = names
        self._limits = limits
        self._columns = columns

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[Event]:
        return map(self._event, self._raw)

    def event(self, index: int) -> Event:
        return self._event(self._raw[index])

    def part(self, rows: slice) -> DictViews:
        raw = self._raw[rows]
        columns = _columns_of(raw, self._names)
        assert columns is not None, "they were plain before"
        return DictViews(raw, self._names, self._limits, columns)

    def cells(self, path: Path) -> PathCells:
        import numpy as np

        column = self._columns.get(path[0]) if len(path) == 1 else None
        if column is None:
            return PathCells((), np.full(len(self), not path))
        if isinstance(column, PathCells):
            return column
        rows = np.arange(len(self), dtype=np.int32)
        if not len(column.valid):
            return _whole_column(Cells(column.kind, rows, column.values))
        present = np.unpackbits(column.valid, count=len(self), bitorder="little").view(np.bool_)
        values = column.values.drop_null() if column.kind is Kind.STRING else column.values[present]
        return PathCells((Cells(column.kind, rows[present], values),), present)

    def dense(self, path: Path) -> DenseColumn | None:
        column = self._columns.get(path[0]) if len(path) == 1 else None
        return column if isinstance(column, DenseColumn) else None

    def counts(self, path: Path) -> NDArray[np.int64]:
        import numpy as np

        return self.cells(path).present.astype(np.int64)

    def branching(self, prefix: Path) -> NDArray[np.bool_]:
        import numpy as np

        return np.zeros(len(self), np.bool_)

    def known_names(self) -> Iterable[str]:
        return self._columns

    def _event(self, raw: dict[str, Any]) -> Event:
        return Event.of(raw, None, self._limits, self._names)


def dict_views(raw: list[Any], names: frozenset[str], limits: Limits) -> DictViews | None:
    """The views of events; None if one is no dict, has a value that is not plain, or may be rejected.

    None also if there would be many more columns than an event has attributes: they would be slower.
    """
    if set(map(type, raw)) != {dict} or max(map(len, raw)) > limits.max_event_values or limits.max_event_depth < 1:
        return None
    if len(names) > _SPARSE * (len(raw[0]) + 1):
        names = names & set().union(*raw)
        if len(names) > _SPARSE * (len(raw[0]) + 1):
            return None
    columns = _columns_of(raw, names)
    return None if columns is None else DictViews(raw, names, limits, columns)


def _columns_of(raw: list[dict[str, Any]], names: frozenset[str]) -> dict[str, _Column] | None:
    """The columns of the named attributes that have values; None if a value is not plain, or may be rejected."""
    columns: dict[str, _Column] = {}
    try:
        for name, values in _by_name(raw, names):
            types = set(map(type, values))
            if not types <= _PLAIN:
                return None
            column: _Column | None = None
            if types == {_NONE}:
                continue
            if len(types) == 1:
                column = _of_one_type(values, next(iter(types)))
            elif types in _WITH_GAPS:
                column = _with_gaps(values, int in types)
            if column is None:
                column = _any_cells(values, types)
            if column is not None:
                columns[name] = column
    except (UnicodeEncodeError, OverflowError):  # a lone surrogate, or an integer beyond 64 bits
        return None
    return columns


def _by_name(raw: list[dict[str, Any]], names: frozenset[str]) -> Iterable[tuple[str, Sequence[Any]]]:
    """The values of all events by name, None where an event has none."""
    if len(names) > 1 and raw:
        try:
            return zip(names, zip(*map(itemgetter(*names), raw), strict=True), strict=True)
        except KeyError:  # some events lack some attributes
            pass
        if len(names) > 2 * len(raw[0]):
            return _spread(raw, names).items()
    return ((name, [each.get(name) for each in raw]) for name in names)


def _spread(raw: list[dict[str, Any]], names: frozenset[str]) -> dict[str, list[Any]]:
    """The values by name, collected event by event: the cost follows the attributes of events, not the names."""
    count = len(raw)
    columns: dict[str, list[Any]] = {}
    for row, event in enumerate(raw):
        for name, value in event.items():
            column = columns.get(name)
            if column is None:
                if name not in names:
                    continue
                column = columns[name] = [None] * count
            column[row] = value
    return columns


def _of_one_type(values: Sequence[Any], only: type) -> _Column | None:
    """The column of values of one plain type; None if there are NaNs."""
    import numpy as np

    count = len(values)
    if only is int:
        return DenseColumn(Kind.NUMBER, np.fromiter(values, np.int64, count), _all_valid(), 0)
    if only is str:
        import pyarrow

        return DenseColumn(Kind.STRING, pyarrow.array(values, pyarrow.large_string()), _all_valid(), 0)
    if only is bool:
        integers = np.fromiter(values, np.bool_, count).astype(np.int64)
        return _whole_column(Cells(Kind.BOOLEAN, np.arange(count, dtype=np.int32), integers))
    if only is float:
        floats = np.fromiter(values, np.float64, count)
        if not np.isnan(floats).any():
            return _whole_column(Cells(Kind.NUMBER, np.arange(count, dtype=np.int32), *embedded(floats)))
    return None


def _with_gaps(values: Sequence[Any], is_integers: bool) -> DenseColumn:
    """The column of integers or strings, some of them missing."""
    import numpy as np
    import pyarrow

    array = pyarrow.array(values, pyarrow.int64() if is_integers else pyarrow.large_string())
    validity, data = array.buffers()[:2]
    valid = np.frombuffer(validity, np.uint8)
    if is_integers:
        return DenseColumn(Kind.NUMBER, np.frombuffer(data, np.int64, len(array)), valid, 0)
    return DenseColumn(Kind.STRING, array, valid, 0)


def _whole_column(cells: Cells) -> PathCells:
    """Cells of which every event has exactly one."""
    import numpy as np

    return PathCells((cells,), np.ones(len(cells.rows), np.bool_))


@cache
def _all_valid() -> NDArray[np.uint8]:
    import numpy as np

    return np.empty(0, np.uint8)


def _any_cells(values: Sequence[Any], types: set[type]) -> PathCells | None:
    """The cells of plain values of any types; None if all are missing."""
    import numpy as np

    rows, present = np.arange(len(values), dtype=np.int32), np.ones(len(values), np.bool_)
    if _NONE in types or (float in types and any(value != value for value in values)):  # NaN counts as missing
        present = np.array([value is not None and value == value for value in values], np.bool_)
        rows, values = rows[present], list(compress(values, present))
        types = set(map(type, values))
    return PathCells(tuple(cells_by_kind(rows, list(values), types)), present) if values else None
