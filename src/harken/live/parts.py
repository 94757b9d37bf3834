"""Cutting an engine into shards, each with a share of the subscriptions, and joining shards to one engine.

If all matchers can be divided, rows of the index are copied with their constants, and nothing is parsed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.codes.flat import Flat, joined
from harken.live.catalogue import Catalogue, CatalogueColumns
from harken.live.numbering import Numbering
from harken.matchers.kinds import Indexes
from harken.matchers.roles import Divides, Renumbers


@dataclass(frozen=True, slots=True)
class Shard:
    """Subscriptions and their index. Without one, an index is built from the texts."""

    catalogue: Catalogue
    numbering: Numbering
    index: Indexes | None


def cut(index: Indexes, catalogue: Catalogue, size: int, parts: int) -> list[Shard]:
    """Shards of about the same cost and size. All rows of a subscription are in one shard.

    Neighbours in the index stay together, so that a shard has few clusters, and an event matches nothing in most.
    """
    table = catalogue.table(size)
    matcher, others = index.flat, _others(index)
    if not isinstance(matcher, Divides) or others is None:
        taken = np.flatnonzero(table.column(0).is_valid().to_numpy())
        return [_part(table.take(pa.array(each)), None, catalogue.used_names) for each in np.array_split(taken, parts)]
    flat = matcher.rows()
    share = _shares(*matcher.weights(), size, parts)
    for other in others.values():
        for place, numbers in enumerate(other.shares(parts)):
            share[numbers] = place
    shards = []
    for place in range(parts):
        chosen = np.flatnonzero(share == place)
        rows = _renumbered(flat.only(share[flat.numbers] == place), chosen)
        new = np.full(size, -1, np.int32)
        new[chosen] = np.arange(len(chosen))
        divided = {kind: other.renumbered(new) for kind, other in others.items()}
        part_index = index.like(matcher.made_of(rows), divided)
        shards.append(_part(table.take(pa.array(chosen)), part_index, catalogue.used_names))
    return shards


def join(parts: Sequence[tuple[Indexes, Catalogue, int]]) -> tuple[Shard, list[str]]:
    """One shard of several, each given with the size of its numbering, and the ids of duplicates, which are dropped.

    What was learnt from events is kept from the first shard.
    """
    tables = [catalogue.table(size) for _, catalogue, size in parts]
    table = pa.concat_tables(tables)
    kept, duplicates = _first_of_each(table.column(0).combine_chunks())
    chosen = np.flatnonzero(kept)
    firsts = np.cumsum([0, *(each.num_rows for each in tables)])
    names = [catalogue.used_names for _, catalogue, _ in parts]
    used_names = None if None in names else frozenset[str]().union(*(each or () for each in names))
    places = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    flats, flat_matchers = [], []
    by_kind: dict[str, list[Renumbers]] = {}
    for (index, _, size), first in zip(parts, firsts.tolist(), strict=False):
        matcher, others = index.flat, _others(index)
        if not isinstance(matcher, Divides) or others is None:
            return _part(table.take(pa.array(chosen)), None, used_names), duplicates
        flat = matcher.rows()
        moved = Flat(flat.numbers + np.int32(first), flat.columns, flat.inexact, flat.overlapping)
        flats.append(_renumbered(moved.only(kept[moved.numbers]), chosen))
        flat_matchers.append(matcher)
        for kind, other in others.items():
            by_kind.setdefault(kind, []).append(other.renumbered(places[first : first + size]))
    if not flat_matchers:
        return _part(table.take(pa.array(chosen)), None, used_names), duplicates
    united = {kind: several[0].united(several[1:]) for kind, several in by_kind.items()}
    index = parts[0][0].like(flat_matchers[0].made_of(joined(flats)), united)
    return _part(table.take(pa.array(chosen)), index, used_names), duplicates


def _others(index: Indexes) -> dict[str, Renumbers] | None:
    """The matchers of the kinds that are not flat; None unless all of them can be divided."""
    others = index.others()
    able: dict[str, Renumbers] = {kind: matcher for kind, matcher in others.items() if isinstance(matcher, Renumbers)}
    return able if len(able) == len(others) else None


def _part(table: pa.Table, index: Indexes | None, used_names: frozenset[str] | None) -> Shard:
    columns = [CatalogueColumns(0, table)] if table.num_rows else []
    return Shard(Catalogue(columns, used_names=used_names), Numbering(table.num_rows), index)


def _renumbered(flat: Flat, chosen: NDArray[np.int64]) -> Flat:
    """The rows, whose subscriptions are numbered by their places in `chosen`, which ascends."""
    numbers = np.searchsorted(chosen, flat.numbers).astype(np.int32)
    return Flat(numbers, flat.columns, flat.inexact, flat.overlapping)


def _shares(numbers: NDArray[np.int32], weights: NDArray[np.float64], size: int, parts: int) -> NDArray[np.int64]:
    """The shard of each number, -1 for a free one. The rows come in the order of the index."""
    share = np.full(size, -1, np.int64)
    distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    if not len(distinct):
        return share
    weight = np.bincount(inverse, weights)
    order = np.argsort(first, kind="stable")
    behind = np.cumsum(weight[order]) - weight[order] / 2
    share[distinct[order]] = np.minimum(behind / weight.sum() * parts, parts - 1).astype(np.int64)
    return share


def _first_of_each(ids: pa.Array) -> tuple[NDArray[np.bool_], list[str]]:
    """A mask of the rows whose id no earlier row has, and the ids of the duplicates."""
    codes = ids.dictionary_encode()
    owner = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    kept = owner >= 0
    if not kept.any():
        return kept, []
    first = np.full(len(codes.dictionary), len(owner), np.int64)
    np.minimum.at(first, owner[kept], np.flatnonzero(kept))
    is_duplicate = kept & (first[owner] != np.arange(len(owner)))
    return kept & ~is_duplicate, ids.filter(pa.array(is_duplicate)).to_pylist()
