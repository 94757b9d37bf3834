"""Subscriptions as rows of a database: the ids of rows, and predicates whose values SQL types can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harken.codes.columns import Column
from harken.codes.flatten import Flattener
from harken.language.normal_form import NormalForm
from harken.relational.typed_values import StoredInterval, stored_interval


class SqlRow(NamedTuple):
    """A row of a subscription: a conjunction of predicates."""

    sid: int
    """The id of the row: see `sid_of`."""
    predicates: tuple[StoredInterval, ...]

    @property
    def is_exact(self) -> bool:
        """Whether matches of the row need no verification."""
        return not self.sid & 1


NUMBER_BITS = 0xFFFFFFFF


def number_of_sid(sid: int) -> int:
    """The number of the subscription of a row."""
    return sid >> 1 & NUMBER_BITS


def sid_of(place: int, number: int, is_exact: bool) -> int:
    """The id of a row: its place among its subscription's rows, the subscription's number, whether it is inexact."""
    return place << 33 | number << 1 | (not is_exact)


class RowMaker:
    """Makes rows, and collects their columns. Predicates on columns beyond `most_columns` are left out."""

    def __init__(self, most_columns: int | None = None) -> None:
        self._most_columns = most_columns
        self._flattener = Flattener()

    @property
    def columns(self) -> list[Column]:
        """The columns of predicates. The `attribute` of a predicate is the place of its column, from 1."""
        return [each.column for each in self._flattener.gathered[: self._most_columns]]

    @property
    def all_columns(self) -> list[Column]:
        """All columns, also those beyond `most_columns`, in the order of their places."""
        return [each.column for each in self._flattener.gathered]

    def use_columns(self, columns: Iterable[Column]) -> None:
        """Begin with the columns of rows that are stored already."""
        self._flattener = Flattener()
        self._flattener.use_columns(columns)

    def rows(self, number: int, form: NormalForm) -> Iterator[SqlRow]:
        """The rows of a subscription. May add columns."""
        for place, (row, is_whole) in enumerate(self._flattener.rows(form)):
            is_exact = is_whole
            predicates: list[StoredInterval] = []
            for column, low, high in row:
                if self._most_columns is not None and column >= self._most_columns:
                    is_exact = False
                    continue
                interval, says_all = stored_interval(column, self._flattener.gathered[column].column, low, high)
                predicates.append(interval)
                is_exact = is_exact and says_all
            yield SqlRow(sid_of(place, number, is_exact), tuple(predicates))
