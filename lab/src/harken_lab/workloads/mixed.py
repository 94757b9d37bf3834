"""Several workloads in one: their subscriptions shuffled together, their events in turn, their attributes disjoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from harken_lab.workloads.conditions import Conditions
from harken_lab.workloads.recipes import WORKLOADS
from harken_lab.workloads.workload import Drawn, Model, Workload


@dataclass(frozen=True)
class Mixed(Model):
    """Equal parts of several workloads. An attribute `s1` of `le-subscribe` becomes `le_subscribe_s1`."""

    kinds: tuple[str, ...] = ("w4", "le-subscribe", "stock", "gryphon")

    def __post_init__(self) -> None:
        names = [name for name, recipe in WORKLOADS.items() if name != "mixed" and recipe.has_table]
        if len(set(self.kinds)) < len(self.kinds) or not set(self.kinds) <= set(names):
            raise ValueError(f"`kinds` are different ones of: {', '.join(names)}")

    def draw(self, subscriptions: int, events: int, seeds: np.random.SeedSequence) -> Drawn:
        for_order, *for_kinds = seeds.spawn(1 + len(self.kinds))
        sizes = zip(_shares(subscriptions, len(self.kinds)), _shares(events, len(self.kinds)), strict=True)
        parts = {kind: _part(kind, *size, each) for kind, size, each in zip(self.kinds, sizes, for_kinds, strict=True)}
        order = np.random.default_rng(for_order).permutation(np.arange(subscriptions, dtype=np.int32))
        ends = np.cumsum([part.subscriptions for part in parts.values()])
        conditions: list[Conditions] = []
        for part, places in zip(parts.values(), np.split(order, ends[:-1]), strict=True):
            ascending = np.sort(places)
            conditions.extend(each.moved(ascending) for each in part.conditions)
        return Drawn(conditions, _in_turn([part.events for part in parts.values()], events), parts)


def _part(kind: str, subscriptions: int, events: int, seeds: np.random.SeedSequence) -> Workload:
    """A workload whose attributes have its name as prefix. Its seed is the mixture's: alone it draws another one."""
    recipe = WORKLOADS[kind]
    model = recipe.model_with({})
    drawn = model.draw(subscriptions, events, seeds)
    prefix = kind.replace("-", "_") + "_"
    conditions = [each.renamed(prefix + each.attribute) for each in drawn.conditions]
    table = drawn.events.rename_columns([prefix + name for name in drawn.events.column_names])
    seed = seeds.entropy
    assert isinstance(seed, int)
    return Workload(kind, recipe.description, asdict(model), seed, subscriptions, conditions, table)


def _shares(count: int, kinds: int) -> list[int]:
    """Divide a count into parts that differ by at most one."""
    return [(count + kinds - 1 - kind) // kinds for kind in range(kinds)]


def _in_turn(tables: list[pa.Table], events: int) -> pa.Table:
    """Events of the tables in turn, with nulls for the attributes of the other tables."""
    numbers = np.arange(events)
    columns = {}
    for kind, table in enumerate(tables):
        is_of_kind = numbers % len(tables) == kind
        places = pa.array(numbers // len(tables), mask=~is_of_kind)
        columns.update({name: table.column(name).take(places) for name in table.column_names})
    return pa.table(columns)
