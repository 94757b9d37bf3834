"""The source of a pipeline, opened: its columns are known, and the subscriptions are checked against them."""

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
    """The events of a source, and what is known of their columns."""

    events: DataFrame
    columns: SourceColumns | None
    """The columns that were found in the data, if the source does not declare them."""
    matched: EventColumns
    """The columns of the events when they are matched."""


def opened_source(config: Config, spark: SparkSession, subscriptions: Subscriptions) -> OpenedSource:
    """Open the source, and check the subscriptions against its columns. Raises HarkenError."""
    columns = find_columns(config, spark, subscriptions.current())
    events = read(config, spark, columns)
    matched = enriched_columns(events, config.enrichments)
    if columns is not None:  # a stream may still bring values of other kinds
        matched = matched.of_any_kind(columns.loose if config.is_stream else columns.mixed)
    subscriptions.compare_with(matched)
    return OpenedSource(events, columns, matched)
