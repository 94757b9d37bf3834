"""Events: bytes, tables and Python objects in one canonical form. A bad event is rejected with the reason."""

from __future__ import annotations

from harken.events.arrow_rows import rows_from_arrow
from harken.events.batch import Decoded, EventBatch, RejectedEvent, validate, without_bad_documents
from harken.events.cells import Cells, PathCells, as_integer, whole_and_part
from harken.events.decode import read_events
from harken.events.event import Event
from harken.events.event_rows import read_rows
from harken.events.many import held
from harken.events.names import looked_at
from harken.events.row import Row

__all__ = [
    "Cells",
    "Decoded",
    "Event",
    "EventBatch",
    "PathCells",
    "RejectedEvent",
    "Row",
    "as_integer",
    "held",
    "looked_at",
    "read_events",
    "read_rows",
    "rows_from_arrow",
    "validate",
    "whole_and_part",
    "without_bad_documents",
]
