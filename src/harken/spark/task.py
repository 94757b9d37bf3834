"""The Python side of `match`: a worker takes batches of events, and returns batches of answers.

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
from harken.events import Decoded, Refused, rows_from_arrow, validate, without_bad_documents
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
"""Columns that are added to events: the shard that they are for, and the number of their row."""
_JOINED_EVENTS = 65_536
"""Join Spark's batches to about this many events: the more, the more of them use the same part of the index."""
_JOINED_BYTES = 1 << 28
"""Join no more than this, about: documents may be large."""
_WORTH_ORDERING = 1_000
_FIRST_EVENTS = 64
_MOST_EVENTS = 16_384
_MATCHES = 1 << 18
"""The most matches of an answer."""
_BYTES = 1 << 26
"""About how many bytes of event columns are matched at once, and an answer of pairs may have."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that a worker needs to answer."""

    parts: tuple[tuple[IndexVersion, str | None], ...]
    """The index, or its shards in order; each with the file that ships it, if there is one."""
    output: str
    event_id: str
    columns: tuple[str, ...]
    """Columns of the event that the answer carries."""
    fields: tuple[str, ...]
    """Fields of the subscription that the answer carries, as strings."""
    on_error: str
    names: tuple[str, ...]
    """The names of the answer's columns."""
    documents: tuple[Path, ...] = ()
    """The attributes that some shard reads as XML documents: an event with a bad one is refused by all."""
    exact_values: str | None = None
    """A column with a JSON object of values that replace those of other columns, or null."""


def answers(question: Question) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`."""

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compile_silently()
        answering = Answering(question)
        for batch in _together(batches):
            yield from answering.of(batch)

    return answer


class Answering:
    """Answers one batch after the other, in slices that suit what the last ones matched."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._per_event = _MATCHES / _FIRST_EVENTS

    def of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The answers to a batch."""
        for part in _by_exactness(batch, self._question.exact_values):
            if SHARD not in part.schema.names:
                yield from self._found(part, 0)
                continue
            shards = part.column(SHARD)
            for place in pc.unique(shards).to_pylist():
                yield from self._found(part.filter(pc.equal(shards, place)), place)

    def _found(self, batch: pa.RecordBatch, place: int) -> Iterator[pa.RecordBatch]:
        version, shipped = self._question.parts[place]
        engine = opened(version, shipped)
        batch = _ordered(batch, version.favourite)
        seen = self._seen(batch, version, engine.schema)
        valid = seen
        if version.validated is not None:
            valid = seen.select([name for name in seen.schema.names if name in version.validated])
        decoded = validate(_with_exact(valid, batch, self._question.exact_values), engine.schema, engine.limits)
        if engine.operators:
            decoded = decoded.with_source(batch)
        # All shards refuse the same events: among pairs only the first reports them.
        is_telling = not place or self._question.output != PAIRS
        if decoded.refused and is_telling:
            yield self._refused(batch, decoded.refused)
        events = decoded.batch
        most = min(_MOST_EVENTS, _at_once(seen.columns, _BYTES))
        start = 0
        while start < len(events):
            expected = int(_MATCHES / max(self._per_event, 1e-3))
            stop = start + min(max(1, expected), most)
            good = without_bad_documents(Decoded(events[start:stop], ()), self._question.documents, engine.limits)
            start = stop
            if good.refused and is_telling:
                yield self._refused(batch, good.refused)
            part = good.batch
            if not len(part):
                continue
            found = engine.match_decoded(Decoded(part, ()))
            self._per_event = (self._per_event + len(found.numbers) / len(part)) / 2
            if found.errors and self._question.on_error == FAIL:
                _, id, error = found.errors[0]
                raise HarkenError(f"the subscription {id!r:.60} failed on an event: {error}")
            places = _array(part.positions)
            if self._question.output == PAIRS:
                rows = np.repeat(places, np.diff(found.offsets))
                size = self._pairs_at_once(batch)
                for first in range(0, len(rows), size):
                    yield from self._pairs(batch, rows, found, first, min(first + size, len(rows)))
                if found.errors and self._question.on_error == TELL:
                    yield self._failed(batch, found)
            else:
                yield from self._events(batch, places, found, 0, len(places))

    def _pairs_at_once(self, batch: pa.RecordBatch) -> int:
        """How many pairs an answer may have, by the size of the event columns that it carries."""
        columns = [batch.column(name) for name in (self._question.event_id, *self._question.columns)]
        return min(_MATCHES, _at_once(columns, _BYTES))

    def _pairs(
        self, batch: pa.RecordBatch, rows: Places, found: BatchMatches, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        """An answer for some of the pairs; two halves if Arrow cannot hold them in one."""
        question, these = self._question, slice(start, stop)
        try:
            event_id, *columns = self._event_columns(batch, rows[these])
            fields = [found.arrow_fields(name, these) for name in question.fields]
            # Plain strings: Spark reads no dictionaries, and views would send the ids of all subscriptions along.
            answer = self._batch([event_id, found.arrow_names(these, plain=True), *fields, *columns], None)
        except (pa.ArrowInvalid, OverflowError):
            if stop - start < 2:
                raise
            middle = (start + stop) // 2
            yield from self._pairs(batch, rows, found, start, middle)
            yield from self._pairs(batch, rows, found, middle, stop)
        else:
            yield answer

    def _events(
        self, batch: pa.RecordBatch, places: Places, found: BatchMatches, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        """An answer of lists or counts for some of the events; two halves if the lists are too long for one."""
        ends = found.offsets[start : stop + 1]
        is_long = self._question.output == LISTS and ends[-1] - ends[0] > 4 * _MATCHES
        if is_long and stop - start > 1:
            middle = (start + stop) // 2
            yield from self._events(batch, places, found, start, middle)
            yield from self._events(batch, places, found, middle, stop)
            return
        if self._question.output == LISTS:
            names = found.arrow_names(slice(ends[0], ends[-1]), plain=True)
            answer = pa.ListArray.from_arrays(pa.array((ends - ends[0]).astype(np.int32)), names)
        else:
            answer = pa.array(np.diff(ends))
        event_id, *columns = self._event_columns(batch, places[start:stop])
        yield self._batch([event_id, answer, *columns], self._reasons(places[start:stop], found))

    def _reasons(self, places: Places, found: BatchMatches) -> list[str | None] | None:
        """The failures of each event; None if there are none at all."""
        if not found.errors:
            return None
        reasons: dict[int, list[str]] = {}
        for position, id, error in found.errors:
            reasons.setdefault(position, []).append(failure_reason(id, error))
        return ["; ".join(reasons[place]) if place in reasons else None for place in places.tolist()]

    def _failed(self, batch: pa.RecordBatch, found: BatchMatches) -> pa.RecordBatch:
        """Pairs that could not be matched, each with the reason."""
        rows = np.array([position for position, _, _ in found.errors], np.int64)
        ids = pa.array([id for _, id, _ in found.errors], pa.string())
        reasons = [failure_reason(id, error) for _, id, error in found.errors]
        return self._batch(self._error_rows(batch, rows, ids), reasons)

    def _refused(self, batch: pa.RecordBatch, events: Sequence[Refused]) -> pa.RecordBatch:
        """The rows of invalid events: only with `on_error="tell"` among pairs, else a row with a null answer."""
        question = self._question
        if question.on_error == FAIL:
            raise events[0].error
        refused = events if question.on_error == TELL or question.output != PAIRS else ()
        rows = np.array([each.position for each in refused], np.int64)
        return self._batch(self._error_rows(batch, rows, None), [_reason(each.error) for each in refused])

    def _error_rows(self, batch: pa.RecordBatch, rows: Places, ids: pa.Array | None) -> list[pa.Array]:
        question = self._question
        event_id, *columns = self._event_columns(batch, rows)
        kind = {PAIRS: pa.string(), LISTS: pa.list_(pa.string()), COUNTS: pa.int64()}[question.output]
        fields = [pa.nulls(len(rows), pa.string()) for _ in question.fields]
        return [event_id, pa.nulls(len(rows), kind) if ids is None else ids, *fields, *columns]

    def _event_columns(self, batch: pa.RecordBatch, rows: Places) -> list[pa.Array]:
        """The id and the carried columns of these rows."""
        wanted = pa.array(rows)
        return [batch.column(name).take(wanted) for name in (self._question.event_id, *self._question.columns)]

    def _seen(self, batch: pa.RecordBatch, version: IndexVersion, schema: Schema | None) -> pa.RecordBatch:
        """The columns that subscriptions use or, if a schema validates whole events, all attributes."""
        wanted = version.attributes
        if wanted is not None:
            return batch.select([name for name in batch.schema.names if name in wanted])
        others = {name for name in batch.schema.names if name.startswith(OWN) or name == self._question.exact_values}
        if schema is not None and all(path[0] != self._question.event_id for path in schema.attributes):
            others.add(self._question.event_id)
        return batch.select([name for name in batch.schema.names if name not in others])

    def _batch(self, columns: list[pa.Array], errors: Sequence[str | None] | None) -> pa.RecordBatch:
        if self._question.on_error == TELL:
            reasons = pa.nulls(len(columns[0]), pa.string()) if errors is None else pa.array(errors, pa.string())
            columns = [*columns, reasons]
        return pa.RecordBatch.from_arrays(columns, list(self._question.names))


def _reason(error: HarkenError) -> str:
    """Why an event was refused. Of a document, in one line: without the excerpt that points at the place."""
    if error.excerpt is None:
        return str(error)
    told = error.message if error.place is None else f"{error.message} ({error.place})"
    return told if error.hint is None else f"{told}; hint: {error.hint}"


def _at_once(columns: Sequence[pa.Array], size: int) -> int:
    """How many rows of these columns have about so many bytes."""
    rows = len(columns[0]) if columns else 0
    width = sum(column.nbytes for column in columns) / max(rows, 1)
    return max(1, int(size / max(width, 1.0)))


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches joined to larger ones."""
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


def _with_exact(seen: pa.RecordBatch, batch: pa.RecordBatch, exact_values: str | None) -> Any:
    """The events of one part of `_by_exactness`. Those with exact values become dicts with these filled in."""
    if exact_values is None or batch.column(exact_values).null_count:
        return seen
    rows = [row.content or {} for row in rows_from_arrow(seen, of_events=True)]
    for content, text in zip(rows, batch.column(exact_values).to_pylist(), strict=True):
        content |= {name: value for name, value in json.loads(text).items() if name in content}
    return rows


def _ordered(batch: pa.RecordBatch, favourite: str | None) -> pa.RecordBatch:
    """The events sorted by a column, so that those that use the same part of the index follow each other and find it in
    the cache. Answers have no promised order.
    """
    if favourite not in batch.schema.names or batch.num_rows < _WORTH_ORDERING:
        return batch
    column = batch.column(favourite)
    if pa.types.is_nested(column.type):
        return batch
    codes = column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return batch.take(pa.array(np.argsort(codes, kind="stable")))


def _array(positions: Sequence[int]) -> NDArray[np.int64]:
    """Positions as an array, without a loop where they are a range."""
    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step)
    return np.asarray(positions, np.int64)
