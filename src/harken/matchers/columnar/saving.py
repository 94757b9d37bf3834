"""Saving a matcher, or statistics alone, as array files; loading maps the arrays as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harken.codes.saved_arrays import SavedArrays
from harken.errors import OutdatedError, SegmentError
from harken.kernels.clusters import Clusters
from harken.kernels.pool import Pools
from harken.kernels.sieve import Sieve
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.columnar.index import ColumnarIndex
from harken.matchers.columnar.layer import Layer
from harken.matchers.columnar.matcher import Columnar, ColumnarState
from harken.matchers.columnar.plan import IndexPlan
from harken.matchers.columnar.sample import Sample, SampleState, Statistics
from harken.matchers.columnar.search import SearchableLayer
from harken.matchers.columnar.versions import Version
from harken.matchers.roles import Write
from harken.versions.array_file import ArrayFile

INDEX, STATISTICS = "index", "statistics"
LAYOUT_OF = {INDEX: 7, STATISTICS: 2}
"""Layout versions. Increment when the meaning of the saved arrays changes; both contain arrays of dictionaries."""
_REMEDIES = {
    INDEX: "load it with `Engine.load`, and save or publish it again",
    STATISTICS: "learn from events again, and save the result",
}


def save_state(state: ColumnarState, write: Write) -> None:
    """Write a state. The matcher may change meanwhile."""
    version, base = state.version, state.version.base
    saved = _Saved(
        {"kind": INDEX, "layout": LAYOUT_OF[INDEX], "options": state.options, "merges": state.merges, "rows": {}}
    )
    saved.put_columns("columns", version.columns, version.dictionaries)
    saved.meta["base"] = {"columns": base.columns, "dead": base.dead, "events": base.events}
    layer = base.layer
    for name, index, plan, seen in zip(_PARTS, (layer.plain, layer.careful), layer.plans, base.seen, strict=True):
        saved.put_named(f"{name}/clusters", index.clusters)
        saved.put_named(f"{name}/pools", index.pools)
        saved.put_named(f"{name}/sieve", index.sieve)
        saved.put(name, ids=index.ids, dead=index.dead, seen=seen)
        saved.meta[name] = plan.to_dict()
        saved.meta["rows"][name] = len(index)
    saved.put("layer", doubtful=layer.doubtful)
    saved.put_named("sample", state.sample.state())
    saved.put_statistics("given", state.supplied)
    write(INDEX, saved.arrays, saved.meta)


def load_matcher(files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS, **options: Any) -> Columnar | None:
    """The saved matcher, or None if none was saved. `options` override the saved ones. Raises OutdatedError."""
    if INDEX not in files:
        return None
    saved = _opened(files, INDEX)
    columns, dictionaries = saved.columns("columns")
    indexes, plans, seen = [], [], []
    for name in _PARTS:
        clusters, pools = saved.named(f"{name}/clusters", Clusters), saved.named(f"{name}/pools", Pools)
        sieve = saved.named(f"{name}/sieve", Sieve)
        ids, dead = saved.arrays[f"{name}/ids"], saved.arrays[f"{name}/dead"]
        indexes.append(ColumnarIndex(clusters, pools, sieve, ids, saved.meta["rows"][name], dead))
        plans.append(IndexPlan.of_dict(saved.meta[name]))
        seen.append(saved.arrays[f"{name}/seen"])
    layer = Layer(indexes[0], indexes[1], saved.arrays["layer/doubtful"], (plans[0], plans[1]))
    base = SearchableLayer(layer, saved.meta["base"]["columns"])
    base.dead, base.seen = saved.meta["base"]["dead"], seen
    base.events = saved.meta["base"]["events"]
    sample = Sample.of_state(saved.named("sample", SampleState))
    state = ColumnarState(
        Version(columns, dictionaries, base, (), ()),
        sample,
        saved.statistics("given"),
        saved.meta["merges"],
        saved.meta["options"],
    )
    return Columnar.of_state(state, limits, **options)


def save_statistics(statistics: Statistics, write: Write) -> None:
    """Write statistics of events as one file."""
    saved = _Saved({"kind": STATISTICS, "layout": LAYOUT_OF[STATISTICS]})
    saved.put_statistics(STATISTICS, statistics)
    write(STATISTICS, saved.arrays, saved.meta)


def load_statistics(files: Mapping[str, ArrayFile]) -> Statistics:
    """The saved statistics, for `Columnar.give`."""
    return _opened(files, STATISTICS).statistics(STATISTICS)


_PARTS = ("plain", "careful")


@dataclass(frozen=True, slots=True)
class _Saved(SavedArrays):
    """Saved arrays, with statistics of events."""

    def put_statistics(self, name: str, statistics: Statistics) -> None:
        self.put_columns(f"{name}/columns", statistics.columns, statistics.dictionaries)
        self.put(name, codes=statistics.codes)

    def statistics(self, name: str) -> Statistics:
        return Statistics(*self.columns(f"{name}/columns"), self.arrays[f"{name}/codes"])


def _opened(files: Mapping[str, ArrayFile], kind: str) -> _Saved:
    """The content of the file of this kind. Raises SegmentError if it is missing or has another layout."""
    file = files.get(kind)
    if file is None or file.meta.get("kind") != kind:
        raise SegmentError(f"the saved files have no {kind} of the columnar matcher")
    layout, current = file.meta.get("layout", 0), LAYOUT_OF[kind]
    if layout != current:
        message = f"the {kind} was saved in layout {layout}, and this Harken reads layout {current}"
        if layout < current:
            raise OutdatedError(message, hint=_REMEDIES[kind])
        raise SegmentError(message, hint="use the Harken that saved it, or a later one")
    return _Saved(dict(file.meta), dict(file.arrays))
