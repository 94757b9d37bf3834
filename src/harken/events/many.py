"""Many events as a program hands them over: what can be gone through, and what to do with the rest."""

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
    ("pyspark", "DataFrame"): "`harken.spark.match` takes it as it is; `toArrow()` makes a table of it",
    ("pandas", "DataFrame"): "`pyarrow.Table.from_pandas(frame)` makes a table of it",
}
"""What to do with tables that do not hand out Arrow data by themselves, by library and type."""


def held(events: Any) -> Any:
    """The same events, which can be gone through more than once. Raises as `many` does, and SourceError."""
    if is_arrow(events):
        return at_rest(events)
    return events if type(events) is list else list(many(events))


def many(events: Any) -> Iterable[Any]:
    """The events one by one. Raises InvalidValueError for what is no collection of events."""
    kind = type(events)
    known = _HINTS.get((kind.__module__.partition(".")[0], kind.__name__))
    is_own_collection = is_dataclass(kind) and isinstance(events, Iterable)  # such as an EventBatch
    if isinstance(events, (Mapping, Event)) or (is_record(events) and not is_own_collection):
        hint = _ONE_EVENT
    elif isinstance(events, (str, bytes)):
        hint = "`harken.events.read_events(path)` reads a file, `json.loads(text)` a text"
    elif known is not None:
        hint = known
    elif isinstance(events, Iterable):
        return events
    else:
        hint = "pass a list, or a table of pyarrow, pandas or polars"
    what = "None" if events is None else f"a {kind.__name__}"
    raise InvalidValueError(f"events come as a list, another iterable of mappings or a table, not as {what}", hint=hint)
