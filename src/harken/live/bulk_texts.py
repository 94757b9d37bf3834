"""Bulk loading from texts: compiled part by part, and kept as rows and Arrow columns only."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.flat import Flat, joined
from harken.language.compiled import Compiled, FlatPlan
from harken.live.catalogue import Catalogue
from harken.live.subscriptions import Record

_JSON_TYPES = (str, int, float, bool, type(None))
_SCHEMA = pa.schema(
    [
        *((name, pa.large_string()) for name in ("id", "where", "language", "fields")),
        ("position", pa.int64()),
        ("line", pa.int64()),
    ]
)
_CATALOGUE_COLUMNS = 4
"""Number of leading columns of `_SCHEMA` that a catalogue keeps."""


class BulkTexts:
    """Compiled texts: most as rows without an object each, `others` as records."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._flats: list[Flat] = []
        self._count = 0
        self.others: list[tuple[Record, Compiled]] = []
        """Texts that are not flat, that have warnings, or whose fields JSON cannot hold."""
        self.names: set[str] = set()
        """Names of the attributes that the rows use."""

    def add(self, prepared: Sequence[tuple[Record, Compiled]]) -> None:
        """Add one part of the texts."""
        plain, forms = [], []
        for record, compiled in prepared:
            plan = compiled.plan
            if isinstance(plan, FlatPlan) and not compiled.warnings and _fits_json(record.fields):
                plain.append(record)
                forms.append(plan.form)
                self.names |= plan.names()
            else:
                self.others.append((record, compiled))
        self._flats.append(Flat.of_forms(enumerate(forms, self._count)))
        self._tables.append(_table(plain))
        self._count += len(plain)

    def finished(self, catalogue: Catalogue, replace: bool) -> ChosenTexts:
        """Choose the texts to load as rows: their id came once and, without `replace`, is not in the catalogue."""
        table, flat = pa.concat_tables([_table([]), *self._tables]).combine_chunks(), joined(self._flats)
        self._tables, self._flats = [], []
        ids = table.column("id").combine_chunks()
        codes = ids.dictionary_encode().indices.to_numpy()
        wanted = np.bincount(codes, minlength=1)[codes] == 1
        if self.others:
            of_others = pa.array([record.id for record, _ in self.others], pa.large_string())
            wanted &= ~pc.is_in(ids, of_others).to_numpy(zero_copy_only=False)
        is_taken = [id in catalogue for id in ids.to_pylist()] if len(catalogue) else []
        if is_taken and not replace:
            wanted &= ~np.array(is_taken)
        replaced = pc.filter(ids, pa.array(wanted & np.array(is_taken))).to_pylist() if is_taken and replace else []
        return ChosenTexts(table, flat, wanted, replaced)


class ChosenTexts:
    """Texts to load as rows, and the ids of the subscriptions that they replace."""

    def __init__(self, table: pa.Table, flat: Flat, wanted: NDArray[np.bool_], replaced: Collection[str]) -> None:
        self._table = table
        self._flat = flat
        self._wanted = wanted
        self.replaced = replaced

    def __len__(self) -> int:
        return int(self._wanted.sum())

    def table(self) -> pa.Table:
        """The chosen texts as columns of a catalogue."""
        columns = self._table.select(range(_CATALOGUE_COLUMNS))
        return columns if self._wanted.all() else columns.filter(pa.array(self._wanted)).combine_chunks()

    def flat(self, first: int) -> Flat:
        """The conjunctions of the chosen texts, numbered from `first` on."""
        places = np.cumsum(self._wanted) - 1
        kept = self._flat.only(self._wanted[self._flat.numbers])
        numbers = (first + places[kept.numbers]).astype(np.int32)
        return Flat(numbers, kept.columns, kept.inexact, kept.overlapping)

    def rest(self) -> Iterator[Record]:
        """Records of the texts that were not chosen."""
        return _records(self._table.filter(pa.array(~self._wanted)))

    def records(self) -> Iterator[Record]:
        """Records of all texts, chosen or not."""
        return _records(self._table)


def _fits_json(fields: Any) -> bool:
    """Whether the fields survive a round trip through JSON."""
    return not fields or all(type(name) is str and type(value) in _JSON_TYPES for name, value in fields.items())


def _table(records: Sequence[Record]) -> pa.Table:
    fields = [json.dumps(record.fields) if record.fields else None for record in records]
    columns = (
        [record.id for record in records],
        [record.where for record in records],
        [record.language for record in records],
        fields,
        [record.position for record in records],
        [record.line for record in records],
    )
    return pa.table([pa.array(*each) for each in zip(columns, _SCHEMA.types, strict=True)], schema=_SCHEMA)


def _records(table: pa.Table) -> Iterator[Record]:
    for batch in table.to_batches():
        for id, where, language, fields, position, line in zip(*batch.to_pydict().values(), strict=True):
            with_fields = {} if fields is None else {"fields": json.loads(fields)}
            yield Record(position, id, where, language, line=line, **with_fields)
