"""The time from dicts, JSON lines and Arrow to codes, for batches of events with ten attributes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from harken.codes.columns import ColumnPredicates
from harken.codes.flat import Flat
from harken.events import EventBatch, read_events, validate
from harken_lab.bench.figures import BenchResult, Key
from harken_lab.bench.trials import CONTESTANTS
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.harness.rounds import interleaved
from harken_lab.workloads import generate

BATCH = 4_096


def measure_encoding(result: BenchResult, size: int, seed: int, rounds: int, batch: int = BATCH) -> None:
    """Time a batch from three forms, for two sets of events: integers; strings and numbers, some of them missing."""
    for name, (predicates, events) in {
        "w4": _of("w4", size, batch, seed),
        "le-subscribe and stock": _both(size, batch, seed),
    }.items():
        flat = Flat.of_predicates(np.arange(size, dtype=np.int32), predicates)
        matcher = CONTESTANTS["columnar"].fill_rows(flat).matcher
        forms = _forms(events, matcher)
        expected = forms["Arrow"]().codes
        for form, run in forms.items():
            if not np.array_equal(run().codes, expected):
                raise WrongAnswerError(f"{name}: the codes from {form} differ from those from Arrow")
        for form, timing in interleaved(forms, rounds).items():
            result.add(Key("to_codes", name, part=form), timing.microseconds(batch))


def _of(name: str, size: int, events: int, seed: int) -> tuple[list[ColumnPredicates], pa.Table]:
    workload = generate(name, size, events, seed)
    return workload.predicates, workload.events


def _both(size: int, events: int, seed: int) -> tuple[list[ColumnPredicates], pa.Table]:
    """The six attributes of le-subscribe, half of them missing, and four of stock. Four of the ten are strings."""
    left, left_events = _of("le-subscribe", size, events, seed)
    right, right_events = _of("stock", size, events, seed)
    columns = {name: table[name] for table in (left_events, right_events) for name in table.column_names}
    return [*left, *right[:4]], pa.table(dict(list(columns.items())[:10]))


def _forms(events: pa.Table, matcher: Any) -> dict[str, Callable[[], Any]]:
    dicts = [{name: value for name, value in row.items() if value is not None} for row in events.to_pylist()]
    lines = "".join(json.dumps(each) + "\n" for each in dicts).encode()
    return {
        "dicts": lambda: matcher.encode(validate(dicts).batch),
        "JSON lines": lambda: matcher.encode(_read(lines, len(dicts))),
        "Arrow": lambda: matcher.encode(validate(events).batch),
    }


def _read(lines: bytes, count: int) -> EventBatch:
    decoded = list(read_events(io.BytesIO(lines), format="jsonl", batch_size=count))
    rejected: list[Any] = list(chain.from_iterable(each.rejected for each in decoded))
    if len(decoded) != 1 or rejected:
        raise RuntimeError(f"{count:,} lines became {len(decoded)} batches, {len(rejected)} lines were rejected")
    return decoded[0].batch
