"""What a pipeline would do: the plan that `harken run --dry-run` shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harken.spark.frames import column, require_column
from harken.spark.index import IndexVersion
from harken.spark.local import opened
from harken.spark.matching import Strategy, choose
from harken.spark.pipeline.enriching import enriched
from harken.spark.pipeline.failures import told
from harken.spark.pipeline.session import pipeline_session
from harken.spark.pipeline.sources import event_columns, read
from harken.spark.pipeline.subscriptions import Subscriptions
from harken.spark.session_facts import parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.spark.pipeline.config import Config


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known before a run."""

    settings: tuple[tuple[str, str], ...]
    """What the configuration says, as labels and lines."""
    columns: tuple[tuple[str, str], ...]
    """The names and types of the events' columns, as they are matched."""
    partitions: int | None
    """Tasks that read the source; None for a stream, where it depends on what comes."""
    parallelism: int
    """Tasks that run at a time."""
    index: IndexVersion
    strategy: Strategy
    expected_ns: float | None
    """What the engine expects an event to cost it; None if the matcher does not tell."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "settings": dict(self.settings),
            "columns": dict(self.columns),
            "partitions": self.partitions,
            "parallelism": self.parallelism,
            "subscriptions": self.index.subscriptions,
            "index_bytes": self.index.nbytes,
            "index_attributes": None if self.index.attributes is None else list(self.index.attributes),
            "strategy": self.strategy.name,
            "shards": self.strategy.shards,
            "strategy_reason": self.strategy.reason,
            "expected_ns_per_event": self.expected_ns,
        }

    def lines(self) -> list[tuple[str, str]]:
        """The plan as labels and lines for people."""
        shown = [f"{name} {kind.upper()}" for name, kind in self.columns]
        attributes = self.index.attributes
        looked_at = "all attributes of an event" if attributes is None else ", ".join(attributes) or "nothing"
        cost = "unknown" if self.expected_ns is None else f"{self.expected_ns:,.0f} ns an event, besides Spark's own"
        partitions = "by what a batch has" if self.partitions is None else f"{self.partitions:,}"
        return [
            *self.settings,
            ("events", ", ".join(shown)),
            ("index", f"{self.index.subscriptions:,} subscriptions, {self.index.nbytes / 1e6:,.1f} MB"),
            ("looks at", looked_at),
            ("chosen strategy", str(self.strategy)),
            ("partitions", f"{partitions}, {self.parallelism} at a time"),
            ("expected cost", cost),
        ]


def plan(config: Config) -> Plan:
    """What a run would do. Spark is started, the index is built or opened, and no event is matched or written.

    Raises HarkenError for all that would keep a run from beginning.
    """
    with pipeline_session(config) as spark, told():
        source = read(config, spark)
        events = enriched(source, config.enrichments)
        for name in config.match.columns:
            require_column(events.select(*map(column, event_columns(events))), name, "events")
        given = replace(config.subscriptions, keep=None)  # what is built to look at it is not kept
        index = Subscriptions(replace(config, subscriptions=given), spark).current()
        return Plan(
            settings=tuple(config.describe()),
            columns=tuple((name, events.schema[name].dataType.simpleString()) for name in event_columns(events)),
            partitions=None if config.is_stream else _partitions(source),
            parallelism=parallelism(spark),
            index=index,
            strategy=choose(index, spark, config.match.strategy, config.match.shards),
            expected_ns=_expected_ns(index, spark),
        )


def _partitions(events: DataFrame) -> int:
    frame: Any = events
    count: int = frame._jdf.queryExecution().toRdd().getNumPartitions()
    return count


def _expected_ns(index: IndexVersion, spark: SparkSession) -> float | None:
    layers = opened(index, spark=spark).stats()["matcher"].get("layers")
    if layers is None:
        return None
    return float(sum(group["expected_ns"] for layer in layers for group in layer["groups"]))
