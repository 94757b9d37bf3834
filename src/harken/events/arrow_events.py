"""The events of an Arrow table in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from harken.events.arrow_cells import Converter, records
from harken.events.arrow_rows import contents
from harken.events.column_views import ColumnViews
from harken.limits import Limits

if TYPE_CHECKING:
    from harken.schema import Schema


class ArrowEvents(ColumnViews):
    """The rows of a table, with the converters of its columns to Python."""

    __slots__ = ("_converters", "_table")

    def __init__(self, table: Any, converters: dict[str, Converter], schema: Schema | None, limits: Limits) -> None:
        super().__init__((table,), schema, limits)
        self._table = table
        self._converters = converters

    def _content(self, row: int) -> dict[str, Any]:
        (batch,) = self._table.slice(row, 1).to_batches()
        (content,) = records(batch.columns, self._converters, 1)
        return content

    def _contents(self) -> Iterator[dict[str, Any]]:
        return contents(self._table.to_batches(), self._converters)

    def _part(self, start: int, stop: int) -> Self:
        return type(self)(self._table.slice(start, stop - start), self._converters, self._schema, self._limits)
