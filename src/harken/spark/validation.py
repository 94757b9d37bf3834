"""Separate valid from rejected rows, in parallel: events by a schema, subscriptions by the language.

Every row gets the reason for its rejection, or null, and is otherwise unchanged. The valid and the rejected rows are
two filters of that one DataFrame.
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
from harken.spark.frames import USUAL_IDS, column, mapped, reject_column, reject_stream, require_column, require_events

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Rejections = Mapping[int, tuple[str, str | None]]
"""The reason for rejecting a row and the place of the fault in it, by the row's position in its batch."""

_OWN = ("id", "where", "language")
_TAKEN = "another subscription has this id; hint: of those with one id, the one with the smallest text is kept"
_KEY = r"(?:`(?:[^`]|``)+`|[^\W\d]\w*)"
_ATTRIBUTE = re.compile(rf"(?:attribute|there is no attribute|the key .* in) `({_KEY}(?:\.{_KEY})*)`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Validated:
    """Rows, with the reasons for which some are rejected. Nothing has run: each DataFrame reads the rows when used."""

    tagged: DataFrame
    """All rows unchanged, with two more columns: the reason for the rejection and the place of the fault, or nulls. To
    read the rows only once for `valid` and `rejected`, use this, or call its `persist()` first."""
    reason: str
    """The name of the column with the reason."""
    place: str
    """The name of the column with the place of the fault."""

    @property
    def valid(self) -> DataFrame:
        """The valid rows, unchanged."""
        return self.tagged.where(column(self.reason).isNull()).drop(self.reason, self.place)

    @property
    def rejected(self) -> DataFrame:
        """The rejected rows, with the reason and the place."""
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
    """Separate events, batch or streaming, that are valid by a schema from the others.

    Rejected events have two more columns: `reason`, and `path`, the name of the faulty attribute if there is one. The
    column that `event_id` names must not be null. The id of events (this column, else `event_id` or `id`, as in
    `match`) is an attribute only if the schema declares it.

    Raises SourceError if a column is missing, if a name is taken, or if a column has a type that no event can hold.
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

    def rejections(batch: pa.RecordBatch) -> Rejections:
        rejected = _events_rejected(batch.select(attributes), schema, limits)
        return rejected if event_id is None else {**rejected, **_without_id(batch, event_id)}

    return _validated(events, lambda: rejections, reason=reason, path=path)


def check(
    subscriptions: DataFrame,
    schema: Schema | None = None,
    *,
    reason: str = "reason",
    place: str = "place",
    limits: Limits = DEFAULT_LIMITS,
) -> Validated:
    """Separate subscriptions (`id`, `where` and, optionally, `language`) that an engine accepts from the others.

    Rejected subscriptions have two more columns: `reason`, and `place`, the line and column of the fault in the text.
    Of several with the same id, all but one are rejected: rows have no order, so the one with the smallest text is
    kept.

    Raises SourceError if a column is missing, if a name is taken, or for a stream, where an id can always be repeated.
    """
    reject_stream(subscriptions, "checking subscriptions")
    for name in ("id", "where"):
        require_column(subscriptions, name, "subscriptions")
    read = [name for name in _OWN if name in subscriptions.columns]

    def checker() -> Callable[[pa.RecordBatch], Rejections]:
        compiler = Compiler(schema, limits)  # one for all batches of a task, so that its cache is used
        return lambda batch: _subscriptions_rejected(batch.select(read), compiler)

    validated = _validated(subscriptions, checker, reason=reason, place=place)
    return Validated(_without_copies(validated.tagged, reason), reason, place)


def reason_of(error: HarkenError) -> str:
    """The message and hint of an error in one line, without its place."""
    return error.message if error.hint is None else f"{error.message}; hint: {error.hint}"


def attribute_of(error: HarkenError) -> str | None:
    """The attribute for which an event was rejected, as the message names it; None if the fault is elsewhere."""
    if isinstance(error, EventTypeError):
        return format_path(EVENT_TYPE)
    attribute = _ATTRIBUTE.match(error.message)
    return attribute[1] if attribute else None


def _validated(
    rows: DataFrame, checker: Callable[[], Callable[[pa.RecordBatch], Rejections]], **names: str
) -> Validated:
    """The rows with columns for the reason and the place.

    `checker` is called once a task. `names` are the names of the new columns, by the arguments that set them.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    reason, where = names.values()
    if reason == where:
        raise SourceError(f"the columns for {' and '.join(names)} have the same name, `{reason}`")
    for option, name in names.items():
        reject_column(rows, name, option)
    added = [StructField(name, StringType()) for name in (reason, where)]

    def harken_validate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rejections = checker()
        for batch in batches:
            yield _tagged(batch, rejections(batch), reason, where)

    return Validated(mapped(rows, harken_validate, StructType([*rows.schema.fields, *added])), reason, where)


def _tagged(batch: pa.RecordBatch, rejections: Rejections, reason: str, where: str) -> pa.RecordBatch:
    import pyarrow

    tags = [rejections.get(position, (None, None)) for position in range(batch.num_rows)] if rejections else []
    columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*tags, strict=True)]
    columns = columns or [pyarrow.nulls(batch.num_rows, pyarrow.string())] * 2
    return pyarrow.RecordBatch.from_arrays([*batch.columns, *columns], names=[*batch.schema.names, reason, where])


def _events_rejected(batch: pa.RecordBatch, schema: Schema, limits: Limits) -> dict[int, tuple[str, str | None]]:
    rejected = validate_rows(batch, schema, limits).rejected
    return {each.position: (reason_of(each.error), attribute_of(each.error)) for each in rejected}


def _without_id(batch: pa.RecordBatch, event_id: str) -> Rejections:
    """The rejections of rows whose id is null or NaN, so that no notification could name them."""
    from pyarrow import compute

    missing = compute.is_null(batch.column(event_id), nan_is_null=True)
    name = format_path((event_id,))
    rejection = (reason_of(InvalidValueError(f"the event has no id: `{name}` is missing")), name)
    return dict.fromkeys(compute.indices_nonzero(missing).to_pylist(), rejection)


def _subscriptions_rejected(batch: pa.RecordBatch, compiler: Compiler) -> Rejections:
    rejected: dict[int, tuple[str, str | None]] = {}
    for row in rows_from_arrow(batch):
        content = {name: value for name, value in (row.content or {}).items() if value is not None}
        record = record_of(content, row.position)
        try:
            if isinstance(record, Fault):
                raise record.error
            compiler.compile(record.where, record.language)
        except HarkenError as error:
            rejected[row.position] = (reason_of(error), None if error.place is None else str(error.place))
    return rejected


def _without_copies(tagged: DataFrame, reason: str) -> DataFrame:
    """Reject all but one of the valid subscriptions that share an id.

    The same one must be kept each time the rows are read: equal texts are ordered by the rest of the row.
    """
    from pyspark.sql import Window
    from pyspark.sql.functions import lit, row_number, struct, to_json, when

    good = column(reason).isNull()
    whole_row = to_json(struct(*map(column, tagged.columns)))
    copies = Window.partitionBy(column("id"), good).orderBy(column("where"), whole_row)
    taken = good & (row_number().over(copies) > 1)
    return tagged.withColumn(reason, when(taken, lit(_TAKEN)).otherwise(column(reason)))
