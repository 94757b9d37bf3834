"""Arrays and plain data under names: what a file of a saved index holds, with its columns and their dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.constants import holds_strings
from harken.codes.dictionary import Dictionary, Numbers, Strings
from harken.schema import Kind


@dataclass(frozen=True, slots=True)
class SavedArrays:
    """Arrays by name, with slashes, and plain data (`meta`) by name."""

    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def put(self, name: str, **arrays: NDArray[Any]) -> None:
        self.arrays.update({f"{name}/{each}": array for each, array in arrays.items()})

    def put_named(self, name: str, given: Any) -> None:
        """Store a named tuple of arrays and numbers."""
        fields = given._asdict()
        self.put(name, **{each: value for each, value in fields.items() if isinstance(value, np.ndarray)})
        self.meta[name] = {each: value for each, value in fields.items() if not isinstance(value, np.ndarray)}

    def named(self, name: str, kind: type[Any]) -> Any:
        plain = self.meta[name]
        arrays = {each: self.arrays[f"{name}/{each}"] for each in kind._fields if each not in plain}
        return kind(**arrays, **plain)

    def put_columns(self, name: str, columns: tuple[Column, ...], dictionaries: tuple[Dictionary, ...]) -> None:
        self.meta[name] = []
        for place, (column, dictionary) in enumerate(zip(columns, dictionaries, strict=True)):
            plain: dict[str, Any] = {"path": column.path, "kind": column.kind, "coded": column.coded}
            if isinstance(dictionary, Strings):
                self.put(f"{name}/{place}", data=dictionary.data, offsets=dictionary.offsets, index=dictionary.index)
                plain["ordered"] = dictionary.ordered
            else:
                self.put(f"{name}/{place}", whole=dictionary.whole, table=dictionary.table)
                if dictionary.part is not None:
                    self.put(f"{name}/{place}", part=dictionary.part)
            self.meta[name].append(plain)

    def columns(self, name: str) -> tuple[tuple[Column, ...], tuple[Dictionary, ...]]:
        columns: list[Column] = []
        dictionaries: list[Dictionary] = []
        for place, plain in enumerate(self.meta[name]):
            kind, coded = plain["kind"], plain["coded"]
            column = Column(
                tuple(plain["path"]), None if kind is None else Kind(kind), None if coded is None else tuple(coded)
            )
            columns.append(column)
            dictionaries.append(self._dictionary(f"{name}/{place}", column, plain))
        return tuple(columns), tuple(dictionaries)

    def _dictionary(self, name: str, column: Column, plain: Mapping[str, Any]) -> Dictionary:
        if holds_strings(column):
            data, offsets, index = (self.arrays[f"{name}/{each}"] for each in ("data", "offsets", "index"))
            return Strings(data, offsets, index, plain["ordered"])
        return Numbers(self.arrays[f"{name}/whole"], self.arrays.get(f"{name}/part"), self.arrays[f"{name}/table"])
