"""Tables of predicates by event type, attribute and comparison, none shared (Le Subscribe, section 3, figure 8).

This is the algorithm of NEONRules. A predicate is stored once for each subscription that has it, under its *operation*:
event type, attribute, comparison. For an event, all predicates of the operations of its type are evaluated, and the
*and* table counts those that hold for each row; *n_predicates* says how many have to.

An interval with two ends is two predicates. As in the paper, rows with an equality on the event type have their
operations under that type, and cost nothing for events of other types. Attributes are compared with attributes as with
constants (schema/derived.py), where the paper says that Neon "can be easily extended".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import EVENT_TYPE
from harken.schema.derived import is_comparison
from harken_lab.papers.growing import FIRST_LABEL, LAST_LABEL
from harken_lab.papers.growing_lists import GrowingLists
from harken_lab.papers.kernels.neon_kernels import (
    ALWAYS,
    ANY_TYPE,
    AT_LEAST,
    AT_MOST,
    COMPARISONS,
    EQUAL,
    NO_COLUMN,
    OTHER,
    AndTable,
    OperationTable,
    PredicateTable,
    delete,
    insert,
    match,
)
from harken_lab.papers.labelled_rows import grown, longer, predicates_of
from harken_lab.papers.row_matcher import RowMatcher, RowSearch

_Key = TypeVar("_Key", bound=Hashable)


class _Operation(NamedTuple):
    """A comparison of a column, for rows of one event type: its predicates are evaluated together."""

    of_type: int
    column: int
    comparison: int


class _Predicates(NamedTuple):
    """Predicates before they are assigned to operations. `rows` are indexes among the inserted rows."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    comparisons: NDArray[np.int32]
    constants: NDArray[np.uint32]


class _TypeColumn(NamedTuple):
    """A column of event types: the labels of the rows' types, ascending, and the number of each type."""

    column: int
    labels: NDArray[np.uint32]
    types: NDArray[np.int32]


class Neon(RowMatcher):
    """The matcher: the paper's tables, filled from rows."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self._clear()

    # The index

    def _clear(self) -> None:
        self._operations: _NumberedKeys[_Operation] = _NumberedKeys(0)
        self._types: _NumberedKeys[tuple[int, int]] = _NumberedKeys(ANY_TYPE + 1)
        """Event types by column and label."""
        self._constants, self._owners, self._of_rows = GrowingLists(), GrowingLists(), GrowingLists()
        self._n_predicates = np.empty(0, np.int32)
        self._counts = np.empty(0, np.int32)
        self._lookup: tuple[OperationTable, list[_TypeColumn]] | None = None
        """The operations and event types by which events are matched. None after a change of either."""

    def _insert(self, rows: NDArray[np.int32]) -> None:
        if self.rows.size > len(self._n_predicates):
            size = grown(len(self._n_predicates), self.rows.size)
            self._n_predicates = longer(self._n_predicates, size, 0)
            self._counts = np.zeros(size, np.int32)
            self._of_rows.ensure(size)
        is_first = not self._operations
        types, predicates, self._n_predicates[rows] = self._predicates_of(rows)
        operations = self._operations_of(types[predicates.rows], predicates.columns, predicates.comparisons)
        owners, constants = rows[predicates.rows], predicates.constants.view(np.int32)
        if is_first:
            self._fill(operations, constants, owners)
        else:
            self._append(operations, constants, owners)

    def _fill(self, operations: NDArray[np.int32], constants: NDArray[np.int32], owners: NDArray[np.int32]) -> None:
        """Replace all predicates by these, in lists without gaps."""
        self._constants.fill(self._operations.end, operations, constants)
        self._owners.fill(self._operations.end, operations, owners)
        places = np.empty(len(operations), np.int32)
        starts = self._owners.table.starts
        order = np.argsort(operations, kind="stable")
        places[order] = np.arange(len(operations)) - starts[operations[order]]
        of_rows = np.stack([operations, places], axis=1).ravel()
        self._of_rows.fill(len(self._n_predicates), np.repeat(owners, 2), of_rows)

    def _append(self, operations: NDArray[np.int32], constants: NDArray[np.int32], owners: NDArray[np.int32]) -> None:
        """Append these predicates to the lists of their operations."""
        self._constants.ensure(self._operations.end)
        self._owners.ensure(self._operations.end)
        done = 0
        while True:
            done = insert(self._table(), operations, constants, owners, done)
            if done == len(owners):
                return
            self._constants.grow()
            self._owners.grow()
            self._of_rows.grow()

    def _delete(self, rows: NDArray[np.int32]) -> None:
        emptied = np.empty(self._operations.end, np.int32)
        for which in emptied[: delete(self._table(), rows, emptied)].tolist():
            self._operations.forget(which)
            self._lookup = None

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        if self._lookup is None:
            self._lookup = self._operation_table(), self._type_columns()
        operations, columns = self._lookup
        types = np.array([_types_in(codes, each) for each in columns], np.int32).reshape(len(columns), codes.shape[1])
        size = len(self._counts)
        counting = AndTable(self._n_predicates, self._counts, np.empty(size + 1, np.int32), np.empty(size, np.int32))
        constants = self._constants.table
        labels = constants._replace(cells=constants.cells.view(np.uint32))
        table, row_count = self._table()._replace(constants=labels), self.rows.count
        done: int = match(table, operations, types, counting, row_count, codes, first, out, offsets, examined)
        return done

    def _memory(self) -> dict[str, int]:
        return {
            "predicates": self._constants.nbytes + self._owners.nbytes,
            "predicates of rows": self._of_rows.nbytes,
            "n_predicates": self._n_predicates.nbytes,
            "and": 3 * self._counts.nbytes,
        }

    def _details(self) -> dict[str, Any]:
        operations = list(self._operations)
        columns = {each.column for each in operations} - {NO_COLUMN}
        return {
            "operations": len(operations),
            "predicates": int(self._owners.table.sizes.sum()),
            "event_types": len({each.of_type for each in operations} - {ANY_TYPE}),
            "pair_columns": sum(is_comparison(self.rows.columns[each].path) for each in columns),
        }

    def _table(self) -> PredicateTable:
        return PredicateTable(self._constants.table, self._owners.table, self._of_rows.table)

    # From rows to predicates

    def _predicates_of(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], _Predicates, NDArray[np.int32]]:
        """The event type of each row, the other predicates of all rows, and how many must hold for each row."""
        table = self.rows.table
        places, at = predicates_of(table, rows)
        columns, low, high = table.columns[at], table.low[at], table.high[at]
        types = np.full(len(rows), ANY_TYPE, np.int64)
        names_type = self._names_type(columns, low, high)
        if names_type.any():
            types[places[names_type]] = self._types_of(columns[names_type], low[names_type])
            rest = ~names_type
            places, columns, low, high = places[rest], columns[rest], low[rest], high[rest]
        predicates, needed = _split(places, columns, low, high, len(rows))
        unconditional = np.flatnonzero(needed == 0)
        needed[unconditional] = 1
        return types, _concatenated([*predicates, _always(unconditional)]), needed

    def _names_type(
        self, columns: NDArray[np.int32], low: NDArray[np.uint32], high: NDArray[np.uint32]
    ) -> NDArray[np.bool_]:
        """Whether each interval is an equality with an event type."""
        of_types = [place for place, each in enumerate(self.rows.columns) if _is_of_types(each)]
        if not of_types:
            return np.zeros(len(columns), np.bool_)
        is_equality: NDArray[np.bool_] = np.isin(columns, of_types) & (low == high) & (low & np.uint32(1) == 0)
        return is_equality

    def _types_of(self, columns: NDArray[np.int32], labels: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The numbers of event types. New types get new numbers."""
        keys, inverse = np.unique(columns.astype(np.int64) << 32 | labels, return_inverse=True)
        numbers = [self._types.number((key >> 32, key & LAST_LABEL)) for key in keys.tolist()]
        return np.array(numbers, np.int64)[inverse]

    def _operations_of(
        self, types: NDArray[np.int64], columns: NDArray[np.int32], comparisons: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """The numbers of operations. New operations get new numbers."""
        before = len(self._operations)
        keys, inverse = np.unique(types << 32 | (columns + 1) * COMPARISONS + comparisons, return_inverse=True)
        numbers: list[int] = []
        for key in keys.tolist():
            column, comparison = divmod(key & LAST_LABEL, COMPARISONS)
            numbers.append(self._operations.number(_Operation(key >> 32, column - 1, comparison)))
        if len(self._operations) > before:
            self._lookup = None
        return np.array(numbers, np.int32)[inverse]

    # What matching reads

    def _operation_table(self) -> OperationTable:
        operations = sorted(self._operations)
        described = np.array(operations, np.int32).reshape(-1, 3)
        return OperationTable(
            starts=np.searchsorted(described[:, 0], np.arange(self._types.end + 1)),
            columns=described[:, 1].copy(),
            comparisons=described[:, 2].copy(),
            lists=np.array([self._operations.number(each) for each in operations], np.int32),
        )

    def _type_columns(self) -> list[_TypeColumn]:
        """Forget event types without operations. Returns the columns of the other event types."""
        alive = {operation.of_type for operation in self._operations}
        for number in [number for number in self._types.numbers() if number not in alive]:
            self._types.forget(number)
        columns: list[_TypeColumn] = []
        for column, several in groupby(sorted(self._types), key=itemgetter(0)):
            keys = list(several)
            labels = np.array([label for _, label in keys], np.uint32)
            columns.append(_TypeColumn(column, labels, np.array([self._types.number(key) for key in keys], np.int32)))
        return columns


class _NumberedKeys(Generic[_Key]):
    """Numbers for keys, counting up from `first`. Numbers of forgotten keys are reused."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._numbers: dict[_Key, int] = {}
        self._keys: dict[int, _Key] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._numbers)

    @property
    def end(self) -> int:
        """One more than the greatest number."""
        return self._first + len(self._numbers) + len(self._free)

    def numbers(self) -> Iterable[int]:
        return self._keys

    def number(self, key: _Key) -> int:
        """The number of a key. A new key gets a new number."""
        number = self._numbers.get(key)
        if number is None:
            number = self._free.pop() if self._free else self.end
            self._numbers[key], self._keys[number] = number, key
        return number

    def forget(self, number: int) -> None:
        del self._numbers[self._keys.pop(number)]
        self._free.append(number)


def _is_of_types(column: Column) -> bool:
    return column.path == EVENT_TYPE and column.kind is not None


def _types_in(codes: NDArray[np.uint32], column: _TypeColumn) -> NDArray[np.int32]:
    """The number of each event's type by one column; -1 if no row has that type."""
    labels = codes[column.column]
    places = np.minimum(np.searchsorted(column.labels, labels), len(column.labels) - 1)
    return np.where(column.labels[places] == labels, column.types[places], np.int32(-1))


def _split(
    places: NDArray[np.int64],
    columns: NDArray[np.int32],
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    rows: int,
) -> tuple[list[_Predicates], NDArray[np.int32]]:
    """Intervals as predicates, and how many of them must hold for each row.

    An interval with two ends is two predicates. So is a wrapped interval, but then only one of the two must hold.
    """
    is_equal = low == high
    is_wrapped = low > high
    is_other = is_wrapped & (low - high == 2)
    is_between = ~is_equal & ~is_other
    has_low = is_between & (is_wrapped | (low > FIRST_LABEL) | (high == LAST_LABEL))
    has_high = is_between & (is_wrapped | (high < LAST_LABEL))
    chosen = {EQUAL: is_equal, AT_LEAST: has_low, AT_MOST: has_high, OTHER: is_other}
    constants = {EQUAL: low, AT_LEAST: low, AT_MOST: high, OTHER: high + np.uint32(1)}
    predicates = [
        _Predicates(
            places[which], columns[which], np.full(which.sum(), comparison, np.int32), constants[comparison][which]
        )
        for comparison, which in chosen.items()
    ]
    needed = np.bincount(places, 1 + (has_low & has_high & ~is_wrapped), minlength=rows).astype(np.int32)
    return predicates, needed


def _always(places: NDArray[np.int64]) -> _Predicates:
    """One predicate that always holds for each of some rows."""
    count = len(places)
    return _Predicates(
        places, np.full(count, NO_COLUMN, np.int32), np.full(count, ALWAYS, np.int32), np.zeros(count, np.uint32)
    )


def _concatenated(several: list[_Predicates]) -> _Predicates:
    return _Predicates(*(np.concatenate(parts) for parts in zip(*several, strict=True)))
