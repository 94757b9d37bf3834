"""Engines cut into parts, each of which finds its share of the subscriptions, and parts made one engine again.

Rows of the index are carried over as they are, with their constants: nothing is parsed again.
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
    """Subscriptions and their index. None for one that takes the subscriptions anew."""

    catalogue: Catalogue
    numbering: Numbering
    index: Indexes | None


def cut(index: Indexes, catalogue: Catalogue, size: int, parts: int) -> list[Shard]:
    """Parts of about the same cost and size. All rows of a subscription are in one of them.

    Neighbours in the index stay together, so that a part has few clusters, and an event finds nothing in most.
    """
    table = catalogue.table(size)
    matcher, others = index.flat, _others(index)
    if not isinstance(matcher, Divides) or others is None:
        taken = np.flatnonzero(table.column(0).is_valid().to_numpy())
        return [_part(table.take(pa.array(each)), None, catalogue.asked) for each in np.array_split(taken, parts)]
    flat = matcher.rows()
    share = _shares(*matcher.weights(), size, parts)
    for other in others.values():
        for place, numbers in enumerate(np.array_split(np.sort(np.array(other.numbers(), np.int64)), parts)):
            share[numbers] = place
    found = []
    for place in range(parts):
        chosen = np.flatnonzero(share == place)
        rows = _renumbered(flat.only(share[flat.numbers] == place), chosen)
        new = np.full(size, -1, np.int32)
        new[chosen] = np.arange(len(chosen))
        own = {kind: other.renumbered(new) for kind, other in others.items()}
        found.append(_part(table.take(pa.array(chosen)), index.like(matcher.made_of(rows), own), catalogue.asked))
    return found


def join(parts: Sequence[tuple[Indexes, Catalogue, int]]) -> tuple[Shard, list[str]]:
    """One of several parts, given with the size of their numberings, and the ids that a part before had taken.

    What was learnt of events is that of the first part.
    """
    tables = [catalogue.table(size) for _, catalogue, size in parts]
    table = pa.concat_tables(tables)
    kept, twice = _first_of_each(table.column(0).combine_chunks())
    chosen = np.flatnonzero(kept)
    firsts = np.cumsum([0, *(each.num_rows for each in tables)])
    names = [catalogue.asked for _, catalogue, _ in parts]
    asked = None if None in names else frozenset[str]().union(*(each or () for each in names))
    places = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    flats, own = [], []
    apart: dict[str, list[Renumbers]] = {}
    for (index, _, size), first in zip(parts, firsts.tolist(), strict=False):
        matcher, others = index.flat, _others(index)
        if not isinstance(matcher, Divides) or others is None:
            return _part(table.take(pa.array(chosen)), None, asked), twice
        flat = matcher.rows()
        moved = Flat(flat.numbers + np.int32(first), flat.columns, flat.inexact, flat.overlapping)
        flats.append(_renumbered(moved.only(kept[moved.numbers]), chosen))
        own.append(matcher)
        for kind, other in others.items():
            apart.setdefault(kind, []).append(other.renumbered(places[first : first + size]))
    if not own:
        return _part(table.take(pa.array(chosen)), None, asked), twice
    united = {kind: several[0].united(several[1:]) for kind, several in apart.items()}
    made = parts[0][0].like(own[0].made_of(joined(flats)), united)
    return _part(table.take(pa.array(chosen)), made, asked), twice


def _others(index: Indexes) -> dict[str, Renumbers] | None:
    """The matchers that are not flat, if all of them can be divided."""
    others = index.others()
    found: dict[str, Renumbers] = {kind: matcher for kind, matcher in others.items() if isinstance(matcher, Renumbers)}
    return found if len(found) == len(others) else None


def _part(table: pa.Table, index: Indexes | None, asked: frozenset[str] | None) -> Shard:
    columns = [CatalogueColumns(0, table)] if table.num_rows else []
    return Shard(Catalogue(columns, asked=asked), Numbering(table.num_rows), index)


def _renumbered(flat: Flat, chosen: NDArray[np.int64]) -> Flat:
    """The same rows, their subscriptions numbered by their places among those that are chosen, which ascend."""
    numbers = np.searchsorted(chosen, flat.numbers).astype(np.int32)
    return Flat(numbers, flat.columns, flat.inexact, flat.overlapping)


def _shares(numbers: NDArray[np.int32], weights: NDArray[np.float64], size: int, parts: int) -> NDArray[np.int64]:
    """The part of every number, -1 for those that are free, given the rows in the order of the index."""
    share = np.full(size, -1, np.int64)
    known, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    if not len(known):
        return share
    weight = np.bincount(inverse, weights)
    order = np.argsort(first, kind="stable")
    behind = np.cumsum(weight[order]) - weight[order] / 2
    share[known[order]] = np.minimum(behind / weight.sum() * parts, parts - 1).astype(np.int64)
    return share


def _first_of_each(ids: pa.Array) -> tuple[NDArray[np.bool_], list[str]]:
    """Which rows have an id that no row before them has, and the ids of others."""
    codes = ids.dictionary_encode()
    owner = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    kept = owner >= 0
    if not kept.any():
        return kept, []
    first = np.full(len(codes.dictionary), len(owner), np.int64)
    np.minimum.at(first, owner[kept], np.flatnonzero(kept))
    again = kept & (first[owner] != np.arange(len(owner)))
    return kept & ~again, ids.filter(pa.array(again)).to_pylist()
