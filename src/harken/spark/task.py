"""The Python side of `match`: a worker takes batches of events, and returns batches of matches.

Events are matched a slice at a time, so that a batch with many matches takes no more memory than one with few.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.errors import HarkenError
from harken.events import Decoded, RejectedEvent, rows_from_arrow, validate, without_bad_documents
from harken.live.notifications import failure_reason
from harken.live.results import BatchMatches
from harken.rehearsal import compile_silently
from harken.schema import Path, Schema
from harken.spark.index_versions import IndexVersion
from harken.spark.local import opened

Output = Literal["pairs", "lists", "counts"]
OnError = Literal["skip", "fail", "tell"]
PAIRS, LISTS, COUNTS = "pairs", "lists", "counts"
SKIP, FAIL, TELL = "skip", "fail", "tell"
OWN = "_harken_"
"""The prefix of Harken's own columns, which are no attributes of events."""
SHARD, ROW = f"{OWN}shard", f"{OWN}row"
"""Columns that are added to events: the shard to match with, and the number of the event's row."""
_JOINED_EVENTS = 65_536
"""Events after which joining Spark's batches stops. In larger batches more events share a part of the index."""
_JOINED_BYTES = 1 << 28
"""Bytes after which joining Spark's batches stops, because documents may be large."""
_WORTH_ORDERING = 1_000
"""Fewest events of a batch that are sorted."""
_FIRST_EVENTS = 64
"""Events of the first slice."""
_MOST_EVENTS = 16_384
"""Most events of a slice."""
_MATCHES = 1 << 18
"""Matches that a slice is expected to have, and most pairs of a returned batch."""
_BYTES = 1 << 26
"""Approximate bytes of event columns of a slice, and of a returned batch of pairs."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MatchTask:
    """All that a worker needs to match events: the index, and the columns of the result."""

    parts: tuple[tuple[IndexVersion, str | None], ...]
    """The index, or its shards in order; each with the file that ships it, if there is one."""
    output: str
    event_id: str
    columns: tuple[str, ...]
    """Columns of the event to copy to the result."""
    fields: tuple[str, ...]
    """Fields of the subscription to copy to the result, as strings."""
    on_error: str
    names: tuple[str, ...]
    """The names of the result's columns."""
    documents: tuple[Path, ...] = ()
    """The attributes that any shard reads as XML documents: all shards reject an event with a bad one."""
    exact_values: str | None = None
    """A column with a JSON object of values that replace those of other columns, or null."""


def matching_step(task: MatchTask) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` that matches events."""

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compile_silently()
        matcher = TaskMatcher(task)
        for batch in _together(batches):
            yield from matcher.match(batch)

    return step


class TaskMatcher:
    """Matches batches of events, in slices whose size adapts to the number of matches."""

    def __init__(self, task: MatchTask) -> None:
        self._task = task
        self._per_event = _MATCHES / _FIRST_EVENTS
        """Recent matches per event."""

    def match(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows of the result for a batch of events."""
        for part in _by_exactness(batch, self._task.exact_values):
            if SHARD not in part.schema.names:
                yield from self._matched(part, 0)
                continue
            shards = part.column(SHARD)
            for place in pc.unique(shards).to_pylist():
                yield from self._matched(part.filter(pc.equal(shards, place)), place)

    def _matched(self, batch: pa.RecordBatch, place: int) -> Iterator[pa.RecordBatch]:
        version, shipped = self._task.parts[place]
        engine = opened(version, shipped)
        batch = _ordered(batch, version.favourite)
        matched = self._matched_columns(batch, version, engine.schema)
        valid = matched
        if version.validated is not None:
            valid = matched.select([name for name in matched.schema.names if name in version.validated])
        limits, operators = engine.internals.limits, engine.internals.operators
        decoded = validate(_with_exact(valid, batch, self._task.exact_values), engine.schema, limits)
        if operators:
            decoded = decoded.with_source(batch)
        # All shards reject the same events: for pairs only the first shard reports them.
        is_telling = not place or self._task.output != PAIRS
        if decoded.rejected and is_telling:
            yield self._rejected(batch, decoded.rejected)
        events = decoded.batch
        most = min(_MOST_EVENTS, _rows_of(matched.columns, _BYTES))
        start = 0
        while start < len(events):
            expected = int(_MATCHES / max(self._per_event, 1e-3))
            stop = start + min(max(1, expected), most)
            good = without_bad_documents(Decoded(events[start:stop], ()), self._task.documents, limits)
            start = stop
            if good.rejected and is_telling:
                yield self._rejected(batch, good.rejected)
            part = good.batch
            if not len(part):
                continue
            matches = engine.match_batch(Decoded(part, ()))
            self._per_event = (self._per_event + len(matches.numbers) / len(part)) / 2
            if matches.errors and self._task.on_error == FAIL:
                _, id, error = matches.errors[0]
                raise HarkenError(f"the subscription {id!r:.60} failed on an event: {error}")
            places = _array(part.positions)
            if self._task.output == PAIRS:
                rows = np.repeat(places, np.diff(matches.offsets))
                size = self._most_pairs(batch)
                for first in range(0, len(rows), size):
                    yield from self._pairs(batch, rows, matches, first, min(first + size, len(rows)))
                if matches.errors and self._task.on_error == TELL:
                    yield self._failed(batch, matches)
            else:
                yield from self._events(batch, places, matches, 0, len(places))

    def _most_pairs(self, batch: pa.RecordBatch) -> int:
        """The most pairs of a returned batch, by the size of its event columns."""
        columns = [batch.column(name) for name in (self._task.event_id, *self._task.columns)]
        return min(_MATCHES, _rows_of(columns, _BYTES))

    def _pairs(
        self, batch: pa.RecordBatch, rows: Places, matches: BatchMatches, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        """Rows start:stop of the pairs, in one batch, or in two halves if they are too large for one."""
        task, these = self._task, slice(start, stop)
        try:
            event_id, *columns = self._event_columns(batch, rows[these])
            fields = [matches.arrow_fields(name, these) for name in task.fields]
            # Plain strings: Spark reads no dictionaries, and views would include the ids of all subscriptions.
            answer = self._batch([event_id, matches.arrow_names(these, plain=True), *fields, *columns], None)
        except (pa.ArrowInvalid, OverflowError):
            if stop - start < 2:
                raise
            middle = (start + stop) // 2
            yield from self._pairs(batch, rows, matches, start, middle)
            yield from self._pairs(batch, rows, matches, middle, stop)
        else:
            yield answer

    def _events(
        self, batch: pa.RecordBatch, places: Places, matches: BatchMatches, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        """Lists or counts of events start:stop, in one batch, or in two halves if the lists are too long for one."""
        ends = matches.offsets[start : stop + 1]
        is_long = self._task.output == LISTS and ends[-1] - ends[0] > 4 * _MATCHES
        if is_long and stop - start > 1:
            middle = (start + stop) // 2
            yield from self._events(batch, places, matches, start, middle)
            yield from self._events(batch, places, matches, middle, stop)
            return
        if self._task.output == LISTS:
            names = matches.arrow_names(slice(ends[0], ends[-1]), plain=True)
            answer = pa.ListArray.from_arrays(pa.array((ends - ends[0]).astype(np.int32)), names)
        else:
            answer = pa.array(np.diff(ends))
        event_id, *columns = self._event_columns(batch, places[start:stop])
        yield self._batch([event_id, answer, *columns], self._reasons(places[start:stop], matches))

    def _reasons(self, places: Places, matches: BatchMatches) -> list[str | None] | None:
        """The failures of each event as a text, None for an event without any; or None if no event has any."""
        if not matches.errors:
            return None
        reasons: dict[int, list[str]] = {}
        for position, id, error in matches.errors:
            reasons.setdefault(position, []).append(failure_reason(id, error))
        return ["; ".join(reasons[place]) if place in reasons else None for place in places.tolist()]

    def _failed(self, batch: pa.RecordBatch, matches: BatchMatches) -> pa.RecordBatch:
        """Pairs of events and subscriptions that failed on them, with the reasons."""
        rows = np.array([position for position, _, _ in matches.errors], np.int64)
        ids = pa.array([id for _, id, _ in matches.errors], pa.string())
        reasons = [failure_reason(id, error) for _, id, error in matches.errors]
        return self._batch(self._error_rows(batch, rows, ids), reasons)

    def _rejected(self, batch: pa.RecordBatch, events: Sequence[RejectedEvent]) -> pa.RecordBatch:
        """The rows of rejected events, with a null result. For pairs, there are none unless `on_error` is "tell"."""
        task = self._task
        if task.on_error == FAIL:
            raise events[0].error
        rejected = events if task.on_error == TELL or task.output != PAIRS else ()
        rows = np.array([each.position for each in rejected], np.int64)
        return self._batch(self._error_rows(batch, rows, None), [_reason(each.error) for each in rejected])

    def _error_rows(self, batch: pa.RecordBatch, rows: Places, ids: pa.Array | None) -> list[pa.Array]:
        task = self._task
        event_id, *columns = self._event_columns(batch, rows)
        kind = {PAIRS: pa.string(), LISTS: pa.list_(pa.string()), COUNTS: pa.int64()}[task.output]
        fields = [pa.nulls(len(rows), pa.string()) for _ in task.fields]
        return [event_id, pa.nulls(len(rows), kind) if ids is None else ids, *fields, *columns]

    def _event_columns(self, batch: pa.RecordBatch, rows: Places) -> list[pa.Array]:
        """The event columns of the result, for these rows."""
        wanted = pa.array(rows)
        return [batch.column(name).take(wanted) for name in (self._task.event_id, *self._task.columns)]

    def _matched_columns(self, batch: pa.RecordBatch, version: IndexVersion, schema: Schema | None) -> pa.RecordBatch:
        """The columns that subscriptions use or, if a schema validates whole events, all attributes."""
        wanted = version.attributes
        if wanted is not None:
            return batch.select([name for name in batch.schema.names if name in wanted])
        others = {name for name in batch.schema.names if name.startswith(OWN) or name == self._task.exact_values}
        if schema is not None and all(path[0] != self._task.event_id for path in schema.attributes):
            others.add(self._task.event_id)
        return batch.select([name for name in batch.schema.names if name not in others])

    def _batch(self, columns: list[pa.Array], errors: Sequence[str | None] | None) -> pa.RecordBatch:
        if self._task.on_error == TELL:
            reasons = pa.nulls(len(columns[0]), pa.string()) if errors is None else pa.array(errors, pa.string())
            columns = [*columns, reasons]
        return pa.RecordBatch.from_arrays(columns, list(self._task.names))


def _reason(error: HarkenError) -> str:
    """An error in one line: without the excerpt that errors in documents have."""
    if error.excerpt is None:
        return str(error)
    text = error.message if error.place is None else f"{error.message} ({error.place})"
    return text if error.hint is None else f"{text}; hint: {error.hint}"


def _rows_of(columns: Sequence[pa.Array], size: int) -> int:
    """The number of rows of these columns that have about `size` bytes, at least 1."""
    rows = len(columns[0]) if columns else 0
    width = sum(column.nbytes for column in columns) / max(rows, 1)
    return max(1, int(size / max(width, 1.0)))


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join batches to larger ones."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _JOINED_EVENTS or size >= _JOINED_BYTES:
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches).combine_chunks()
    columns = [each.chunk(0) if each.num_chunks else pa.nulls(0, each.type) for each in whole.columns]
    return pa.RecordBatch.from_arrays(columns, schema=whole.schema)


def _by_exactness(batch: pa.RecordBatch, exact_values: str | None) -> Iterator[pa.RecordBatch]:
    """The events without exact values, then those with some."""
    exact = None if exact_values is None else batch.column(exact_values)
    if exact is None or exact.null_count in (0, len(exact)):
        yield batch
        return
    yield batch.filter(pc.is_null(exact))
    yield batch.filter(pc.is_valid(exact))


def _with_exact(columns: pa.RecordBatch, batch: pa.RecordBatch, exact_values: str | None) -> Any:
    """The events of one part of `_by_exactness`: as columns or, if they have exact values, as dicts with these."""
    if exact_values is None or batch.column(exact_values).null_count:
        return columns
    rows = [row.content or {} for row in rows_from_arrow(columns, of_events=True)]
    for content, text in zip(rows, batch.column(exact_values).to_pylist(), strict=True):
        content |= {name: value for name, value in json.loads(text).items() if name in content}
    return rows


def _ordered(batch: pa.RecordBatch, favourite: str | None) -> pa.RecordBatch:
    """The events sorted by a column, so that neighbours use the same part of the index while it is in the CPU's cache.

    The order of results is not specified.
    """
    if favourite not in batch.schema.names or batch.num_rows < _WORTH_ORDERING:
        return batch
    column = batch.column(favourite)
    if pa.types.is_nested(column.type):
        return batch
    codes = column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return batch.take(pa.array(np.argsort(codes, kind="stable")))


def _array(positions: Sequence[int]) -> NDArray[np.int64]:
    """Positions as an array, made without a loop if they are a range."""
    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step)
    return np.asarray(positions, np.int64)
