"""Opens the source of a pipeline: finds its columns, and checks the subscriptions against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harken.pipeline.enrichment import enriched_columns
from harken.pipeline.matched_subscriptions import Subscriptions
from harken.pipeline.source_columns import SourceColumns
from harken.pipeline.stream_sources import find_columns, read
from harken.schema import EventColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import Config


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """The events of a source, and their columns."""

    events: DataFrame
    columns: SourceColumns | None
    """The columns inferred from the data; None if the source declares its columns."""
    matched: EventColumns
    """The columns of the events when they are matched, after enrichment."""


def opened_source(config: Config, spark: SparkSession, subscriptions: Subscriptions) -> OpenedSource:
    """Open the source, and check the subscriptions against its columns. Raises HarkenError."""
    columns = find_columns(config, spark, subscriptions.current())
    events = read(config, spark, columns)
    matched = enriched_columns(events, config.enrichments)
    if columns is not None:  # later events of a stream may have values of other kinds
        matched = matched.of_any_kind(columns.loose if config.is_stream else columns.mixed)
    subscriptions.compare_with(matched)
    return OpenedSource(events, columns, matched)
