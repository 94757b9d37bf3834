"""Odd values: those of another kind than all subscriptions ask for, such as "lots" where they ask for a number.

Comparisons with such a value are unknown, as for every value of an unlike kind. The event is matched all the same, and
each odd value is counted and listed with the dead letters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harken.events import Event
from harken.events.excerpt import short_name, shorten
from harken.pipeline.asked import Asked
from harken.schema import Kind, Path, format_path
from harken.schema.values import KINDS
from harken.spark.frames import column
from harken.spark.task import EXACT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FOUND = "array<struct<attribute:string,reason:string>>"
_OF_JSON = (Kind.NUMBER, Kind.STRING, Kind.BOOLEAN)
"""Kinds that a value can have without a schema."""


def odd_values(events: DataFrame, asked: Asked) -> DataFrame:
    """A row for each odd value: the columns of its event, its `attribute`, and what is odd, in words, as `reason`."""
    from pyspark.sql import functions as f

    expected = {path: kind for path, kind in asked.agreed().items() if kind in _OF_JSON}
    found = f.udf(lambda text: odd_in(text, expected), _FOUND)
    rows = events.where(column(EXACT).isNotNull())
    return rows.select("*", f.inline(found(column(EXACT))))


def counted_odd(odd: DataFrame) -> dict[str, int]:
    """How many odd values each attribute has. The rows are read."""
    return {row["attribute"]: row["count"] for row in odd.groupBy("attribute").count().orderBy("attribute").collect()}


def odd_in(exact: str, expected: Mapping[Path, Kind]) -> list[tuple[str, str]]:
    """The odd values among the exact ones of an event: each attribute's first, with what is odd about it."""
    event = Event(json.loads(exact))
    found = []
    for path, kind in expected.items():
        for value in event.values(path) if path[0] in event.attributes else ():
            if value is not None and KINDS.get(type(value)) is not kind:
                text = shorten(json.dumps(value, ensure_ascii=False))
                reason = f"{short_name(path)} is {text}, where subscriptions ask for a {kind}"
                found.append((format_path(path), reason))
                break
    return found
