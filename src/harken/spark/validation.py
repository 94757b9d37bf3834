"""Rows sorted into valid and refused ones, in parallel: events by a schema, subscriptions by the language.

Every row gets the reason for its refusal, or null, and is otherwise unchanged. The valid and the refused are two
filters of that one DataFrame.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harken.errors import EventTypeError, HarkenError, InvalidValueError, SourceError
from harken.events import rows_from_arrow
from harken.events import validate as validate_rows
from harken.language.compiled import Compiler
from harken.limits import DEFAULT_LIMITS, Limits
from harken.live.subscriptions import Fault, record_of
from harken.schema import EVENT_TYPE, Schema, format_path
from harken.spark.frames import USUAL_IDS, column, mapped, refuse_column, refuse_stream, require_column, require_events

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Refusals = Mapping[int, tuple[str, str | None]]
"""The reason, and where in the row the fault is, by the position of the row in its batch."""

_OWN = ("id", "where", "language")
_TAKEN = "another subscription has this id; hint: of those with one id, the one with the smallest text is kept"
_KEY = r"(?:`(?:[^`]|``)+`|[^\W\d]\w*)"
_ATTRIBUTE = re.compile(rf"(?:attribute|there is no attribute|the key .* in) `({_KEY}(?:\.{_KEY})*)`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Validated:
    """Rows with their refusals. Nothing has run yet: each DataFrame reads the rows when it is used."""

    tagged: DataFrame
    """All rows unchanged, with two more columns: the reason of the refusal, or null, and where the fault is. To read
    the rows only once for both the valid and the refused, use this, or call its `persist()` first."""
    reason: str
    """The name of the column with the reason."""
    place: str
    """The name of the column with the place of the fault."""

    @property
    def valid(self) -> DataFrame:
        """The valid rows, unchanged."""
        return self.tagged.where(column(self.reason).isNull()).drop(self.reason, self.place)

    @property
    def refused(self) -> DataFrame:
        """The refused rows, with the reason and the place."""
        return self.tagged.where(column(self.reason).isNotNull())


def validate(
    events: DataFrame,
    schema: Schema,
    *,
    event_id: str | None = None,
    reason: str = "reason",
    path: str = "path",
    limits: Limits = DEFAULT_LIMITS,
) -> Validated:
    """Sort events, batch or streaming, into those that are valid by a schema and those that are not.

    The refused have two more columns: `reason`, and `path`, the name of the faulty attribute if there is one. The
    column that `event_id` names must not be null. The id of events (this column, else `event_id` or `id`, as in
    `match`) is an attribute only if the schema declares it.

    Raises SourceError if there is no such column, if a name is taken, or if no event can hold a column of this type.
    """
    from pyspark.sql.types import StructType

    from harken.spark.task import OWN

    if event_id is not None:
        require_column(events, event_id, "events")
    identified = event_id or next((name for name in USUAL_IDS if name in events.columns), None)
    declared = {path[0] for path in (*schema.attributes, EVENT_TYPE)}
    attributes = [
        name for name in events.columns if name in declared or not (name == identified or name.startswith(OWN))
    ]
    require_events(StructType([events.schema[name] for name in attributes]), limits, documents=True)

    def refusals(batch: pa.RecordBatch) -> Refusals:
        found = _events_refused(batch.select(attributes), schema, limits)
        return found if event_id is None else {**found, **_without_id(batch, event_id)}

    return _validated(events, lambda: refusals, reason=reason, path=path)


def check(
    subscriptions: DataFrame,
    schema: Schema | None = None,
    *,
    reason: str = "reason",
    place: str = "place",
    limits: Limits = DEFAULT_LIMITS,
) -> Validated:
    """Sort subscriptions (`id`, `where` and, if there is one, `language`) into those that an engine takes and others.

    The refused have two more columns: `reason`, and `place`, the line and column of the fault in the text. Of several
    with the same id, all but one are refused: rows have no order, so the one with the smallest text is kept.

    Raises SourceError if a column is missing, if a name is taken, or for a stream, where an id may always come again.
    """
    refuse_stream(subscriptions, "checking subscriptions")
    for name in ("id", "where"):
        require_column(subscriptions, name, "subscriptions")
    read = [name for name in _OWN if name in subscriptions.columns]

    def checker() -> Callable[[pa.RecordBatch], Refusals]:
        compiler = Compiler(schema, limits)  # one for all batches of a task, so that its cache is used
        return lambda batch: _subscriptions_refused(batch.select(read), compiler)

    found = _validated(subscriptions, checker, reason=reason, place=place)
    return Validated(_without_copies(found.tagged, reason), reason, place)


def reason_of(error: HarkenError) -> str:
    """The message and hint of an error in one line, without its place."""
    return error.message if error.hint is None else f"{error.message}; hint: {error.hint}"


def attribute_of(error: HarkenError) -> str | None:
    """The attribute that an event was refused for, as the message names it; None if it is no attribute."""
    if isinstance(error, EventTypeError):
        return format_path(EVENT_TYPE)
    found = _ATTRIBUTE.match(error.message)
    return found[1] if found else None


def _validated(rows: DataFrame, checker: Callable[[], Callable[[pa.RecordBatch], Refusals]], **names: str) -> Validated:
    """The rows, each with its refusal. `checker` is called once a task; `names` are the new columns, by argument."""
    from pyspark.sql.types import StringType, StructField, StructType

    reason, where = names.values()
    if reason == where:
        raise SourceError(f"the columns for {' and '.join(names)} are both to be called `{reason}`")
    for option, name in names.items():
        refuse_column(rows, name, option)
    added = [StructField(name, StringType()) for name in (reason, where)]

    def harken_validate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refusals = checker()
        for batch in batches:
            yield _tagged(batch, refusals(batch), reason, where)

    return Validated(mapped(rows, harken_validate, StructType([*rows.schema.fields, *added])), reason, where)


def _tagged(batch: pa.RecordBatch, refusals: Refusals, reason: str, where: str) -> pa.RecordBatch:
    import pyarrow

    tags = [refusals.get(position, (None, None)) for position in range(batch.num_rows)] if refusals else []
    columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*tags, strict=True)]
    columns = columns or [pyarrow.nulls(batch.num_rows, pyarrow.string())] * 2
    return pyarrow.RecordBatch.from_arrays([*batch.columns, *columns], names=[*batch.schema.names, reason, where])


def _events_refused(batch: pa.RecordBatch, schema: Schema, limits: Limits) -> dict[int, tuple[str, str | None]]:
    refused = validate_rows(batch, schema, limits).refused
    return {each.position: (reason_of(each.error), attribute_of(each.error)) for each in refused}


def _without_id(batch: pa.RecordBatch, event_id: str) -> Refusals:
    """The rows whose id is null or NaN, so that no notification could name them."""
    from pyarrow import compute

    missing = compute.is_null(batch.column(event_id), nan_is_null=True)
    name = format_path((event_id,))
    refusal = (reason_of(InvalidValueError(f"the event has no id: `{name}` is missing")), name)
    return dict.fromkeys(compute.indices_nonzero(missing).to_pylist(), refusal)


def _subscriptions_refused(batch: pa.RecordBatch, compiler: Compiler) -> Refusals:
    found: dict[int, tuple[str, str | None]] = {}
    for row in rows_from_arrow(batch):
        content = {name: value for name, value in (row.content or {}).items() if value is not None}
        record = record_of(content, row.position)
        try:
            if isinstance(record, Fault):
                raise record.error
            compiler.compile(record.where, record.language)
        except HarkenError as error:
            found[row.position] = (reason_of(error), None if error.place is None else str(error.place))
    return found


def _without_copies(tagged: DataFrame, reason: str) -> DataFrame:
    """Refuse all but one of the valid subscriptions that share an id.

    Whenever the rows are read, the same one must be kept: equal texts are ordered by the rest of the row.
    """
    from pyspark.sql import Window
    from pyspark.sql.functions import lit, row_number, struct, to_json, when

    good = column(reason).isNull()
    whole_row = to_json(struct(*map(column, tagged.columns)))
    copies = Window.partitionBy(column("id"), good).orderBy(column("where"), whole_row)
    taken = good & (row_number().over(copies) > 1)
    return tagged.withColumn(reason, when(taken, lit(_TAKEN)).otherwise(column(reason)))
