"""The source of a pipeline, opened: its columns suit what subscriptions ask, and these are compared with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harken.pipeline.enriching import enriched_columns
from harken.pipeline.source_columns import SourceColumns
from harken.pipeline.sources import find_columns, read
from harken.pipeline.subscriptions import Subscriptions
from harken.schema import EventColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import Config


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """The events of a source, and what is known of their columns."""

    events: DataFrame
    columns: SourceColumns | None
    """The columns that were found by their values, if the source does not declare them."""
    matched: EventColumns
    """The columns that events have as they are matched."""


def opened_source(config: Config, spark: SparkSession, subscriptions: Subscriptions) -> OpenedSource:
    """Open the source, and compare the subscriptions with its columns. Raises HarkenError."""
    columns = find_columns(config, spark, subscriptions.current())
    events = read(config, spark, columns)
    matched = enriched_columns(events, config.enrichments)
    if columns is not None:  # in a stream, values of other kinds may still come
        matched = matched.of_any_kind(columns.loose if config.is_stream else columns.mixed)
    subscriptions.compare_with(matched)
    return OpenedSource(events, columns, matched)
