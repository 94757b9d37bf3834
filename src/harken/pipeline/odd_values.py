"""Finds odd values: values of another kind than all subscriptions compare with, such as "lots" instead of a number.

A comparison with an odd value is unknown, as always between different kinds. The event is still matched; each odd value
is counted and becomes a dead letter.
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

_ODD_VALUES = "array<struct<attribute:string,reason:string>>"
_OF_JSON = (Kind.NUMBER, Kind.STRING, Kind.BOOLEAN)
"""Kinds that values in JSON have without a schema."""


def odd_values(events: DataFrame, used: UsedAttributes) -> DataFrame:
    """A row for each odd value: the columns of its event, the `attribute`, and the `reason` in words."""
    from pyspark.sql import functions as f

    expected = {path: kind for path, kind in used.of_one_kind().items() if kind in _OF_JSON}
    values = f.udf(lambda exact: odd_values_of_event(exact, expected), _ODD_VALUES)
    rows = events.where(column(EXACT).isNotNull())
    return rows.select("*", f.inline(values(column(EXACT))))


def count_odd_values(odd: DataFrame) -> dict[str, int]:
    """Count the odd values of each attribute. This reads the rows."""
    return {row["attribute"]: row["count"] for row in odd.groupBy("attribute").count().orderBy("attribute").collect()}


def odd_values_of_event(exact: str, expected: Mapping[Path, Kind]) -> list[tuple[str, str]]:
    """The attributes of an event that have an odd value, each with the reason for its first one.

    `exact` has the exact values of the event, as JSON.
    """
    event = Event(json.loads(exact))
    odd = []
    for path, kind in expected.items():
        for value in event.values(path) if path[0] in event.attributes else ():
            if value is not None and KINDS.get(type(value)) is not kind:
                text = shorten(json.dumps(value, ensure_ascii=False))
                reason = f"{short_name(path)} is {text}, where subscriptions expect a {kind}"
                odd.append((format_path(path), reason))
                break
    return odd
