"""The driver compiles the kernels that workers on this machine need, before they start.

Otherwise all workers would need the same kernels at once, and wait for the one that compiles them.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds

from harken.spark.local import opened
from harken.spark.session_facts import is_local
from harken.spark.task import FAIL, SKIP, MatchTask, TaskMatcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EVENTS = 64
_DOCUMENT = "<a><b c='1'>text</b></a>"
_NUMBERS = kinds.is_integer, kinds.is_floating
_TEXTS = kinds.is_string, kinds.is_large_string
_BYTES = kinds.is_binary, kinds.is_large_binary
_LISTS = kinds.is_list, kinds.is_large_list
_rehearsed: set[str] = set()
"""The fingerprints of the indexes whose kernels are compiled."""
log = logging.getLogger(__name__)


def rehearse(task: MatchTask, events: DataFrame) -> None:
    """Match a few made-up events as a worker would, if workers run on this machine. Their matches are dropped.

    Nothing is done for an index with operators, because these are to be called for real events only.
    """
    version = task.parts[0][0]
    if version.fingerprint in _rehearsed or version.plugged.operators or not is_local(events.sparkSession):
        return
    _rehearsed.add(version.fingerprint)
    documents = {str(path[0]) for path in task.documents}
    try:
        columns = [each for each in _arrow_schema(events) if each.name != task.exact_values]
        batch = made_up(pa.schema(columns), documents)
        on_error = SKIP if task.on_error == FAIL else task.on_error
        rehearse_task(replace(task, on_error=on_error, exact_values=None), batch)
    except Exception as error:  # the query itself reports errors of the index or a column
        log.debug("nothing was compiled beforehand: %s", error)


def rehearse_task(task: MatchTask, batch: pa.RecordBatch) -> None:
    """Match a batch in this process as a worker does, and use the kernels for results even if nothing matches."""
    for _ in TaskMatcher(task).match(batch):
        pass
    version, shipped = task.parts[0]
    opened(version, shipped).match_batch([]).arrow_names(plain=True)


def made_up(columns: pa.Schema, documents: set[str]) -> pa.RecordBatch:
    """Made-up events with these columns. `documents` are columns of XML documents."""
    arrays = []
    for column in columns:
        value = _value(column.type, _DOCUMENT if column.name in documents else "a")
        arrays.append(pa.array([value] * _EVENTS, column.type))
    return pa.RecordBatch.from_arrays(arrays, list(columns.names))


def _value(kind: pa.DataType, text: str) -> Any:
    """A value of a type; None for a type that events cannot have."""
    value: Any = None
    if any(is_one(kind) for is_one in _NUMBERS):
        value = 1
    elif any(is_one(kind) for is_one in _TEXTS):
        value = text
    elif any(is_one(kind) for is_one in _BYTES):
        value = text.encode()
    elif any(is_one(kind) for is_one in _LISTS):
        value = [_value(kind.value_type, text)]
    elif kinds.is_struct(kind):
        value = {field.name: _value(field.type, text) for field in kind}
    elif kinds.is_boolean(kind):
        value = True
    elif kinds.is_decimal(kind):
        value = Decimal(0)
    elif kinds.is_timestamp(kind):
        value = datetime(2026, 1, 1, tzinfo=UTC if kind.tz else None)
    elif kinds.is_date(kind):
        value = date(2026, 1, 1)
    return value


def _arrow_schema(events: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}  # since Spark 4.1
    return to_arrow_schema(events.schema, **zone)  # type: ignore[arg-type]
