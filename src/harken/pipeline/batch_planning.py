"""The plan of a pipeline, which `harken run --dry-run` shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harken.live.mismatch import NO_MISMATCHES, Mismatches
from harken.pipeline.enrichment import enriched
from harken.pipeline.exact_values import EXACT
from harken.pipeline.matched_subscriptions import Subscriptions
from harken.pipeline.odd_values import count_odd_values, odd_values
from harken.pipeline.opened_source import opened_source
from harken.pipeline.pipeline_session import pipeline_session
from harken.pipeline.progress import odd_text
from harken.pipeline.source_columns import SourceColumns
from harken.pipeline.spark_errors import spark_errors
from harken.pipeline.stream_sources import event_columns, read
from harken.pipeline.used_attributes import used_attributes
from harken.spark.frames import column, require_column
from harken.spark.index_versions import IndexVersion
from harken.spark.local import opened
from harken.spark.matching import Strategy, choose
from harken.spark.mismatches import reject_unreadable
from harken.spark.session_facts import parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import Config

_ODD = "of another type than subscriptions compare with; the events are matched, and the values listed as dead letters"
_MIXED = "of several types that subscriptions compare with; each value is matched with its own type"


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """What a run would do, as far as can be known without matching."""

    settings: tuple[tuple[str, str], ...]
    """The configuration, as labels and lines."""
    columns: tuple[tuple[str, str], ...]
    """The names and types of the columns of the events when they are matched."""
    partitions: int | None
    """Number of tasks that read the source; None for a stream, where it differs from batch to batch."""
    parallelism: int
    """Number of tasks that run at the same time."""
    index: IndexVersion
    strategy: Strategy
    expected_ns: float | None
    """Estimated matching time per event; None if the matcher makes no estimate."""
    mismatches: Mismatches = NO_MISMATCHES
    """What subscriptions use and the events do not have."""
    odd_values: Mapping[str, int] = field(default_factory=dict)
    """By attribute: number of values in the source of another kind than subscriptions compare with."""
    mixed: tuple[str, ...] = ()
    """Columns with values of several types that subscriptions compare with."""

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
            "mismatches": self.mismatches.to_dict() if self.mismatches else None,
            "odd_values": dict(self.odd_values),
            "mixed_columns": list(self.mixed),
        }

    def lines(self) -> list[tuple[str, str]]:
        """The plan as labels and lines for people."""
        shown = [f"{name} {kind.upper()}" for name, kind in self.columns]
        attributes = self.index.attributes
        used = "all attributes of an event" if attributes is None else ", ".join(attributes) or "nothing"
        cost = "unknown" if self.expected_ns is None else f"{self.expected_ns:,.0f} ns an event, without Spark's work"
        mismatches = [line.strip() for line in str(self.mismatches).splitlines()] if self.mismatches else []
        partitions = "depends on the batch" if self.partitions is None else f"{self.partitions:,}"
        return [
            *self.settings,
            ("events", ", ".join(shown)),
            *([("odd values", f"{odd_text(self.odd_values)}: {_ODD}")] if self.odd_values else []),
            *([("mixed columns", f"{', '.join(self.mixed)}: {_MIXED}")] if self.mixed else []),
            ("index", f"{self.index.subscriptions:,} subscriptions, {self.index.nbytes / 1e6:,.1f} MB"),
            ("reads", used),
            ("chosen strategy", str(self.strategy)),
            ("partitions", f"{partitions}, {self.parallelism} at a time"),
            ("expected cost", cost),
            *zip(("mismatches", *[""] * len(mismatches)), mismatches, strict=False),
        ]


def plan(config: Config) -> PipelinePlan:
    """Plan a run. This starts Spark, and builds or opens the index, but matches and writes nothing.

    Raises HarkenError for any fault that would prevent the run from starting.
    """
    with pipeline_session(config) as spark, spark_errors():
        temporary = replace(config.subscriptions, keep=None)  # do not keep an index that is built for the plan
        subscriptions = Subscriptions(replace(config, subscriptions=temporary), spark)
        source = opened_source(config, spark, subscriptions)
        index, columns = subscriptions.current(), source.columns
        events = enriched(source.events, config.enrichments)
        for name in config.match.columns:
            require_column(events.select(*map(column, event_columns(events))), name, "events")
        reject_unreadable(index, source.matched, spark)
        opening = subscriptions.opening
        return PipelinePlan(
            settings=tuple(config.describe()),
            columns=tuple((name, events.schema[name].dataType.simpleString()) for name in event_columns(events)),
            partitions=None if config.is_stream else _partitions(source.events),
            parallelism=parallelism(spark),
            index=index,
            strategy=choose(index, spark, config.match.strategy, config.match.shards),
            expected_ns=_expected_ns(index, spark),
            mismatches=NO_MISMATCHES if opening is None else opening.mismatches,
            odd_values={} if columns is None else _odd_values(config, spark, columns, index),
            mixed=() if columns is None else columns.mixed,
        )


def _odd_values(config: Config, spark: SparkSession, columns: SourceColumns, index: IndexVersion) -> dict[str, int]:
    """Count the odd values of each attribute. This reads the whole source, also that of a stream."""
    events = read(replace(config, mode="batch"), spark, columns)
    return count_odd_values(odd_values(events, used_attributes(index, spark))) if EXACT in events.columns else {}


def _partitions(events: DataFrame) -> int:
    frame: Any = events
    count: int = frame._jdf.queryExecution().toRdd().getNumPartitions()
    return count


def _expected_ns(index: IndexVersion, spark: SparkSession) -> float | None:
    layers = opened(index, spark=spark).stats()["matcher"].get("layers")
    if layers is None:
        return None
    return float(sum(group["expected_ns"] for layer in layers for group in layer["groups"]))
