"""Warnings of attributes that subscriptions use and no event has: probably a misspelt name, or another type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from harken.cli.inputs import EventFiles
from harken.errors import HarkenError
from harken.events import EventBatch, read_rows
from harken.events.cells import PathCells
from harken.events.sources import STANDARD_INPUT, find_source
from harken.live.sampled import SAMPLE
from harken.schema import BUILT_IN, EventColumns, Kind, Path
from harken.schema.derived import READ_AS, reading_of
from harken.schema.event_columns import Fields, Leaf
from harken.schema.paths import DOCUMENT

if TYPE_CHECKING:
    from harken.engine import Engine

_MOST_ASKED = 256
"""At most this many attributes are looked for. If subscriptions use more, there is no warning."""
_ROWS_FOR_A_HINT = 100
ABOUT_DOCUMENTS = "an XPath subscription is about XML, or the string attribute `document`"
_ANY = Leaf(None, "null")
"""A column of which only the name is known."""


class MissingAttributes:
    """Looks in events for the attributes that subscriptions use, with values of the kind that they compare with."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._wanted: dict[Path, set[Kind | None]] = {}
        """The kinds of values that no event had so far, by path; None stands for any kind."""
        self._kinds: dict[Path, set[Kind]] = {}
        """The kinds of values that events had at the paths looked for."""
        self._events = 0
        self._is_sampled = False
        self._warned: set[str] = set()
        """The attributes that were warned of."""
        asks = engine.internals.used_columns() or ()
        if len(asks) <= _MOST_ASKED:
            for path, kind in asks:
                self._wanted.setdefault(path, set()).add(kind)
        self._used = list(self._wanted)
        self._documents = set(engine.internals.document_paths())
        """The attributes that subscriptions read as XML documents, and no event had as one so far."""

    def look(self, batch: EventBatch) -> None:
        """Look at more events. A kind that was seen once is not looked for again."""
        self._events += len(batch)
        for path, kinds in list(self._wanted.items()):
            cells = batch.cells(path)
            seen = _kinds_of(cells)
            self._kinds.setdefault(path, set()).update(seen)
            if self._engine.schema is None and Kind.STRING in seen:
                for kind in READ_AS:
                    seen |= _kinds_of(batch.cells(reading_of(path, kind))) if kind in kinds else set()
            kinds.difference_update(seen, [None] if cells.present.any() else [])
            if not kinds:
                del self._wanted[path]
        limits = self._engine.internals.limits
        self._documents -= {path for path in self._documents if len(batch.documents(path, limits))}

    def warnings(self, events: EventFiles, format: str | None) -> Iterator[HarkenError]:
        """The warnings about subscriptions that can match no event of the input, or only in part."""
        if not self._events:
            return
        if self._documents:
            yield HarkenError(without_documents(self._events), hint=ABOUT_DOCUMENTS)
        error = self._new_warning(self._columns(_names_in(events, format))) if self._wanted else None
        if error is not None:
            yield error

    def early_warning(self) -> HarkenError | None:
        """One warning after a sample, of attributes that always had another type: missing ones may still come."""
        if self._events < SAMPLE or self._is_sampled:
            return None
        self._is_sampled = True
        seen = {path for path, kinds in self._kinds.items() if kinds}
        columns = self._columns(())
        for path in self._wanted.keys() - seen:
            _put(columns.columns, path, _ANY)
        return self._new_warning(columns)

    def _new_warning(self, columns: EventColumns) -> HarkenError | None:
        """The warning about these columns, unless all of them were warned of before."""
        mismatches = self._engine.mismatches(columns)
        names = {each.attribute for each in mismatches}
        if not (mismatches.never or mismatches.partly) or names <= self._warned:
            return None
        self._warned |= names
        return HarkenError(str(mismatches))

    def _columns(self, names: Iterable[str]) -> EventColumns:
        """The columns that events had, and other names of attributes, for hints."""
        columns = Fields({name: _ANY for name in names if all(path[0] != name for path in self._used)})
        for path in self._used:
            kinds = self._kinds.get(path, set())
            if path not in self._wanted or len(kinds) > 1:
                _put(columns, path, _ANY)
            elif kinds:
                (kind,) = kinds
                domain = BUILT_IN["float" if kind is Kind.NUMBER else str(kind)]
                has_no_times = kind is Kind.STRING and not self._wanted[path].isdisjoint(READ_AS)
                _put(columns, path, Leaf(domain, str(kind), has_no_times=has_no_times))
        return EventColumns(columns)


def without_documents(events: int) -> str:
    """The warning about events that XPath subscriptions cannot match."""
    return "the event has no document" if events == 1 else f"none of the {events:,} events has a document"


def _kinds_of(cells: PathCells) -> set[Kind]:
    return {each.kind for each in cells.cells if len(each.rows)}


def _put(columns: Fields, path: Path, leaf: Leaf) -> None:
    """Put a column at this path, unless one is already there or inside it."""
    node = columns
    for key in path[:-1]:
        inner = node.by_name.setdefault(key, Fields())
        if not isinstance(inner, Fields):
            return
        node = inner
    node.by_name.setdefault(path[-1], leaf)


def _names_in(events: EventFiles, format: str | None) -> set[str]:
    """The attributes of the first events."""
    file = events.files[0]
    if file == STANDARD_INPUT:
        return set()
    if find_source(file, format).format == "xml":
        return set(DOCUMENT)
    rows = islice(read_rows(file, format), _ROWS_FOR_A_HINT)
    return {name for row in rows for name in row.content or {}}
