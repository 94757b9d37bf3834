"""Batches of events: the valid events with their positions in the input, and the rejected ones with the reasons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import eq
from typing import TYPE_CHECKING, Any, overload

from harken.errors import HarkenError, Place
from harken.events.arrow_cells import Converter
from harken.events.arrow_columns import DenseColumn
from harken.events.arrow_documents import with_texts
from harken.events.arrow_events import ArrowEvents
from harken.events.arrow_rows import IN_MEMORY, is_arrow, rows_of_table, whole_table
from harken.events.arrow_sound import are_sound
from harken.events.cells import PathCells
from harken.events.derived_cells import derived_cells
from harken.events.dict_views import dict_views
from harken.events.document_views import DocumentViews
from harken.events.event import Event
from harken.events.event_tables import table_of
from harken.events.excerpt import settled, shorten_object
from harken.events.many import many
from harken.events.object_views import ObjectViews
from harken.events.raw import RawEvent, RawEvents
from harken.events.row import Row
from harken.events.utf8 import utf8_of
from harken.events.views import Views
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.derived import TimeReading, reading
from harken.schema.paths import DERIVED, DOCUMENT, Path
from harken.schema.values import Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.events.xml.documents import Documents
    from harken.schema import Schema


_POSITION_OF_ONE = (0,)


@dataclass(frozen=True, slots=True, eq=False)
class EventBatch(Sequence[Event]):
    """A sequence of events, with the position of each in the input, from 0; rejected events leave gaps.

    `cells`, `dense`, `branching` and `table` show the events by column.
    """

    views: Views
    positions: Sequence[int]
    names: frozenset[str] | None = None
    """The top-level attributes that were read; the events have no others. None: all."""
    source: RawEvents | None = None
    """The input as it came, if it was kept."""
    _cells: dict[Path, PathCells] = field(init=False, repr=False, default_factory=dict)
    _documents: dict[Path, Documents] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def of(cls, events: Sequence[Event], positions: Sequence[int], names: frozenset[str] | None = None) -> EventBatch:
        """A batch of events that are Python objects."""
        return cls(ObjectViews(events), positions, names)

    @classmethod
    def of_one(
        cls, event: Event | bytes, limits: Limits, names: frozenset[str] | None = None, source: Any = None
    ) -> EventBatch:
        """A batch of one event or one bare document."""
        views: Views = ObjectViews((event,)) if isinstance(event, Event) else DocumentViews((event,), limits, names)
        return cls(views, _POSITION_OF_ONE, names, None if source is None else RawEvents(source))

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def is_lazy(self) -> bool:
        """Whether events are made on demand, so that columns are cheaper than events."""
        return self.views.is_lazy

    def __iter__(self) -> Iterator[Event]:
        return iter(self.views)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> EventBatch: ...
    def __getitem__(self, index: int | slice) -> Event | EventBatch:
        if isinstance(index, slice):
            if index.indices(len(self)) == (0, len(self), 1):
                return self
            return EventBatch(self.views.part(index), self.positions[index], self.names, self.source)
        return self.views.event(index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventBatch):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self.positions, other.positions)) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self.positions))

    def raw(self, index: int) -> RawEvent:
        """An event as it came or, without the source, with the attributes that were read."""
        if self.source is None:
            return RawEvent(self[index].attributes)
        return self.source.at(self.positions[index])

    def cells(self, path: Path) -> PathCells:
        """`event.values(path)` of every event, as arrays. For a derived path, the values under all bindings."""
        cells = self._cells.get(path)
        if cells is None:
            is_plain = path[:1] != DERIVED
            cells = self.views.cells(path) if is_plain else derived_cells(self, path)
            self._cells[path] = cells  # each layer of the index reads them
        return cells

    def dense(self, path: Path) -> DenseColumn | None:
        """The column at a path as one array. None unless each event has at most one value there, all of one kind."""
        if path[:1] != DERIVED:
            return self.views.dense(path)
        time_reading = reading(path)
        column = None if time_reading is None else self.views.dense(time_reading.path)
        return None if column is None or column.kind is Kind.STRING else column

    def unparsed(self, readings: Iterable[TimeReading] = ()) -> dict[Path, int]:
        """Number of strings that are no timestamps or dates, by the derived path of the reading.

        Covers readings whose cells were computed, and `readings`, which may have none if events were matched singly.
        """
        counts: dict[Path, int] = {}
        for path, cells in list(self._cells.items()):
            time_reading = None if path[:1] != DERIVED else reading(path)
            if time_reading is not None:  # times that were no strings are in both
                kind = time_reading.read_as
                counts[path] = _count(self.cells(time_reading.path), kind, Kind.STRING) - _count(cells, kind)
        others = [each for each in readings if each.own_path not in counts and not self.is_lazy]
        if others:
            names = self.known_names()
            others = [each for each in others if each.path[0] in names and self.dense(each.own_path) is None]
            counts |= {each.own_path: sum(each.unparsed(event.attributes) for event in self) for each in others}
        return counts

    def known_names(self) -> frozenset[str]:
        """A superset of the names of the top-level attributes that have values."""
        return frozenset(self.views.known_names())

    def branching(self, prefix: Path) -> NDArray[np.bool_]:
        """For every event whether it has several bindings for paths that begin with a prefix.

        It does if an array with several elements lies on the prefix or at its end.
        """
        return self.views.branching(prefix)

    def documents(self, path: Path, limits: Limits) -> Documents:
        """The texts at a path, parsed as XML documents once. Rejected documents are in `errors`."""
        documents = self._documents.get(path)
        if documents is None:
            if isinstance(self.views, DocumentViews):
                documents = self.views.documents(path, limits)
            if documents is None:
                documents = documents_of(self.cells(path), limits)
            self._documents[path] = documents
        return documents

    def table(self, paths: Sequence[Path]) -> Any:
        """The values at these paths as an Arrow table with a column per path, null where an event has no value.

        None if a path cannot be a column: an event has several values or only an object there, the values have several
        kinds, or they mix floats with integers that no float holds exactly.
        """
        return table_of({path: self.cells(path) for path in paths}, len(self))


def _count(path_cells: PathCells, *kinds: Kind) -> int:
    """Number of values of these kinds."""
    return sum(len(cells.rows) for cells in path_cells.cells if cells.kind in kinds)


def documents_of(cells: PathCells, limits: Limits) -> Documents:
    """The texts among the cells, parsed as XML documents."""
    import numpy as np

    from harken.events.xml.documents import read_documents

    texts = next((each for each in cells.cells if each.kind is Kind.STRING), None)
    if texts is None:
        return read_documents(np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.int32), limits)
    data, offsets = utf8_of(texts.values)
    return read_documents(data, offsets.astype(np.int64), texts.rows, limits, is_text=True)


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """An event that was rejected: its position in the input, the reason, and the beginning of its input."""

    position: int
    error: HarkenError
    raw: str | None

    def to_dict(self) -> dict[str, Any]:
        """The rejection as plain data, for dead-letter outputs."""
        return {"position": self.position, **self.error.to_dict(), "raw": self.raw}


@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of reading an input: the valid events and the rejected ones."""

    batch: EventBatch
    rejected: tuple[RejectedEvent, ...]

    def with_source(self, source: Any) -> Decoded:
        """The same result with the input attached, for `EventBatch.raw`."""
        return Decoded(replace(self.batch, source=RawEvents(source)), self.rejected)


def validate(
    rows: Any,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    names: frozenset[str] | None = None,
) -> Decoded:
    """Events from Python: anything that `Event.of` takes, or a table of Arrow data.

    With `names`, only these attributes are read. A bad event is rejected alone. Raises EventError if `rows` is no
    collection of events, and SourceError for a column that no event can hold.
    """
    if is_arrow(rows):
        return validate_table(*whole_table(rows, limits, names), schema, limits, names)
    if type(rows) is list and rows and schema is None and set(map(type, rows)) == {bytes}:
        return Decoded(EventBatch(DocumentViews(rows, limits, names), range(len(rows)), names), ())
    if type(rows) is list and schema is None and names is not None:
        views = dict_views(rows, names, limits)
        if views is not None:
            return Decoded(EventBatch(views, range(len(rows)), names), ())
    sorter = _Sorter(schema, limits, names)
    for position, raw in enumerate(many(rows)):
        sorter.add(raw, position)
    return sorter.decoded()


def without_bad_documents(decoded: Decoded, paths: Collection[Path], limits: Limits) -> Decoded:
    """Reject the events whose document at one of these paths cannot be parsed.

    A bare document whose text is read is also rejected if its bytes cannot be decoded.
    """
    views = decoded.batch.views
    bad: dict[int, HarkenError] = {}
    if isinstance(views, DocumentViews) and DOCUMENT not in paths:
        bad.update(views.unreadable())
    for path in paths:
        for event, error in decoded.batch.documents(path, limits).errors:
            bad.setdefault(event, error)
    if not bad:
        return decoded
    import numpy as np

    batch = decoded.batch
    good = [index for index in range(len(batch)) if index not in bad]
    positions = batch.positions
    events = tuple(batch[index] for index in good)
    remaining = EventBatch.of(events, tuple(positions[index] for index in good), batch.names)
    remaining = replace(remaining, source=batch.source)
    place_of = np.full(len(batch), -1, np.int32)
    place_of[good] = np.arange(len(good))
    for path in paths:
        documents = batch.documents(path, limits)
        owner = place_of[documents.owner]
        if (owner >= 0).all():  # else a rejected event has valid documents too, and all are read again
            remaining._documents[path] = replace(documents, owner=owner, errors=())
    rejected = [RejectedEvent(positions[index], error, _excerpt(batch, index)) for index, error in bad.items()]
    return Decoded(remaining, tuple(sorted([*decoded.rejected, *rejected], key=lambda each: each.position)))


def _excerpt(batch: EventBatch, index: int) -> str | None:
    """The beginning of an event whose document was rejected."""
    try:
        return shorten_object(batch[index].attributes)
    except HarkenError:
        return None


def validate_table(
    table: Any,
    converters: dict[str, Converter],
    schema: Schema | None,
    limits: Limits,
    names: frozenset[str] | None,
    first: int = 0,
    source: str = IN_MEMORY,
) -> Decoded:
    """The events of a table with only the columns to read; `first` is the position of the first event."""
    table = with_texts(table, limits)
    if not are_sound(table, schema, limits):
        return collect(rows_of_table(table, converters, first, source), schema, limits, names)
    views = ArrowEvents(table, converters, schema, limits)
    return Decoded(EventBatch(views, range(first, first + table.num_rows), names), ())


def collect(
    rows: Iterable[Row],
    schema: Schema | None,
    limits: Limits,
    names: frozenset[str] | None = None,
    source: str | None = None,
) -> Decoded:
    """The events of rows; `source` is the name of the file or stream that the rows come from."""
    sorter = _Sorter(schema, limits, names)
    for row in rows:
        if row.error is not None:
            sorter.rejected.append(RejectedEvent(row.position, row.error, row.raw))
        else:
            sorter.add(row.content, row.position, row, source)
    return sorter.decoded()


class _Sorter:
    """Collects the valid events and the rejected ones."""

    def __init__(self, schema: Schema | None, limits: Limits, names: frozenset[str] | None) -> None:
        self._schema = schema
        self._limits = limits
        self._names = names
        self._events: list[Event] = []
        self._positions: list[int] = []
        self.rejected: list[RejectedEvent] = []

    def add(self, raw: Any, position: int, row: Row | None = None, source: str | None = None) -> None:
        """Add one raw event. `row` is the row that it was read from, if it came from a source."""
        try:
            self._events.append(Event.of(raw, self._schema, self._limits, self._names))
            self._positions.append(position)
        except HarkenError as error:
            if row is not None and row.line is not None:
                error.at(Place(row.line, None, source))
            excerpt = None if row is None else row.raw
            self.rejected.append(RejectedEvent(position, settled(error), excerpt or shorten_object(raw)))

    def decoded(self) -> Decoded:
        batch = EventBatch.of(tuple(self._events), tuple(self._positions), self._names)
        return Decoded(batch, tuple(self.rejected))
