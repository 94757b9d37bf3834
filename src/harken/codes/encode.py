"""A batch of events in the codes of an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.columns import FEW_COLUMNS, Column, NamedColumns
from harken.codes.dictionary import Dictionary, code_of
from harken.codes.encode_one import places_and_codes, value_at
from harken.events import Event, EventBatch
from harken.events.arrow_columns import DenseColumn
from harken.events.cells import Cells, PathCells
from harken.events.object_views import ObjectViews
from harken.kernels.encode_values import place_codes
from harken.schema import Kind
from harken.schema.derived import bound_sources, is_derived, place_of, reading
from harken.schema.paths import Path
from harken.schema.values import KINDS

_VALUE, _COLUMN, _CELL = 0.7, 30.0, 0.1
"""Costs in µs for events that are Python objects: a value encoded alone, a column, an event in a column."""

_MOST_ALONE = 64
"""Most columns with which `several_of_one` encodes an event."""


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """The codes of the events of a batch, 0 where a column has no value.

    Most events have one binding, so one code a column, and rows of codes decide them exactly. The few others have 0 in
    all of `codes`, and their codes in `values`: the rows that they match must be verified.
    """

    codes: NDArray[np.uint32]
    """For every column, for every event."""
    has_value: NDArray[np.bool_]
    """By column: False only if no event has a value in it, and all its codes are 0."""
    several: NDArray[np.int32]
    """The events that may have several bindings, ascending."""
    starts: NDArray[np.int64]
    """Where in `values` the codes of the i-th of these in column c begin: at entry i × columns + c."""
    values: NDArray[np.uint32]

    def of_several(self, place: int, column: int) -> NDArray[np.uint32]:
        """The codes in a column of the event at a place in `several`, ascending, each once."""
        at = place * len(self.codes) + column
        return self.values[self.starts[at] : self.starts[at + 1]]

    def part(self, first: int, last: int) -> EncodedBatch:
        """The events first:last as a batch of their own."""
        begin, end = np.searchsorted(self.several, (first, last)).tolist()
        columns = len(self.codes)
        return EncodedBatch(
            np.ascontiguousarray(self.codes[:, first:last]),
            self.has_value,
            self.several[begin:end] - np.int32(first),
            self.starts[begin * columns : end * columns + 1],
            self.values,
        )


@dataclass(frozen=True, slots=True)
class _Coded:
    """The codes of all values of a column, and the events that they belong to."""

    rows: NDArray[np.int32]
    codes: NDArray[np.uint32]


_NO_SEVERAL = np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.uint32)


class Encoder(Protocol):
    """Gives the values of a column their codes: 0 means no value, and a greater value never has a smaller code."""

    def encode(self, cells: Cells) -> NDArray[np.uint32]:
        """The code of every value."""

    def every_code(self) -> NDArray[np.uint32]:
        """All codes that a value may have."""


def encode(
    batch: EventBatch,
    columns: Sequence[Column],
    dictionaries: Sequence[Encoder],
    named: NamedColumns | None = None,
    also: Sequence[Path] = (),
) -> EncodedBatch:
    """The codes of a batch, column by column. With `named`, columns that no event has are skipped.

    Several bindings for the paths in `also`, too, put an event into `several`.
    """
    used: Sequence[int] = range(len(columns))
    if named is not None and len(columns) > FEW_COLUMNS:
        used = named.of_names(batch.known_names())
        if not also and _is_sparse(batch, len(used)):
            encoded = _one_by_one(batch, columns, cast("Sequence[Dictionary]", dictionaries), named)
            if encoded is not None:
                return encoded
    codes = np.zeros((len(columns), len(batch)), np.uint32)
    apart = np.zeros(len(batch), np.bool_)
    paths = dict.fromkeys(columns[place].path for place in used)
    dense = {path: batch.dense(path) for path in paths}
    paths.update(dict.fromkeys(also))
    for path in also:
        _mark_repeated(batch.cells(path), apart)
    coded_columns: dict[int, _Coded | None] = {}
    has_value = [False] * len(columns)
    for place in used:
        column, dictionary = columns[place], dictionaries[place]
        values = dense[column.path]
        if _encode_dense(column, dictionary, values, codes[place]):
            has_value[place] = values is not None and values.kind is column.kind
            coded_columns[place] = None
            continue
        at_path = batch.cells(column.path)
        cells = _cells_of(column, at_path)
        has_value[place] = len(cells.rows) > 0
        if column.coded is not None:
            cells = _places(cells, column.coded)
            apart[cells.rows[cells.values < 0]] = True
        coded = _Coded(cells.rows, dictionary.encode(cells))
        if at_path.open_rows is not None:
            coded, has_value[place] = _with_open(coded, at_path.open_rows, dictionary.every_code()), True
        place_codes(coded.rows, coded.codes, codes[place], apart)
        coded_columns[place] = coded
    if len(dense) < len(used):
        _mark_mixed(columns, used, codes, apart)
    if any(len(path) > 1 for path in paths):  # else no paths share a prefix, and none is derived
        for prefix in binding_prefixes(paths):
            apart |= batch.branching(prefix)
    has = np.array(has_value, np.bool_)
    if not apart.any():
        return EncodedBatch(codes, has, *_NO_SEVERAL)
    several = np.flatnonzero(apart).astype(np.int32)
    every = {place: _coded(codes[place]) if each is None else each for place, each in coded_columns.items()}
    codes[:, several] = 0
    return EncodedBatch(codes, has, several, *_lists(every, len(columns), several))


def of_one(codes: NDArray[np.uint32]) -> EncodedBatch:
    """A batch of one event that has one code a column."""
    return EncodedBatch(codes, codes[:, 0] != 0, *_NO_SEVERAL)


def several_of_one(event: Event, columns: Sequence[Column], dictionaries: Sequence[Dictionary]) -> EncodedBatch | None:
    """A batch of one event that may have several bindings, in a fraction of the time that `encode` takes.

    None if only `encode` can do it: with many columns, derived attributes other than time readings, or coded domains.
    """
    if len(columns) > _MOST_ALONE:
        return None
    starts, values = [0], []
    for (path, wanted, coded), dictionary in zip(columns, dictionaries, strict=True):
        read = reading(path)
        if coded is not None or (read is None and not path[0]):
            return None
        value = value_at(event.attributes, path)
        if wanted is None:
            values.append(code_of(dictionary, Kind.BOOLEAN, bool(event.values(path))))
        elif type(value) is list:
            items = event.values(path) if read is None else map(read.read, event.values(read.path))
            values += sorted({code_of(dictionary, wanted, each) for each in items if KINDS.get(type(each)) is wanted})
        elif KINDS.get(type(value)) is wanted:
            values.append(code_of(dictionary, wanted, value))
        starts.append(len(values))
    ends = np.array(starts)
    codes = np.zeros((len(columns), 1), np.uint32)
    return EncodedBatch(codes, ends[1:] > ends[:-1], np.zeros(1, np.int32), ends, np.array(values, np.uint32))


def _one_by_one(
    batch: EventBatch, columns: Sequence[Column], dictionaries: Sequence[Dictionary], named: NamedColumns
) -> EncodedBatch | None:
    """The codes of a batch, event by event. None if an event may have several bindings."""
    codes = np.zeros((len(columns), len(batch)), np.uint32)
    has_value = np.zeros(len(columns), np.bool_)
    rows: list[int] = []
    places: list[int] = []
    values: list[int] = []
    for row, event in enumerate(batch):
        placed = places_and_codes(event, columns, dictionaries, named)
        if placed is None:
            return None
        rows += [row] * len(placed[1])
        places += placed[0]
        values += placed[1]
    codes[places, rows] = values
    has_value[places] = True
    return EncodedBatch(codes, has_value, *_NO_SEVERAL)


def _is_sparse(batch: EventBatch, columns: int) -> bool:
    """Whether the events are Python objects with so few of these columns that encoding them one by one is quicker."""
    if not isinstance(batch.views, ObjectViews):
        return False
    values = sum(len(event.attributes) for event in batch)
    return values * _VALUE < columns * (_COLUMN + len(batch) * _CELL)


def _encode_dense(column: Column, dictionary: Encoder, values: DenseColumn | None, codes: NDArray[np.uint32]) -> bool:
    """Write the codes of a column without making cells, if possible. Returns whether it was."""
    if values is None or column.kind is None or column.coded is not None or not isinstance(dictionary, Dictionary):
        return False
    return values.kind is not column.kind or dictionary.encode_dense(values, codes)


def _with_open(coded: _Coded, events: NDArray[np.int32], every: NDArray[np.uint32]) -> _Coded:
    """Add events that have every code."""
    rows = np.concatenate([coded.rows, np.repeat(events, len(every))])
    codes = np.concatenate([coded.codes, np.tile(every, len(events))])
    order = np.argsort(rows, kind="stable")
    return _Coded(rows[order], codes[order])


def _coded(codes: NDArray[np.uint32]) -> _Coded:
    """The codes that are not 0, and their events."""
    rows = np.flatnonzero(codes)
    return _Coded(rows.astype(np.int32), codes[rows])


def binding_prefixes(paths: Collection[Path]) -> set[Path]:
    """Prefixes of paths: an array along one binds the values of several paths together."""
    places = [place_of(path) for path in paths]
    plain = [place for place in places if not is_derived(place)]
    # A place occurs twice if its values are used as they are and as a time reading, or read in two ways.
    prefixes = {*shared_prefixes(plain), *(place for place, count in Counter(plain).items() if count > 1)}
    return prefixes.union(*(bound_sources(place) for place in places if is_derived(place)))


def shared_prefixes(paths: Iterable[Path]) -> list[Path]:
    """The longest prefixes that different paths share. An array along one binds the values behind it together."""
    ordered = sorted(set(paths))
    shared = {_common(left, right) for left, right in pairwise(ordered)} - {()}
    return [one for one in sorted(shared) if not any(other[: len(one)] == one for other in shared - {one})]


def _common(left: Path, right: Path) -> Path:
    same = 0
    while same < len(left) and same < len(right) and left[same] == right[same]:
        same += 1
    return left[:same]


def _cells_of(column: Column, at_path: PathCells) -> Cells:
    if column.kind is None:
        return Cells(Kind.BOOLEAN, np.arange(len(at_path.present), dtype=np.int32), at_path.present.astype(np.int64))
    for cells in at_path.cells:
        if cells.kind is column.kind:
            return cells
    values = pa.array([], pa.large_string()) if column.kind is Kind.STRING else np.empty(0, np.int64)
    return Cells(column.kind, np.empty(0, np.int32), values)


def _places(cells: Cells, coded: tuple[str, ...]) -> Cells:
    """Strings as places in their domain; -1 for strings outside it, which no valid event has."""
    places = pc.index_in(cells.values, value_set=pa.array(coded, cells.values.type))
    return Cells(cells.kind, cells.rows, pc.fill_null(places, -1).to_numpy().astype(np.int64))


def _mark_repeated(at_path: PathCells, apart: NDArray[np.bool_]) -> None:
    """Mark the events that have several values at a path."""
    rows = [cells.rows for cells in at_path.cells]
    if len(rows) == 1:
        apart[rows[0][1:][rows[0][1:] == rows[0][:-1]]] = True
    elif rows:
        apart |= np.bincount(np.concatenate(rows), minlength=len(apart)) > 1


def _mark_mixed(
    columns: Sequence[Column], used: Sequence[int], codes: NDArray[np.uint32], apart: NDArray[np.bool_]
) -> None:
    """Mark the events that have values of several kinds at one path."""
    kinds: dict[Path, dict[Kind, int]] = {}
    for place in used:
        column = columns[place]
        if column.kind is not None:
            kinds.setdefault(column.path, {})[column.kind] = place
    for places in kinds.values():
        if len(places) > 1:
            apart |= np.count_nonzero(codes[list(places.values())], axis=0) > 1


def _lists(
    coded_columns: dict[int, _Coded], columns: int, several: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """`EncodedBatch.starts` and `values` of the events in `several`."""
    keys: list[NDArray[np.int64]] = []
    for place, coded in coded_columns.items():
        places = np.minimum(np.searchsorted(several, coded.rows), len(several) - 1)
        is_theirs = several[places] == coded.rows
        entry = places[is_theirs] * columns + place
        keys.append(entry << 32 | coded.codes[is_theirs])
    joined = np.unique(np.concatenate([np.empty(0, np.int64), *keys]))
    starts = np.zeros(len(several) * columns + 1, np.int64)
    np.cumsum(np.bincount(joined >> 32, minlength=len(several) * columns), out=starts[1:])
    return starts, (joined & 0xFFFFFFFF).astype(np.uint32)
