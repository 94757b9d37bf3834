"""Bulk loading from an Arrow table of predicates: ids are checked and rows made column by column."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.flat import Flat
from harken.codes.tables.table_rows import TableRows, rows_of_table
from harken.errors import HarkenError, SourceError
from harken.limits import Limits
from harken.live.catalogue import Catalogue
from harken.live.subscriptions import Fault, Record, checked_id

_RESERVED = ("id", "predicates", "language")


@dataclass(frozen=True, slots=True)
class DuplicateRows:
    """Rows whose ids are in the catalogue already, and those ids."""

    rows: NDArray[np.int64]
    ids: list[str]


class TableOfSubscriptions:
    """An Arrow table with the columns `id` and `predicates`. Further columns are fields of the subscriptions."""

    def __init__(self, table: pa.Table, limits: Limits) -> None:
        if "id" not in table.column_names:
            raise SourceError("the table has no column `id`", hint=f"it has {', '.join(table.column_names)}")
        self._table = table
        self._parsed: TableRows = rows_of_table(table, limits)
        self._ids = _as_strings(table.column("id"))
        """Null where the value is not a valid id."""
        self._fields = [name for name in table.column_names if name not in _RESERVED]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def duplicates(self, catalogue: Catalogue) -> DuplicateRows:
        """Of the rows that need no parsing, those whose ids are in the catalogue."""
        if not len(catalogue):
            return DuplicateRows(np.empty(0, np.int64), [])
        rows = self._first_of_id()
        ids = self._ids.take(pa.array(rows)).to_pylist()
        chosen = [(row, id) for row, id in zip(rows.tolist(), ids, strict=True) if id in catalogue]
        return DuplicateRows(np.array([row for row, _ in chosen], np.int64), [id for _, id in chosen])

    def direct(self, without: Collection[int] | NDArray[np.int64]) -> DirectRows:
        """The rows that need no parsing, except those in `without`."""
        wanted = np.zeros(len(self), np.bool_)
        wanted[self._first_of_id()] = True
        wanted[np.asarray(without, np.int64)] = False
        return DirectRows(self, np.flatnonzero(wanted))

    def remaining(self, without: NDArray[np.int64]) -> Iterator[Record | Fault]:
        """Records, with texts, and faults of all rows except those in `without`."""
        others = np.ones(len(self), np.bool_)
        others[without] = False
        return self._records(np.flatnonzero(others))

    def records(self) -> Iterator[Record | Fault]:
        """Records, with texts, and faults of all rows."""
        return self._records(np.arange(len(self)))

    def _records(self, rows: NDArray[np.int64]) -> Iterator[Record | Fault]:
        faults = dict(self._parsed.faults)
        ids = self._table.column("id")
        texts = self._parsed.texts(rows).to_pylist()
        for row, text in zip(rows.tolist(), texts, strict=True):
            raw_id = ids[row].as_py()
            try:
                id = checked_id(raw_id)
            except HarkenError as error:
                yield Fault(row, raw_id if isinstance(raw_id, str) else None, error)
                continue
            if row in faults:
                yield Fault(row, id, faults[row])
            else:
                yield Record(row, id, text, "sql", self._fields_at(row))

    def _first_of_id(self) -> NDArray[np.int64]:
        """The rows that were parsed, have a valid id, and are the first of the table with it."""
        rows = self._parsed.flat.numbers.astype(np.int64)
        rows = rows[self._ids.is_valid().to_numpy(zero_copy_only=False)[rows]]
        codes = self._ids.dictionary_encode().indices
        first = np.full(len(codes.unique()) + 1, len(self), np.int64)
        owner = codes.fill_null(len(first) - 1).to_numpy(zero_copy_only=False)
        np.minimum.at(first, owner, np.arange(len(self)))
        wanted: NDArray[np.int64] = rows[first[owner[rows]] == rows]
        return wanted

    def _fields_at(self, row: int) -> dict[str, Any]:
        return {name: self._table.column(name)[row].as_py() for name in self._fields}

    def columns(self, rows: NDArray[np.int64]) -> pa.Table:
        """The rows as columns of a catalogue."""
        languages = pa.array(["sql"], pa.large_string()).take(pa.array(np.zeros(len(rows), np.int32)))
        fields = pa.nulls(len(rows), pa.large_string())
        if self._fields:
            others = self._table.select(self._fields).take(pa.array(rows)).to_pylist()
            fields = pa.array([json.dumps(each, default=str) for each in others], pa.large_string())
        ids, texts = self._ids.take(pa.array(rows)), self._parsed.texts(rows)
        return pa.table({"id": ids, "where": texts, "language": languages, "fields": fields})

    def flat(self, rows: NDArray[np.int64], first: int) -> Flat:
        """The conjunctions of these rows, numbered from `first` on."""
        flat = self._parsed.flat
        place = np.full(len(self), -1, np.int64)
        place[rows] = np.arange(len(rows))
        kept = flat.only(place[flat.numbers] >= 0)
        return Flat((first + place[kept.numbers]).astype(np.int32), kept.columns, kept.inexact, kept.overlapping)


@dataclass(frozen=True, slots=True)
class DirectRows:
    """Rows that need no parsing."""

    source: TableOfSubscriptions
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def table(self) -> pa.Table:
        return self.source.columns(self.rows)

    def flat(self, first: int) -> Flat:
        return self.source.flat(self.rows, first)


def _as_strings(column: pa.ChunkedArray) -> pa.LargeStringArray:
    """Ids as strings, null for values that are not ids."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    if not any(
        (types.is_string(kind), types.is_large_string(kind), types.is_string_view(kind), types.is_integer(kind))
    ):
        return pa.nulls(len(column), pa.large_string())
    ids = column.cast(pa.large_string()).combine_chunks()
    return pc.if_else(pc.equal(ids, ""), pa.scalar(None, pa.large_string()), ids)
