"""The columns of an Arrow table as cells, without a row of Python in between."""

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
_MOST_COUNTED = 1 << 17
"""The rows of larger batches are counted for each column anew: beside so many, that takes no time."""
_ANSWERS: dict[tuple[tuple[str, ...], int], bool] = {}
"""What `is_one_of` was asked before. Asking Arrow takes longer than all else that is done for a column of few rows."""
_MICROSECONDS_A_TICK = {"s": 1_000_000, "ms": 1_000, "us": 1}


class DenseColumn(NamedTuple):
    """A column as it lies in memory, of an Arrow table or made so: for every event a value of one kind, or none."""

    kind: Kind
    values: Any
    """Of strings an Arrow array, of others an array of int64, as in cells; anything in place of what is missing."""
    valid: NDArray[np.uint8]
    """A bit for each that is not missing, from bit number `bit` on; empty if none is missing."""
    bit: int

    def to_list(self) -> list[Any]:
        """The strings or integers, None where one is missing."""
        import numpy as np

        values: list[Any] = self.values.to_pylist() if self.kind is Kind.STRING else self.values.tolist()
        if self.kind is Kind.STRING or not len(self.valid):
            return values
        is_valid = np.unpackbits(self.valid, bitorder="little")[self.bit :].tolist()
        return [value if is_there else None for value, is_there in zip(values, is_valid, strict=False)]


def dense_column(tables: Sequence[Any], path: Path) -> DenseColumn | None:
    """The column at a path; None if that is not one array of strings, of integers of 64 bits or of microseconds."""
    import numpy as np
    from pyarrow import concat_arrays

    chunks = [_inside(chunk, path[1:]) for table in tables for chunk in column_chunks(table, path) if len(chunk)]
    kind = _dense_kind(chunks[0].type) if chunks else None
    is_whole = sum(map(len, chunks)) == sum(table.num_rows for table in tables)
    if kind is None or not is_whole or any(each.type != chunks[0].type for each in chunks):
        return None
    array = chunks[0] if len(chunks) == 1 else concat_arrays(chunks)
    validity, values = array.buffers()[:2]
    valid = np.asarray(_Shown(validity, "|u1", 0, validity.size)) if array.null_count else np.empty(0, np.uint8)
    if kind is Kind.STRING:
        return DenseColumn(kind, array, valid, array.offset)
    if values.address % _WORD:
        return None
    return DenseColumn(kind, np.asarray(_Shown(values, "<i8", array.offset * _WORD, len(array))), valid, array.offset)


def _inside(array: Any, path: Path) -> Any:
    """The column at a path inside of structs that are in no list; no rows if there is no such."""
    from pyarrow import compute, nulls, types

    for key in path:
        field = array.type.get_field_index(key) if types.is_struct(array.type) else -1
        if field < 0:
            return nulls(0)
        array = compute.struct_field(array, [field])  # null where a struct around it is
    return array


def _dense_kind(kind: Any) -> Kind | None:
    """The kind of values that an Arrow type has, where each is 64 bits that need no conversion, or a string."""
    from pyarrow import types

    if types.is_string(kind) or types.is_large_string(kind):
        return Kind.STRING
    if types.is_integer(kind) and kind.bit_width == 8 * _WORD:
        return Kind.NUMBER
    return Kind.TIMESTAMP if types.is_timestamp(kind) and kind.unit == "us" else None


def column_cells(tables: Sequence[Any], path: Path) -> PathCells:
    """The cells of tables, one after the other, of all of which `are_sound` holds."""
    import numpy as np

    present = (np.zeros if path else np.ones)(sum(table.num_rows for table in tables), np.bool_)
    found: dict[Kind, list[Cells]] = {}
    start = 0
    for table in tables:
        first = start
        for chunk in column_chunks(table, path):
            every = _rows(first, len(chunk))
            rows, cells = _cells(*values_at(chunk, path[1:], every))
            # A slice is set without the interpreter's lock, which other threads may want.
            present[rows if rows is not every else slice(first, first + len(chunk))] = True
            first += len(chunk)
            if cells is not None and len(rows):
                found.setdefault(cells.kind, []).append(cells)
        start += table.num_rows
    kinds = found if len(found) < 2 else [kind for kind in Kind if kind in found]
    return PathCells(tuple(_joined(found[kind]) for kind in kinds), present)


def column_counts(tables: Sequence[Any], path: Path) -> NDArray[np.int64]:
    """How many values, objects among them, every row of these tables has at a path."""
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
    """The column that a path begins with, in chunks; none if there is no such column."""
    column = table.schema.get_field_index(path[0]) if path else -1
    return cast(Sequence[Any], table.column(column).chunks) if column >= 0 else ()


def column_branching(tables: Sequence[Any], path: Path) -> NDArray[np.bool_]:
    """The rows of tables in which a list with several values lies on the way along a path or at its end."""
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
    """Whether a path through a column of this type comes to a list. Most come to none, and then no row need be seen."""
    import pyarrow

    while isinstance(kind, pyarrow.BaseExtensionType):
        kind = kind.storage_type
    if is_one_of(LISTS, kind):
        return True
    field = kind.get_field_index(path[0]) if path and pyarrow.types.is_struct(kind) else -1
    return field >= 0 and _passes_list(kind.field(field).type, path[1:])


def _mark_repeated(rows: NDArray[np.int32], array: Any, marked: NDArray[np.bool_]) -> None:
    """Mark the rows that have several values in the array. Nulls and NaNs are none."""
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
    """All that the path leads to, through lists, nulls among it, and the row of each."""
    rows, array = _elements(array, rows)
    for key in path:
        rows, array = _step(rows, array, key)
    return rows, array


def _elements(array: Any, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], Any]:
    """The elements of all lists in place of the lists, and the row of each."""
    import numpy as np

    array = plain(array)
    while is_one_of(LISTS, array.type):
        lengths = array.value_lengths()
        rows = np.repeat(rows, lengths.fill_null(0).to_numpy(zero_copy_only=False))
        array = plain(array.flatten())
    return rows, array


def _step(rows: NDArray[np.int32], array: Any, key: str) -> tuple[NDArray[np.int32], Any]:
    """A field of structs, through lists."""
    from pyarrow import compute, nulls, types

    field = array.type.get_field_index(key) if types.is_struct(array.type) else -1
    if field < 0:
        return rows[:0], nulls(0)
    return _elements(compute.struct_field(array, [field]), rows)


def plain(array: Any) -> Any:
    """The array without the wrappings of extension types and dictionaries."""
    import pyarrow

    if isinstance(array, pyarrow.ExtensionArray):
        return array.storage.cast("bool") if isinstance(array.type, pyarrow.Bool8Type) else plain(array.storage)
    if isinstance(array, pyarrow.DictionaryArray):
        values = plain(array.dictionary)
        # Short strings that repeat may be more than 2 GB when spelt out.
        return (values.cast("large_string") if pyarrow.types.is_string(values.type) else values).take(array.indices)
    # Few functions of Arrow know string views.
    return array.cast("large_string") if pyarrow.types.is_string_view(array.type) else array


def is_one_of(names: tuple[str, ...], kind: Any) -> bool:
    """Whether one of these tests of `pyarrow.types` holds, all of which go by the type's id."""
    answer = _ANSWERS.get((names, kind.id))
    if answer is None:
        from pyarrow import types

        answer = _ANSWERS[names, kind.id] = any(getattr(types, name)(kind) for name in names)
    return answer


def _cells(rows: NDArray[np.int32], array: Any) -> tuple[NDArray[np.int32], Cells | None]:
    """The rows that have a value, and the values, if they are no objects."""
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
        return _real(rows, array)
    if types.is_boolean(kind):
        return rows, Cells(Kind.BOOLEAN, rows, array.to_numpy(zero_copy_only=False).astype(np.int64))
    ticks = array.view(f"int{kind.bit_width}").to_numpy().astype(np.int64)
    if types.is_timestamp(kind):
        scale = _MICROSECONDS_A_TICK.get(kind.unit)
        return rows, Cells(Kind.TIMESTAMP, rows, ticks // 1_000 if scale is None else ticks * scale)
    return rows, Cells(Kind.DATE, rows, ticks if types.is_date32(kind) else ticks // TICKS_A_DAY["ms"])


def _valid(array: Any) -> NDArray[np.intp]:
    """Where an array that has nulls has a value."""
    import numpy as np

    bits = np.frombuffer(array.buffers()[0], np.uint8)[array.offset >> 3 :]
    first = array.offset & 7
    return np.flatnonzero(np.unpackbits(bits, count=first + len(array), bitorder="little")[first:])


def _rows(first: int, count: int) -> NDArray[np.int32]:
    """The rows from `first` on. All columns of all batches that are not very large have the same."""
    import numpy as np

    if first + count > _MOST_COUNTED:
        return np.arange(first, first + count, dtype=np.int32)
    return _first_rows()[first : first + count]


@cache
def _first_rows() -> NDArray[np.int32]:
    import numpy as np

    return np.arange(_MOST_COUNTED, dtype=np.int32)


def _integers(array: Any, valid: NDArray[np.intp] | None) -> NDArray[np.int64]:
    """The integers that are no nulls as int64; where they lie, if they are such already and there are no nulls."""
    import numpy as np

    values = array.buffers()[1]
    if array.type.bit_width < 8 * _WORD or not len(array) or values.address % _WORD:
        return cast("NDArray[np.int64]", array.drop_null().to_numpy().astype(np.int64))
    integers = np.asarray(_Shown(values, "<i8", array.offset * _WORD, len(array)))
    return integers if valid is None else integers[valid]


class _Shown:
    """Memory of Arrow's. NumPy is told nothing but where it lies, so that it does not mark it read-only."""

    def __init__(self, memory: Any, kind: str, start: int, count: int) -> None:
        self._memory = memory
        place = memory.address + start
        self.__array_interface__ = {"shape": (count,), "typestr": kind, "data": (place, False), "version": 3}


def _real(rows: NDArray[np.int32], array: Any) -> tuple[NDArray[np.int32], Cells]:
    import numpy as np
    from pyarrow import types

    if types.is_decimal(array.type):
        floats = np.array([float(value) for value in array.to_pylist()], np.float64)
    else:
        floats = array.to_numpy().astype(np.float64, copy=False)
    known = floats == floats
    if not known.all():
        rows, floats = rows[known], floats[known]
    return rows, Cells(Kind.NUMBER, rows, *embedded(floats))


def _joined(found: list[Cells]) -> Cells:
    """Cells of one kind, those of chunk after chunk, as one."""
    import numpy as np

    if len(found) == 1:
        return found[0]
    kind = found[0].kind
    rows = np.concatenate([cells.rows for cells in found])
    if kind is Kind.STRING:
        import pyarrow

        return Cells(kind, rows, pyarrow.concat_arrays([cells.values.cast("large_string") for cells in found]))
    values = np.concatenate([cells.values for cells in found])
    if all(cells.part is None for cells in found):
        return Cells(kind, rows, values)
    parts = [np.zeros(len(cells.rows)) if cells.part is None else cells.part for cells in found]
    return Cells(kind, rows, values, np.concatenate(parts))
