"""The rows that `match` writes: an event, a subscription that it matches, and the fields that travel with that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from harken.cli.json_text import encodable
from harken.errors import EventError, InvalidValueError

if TYPE_CHECKING:
    from harken.engine import Engine
    from harken.events import Event
    from harken.schema import Path, Value

Row = dict[str, Any]

EVENT, SUBSCRIPTION = "event", "subscription"
_FIRST = "owner"


class EventNames:
    """How events are called in rows: by their position, or by the value of a field, all of one type."""

    def __init__(self, field: str | None) -> None:
        self._field = field
        self._path = None if field is None else _path(field)
        self.type: type | None = int if field is None else None

    def name(self, event: Event, position: int) -> Value:
        """The name of an event. Raises EventError if it has none, or one unlike those before."""
        if self._path is None:
            return position
        values = event.values(self._path)
        if len(values) != 1 or isinstance(values[0], dict):
            found = "is missing" if not values else "is an object" if len(values) == 1 else "has several values"
            raise EventError(f"`{self._field}`, by which events are named, {found}")
        name = values[0]
        if self.type is None:
            self.type = type(name)
        if type(name) is not self.type:
            unlike = f"is of type {type(name).__name__}, but was of type {self.type.__name__} before"
            raise InvalidValueError(f"`{self._field}`, by which events are named, {unlike}")
        return name


def _path(field: str) -> Path:
    from harken.schema import parse_path

    try:
        return parse_path(field)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--event-id") from None


class Fields:
    """The fields that travel with subscriptions, and the columns that they fill."""

    def __init__(self, engine: Engine, ids: Iterable[str]) -> None:
        self._engine = engine
        self._ids = list(dict.fromkeys(id for id in ids if id in engine))
        self._known: dict[str, Row] = {}
        names = dict.fromkeys(name for id in self._ids for name in engine.subscription(id).fields)
        self.columns = _columns(sorted(names, key=lambda name: name != _FIRST))

    def of(self, id: str) -> Row:
        """The part of a row that is the same for every event: the subscription and its fields."""
        found = self._known.get(id)
        if found is None:
            fields = self._engine.subscription(id).fields
            named = {column: fields[name] for name, column in self.columns.items() if fields.get(name) is not None}
            found = self._known[id] = encodable({SUBSCRIPTION: id, **named})
        return found

    def values(self, column: str) -> Iterator[Any]:
        """All values of a column."""
        return (self.of(id).get(column) for id in self._ids)


def _columns(names: Iterable[str]) -> dict[str, str]:
    """The column of each field. A field that is called like a column of ours gets an underscore after its name."""
    columns: dict[str, str] = {}
    taken = {EVENT, SUBSCRIPTION, *names}
    for name in names:
        column = name
        if name in (EVENT, SUBSCRIPTION):
            while column in taken:
                column += "_"
        columns[name] = column
    return columns
