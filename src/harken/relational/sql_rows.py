"""Subscriptions as rows of a database: their ids, and predicates with values that SQL's types hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harken.codes.columns import Column
from harken.codes.flatten import Flattener
from harken.language.normal_form import NormalForm
from harken.relational.typed_values import Typed, typed


class SqlRow(NamedTuple):
    """A row of a subscription: all of its predicates have to hold."""

    sid: int
    """See `sid_of`."""
    predicates: tuple[Typed, ...]

    @property
    def is_exact(self) -> bool:
        """Whether what the row finds need not be verified."""
        return not self.sid & 1


def sid_of(place: int, number: int, is_exact: bool) -> int:
    """The id of a row: its place among those of its subscription, the subscription's number, whether it is inexact."""
    return place << 33 | number << 1 | (not is_exact)


class RowMaker:
    """Makes rows, and knows the columns that these have. With `most_columns`, predicates on others are left out."""

    def __init__(self, most_columns: int | None = None) -> None:
        self._most_columns = most_columns
        self._flattener = Flattener()

    @property
    def columns(self) -> list[Column]:
        """What predicates are about. The attribute of a predicate is the place here, from 1."""
        return [each.column for each in self._flattener.gathered[: self._most_columns]]

    def rows(self, number: int, form: NormalForm) -> Iterator[SqlRow]:
        """The rows of a subscription, which may have a column that is new."""
        for place, (row, is_whole) in enumerate(self._flattener.rows(form)):
            is_exact = is_whole
            predicates: list[Typed] = []
            for column, low, high in row:
                if self._most_columns is not None and column >= self._most_columns:
                    is_exact = False
                    continue
                found, fits = typed(column, self._flattener.gathered[column].column, low, high)
                predicates.append(found)
                is_exact = is_exact and fits
            yield SqlRow(sid_of(place, number, is_exact), tuple(predicates))
