"""What a Python worker of Spark's does: it takes batches of events, and gives batches of answers.

Answers are made a slice of events at a time, so that a batch whose events match many subscriptions takes no more memory
than one whose events match few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.errors import HarkenError
from harken.events import Decoded, EventBatch, validate
from harken.results import BatchMatches
from harken.schema import Schema
from harken.spark.index import IndexVersion
from harken.spark.local import opened

PAIRS, LISTS, COUNTS = "pairs", "lists", "counts"
SKIP, FAIL, TELL = "skip", "fail", "tell"
OWN = "_harken_"
"""What columns of ours begin with, which are no attributes of events."""
SHARD, ROW = f"{OWN}shard", f"{OWN}row"
"""Columns that are added to events: which shard they are for, and which row they were."""
_FIRST_EVENTS = 64
_MATCHES = 1 << 18
"""Matches that an answer is to have, about."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """All that a worker has to know to answer."""

    parts: tuple[tuple[IndexVersion, str | None], ...]
    """The index or, in the order of their numbers, its shards; each with the file that it was sent along in, if any."""
    output: str
    event_id: str
    columns: tuple[str, ...]
    """Columns of the event that come along."""
    fields: tuple[str, ...]
    """Fields of the subscription that come along, as strings."""
    on_error: str
    names: tuple[str, ...]
    """Of the answer's columns."""


def answers(question: Question) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`."""

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answering = _Answering(question)
        for batch in batches:
            yield from answering.of(batch)

    return answer


class _Answering:
    def __init__(self, question: Question) -> None:
        self._question = question
        self._per_event = _MATCHES / _FIRST_EVENTS

    def of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if SHARD not in batch.schema.names:
            yield from self._found(batch, 0)
            return
        shards = batch.column(SHARD)
        for place in pc.unique(shards).to_pylist():
            yield from self._found(batch.filter(pc.equal(shards, place)), place)

    def _found(self, batch: pa.RecordBatch, place: int) -> Iterator[pa.RecordBatch]:
        version, shipped = self._question.parts[place]
        engine = opened(version, shipped)
        decoded = validate(self._seen(batch, version, engine.schema), engine.schema, engine.limits)
        if decoded.refused:
            yield self._refused(batch, decoded)
        events = decoded.batch
        start = 0
        while start < len(events):
            stop = start + max(1, int(_MATCHES / max(self._per_event, 1e-3)))
            part = events[start:stop]
            start = stop
            found = engine.match_decoded(Decoded(part, ()))
            self._per_event = (self._per_event + len(found.numbers) / len(part)) / 2
            yield self._answer(batch, part, found, is_whole=len(part) == batch.num_rows)

    def _answer(self, batch: pa.RecordBatch, part: EventBatch, found: BatchMatches, is_whole: bool) -> pa.RecordBatch:
        """What some events of a batch match."""
        question = self._question
        places = np.arange(batch.num_rows) if is_whole else np.asarray(part.positions, np.int64)
        if found.errors and question.on_error == FAIL:
            _, id, error = found.errors[0]
            raise HarkenError(f"the subscription {id!r:.60} failed on an event: {error}")
        if question.output == PAIRS:
            rows = np.repeat(places, np.diff(found.offsets))
            columns = [self._event_column(batch, name, rows) for name in (question.event_id, *question.columns)]
            fields = [found.arrow_fields(name) for name in question.fields]
            answer = [columns[0], found.arrow_names(), *fields, *columns[1:]]
        else:
            columns = [self._event_column(batch, name, places) for name in (question.event_id, *question.columns)]
            answer = [columns[0], _lists(found) if question.output == LISTS else _counts(found), *columns[1:]]
        if question.on_error != TELL:
            return self._batch(answer)
        return self._with_errors(batch, answer, places, found)

    def _with_errors(
        self, batch: pa.RecordBatch, answer: list[pa.Array], places: Places, found: BatchMatches
    ) -> pa.RecordBatch:
        """An answer with a column for errors: for pairs in rows of their own, else in the row of the event."""
        if self._question.output == PAIRS:
            told = [_error(id, error) for _, id, error in found.errors]
            rows = np.array([position for position, _, _ in found.errors], np.int64)
            ids = pa.array([id for _, id, _ in found.errors], pa.string())
            more = self._error_rows(batch, rows, ids)
            whole = [pa.concat_arrays([one, other]) for one, other in zip(answer, more, strict=True)]
            return self._batch([*whole, pa.array([None] * len(answer[0]) + told, pa.string())])
        reasons: dict[int, list[str]] = {}
        for position, id, error in found.errors:
            reasons.setdefault(position, []).append(_error(id, error))
        texts = ["; ".join(reasons[place]) if place in reasons else None for place in places.tolist()]
        return self._batch([*answer, pa.array(texts, pa.string())])

    def _refused(self, batch: pa.RecordBatch, decoded: Decoded) -> pa.RecordBatch:
        """What is said of events that are not valid: nothing among pairs, a row without an answer otherwise."""
        question = self._question
        if question.on_error == FAIL:
            raise decoded.refused[0].error
        told = decoded.refused if question.on_error == TELL or question.output != PAIRS else ()
        rows = np.array([each.position for each in told], np.int64)
        answer = self._error_rows(batch, rows, None)
        if question.on_error == TELL:
            answer.append(pa.array([str(each.error) for each in told], pa.string()))
        return self._batch(answer)

    def _error_rows(self, batch: pa.RecordBatch, rows: Places, ids: pa.Array | None) -> list[pa.Array]:
        question = self._question
        columns = [self._event_column(batch, name, rows) for name in (question.event_id, *question.columns)]
        kind = {PAIRS: pa.string(), LISTS: pa.list_(pa.string()), COUNTS: pa.int64()}[question.output]
        fields = [pa.nulls(len(rows), pa.string()) for _ in question.fields]
        return [columns[0], pa.nulls(len(rows), kind) if ids is None else ids, *fields, *columns[1:]]

    def _event_column(self, batch: pa.RecordBatch, name: str, rows: Places) -> pa.Array:
        column = batch.column(name)
        if len(rows) == len(column) and self._question.output != PAIRS:
            return column
        return column.take(pa.array(rows))

    def _seen(self, batch: pa.RecordBatch, version: IndexVersion, schema: Schema | None) -> pa.RecordBatch:
        """The columns that subscriptions look at or, where all are judged by a schema, those that are the event's."""
        wanted = version.attributes
        if wanted is not None:
            return batch.select([name for name in batch.schema.names if name in wanted])
        others = {name for name in batch.schema.names if name.startswith(OWN)}
        if schema is not None and all(path[0] != self._question.event_id for path in schema.attributes):
            others.add(self._question.event_id)
        return batch.select([name for name in batch.schema.names if name not in others])

    def _batch(self, columns: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(columns, list(self._question.names))


def _lists(found: BatchMatches) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(found.offsets.astype(np.int32)), found.arrow_names())


def _counts(found: BatchMatches) -> pa.Array:
    return pa.array(np.diff(found.offsets))


def _error(id: str, error: HarkenError) -> str:
    return f"the subscription {id!r:.60} failed: {error.message}"
