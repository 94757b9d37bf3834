"""The columns of an Arrow table as cells, without going through Python rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from harken.events.cells import Cells, PathCells, embedded
from harken.schema.paths import Path
from harken.schema.values import Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LISTS = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
STRINGS = ("is_string", "is_large_string", "is_string_view")
TICKS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_WORD = 8
_SHARED_ROWS = 1 << 17
"""Batches of at most this many rows share one array of row numbers; larger ones make it for each column."""
_IS_ONE_OF: dict[tuple[tuple[str, ...], int], bool] = {}
"""Cached answers of `is_one_of`: for a short column, asking Arrow would dominate the time."""
_MICROSECONDS_A_TICK = {"s": 1_000_000, "ms": 1_000, "us": 1}


class DenseColumn(NamedTuple):
    """A column as one array: for every event a value of one kind, or none."""

    kind: Kind
    values: Any
    """For strings an Arrow array, for other kinds an int64 array, as in `Cells`. Missing values are arbitrary."""
    valid: NDArray[np.uint8]
    """A bitmap of the values that are present, from bit number `bit` on; empty if none is missing."""
    bit: int

    def to_list(self) -> list[Any]:
        """The strings or integers, None for missing ones."""
        import numpy as np

        values: list[Any] = self.values.to_pylist() if self.kind is Kind.STRING else self.values.tolist()
        if self.kind is Kind.STRING or not len(self.valid):
            return values
        is_valid = np.unpackbits(self.valid, bitorder="little")[self.bit :].tolist()
        return [value if is_there else None for value, is_there in zip(values, is_valid, strict=False)]


def dense_column(tables: Sequence[Any], path: Path) -> DenseColumn | None:
    """The column at a path; None if it is not strings, 64-bit integers or timestamps in microseconds throughout."""
    import numpy as np
    from pyarrow import concat_arrays

    chunks = [_inside(chunk, path[1:]) for table in tables for chunk in column_chunks(table, path) if len(chunk)]
    kind = _dense_kind(chunks[0].type) if chunks else None
    is_whole = sum(map(len, chunks)) == sum(table.num_rows for table in tables)
    if kind is None or not is_whole or any(each.type != chunks[0].type for each in chunks):
        return None
    array = chunks[0] if len(chunks) == 1 else concat_arrays(chunks)
    validity, values = array.buffers()[:2]
    valid = np.asarray(_Exposed(validity, "|u1", 0, validity.size)) if array.null_count else np.empty(0, np.uint8)
    if kind is Kind.STRING:
        return DenseColumn(kind, array, valid, array.offset)
    if values.address % _WORD:
        return None
    return DenseColumn(kind, np.asarray(_Exposed(values, "<i8", array.offset * _WORD, len(array))), valid, array.offset)


def _inside(array: Any, path: Path) -> Any:
    """The field at a path through structs, outside of lists; no rows if there is no such field."""
    from pyarrow import compute, nulls, types

    for key in path:
        field = array.type.get_field_index(key) if types.is_struct(array.type) else -1
        if field < 0:
            return nulls(0)
        array = compute.struct_field(array, [field])  # null if an enclosing struct is null
    return array


def _dense_kind(kind: Any) -> Kind | None:
    """The kind of an Arrow type whose values are strings, or 64 bits that need no conversion; else None."""
    from pyarrow import types

    if types.is_string(kind) or types.is_large_string(kind):
        return Kind.STRING
    if types.is_integer(kind) and kind.bit_width == 8 * _WORD:
        return Kind.NUMBER
    return Kind.TIMESTAMP if types.is_timestamp(kind) and kind.unit == "us" else None


def column_cells(tables: Sequence[Any], path: Path) -> PathCells:
    """The cells at a path of consecutive tables, all of which satisfy `are_sound`."""
    import numpy as np

    present = (np.zeros if path else np.ones)(sum(table.num_rows for table in tables), np.bool_)
    cells_of_kind: dict[Kind, list[Cells]] = {}
    start = 0
    for table in tables:
        first = start
        for chunk in column_chunks(table, path):
            chunk_rows = _rows(first, len(chunk))
            rows, cells = _cells(*values_at(chunk, path[1:], chunk_rows))
            # NumPy sets a slice without the interpreter's lock, so other threads go on.
            present[rows if rows is not chunk_rows else slice(first, first + len(chunk))] = True
            first += len(chunk)
            if cells is not None and len(rows):
                cells_of_kind.setdefault(cells.kind, []).append(cells)
        start += table.num_rows
    kinds = cells_of_kind if len(cells_of_kind) < 2 else [kind for kind in Kind if kind in cells_of_kind]
    return PathCells(tuple(_joined(cells_of_kind[kind]) for kind in kinds), present)


def column_counts(tables: Sequence[Any], path: Path) -> NDArray[np.int64]:
    """Number of values at a path, objects included, for every row of the tables."""
    import numpy as np

    counts = np.zeros(sum(table.num_rows for table in tables), np.int64)
    start = 0
    for table in tables:
        first = start
        for chunk in column_chunks(table, path):
            rows, _ = _cells(*values_at(chunk, path[1:], _rows(first, len(chunk))))
            counts += np.bincount(rows, minlength=len(counts))
            first += len(chunk)
        start += table.num_rows
    return counts


def column_chunks(table: Any, path: Path) -> Sequence[Any]:
    """The chunks of the column that a path begins with; none if there is no such column."""
    column = table.schema.get_field_index(path[0]) if path else -1
    return cast(Sequence[Any], table.column(column).chunks) if column >= 0 else ()


def column_branching(tables: Sequence[Any], path: Path) -> NDArray[np.bool_]:
    """A mask of the rows in which a list with several values lies on a path or at its end."""
    import numpy as np

    branching = np.zeros(sum(table.num_rows for table in tables), np.bool_)
    start = 0
    for table in tables:
        first = start
        for chunk in column_chunks(table, path):
            if _passes_list(chunk.type, path[1:]):
                rows, array = _elements(chunk, _rows(first, len(chunk)))
                _mark_repeated(rows, array, branching)
                for key in path[1:]:
                    rows, array = _step(rows, array, key)
                    _mark_repeated(rows, array, branching)
            first += len(chunk)
        start += table.num_rows
    return branching


def _passes_list(kind: Any, path: Path) -> bool:
    """Whether a path through a column of this type meets a list. If not, its rows need not be examined."""
    import pyarrow

    while isinstance(kind, pyarrow.BaseExtensionType):
        kind = kind.storage_type
    if is_one_of(LISTS, kind):
        return True
    field = kind.get_field_index(path[0]) if path and pyarrow.types.is_struct(kind) else -1
    return field >= 0 and _passes_list(kind.field(field).type, path[1:])


def _mark_repeated(rows: NDArray[np.int32], array: Any, marked: NDArray[np.bool_]) -> None:
    """Mark the rows with several values in the array. Nulls and NaNs do not count."""
    import numpy as np
    from pyarrow import types

    if types.is_floating(array.type):
        rows = rows[~np.isnan(array.to_numpy(zero_copy_only=False))]
    elif types.is_null(array.type):
        return
    elif array.null_count:
        rows = rows[_valid(array)]
    marked[rows[1:][rows[1:] == rows[:-1]]] = True


def values_at(array: Any, path: Path, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], Any]:
    """The row of each value at a path, and the values, through lists and with nulls."""
    rows, array = _elements(array, rows)
    for key in path:
        rows, array = _step(rows, array, key)
    return rows, array


def _elements(array: Any, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], Any]:
    """Flatten all lists: the row of each element, and the elements."""
    import numpy as np

    array = plain(array)
    while is_one_of(LISTS, array.type):
        lengths = array.value_lengths()
        rows = np.repeat(rows, lengths.fill_null(0).to_numpy(zero_copy_only=False))
        array = plain(array.flatten())
    return rows, array


def _step(rows: NDArray[np.int32], array: Any, key: str) -> tuple[NDArray[np.int32], Any]:
    """The field `key` of structs, through lists: the row of each value, and the values."""
    from pyarrow import compute, nulls, types

    field = array.type.get_field_index(key) if types.is_struct(array.type) else -1
    if field < 0:
        return rows[:0], nulls(0)
    return _elements(compute.struct_field(array, [field]), rows)


def plain(array: Any) -> Any:
    """The array with extension types, dictionaries and string views replaced by plain arrays."""
    import pyarrow

    if isinstance(array, pyarrow.ExtensionArray):
        return array.storage.cast("bool") if isinstance(array.type, pyarrow.Bool8Type) else plain(array.storage)
    if isinstance(array, pyarrow.DictionaryArray):
        values = plain(array.dictionary)
        # Decoded, repeated strings may exceed the 2 GB of a `string` array.
        return (values.cast("large_string") if pyarrow.types.is_string(values.type) else values).take(array.indices)
    # Few functions of Arrow know string views.
    return array.cast("large_string") if pyarrow.types.is_string_view(array.type) else array


def is_one_of(names: tuple[str, ...], kind: Any) -> bool:
    """Whether any of these tests of `pyarrow.types` holds for a type. Use only tests that depend on the type's id."""
    answer = _IS_ONE_OF.get((names, kind.id))
    if answer is None:
        from pyarrow import types

        answer = _IS_ONE_OF[names, kind.id] = any(getattr(types, name)(kind) for name in names)
    return answer


def _cells(rows: NDArray[np.int32], array: Any) -> tuple[NDArray[np.int32], Cells | None]:
    """The rows that have a value, and their cells; None instead of cells for objects."""
    import numpy as np
    import pyarrow

    types, kind = pyarrow.types, array.type
    if types.is_null(kind):
        return rows[:0], None
    valid = _valid(array) if array.null_count else None
    if valid is not None:
        rows = rows[valid]
    if types.is_struct(kind):
        return rows, None
    if types.is_integer(kind):
        return rows, Cells(Kind.NUMBER, rows, _integers(array, valid))
    if valid is not None:
        array = array.drop_null()
    if is_one_of(STRINGS, kind):
        return rows, Cells(Kind.STRING, rows, array)
    if types.is_floating(kind) or types.is_decimal(kind):
        return _real_cells(rows, array)
    if types.is_boolean(kind):
        return rows, Cells(Kind.BOOLEAN, rows, array.to_numpy(zero_copy_only=False).astype(np.int64))
    ticks = array.view(f"int{kind.bit_width}").to_numpy().astype(np.int64)
    if types.is_timestamp(kind):
        scale = _MICROSECONDS_A_TICK.get(kind.unit)
        return rows, Cells(Kind.TIMESTAMP, rows, ticks // 1_000 if scale is None else ticks * scale)
    return rows, Cells(Kind.DATE, rows, ticks if types.is_date32(kind) else ticks // TICKS_A_DAY["ms"])


def _valid(array: Any) -> NDArray[np.intp]:
    """Positions of the valid values in an array that has nulls."""
    import numpy as np

    bits = np.frombuffer(array.buffers()[0], np.uint8)[array.offset >> 3 :]
    first = array.offset & 7
    return np.flatnonzero(np.unpackbits(bits, count=first + len(array), bitorder="little")[first:])


def _rows(first: int, count: int) -> NDArray[np.int32]:
    """The row numbers from `first` on, from one shared array unless the batch is very large."""
    import numpy as np

    if first + count > _SHARED_ROWS:
        return np.arange(first, first + count, dtype=np.int32)
    return _first_rows()[first : first + count]


@cache
def _first_rows() -> NDArray[np.int32]:
    import numpy as np

    return np.arange(_SHARED_ROWS, dtype=np.int32)


def _integers(array: Any, valid: NDArray[np.intp] | None) -> NDArray[np.int64]:
    """The valid integers as int64. Not copied if they are aligned 64-bit integers without nulls."""
    import numpy as np

    values = array.buffers()[1]
    if array.type.bit_width < 8 * _WORD or not len(array) or values.address % _WORD:
        return cast("NDArray[np.int64]", array.drop_null().to_numpy().astype(np.int64))
    integers = np.asarray(_Exposed(values, "<i8", array.offset * _WORD, len(array)))
    return integers if valid is None else integers[valid]


class _Exposed:
    """Exposes Arrow's memory to NumPy by its address only, so that the array is not marked read-only."""

    def __init__(self, memory: Any, kind: str, start: int, count: int) -> None:
        self._memory = memory
        place = memory.address + start
        self.__array_interface__ = {"shape": (count,), "typestr": kind, "data": (place, False), "version": 3}


def _real_cells(rows: NDArray[np.int32], array: Any) -> tuple[NDArray[np.int32], Cells]:
    import numpy as np
    from pyarrow import types

    if types.is_decimal(array.type):
        floats = np.array([float(value) for value in array.to_pylist()], np.float64)
    else:
        floats = array.to_numpy().astype(np.float64, copy=False)
    is_number = floats == floats
    if not is_number.all():
        rows, floats = rows[is_number], floats[is_number]
    return rows, Cells(Kind.NUMBER, rows, *embedded(floats))


def _joined(pieces: list[Cells]) -> Cells:
    """Concatenate the cells of consecutive chunks, all of one kind."""
    import numpy as np

    if len(pieces) == 1:
        return pieces[0]
    kind = pieces[0].kind
    rows = np.concatenate([cells.rows for cells in pieces])
    if kind is Kind.STRING:
        import pyarrow

        return Cells(kind, rows, pyarrow.concat_arrays([cells.values.cast("large_string") for cells in pieces]))
    values = np.concatenate([cells.values for cells in pieces])
    if all(cells.part is None for cells in pieces):
        return Cells(kind, rows, values)
    parts = [np.zeros(len(cells.rows)) if cells.part is None else cells.part for cells in pieces]
    return Cells(kind, rows, values, np.concatenate(parts))
