"""A batch of events in the codes of an index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.dictionary import Dictionary
from harken.events import EventBatch
from harken.events.arrow_columns import DenseColumn
from harken.events.cells import Cells, PathCells
from harken.kernels.encode import place_codes
from harken.schema import Kind
from harken.schema.paths import Path


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """The codes of the events of a batch, 0 where a column has no value.

    Most events have one binding: one code a column says all, and rows of codes judge them exactly. The few others have
    0 in all of `codes`, and their codes apart: what rows let through of them must be verified.
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


class Encoder(Protocol):
    """What gives the values of a column their codes: 0 is for none, and greater values never have lesser codes."""

    def encode(self, cells: Cells) -> NDArray[np.uint32]:
        """The code of every value."""


def encode(batch: EventBatch, columns: Sequence[Column], dictionaries: Sequence[Encoder]) -> EncodedBatch:
    """The codes of a batch, column by column."""
    codes = np.zeros((len(columns), len(batch)), np.uint32)
    apart = np.zeros(len(batch), np.bool_)
    paths = dict.fromkeys(column.path for column in columns)
    dense = {path: batch.dense(path) for path in paths}
    found: list[_Coded | None] = []
    has_value = np.ones(len(columns), np.bool_)
    for place, (column, dictionary) in enumerate(zip(columns, dictionaries, strict=True)):
        values = dense[column.path]
        if _encode_dense(column, dictionary, values, codes[place]):
            has_value[place] = values is not None and values.kind is column.kind
            found.append(None)
            continue
        cells = _cells_of(column, batch.cells(column.path))
        has_value[place] = len(cells.rows) > 0
        if column.coded is not None:
            cells = _places(cells, column.coded)
            apart[cells.rows[cells.values < 0]] = True
        coded = _Coded(cells.rows, dictionary.encode(cells))
        place_codes(coded.rows, coded.codes, codes[place], apart)
        found.append(coded)
    _mark_mixed(columns, codes, apart)
    for shared in shared_prefixes(paths):
        apart |= batch.branching(shared)
    several = np.flatnonzero(apart).astype(np.int32)
    if not len(several):
        return EncodedBatch(codes, has_value, several, np.zeros(1, np.int64), np.empty(0, np.uint32))
    every = [_coded(codes[place]) if each is None else each for place, each in enumerate(found)]
    codes[:, several] = 0
    return EncodedBatch(codes, has_value, several, *_lists(every, several))


def _encode_dense(column: Column, dictionary: Encoder, values: DenseColumn | None, codes: NDArray[np.uint32]) -> bool:
    """Write the codes of a column without cells, if that can be. Returns whether it could."""
    if values is None or column.kind is None or column.coded is not None or not isinstance(dictionary, Dictionary):
        return False
    return values.kind is not column.kind or dictionary.encode_dense(values, codes)


def _coded(codes: NDArray[np.uint32]) -> _Coded:
    """What there is, by the code of every event."""
    rows = np.flatnonzero(codes)
    return _Coded(rows.astype(np.int32), codes[rows])


def shared_prefixes(paths: Iterable[Path]) -> list[Path]:
    """The longest beginnings that different paths share. An array on the way binds what lies behind it together."""
    ordered = sorted(set(paths))
    shared = {_common(left, right) for left, right in pairwise(ordered)} - {()}
    return [one for one in sorted(shared) if not any(other[: len(one)] == one for other in shared - {one})]


def _common(left: Path, right: Path) -> Path:
    same = 0
    while same < len(left) and same < len(right) and left[same] == right[same]:
        same += 1
    return left[:same]


def _cells_of(column: Column, found: PathCells) -> Cells:
    if column.kind is None:
        return Cells(Kind.BOOLEAN, np.arange(len(found.present), dtype=np.int32), found.present.astype(np.int64))
    for cells in found.cells:
        if cells.kind is column.kind:
            return cells
    values = pa.array([], pa.large_string()) if column.kind is Kind.STRING else np.empty(0, np.int64)
    return Cells(column.kind, np.empty(0, np.int32), values)


def _places(cells: Cells, coded: tuple[str, ...]) -> Cells:
    """Strings as places in their domain; -1 for what is not of the domain, which no valid event has."""
    places = pc.index_in(cells.values, value_set=pa.array(coded, cells.values.type))
    return Cells(cells.kind, cells.rows, pc.fill_null(places, -1).to_numpy().astype(np.int64))


def _mark_mixed(columns: Sequence[Column], codes: NDArray[np.uint32], apart: NDArray[np.bool_]) -> None:
    """Mark the events that have values of several kinds at one path."""
    kinds: dict[Path, dict[Kind, int]] = {}
    for place, column in enumerate(columns):
        if column.kind is not None:
            kinds.setdefault(column.path, {})[column.kind] = place
    for places in kinds.values():
        if len(places) > 1:
            apart |= np.count_nonzero(codes[list(places.values())], axis=0) > 1


def _lists(found: list[_Coded], several: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """All codes of some events, event by event and column by column."""
    keys: list[NDArray[np.int64]] = []
    for place, coded in enumerate(found):
        owner = np.minimum(np.searchsorted(several, coded.rows), len(several) - 1)
        is_theirs = several[owner] == coded.rows
        entry = owner[is_theirs] * len(found) + place
        keys.append(entry << 32 | coded.codes[is_theirs])
    joined = np.unique(np.concatenate(keys))
    starts = np.zeros(len(several) * len(found) + 1, np.int64)
    np.cumsum(np.bincount(joined >> 32, minlength=len(several) * len(found)), out=starts[1:])
    return starts, (joined & 0xFFFFFFFF).astype(np.uint32)
