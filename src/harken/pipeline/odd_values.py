"""Odd values: those of another kind than every subscription compares with, such as "lots" where all expect a number.

Comparing one is unknown, as between any unlike kinds. The event is matched all the same; each odd value is counted and
listed with the dead letters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harken.events import Event
from harken.events.excerpt import short_name, shorten
from harken.pipeline.exact_values import EXACT
from harken.pipeline.used_attributes import UsedAttributes
from harken.schema import Kind, Path, format_path
from harken.schema.values import KINDS
from harken.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FOUND = "array<struct<attribute:string,reason:string>>"
_OF_JSON = (Kind.NUMBER, Kind.STRING, Kind.BOOLEAN)
"""Kinds that a value can have without a schema."""


def odd_values(events: DataFrame, used: UsedAttributes) -> DataFrame:
    """A row for each odd value: the columns of its event, the `attribute`, and the `reason` in words."""
    from pyspark.sql import functions as f

    expected = {path: kind for path, kind in used.of_one_kind().items() if kind in _OF_JSON}
    found = f.udf(lambda text: odd_in(text, expected), _FOUND)
    rows = events.where(column(EXACT).isNotNull())
    return rows.select("*", f.inline(found(column(EXACT))))


def counted_odd(odd: DataFrame) -> dict[str, int]:
    """The number of odd values of each attribute. This reads the rows."""
    return {row["attribute"]: row["count"] for row in odd.groupBy("attribute").count().orderBy("attribute").collect()}


def odd_in(exact: str, expected: Mapping[Path, Kind]) -> list[tuple[str, str]]:
    """The first odd value of each attribute among the exact values of an event, with the reason."""
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
