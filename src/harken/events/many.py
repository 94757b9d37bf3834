"""Collections of events that a program passes: the events one by one, or an error that says what to pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any

from harken.errors import InvalidValueError
from harken.events.arrow_rows import at_rest, is_arrow
from harken.events.event import Event
from harken.events.records import is_record

_ONE_EVENT = "put a single event into a list"
_HINTS = {
    ("polars", "LazyFrame"): "`collect()` it first",
    ("pyspark", "DataFrame"): "`harken.spark.match` takes it as it is; `toArrow()` converts it to a table",
    ("pandas", "DataFrame"): "`pyarrow.Table.from_pandas(frame)` converts it to a table",
}
"""Hints for tables that do not export Arrow data, by library and type."""


def held(events: Any) -> Any:
    """The events in a form that can be iterated more than once. Raises as `many` does, and SourceError."""
    if is_arrow(events):
        return at_rest(events)
    return events if type(events) is list else list(many(events))


def many(events: Any) -> Iterable[Any]:
    """The events one by one. Raises InvalidValueError if `events` is no collection of events."""
    kind = type(events)
    library_hint = _HINTS.get((kind.__module__.partition(".")[0], kind.__name__))
    is_own_collection = is_dataclass(kind) and isinstance(events, Iterable)  # such as an EventBatch
    if isinstance(events, (Mapping, Event)) or (is_record(events) and not is_own_collection):
        hint = _ONE_EVENT
    elif isinstance(events, (str, bytes)):
        hint = "read a file with `harken.events.read_events(path)`, parse a text with `json.loads(text)`"
    elif library_hint is not None:
        hint = library_hint
    elif isinstance(events, Iterable):
        return events
    else:
        hint = "pass a list, or a table of pyarrow, pandas or polars"
    what = "None" if events is None else f"a {kind.__name__}"
    raise InvalidValueError(f"events come as a list, another iterable of mappings or a table, not as {what}", hint=hint)
