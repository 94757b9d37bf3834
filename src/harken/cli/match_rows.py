"""The rows that `match` writes: an event, a subscription that it matches, and the subscription's fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from harken.cli.json_output import encodable
from harken.concurrency.caching import cached_property
from harken.errors import EventError, InvalidValueError
from harken.live.notebook import SUBSCRIPTION, columns_of
from harken.live.subscriptions import NO_FIELDS
from harken.schema import Kind

if TYPE_CHECKING:
    from harken.engine import Engine
    from harken.events import EventBatch
    from harken.live.results import BatchMatches
    from harken.schema import Path, Value

Row = dict[str, Any]

_FIRST = "owner"


class EventNames:
    """The names of events in rows: their positions, or the values of a field, which have one type."""

    def __init__(self, field: str | None) -> None:
        self._field = field
        self._path = None if field is None else _path(field)
        self.type: type | None = int if field is None else None

    def with_field(self, names: frozenset[str] | None) -> frozenset[str] | None:
        """The names of attributes to decode, with that of the field; None for all."""
        return names if names is None or self._path is None else names | {self._path[0]}

    def of(self, batch: EventBatch, first: int = 0) -> Iterator[Value | EventError]:
        """The name of each event, or why it has none. `first` is the number of events before this input."""
        if self._path is None:
            yield from (first + position for position in batch.positions)
            return
        for values in _values(batch, self._path):
            try:
                yield self._name(values)
            except EventError as error:
                yield error

    def _name(self, values: list[Any]) -> Value:
        if len(values) != 1 or isinstance(values[0], dict):
            problem = "is missing" if not values else "is an object" if len(values) == 1 else "has several values"
            raise EventError(f"`{self._field}`, by which events are named, {problem}")
        name: Value = values[0]
        if self.type is None:
            self.type = type(name)
        if type(name) is not self.type:
            unlike = f"is of type {type(name).__name__}, but was of type {self.type.__name__} before"
            raise InvalidValueError(f"`{self._field}`, by which events are named, {unlike}")
        return name


def _values(batch: EventBatch, path: Path) -> Iterator[list[Any]]:
    """The values of each event at a path, from a column if there is one."""
    column = batch.dense(path)
    if column is None or column.kind is Kind.TIMESTAMP:
        return (event.values(path) for event in batch)
    return ([] if value is None else [value] for value in column.to_list())


def _path(field: str) -> Path:
    from harken.schema import parse_path

    try:
        return parse_path(field)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--event-id") from None


class SubscriptionFields:
    """The fields of subscriptions, and the columns that they fill."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rows: dict[int, Row] = {}
        self.columns = columns_of(sorted(engine.internals.field_names(), key=lambda name: name != _FIRST))

    def of(self, number: int, id: str, matches: BatchMatches) -> Row:
        """The part of a row that is the same for every event: the subscription and its fields."""
        row = self._rows.get(number)
        if row is None:
            # Without fields the subscription need not be looked up.
            fields = matches.fields(number) if self.columns else NO_FIELDS
            row = self._rows[number] = encodable({SUBSCRIPTION: id, **self._named(fields)})
        return row

    def values(self, column: str) -> Iterator[Any]:
        """All values of a column."""
        return (row.get(column) for row in self._every)

    @cached_property
    def _every(self) -> list[Row]:
        """The fields of all subscriptions."""
        return [encodable(self._named(each.fields)) for each in self._engine if each.fields]

    def _named(self, fields: Mapping[str, Any]) -> Row:
        return {column: fields[name] for name, column in self.columns.items() if fields.get(name) is not None}
