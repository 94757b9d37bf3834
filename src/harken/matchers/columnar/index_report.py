"""What the matcher tells about itself: its layers, the plan of each group, what was expected and what was seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from harken.codes.dictionary import Dictionary
from harken.matchers.columnar.costs import DEFAULT_COSTS, LAYOUT_NAMES, POOL, SIEVE
from harken.matchers.columnar.plan import IndexPlan
from harken.matchers.columnar.sample import Sample
from harken.matchers.columnar.search import Searched
from harken.matchers.columnar.versions import Version

# What an event costs besides the search, in nanoseconds: for itself, for each column, for each number that is written,
# and for a candidate that is verified or, where several rows may be true of one event, made unique.
_EVENT_NS, _COLUMN_NS, _NUMBER_NS, _VERIFIED_NS, _UNIQUE_NS = 150.0, 60.0, 0.5, 5_000.0, 60.0


_MANY = 64


@dataclass(slots=True)
class BatchCosts:
    """What batches have cost so far, those of so many events that it tells something. Threads may lose a little."""

    events: int = 0
    numbers: int = 0
    seconds: float = 0.0

    def add(self, events: int, numbers: int, seconds: float) -> None:
        if events >= _MANY:
            self.events += events
            self.numbers += numbers
            self.seconds += seconds


def report(version: Version, sample: Sample, merges: int, spent: BatchCosts) -> dict[str, Any]:
    """Sizes and choices, as plain data."""
    names = [str(column) for column in version.columns]
    nbytes = sum(each.layer.nbytes for each in version.layers) + _bytes_of_recent(version)
    return {
        "rows": sum(map(len, version.layers)) + sum(map(len, version.recents)),
        "recent_rows": sum(map(len, version.recents)),
        "deleted_rows": sum(each.dead for each in version.layers),
        "columns": names,
        "constants": sum(map(len, version.dictionaries)),
        "bytes": nbytes,
        "memory": {"index": nbytes, "labels": sum(map(_bytes_of_dictionary, version.dictionaries))},
        "merges": merges,
        "events_seen": sample.seen,
        "events_sampled": len(sample),
        "layers": [_chains(version, names)] if _is_small(version) else [_layer(each, names) for each in version.layers],
        "besides": _besides(version, spent),
        "seen_ns": round(spent.seconds / spent.events * 1e9) if spent.events else None,
    }


def _besides(version: Version, spent: BatchCosts) -> dict[str, Any]:
    """What an event costs besides the search: encoding, verifying candidates, writing as many numbers as were seen."""
    careful = [
        (sum(_candidates(layer.plans[1])), len(layer.doubtful) / max(1, len(layer.careful)))
        for layer in (each.layer for each in version.layers)
    ]
    verifying = sum(count * (share * _VERIFIED_NS + _UNIQUE_NS) for count, share in careful)
    written = spent.numbers / spent.events if spent.events else 0.0
    return {
        "encoding": {"expected_ns": round(_EVENT_NS + _COLUMN_NS * len(version.columns), 1)},
        "verifying": {"expected_ns": round(verifying, 1)},
        "writing": {"expected_ns": round(written * _NUMBER_NS, 1)},
    }


def _candidates(plan: IndexPlan) -> Iterator[float]:
    yield from (group.candidates for group in plan.groups)
    yield from (pool.reach * pool.visited * pool.size for pool in plan.pools)


def _is_small(version: Version) -> bool:
    return not any(len(each.layer) for each in version.layers) and any(map(len, version.recents))


def _chains(version: Version, names: list[str]) -> dict[str, Any]:
    """The rows of a small engine as one group, with what they cost at most: one chain has them all."""
    rows = sum(map(len, version.recents))
    group = {
        "layout": "chains",
        "rows": rows,
        "attributes": names,
        "key": None,
        "filter": [],
        "range": None,
        "expected_candidates": float(rows),
        "seen_candidates": None,
        "expected_ns": round(rows * DEFAULT_COSTS.list_slot, 2),
        "verified": False,
    }
    return {"rows": rows, "deleted_rows": 0, "bytes": _bytes_of_recent(version), "groups": [group]}


def _bytes_of_dictionary(dictionary: Dictionary) -> int:
    arrays = (getattr(dictionary, each.name) for each in fields(dictionary))
    return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))


def _bytes_of_recent(version: Version) -> int:
    return sum(each.nbytes for each in version.recents if len(each))


def _layer(searched: Searched, names: list[str]) -> dict[str, Any]:
    layer = searched.layer
    groups = [
        group
        for plan, seen, careful in zip(layer.plans, searched.seen, (False, True), strict=True)
        for group in _groups(plan, seen, names, searched.events, careful)
    ]
    return {"rows": len(searched), "deleted_rows": searched.dead, "bytes": layer.nbytes, "groups": groups}


def _groups(plan: IndexPlan, seen: Any, names: list[str], events: int, careful: bool) -> list[dict[str, Any]]:
    found = []
    for group, looked_at in zip(plan.groups, seen, strict=False):
        found.append(
            {
                "layout": LAYOUT_NAMES[group.layout],
                "rows": group.size,
                "attributes": [names[column] for column in group.columns],
                "key": None if group.key < 0 else names[group.key],
                "filter": [names[column] for column in group.filtered],
                "range": None if group.bound < 0 else names[group.bound],
                "expected_candidates": round(group.candidates, 3),
                "seen_candidates": _mean(looked_at, events),
                "expected_ns": round(group.cost, 2),
                "verified": careful,
            }
        )
    for pool, looked_at in zip(plan.pools, seen[len(plan.groups) :], strict=False):
        found.append(
            {
                "layout": LAYOUT_NAMES[POOL],
                "rows": pool.size,
                "attributes": [names[column] for column in pool.columns],
                "directory": [names[column] for column in pool.directory],
                "expected_candidates": round(pool.reach * pool.visited * pool.size, 3),
                "seen_candidates": _mean(looked_at, events),
                "expected_ns": round(pool.cost, 2),
                "verified": careful,
            }
        )
    for sieve, looked_at in zip(plan.sieves, seen[-1:], strict=False):
        found.append(
            {
                "layout": LAYOUT_NAMES[SIEVE],
                "rows": sieve.size,
                "attributes": [names[column] for column in sieve.columns],
                "directory": [],
                "expected_candidates": round(sieve.live * sieve.size, 3),
                "seen_candidates": _mean(looked_at, events),
                "expected_tests": round(sieve.tested, 3),
                "expected_ns": round(sieve.cost, 2),
                "verified": careful,
            }
        )
    return found


def _mean(looked_at: np.int64, events: int) -> float | None:
    return round(float(looked_at) / events, 3) if events else None
