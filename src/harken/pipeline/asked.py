"""What subscriptions ask of events: which columns they look at, and with values of which kinds they compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harken.schema import Kind, Path
from harken.spark.index import IndexVersion
from harken.spark.local import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Asked:
    """What the subscriptions of one index version ask."""

    names: frozenset[str] | None = frozenset()
    """The columns that they look at; None for all."""
    kinds: Mapping[Path, frozenset[Kind]] = field(default_factory=dict)
    """The kinds that each attribute is compared with. What is only tested for null is not in here."""

    def looks_at(self, name: str) -> bool:
        """Whether subscriptions look at a column."""
        return self.names is None or name in self.names

    def agreed(self) -> dict[Path, Kind]:
        """The attributes that all subscriptions compare with values of one kind."""
        return {path: next(iter(kinds)) for path, kinds in self.kinds.items() if len(kinds) == 1}


NOTHING_ASKED = Asked()


def asked_of(version: IndexVersion, spark: SparkSession) -> Asked:
    """What the subscriptions of a version ask. Raises SegmentError or SourceError if it cannot be opened."""
    kinds: dict[Path, frozenset[Kind]] = {}
    for path, kind in opened(version, spark=spark).asks() or ():
        if kind is not None:
            kinds[path] = kinds.get(path, frozenset()) | {kind}
    return Asked(None if version.attributes is None else frozenset(version.attributes), kinds)
