"""The attributes that subscriptions use, and the kinds of values that they compare them with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harken.schema import Kind, Path
from harken.spark.index_versions import IndexVersion
from harken.spark.local import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class UsedAttributes:
    """The attributes that the subscriptions of an index version use."""

    names: frozenset[str] | None = frozenset()
    """The top-level attributes; None for all."""
    kinds: Mapping[Path, frozenset[Kind]] = field(default_factory=dict)
    """By attribute: the kinds it is compared with. Attributes that are only tested for null are left out."""

    def has_column(self, name: str) -> bool:
        """Whether some subscription uses a column."""
        return self.names is None or name in self.names

    def of_one_kind(self) -> dict[Path, Kind]:
        """The attributes that all subscriptions compare with values of the same kind."""
        return {path: next(iter(kinds)) for path, kinds in self.kinds.items() if len(kinds) == 1}


NO_ATTRIBUTES = UsedAttributes()


def used_attributes(version: IndexVersion, spark: SparkSession) -> UsedAttributes:
    """The attributes that a version uses. Raises SegmentError or SourceError if it cannot be opened."""
    kinds: dict[Path, frozenset[Kind]] = {}
    for path, kind in opened(version, spark=spark).internals.used_columns() or ():
        if kind is not None:
            kinds[path] = kinds.get(path, frozenset()) | {kind}
    return UsedAttributes(None if version.attributes is None else frozenset(version.attributes), kinds)
