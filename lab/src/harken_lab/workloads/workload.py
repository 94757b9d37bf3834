"""A workload as it was drawn: its subscriptions as arrays, as texts and as a table, and its events as a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.codes.columns import ColumnPredicates
from harken.concurrency.caching import cached_property
from harken_lab.workloads.conditions import Conditions, as_predicates
from harken_lab.workloads.listing import PREDICATE, Listing

BLOCK = 65_536
"""Subscriptions written out at once. This bounds memory, and keeps Arrow's offsets within 32 bits."""

_TYPES = {"where": pa.string(), "predicates": pa.list_(PREDICATE)}


class Drawn(NamedTuple):
    """The result of a model: conditions or texts, and events."""

    conditions: Sequence[Conditions]
    events: pa.Table
    parts: Mapping[str, Workload] = MappingProxyType({})
    written: Sequence[str] | None = None


@dataclass(frozen=True)
class Model(ABC):
    """Draws subscriptions and events. Its fields are the parameters."""

    language: ClassVar[str] = "sql"
    """The language of the subscriptions."""

    @abstractmethod
    def draw(self, subscriptions: int, events: int, seeds: np.random.SeedSequence) -> Drawn:
        """Draw both. The number of events does not change the subscriptions, nor the reverse."""


@dataclass(frozen=True)
class PlainModel(Model):
    """Draws subscriptions and events of one kind."""

    def draw(self, subscriptions: int, events: int, seeds: np.random.SeedSequence) -> Drawn:
        for_subscriptions, for_events = map(np.random.default_rng, seeds.spawn(2))
        conditions = list(self.conditions(subscriptions, for_subscriptions))
        return Drawn([each for each in conditions if len(each.rows)], self.events(events, for_events))

    @abstractmethod
    def conditions(self, rows: int, rng: np.random.Generator) -> Iterator[Conditions]:
        """The subscriptions, attribute by attribute."""

    @abstractmethod
    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        """The events, with nulls where they lack an attribute."""


@dataclass(frozen=True)
class WrittenModel(Model):
    """Draws subscriptions as texts: a table of predicates cannot express them."""

    def draw(self, subscriptions: int, events: int, seeds: np.random.SeedSequence) -> Drawn:
        for_subscriptions, for_events = map(np.random.default_rng, seeds.spawn(2))
        texts = list(self.texts(subscriptions, for_subscriptions))
        return Drawn([], self.events(events, for_events), written=texts)

    @abstractmethod
    def texts(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        """The subscriptions in their language."""

    @abstractmethod
    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        """The events, with nulls where they lack an attribute."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Subscriptions and events of one kind. Subscription i is row i of the predicates, and has the id `s{i}`."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    seed: int
    """The seed, the name, the sizes and the parameters together draw the same workload again."""
    subscriptions: int
    """The number of subscriptions."""
    conditions: Sequence[Conditions] = field(repr=False)
    """The subscriptions by operator and constant, an attribute at a time."""
    events: pa.Table = field(repr=False)
    parts: Mapping[str, Workload] = field(default_factory=dict, repr=False)
    """The parts of a mixed workload, by name. Each has rows of its own, and the attribute names of the mixture."""
    written: Sequence[str] | None = field(default=None, repr=False)
    """The subscriptions as texts, if conditions cannot express them."""
    language: str = "sql"
    """The language of the texts."""

    @property
    def has_table(self) -> bool:
        """Whether a table of predicates can express the subscriptions."""
        return self.written is None

    @cached_property
    def predicates(self) -> list[ColumnPredicates]:
        """The subscriptions, column by column, in the form that an index takes."""
        self._require_conditions()
        return as_predicates(self.conditions)

    def texts(self) -> pa.ChunkedArray:
        """The subscriptions in their language."""
        return pa.chunked_array([each.column("where") for each in self.batches("where")], pa.string())

    def table(self) -> pa.Table:
        """The subscriptions as `id` and `predicates`. The constant is in `integer` or `string`; the other is null."""
        return pa.Table.from_batches(self.batches("predicates"), subscription_schema("predicates"))

    def batches(self, form: Literal["where", "predicates"], rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """The subscriptions in batches of `rows`, by default blocks: `id`, and their texts or lists of predicates.

        If the texts are not SQL, there is also a column `language`.
        """
        if form == "predicates":
            self._require_conditions()
        rows = rows or BLOCK
        for start in range(0, self.subscriptions, rows):
            stop = min(start + rows, self.subscriptions)
            if self.written is not None:
                content = pa.array(self.written[start:stop], pa.string())
            else:
                listing = self._listing
                content = listing.texts(start, stop) if form == "where" else listing.predicates(start, stop)
            columns = [_ids(start, stop), content]
            schema = subscription_schema(form, self.language)
            if len(schema) > len(columns):
                columns.append(pa.repeat(pa.scalar(self.language), stop - start))
            yield pa.record_batch(columns, schema=schema)

    def event_batches(self, rows: int) -> Iterator[pa.Table]:
        """The events in batches of `rows`."""
        return (self.events.slice(start, rows) for start in range(0, self.events.num_rows, rows))

    def _require_conditions(self) -> None:
        if self.written is not None:
            raise ValueError(f"a table of predicates cannot express the subscriptions of {self.name}")

    @cached_property
    def _listing(self) -> Listing:
        return Listing(self.conditions, self.subscriptions)


def subscription_schema(form: Literal["where", "predicates"], language: str = "sql") -> pa.Schema:
    """The columns of subscriptions with their texts or their predicates."""
    columns = [("id", pa.string()), (form, _TYPES[form])]
    return pa.schema(columns if language == "sql" else [*columns, ("language", pa.string())])


def _ids(start: int, stop: int) -> pa.Array:
    numbers = pc.cast(pa.array(np.arange(start, stop)), pa.string())
    return pc.binary_join_element_wise("s", numbers, "")
