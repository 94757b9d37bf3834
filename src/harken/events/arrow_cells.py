"""Arrow arrays to lists of raw Python, a converter per type. A cell that Python cannot hold becomes `Unreadable`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise, repeat
from typing import Any

from harken.errors import HarkenError, LimitError, SourceError
from harken.events.arrow_columns import is_one_of
from harken.events.canonical import Unreadable
from harken.events.encodings import text_within
from harken.events.excerpt import short_name, shorten, shorten_object
from harken.limits import Limits
from harken.schema.paths import Path

Converter = Callable[[Any], list[Any]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_DAY_IN_MS = 86_400_000
_BEYOND = Unreadable("is a time outside the years 1 to 9999")
_NOT_TEXT = Unreadable("is not UTF-8 text")


def converter(kind: Any, path: Path, limits: Limits, depth: int = 1) -> Converter:
    """The converter for arrays of an Arrow type. Raises SourceError for a type that no event can hold."""
    from pyarrow import BaseExtensionType, types

    if depth > limits.max_event_depth:
        raise LimitError(
            f"the column {short_name(path)} has more than {limits.max_event_depth} levels", limit="max_event_depth"
        )
    if isinstance(kind, BaseExtensionType):
        return _extensions(kind, path, limits, depth)
    if types.is_dictionary(kind):
        return _dictionaries(converter(kind.value_type, path, limits, depth))
    if types.is_run_end_encoded(kind):
        return _run_ends(converter(kind.value_type, path, limits, depth))
    if types.is_struct(kind):
        return _structs(kind, path, limits, depth)
    if types.is_map(kind):
        return _maps(kind, path, limits, depth)
    for is_kind, make in _LISTS.items():
        if getattr(types, is_kind)(kind):
            return make(converter(kind.value_type, path, limits, depth + 1))
    for is_kind, convert in _SCALARS.items():
        if getattr(types, is_kind)(kind):
            return convert
    raise _rejection(kind, path)


def _rejection(kind: Any, path: Path) -> SourceError:
    return SourceError(
        f"the column {short_name(path)} has the Arrow type {shorten(str(kind))}, which an event cannot hold",
        hint="drop the column, or cast it to a number, a string, a boolean, a timestamp or a date",
    )


def fields(
    kinds: Iterable[Any], path: Path, limits: Limits, depth: int, *, of_events: bool = False
) -> dict[str, Converter]:
    """The converters of a table's columns or a struct's fields, by name. Binary columns of events are documents."""
    converters: dict[str, Converter] = {}
    for field in kinds:
        inner = (*path, field.name)
        if field.name in converters:
            raise SourceError(f"the column {short_name(inner)} occurs twice", hint="rename or drop one of them")
        is_document = of_events and is_binary(field.type)
        convert = partial(documents, limits=limits) if is_document else converter(field.type, inner, limits, depth)
        converters[field.name] = convert
    return converters


def is_binary(kind: Any) -> bool:
    """Whether an Arrow type is bytes of variable length."""
    return is_one_of(_BINARIES, kind)


def documents(array: Any, limits: Limits) -> list[Any]:
    """The texts of XML documents, which come as bytes or as strings."""
    if not is_binary(array.type):
        return _strings(array)
    return [None if data is None else _text(data, limits) for data in array.to_pylist()]


def _text(data: bytes, limits: Limits) -> str | Unreadable:
    try:
        return text_within(data, limits)
    except HarkenError as error:
        return Unreadable(f"cannot be read: {error.message.removeprefix('the document cannot be read: ')}")


def records(columns: Iterable[Any], converters: dict[str, Converter], rows: int) -> Iterable[dict[str, Any]]:
    """The rows of parallel columns, as dicts."""
    if not converters:
        return ({} for _ in range(rows))
    converted = [convert(column) for column, convert in zip(columns, converters.values(), strict=True)]
    return (dict(zip(converters, cells, strict=True)) for cells in zip(*converted, strict=True))


def _plain(array: Any) -> list[Any]:
    return list(array.to_pylist())


def _strings(array: Any) -> list[Any]:
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:  # Parquet promises UTF-8 and does not check
        import pyarrow

        is_view = pyarrow.types.is_string_view(array.type)
        return [_decoded(cell) for cell in array.cast(pyarrow.binary_view() if is_view else pyarrow.large_binary())]


def _decoded(cell: Any) -> str | Unreadable | None:
    data = cell.as_py()
    try:
        return None if data is None else str(data, "utf-8")
    except UnicodeDecodeError:
        return _NOT_TEXT


def _timestamps(array: Any) -> list[Any]:
    ticks = _integers(array)
    match array.type.unit:
        case "ns":  # rounded toward the past
            return [None if tick is None else _moment(tick // 1_000) for tick in ticks]
        case "us":
            return [None if tick is None else _moment(tick) for tick in ticks]
        case "ms":
            return [None if tick is None else _moment(tick * 1_000) for tick in ticks]
        case _:
            return [None if tick is None else _moment(tick * 1_000_000) for tick in ticks]


def _moment(microseconds: int) -> datetime | Unreadable:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return _BEYOND


def _dates32(array: Any) -> list[Any]:
    return [None if day is None else _day(day) for day in _integers(array)]


def _dates64(array: Any) -> list[Any]:
    return [None if tick is None else _day(tick // _DAY_IN_MS) for tick in _integers(array)]


def _day(days: int) -> date | Unreadable:
    try:
        return date.fromordinal(_EPOCH_DAY + days)
    except (OverflowError, ValueError):
        return _BEYOND


def _integers(array: Any) -> list[int | None]:
    """The stored integers, without their unit."""
    return list(array.view(f"int{array.type.bit_width}").to_pylist())


def _extensions(kind: Any, path: Path, limits: Limits, depth: int) -> Converter:
    from pyarrow import Bool8Type, types

    if isinstance(kind, Bool8Type):
        return lambda array: [None if byte is None else byte != 0 for byte in array.storage.to_pylist()]
    try:
        storage = converter(kind.storage_type, path, limits, depth)
    except SourceError:
        if types.is_nested(kind.storage_type):
            raise
        raise _rejection(kind, path) from None  # name the extension type, not its storage
    return lambda array: storage(array.storage)


def _dictionaries(inner: Converter) -> Converter:
    def convert(array: Any) -> list[Any]:
        from pyarrow import ArrowNotImplementedError, types

        values = array.dictionary
        if types.is_string_view(values.type):
            values = values.cast("large_string")
        try:
            return inner(values.take(array.indices))
        except ArrowNotImplementedError:  # Arrow cannot take from views
            entries = inner(values)
            return [None if place is None else entries[place] for place in array.indices.to_pylist()]

    return convert


def _run_ends(inner: Converter) -> Converter:
    def convert(array: Any) -> list[Any]:
        # Arrow decodes runs of only a few types.
        first, count = array.find_physical_offset(), array.find_physical_length()
        values = inner(array.values.slice(first, count))
        ends = [min(end - array.offset, len(array)) for end in array.run_ends.slice(first, count).to_pylist()]
        lengths = (end - start for start, end in pairwise([0, *ends]))
        return [value for value, length in zip(values, lengths, strict=True) for _ in range(length)]

    return convert


def _lists(inner: Converter) -> Converter:
    def convert(array: Any) -> list[Any]:
        start, ranges = _ranges(array)
        values = inner(array.values.slice(start, ranges[-1][1] if ranges else 0))
        return [values[a:b] if valid else None for valid, (a, b) in zip(_valid(array), ranges, strict=True)]

    return convert


def _fixed_lists(inner: Converter) -> Converter:
    def convert(array: Any) -> list[Any]:
        size = array.type.list_size
        values = inner(array.values.slice(array.offset * size, len(array) * size))
        return [values[i * size : (i + 1) * size] if valid else None for i, valid in enumerate(_valid(array))]

    return convert


def _list_views(inner: Converter) -> Converter:
    def convert(array: Any) -> list[Any]:
        values = inner(array.values)
        ranges = zip(_valid(array), array.offsets.to_pylist(), array.sizes.to_pylist(), strict=True)
        return [values[start : start + size] if valid else None for valid, start, size in ranges]

    return convert


def _structs(kind: Any, path: Path, limits: Limits, depth: int) -> Converter:
    converters = fields(kind, path, limits, depth + 1)

    def convert(array: Any) -> list[Any]:
        rows = records((array.field(i) for i in range(len(converters))), converters, len(array))
        return [row if valid else None for valid, row in zip(_valid(array), rows, strict=True)]

    return convert


def _maps(kind: Any, path: Path, limits: Limits, depth: int) -> Converter:
    keys = converter(kind.key_type, path, limits, depth + 1)
    items = converter(kind.item_type, path, limits, depth + 1)

    def convert(array: Any) -> list[Any]:
        start, ranges = _ranges(array)
        size = ranges[-1][1] if ranges else 0
        pairs = list(zip(keys(array.keys.slice(start, size)), items(array.items.slice(start, size)), strict=True))
        return [_object(pairs[a:b]) if valid else None for valid, (a, b) in zip(_valid(array), ranges, strict=True)]

    return convert


def _object(pairs: list[tuple[Any, Any]]) -> dict[Any, Any] | Unreadable:
    content = dict(pairs)
    if len(content) == len(pairs):
        return content
    seen: set[Any] = set()
    for key, _ in pairs:
        if key in seen:
            return Unreadable(f"has the key {shorten_object(key)} twice")
        seen.add(key)
    return content


def _ranges(array: Any) -> tuple[int, list[tuple[int, int]]]:
    """The offset of the first list in the array's values, and the range of each list relative to it."""
    offsets = array.offsets.to_pylist()
    if len(array) == 0:
        return 0, []
    start = offsets[0]
    return start, [(a - start, b - start) for a, b in pairwise(offsets)]


def _valid(array: Any) -> Iterable[bool]:
    return array.is_valid().to_pylist() if array.null_count else repeat(True, len(array))


# By the names of pyarrow.types, so that pyarrow is imported only when something is converted.
_BINARIES = ("is_binary", "is_large_binary", "is_binary_view")
_SCALARS: dict[str, Converter] = {
    "is_string": _strings,
    "is_large_string": _strings,
    "is_string_view": _strings,
    "is_integer": _plain,
    "is_floating": _plain,
    "is_boolean": _plain,
    "is_timestamp": _timestamps,
    "is_date32": _dates32,
    "is_date64": _dates64,
    "is_decimal": _plain,
    "is_null": _plain,
}
_LISTS: dict[str, Callable[[Converter], Converter]] = {
    "is_list": _lists,
    "is_large_list": _lists,
    "is_fixed_size_list": _fixed_lists,
    "is_list_view": _list_views,
    "is_large_list_view": _list_views,
}
