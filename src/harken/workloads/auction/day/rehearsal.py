"""All that a pipeline's tasks do, on a small day: Numba then has compiled and kept every kernel before it is needed.

python -m harken.workloads.auction.day.rehearsal
"""

from __future__ import annotations

import json
import tempfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from harken.engine import Engine
from harken.events import validate
from harken.workloads.auction.day.events import event_lines
from harken.workloads.auction.day.goods import schema, sellers
from harken.workloads.auction.day.wishes import wishes
from harken.workloads.recipes import generate

_SUBSCRIPTIONS = 6_000
_EVENTS = 2_000
_TIMES = {"at", "ends"}


def rehearse() -> int:
    """Build an index in two parts, join, save and load them, and match. Returns the number of matches."""
    _pool()
    wanted = list(wishes(_SUBSCRIPTIONS, 1, 20 * _EVENTS))
    half = len(wanted) // 2
    with tempfile.TemporaryDirectory(prefix="harken-rehearsal-") as folder:
        parts = [_saved(wanted[:half], Path(folder, "one")), _saved(wanted[half:], Path(folder, "two"))]
        joined, _ = Engine.join([Engine.load(part) for part in parts])
        joined.save(Path(folder, "joined"))
        engine = Engine.load(Path(folder, "joined"), background=False)
        found = engine.match_decoded(validate(_events(), engine.schema))
        found.arrow_names()
        found.arrow_fields("owner")
        return len(found.numbers)


def _pool() -> None:
    """A dense workload, which is laid out otherwise than wishes are."""
    dense = generate("w4", 4_000, 10)
    engine = Engine(background=False)
    engine.subscribe_many(dense.table())
    engine.merge()


def _saved(wanted: list[Any], place: Path) -> Path:
    engine = Engine(schema(), background=False)
    columns = ("id", "owner", "kind", "where")
    engine.subscribe_many(pa.table({name: [getattr(wish, name) for wish in wanted] for name in columns}))
    engine.save(place)
    return place


def _events() -> pa.RecordBatch:
    """Events that can be read, as Spark hands them over."""
    known = {row["seller"]: row for row in sellers(1).to_pylist()}
    rows = []
    for _, line in event_lines(_EVENTS, 1):
        if line.endswith("}"):
            event = json.loads(line)
            if isinstance(event["price"], float):
                rows.append(_typed(event, known[event["seller"]]))
    names = dict.fromkeys(name for row in rows for name in row)
    types = {datetime: pa.timestamp("us", "UTC"), date: pa.date32()}
    arrays = []
    for name in names:
        values = [row.get(name) for row in rows]
        kind = next(type(value) for value in values if value is not None)
        arrays.append(pa.array(values, types.get(kind)))
    return pa.RecordBatch.from_arrays(arrays, list(names))


def _typed(event: dict[str, Any], seller: dict[str, Any]) -> dict[str, Any]:
    plain = {name: datetime.fromisoformat(value) if name in _TIMES else value for name, value in event.items()}
    plain.pop("id", None)
    about = {f"seller_{name}": seller[name] for name in ("country", "rating", "since", "business")}
    return plain | about


if __name__ == "__main__":
    rehearse()
