"""The report of a columnar matcher: its layers, the plan of each group, expected and measured costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from harken.codes.dictionary import Dictionary
from harken.matchers.columnar.costs import DEFAULT_COSTS, LAYOUT_NAMES, POOL, SIEVE
from harken.matchers.columnar.plan import IndexPlan
from harken.matchers.columnar.sample import Sample
from harken.matchers.columnar.search import SearchableLayer
from harken.matchers.columnar.versions import Version

# The cost of an event besides the search, in nanoseconds: fixed, per column, per number written, and per candidate that
# is verified or made unique.
_EVENT_NS, _COLUMN_NS, _NUMBER_NS, _VERIFIED_NS, _UNIQUE_NS = 150.0, 60.0, 0.5, 5_000.0, 60.0


_MANY = 64


@dataclass(slots=True)
class BatchCosts:
    """Cost of the batches so far, except small ones. Not locked: threads may lose updates."""

    events: int = 0
    numbers: int = 0
    seconds: float = 0.0

    def add(self, events: int, numbers: int, seconds: float) -> None:
        if events >= _MANY:
            self.events += events
            self.numbers += numbers
            self.seconds += seconds


def report(version: Version, sample: Sample, merges: int, spent: BatchCosts) -> dict[str, Any]:
    """Sizes, plans and costs, as plain data."""
    names = [str(column) for column in version.columns]
    nbytes = sum(searched.layer.nbytes for searched in version.layers) + _bytes_of_recent(version)
    return {
        "rows": sum(map(len, version.layers)) + sum(map(len, version.recents)),
        "recent_rows": sum(map(len, version.recents)),
        "deleted_rows": sum(searched.dead for searched in version.layers),
        "columns": names,
        "constants": sum(map(len, version.dictionaries)),
        "bytes": nbytes,
        "memory": {"index": nbytes, "labels": sum(map(_bytes_of_dictionary, version.dictionaries))},
        "merges": merges,
        "events_seen": sample.seen,
        "events_sampled": len(sample),
        "layers": [_chains(version, names)]
        if _is_small(version)
        else [_layer(searched, names) for searched in version.layers],
        "besides": _besides(version, spent),
        "seen_ns": round(spent.seconds / spent.events * 1e9) if spent.events else None,
    }


def _besides(version: Version, spent: BatchCosts) -> dict[str, Any]:
    """Expected cost of an event besides the search: encoding, verifying candidates, writing matches."""
    careful = [
        (sum(_candidates(layer.plans[1])), len(layer.doubtful) / max(1, len(layer.careful)))
        for layer in (searched.layer for searched in version.layers)
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
    return not any(len(searched.layer) for searched in version.layers) and any(map(len, version.recents))


def _chains(version: Version, names: list[str]) -> dict[str, Any]:
    """The rows of a small engine as one group. Its cost is an upper bound: as if one chain had all rows."""
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
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def _bytes_of_recent(version: Version) -> int:
    return sum(recent.nbytes for recent in version.recents if len(recent))


def _layer(searched: SearchableLayer, names: list[str]) -> dict[str, Any]:
    layer = searched.layer
    groups = [
        group
        for plan, seen, careful in zip(layer.plans, searched.seen, (False, True), strict=True)
        for group in _groups(plan, seen, names, searched.events, careful)
    ]
    return {"rows": len(searched), "deleted_rows": searched.dead, "bytes": layer.nbytes, "groups": groups}


def _groups(plan: IndexPlan, seen: Any, names: list[str], events: int, careful: bool) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    for group, looked_at in zip(plan.groups, seen, strict=False):
        groups.append(
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
        groups.append(
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
        groups.append(
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
    return groups


def _mean(looked_at: np.int64, events: int) -> float | None:
    return round(float(looked_at) / events, 3) if events else None
