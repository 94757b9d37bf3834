"""Describes a configuration in words, for `harken run --dry-run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harken.pipeline.config.secrets import shown

if TYPE_CHECKING:
    from harken.pipeline.config.config_model import Config, EnrichmentConfig, Sink, SourceConfig, SubscriptionsConfig


def describe(config: Config) -> list[tuple[str, str]]:
    """Describe a configuration in pairs of a label and a line."""
    return list(_lines(config))


def _lines(config: Config) -> Iterator[tuple[str, str]]:
    yield "name", config.name
    yield "mode", _mode(config)
    if config.schema is not None:
        yield "schema", config.schema
    if config.checkpoint is not None:
        yield "checkpoint", config.checkpoint
    yield from _source(config.source)
    for enrichment in config.enrichments:
        yield "enrich", _enrichment(enrichment)
    yield from _subscriptions(config.subscriptions)
    shards = f" in {config.match.shards} shards" if config.match.shards is not None else ""
    yield "strategy", config.match.strategy + shards
    if config.match.columns:
        yield "columns", ", ".join(config.match.columns)
    if config.match.on_mismatch != "warn":
        yield "mismatches", "fail the run" if config.match.on_mismatch == "fail" else "are ignored"
    if config.match.operators:
        yield "operators", f"{', '.join(config.match.operators)} in the order {config.match.order}"
    for sink in config.sinks:
        yield f"sink {sink.name}", _sink(sink)
    letters = config.dead_letters
    yield (
        "dead letters",
        "none: a rejected event fails the run" if letters is None else f"{letters.format}, {letters.path}",
    )
    if config.metrics.json is not None:
        yield "metrics as JSON lines", config.metrics.json
    if config.metrics.prometheus is not None:
        yield "metrics for Prometheus", config.metrics.prometheus
    if config.spark.master is not None:
        yield "Spark", config.spark.master
    if config.spark.config:
        yield "Spark's settings", _options(config.spark.config)


def _mode(config: Config) -> str:
    if not config.is_stream:
        return "batch"
    return (
        "stream, until the source is used up"
        if config.trigger == "available-now"
        else f"stream, every {config.trigger}"
    )


def _source(source: SourceConfig) -> Iterator[tuple[str, str]]:
    details = {
        "kafka": f"topic {source.topic} of {source.servers}, from the {source.starting_offsets} offsets",
        "rate": f"{source.rows_per_second:,} rows a second",
        "socket": f"{source.host}:{source.port}",
    }
    yield "source", f"{source.format}, {details.get(source.format, source.path)}"
    if source.row_tag is not None:
        yield "documents", f"every element `{source.row_tag}`"
    if source.columns is not None:
        yield "source columns", source.columns
    xml_id = "path" if source.row_tag is None else "path and position"
    built_in_id = {"kafka": "topic, partition and offset", "xml": xml_id}.get(source.format, "value")
    yield "event id", source.event_id or built_in_id
    if source.event_time is not None:
        yield "event time", source.event_time
    if source.max_files_per_trigger is not None:
        yield "at most", f"{source.max_files_per_trigger:,} files a batch"
    if source.max_offsets_per_trigger is not None:
        yield "at most", f"{source.max_offsets_per_trigger:,} events a batch"
    if source.deduplicate is not None:
        yield "duplicates", f"dropped within {source.deduplicate}"
    if source.late_after is not None:
        treatment = "matched" if source.late == "match" else "rejected"
        yield "late events", f"after {source.late_after}, {treatment}"
    if source.options:
        yield "source options", _options(source.options)


def _enrichment(enrichment: EnrichmentConfig) -> str:
    table = f"table {enrichment.table}" if enrichment.path is None else f"{enrichment.format}, {enrichment.path}"
    columns = "all columns" if enrichment.columns is None else ", ".join(enrichment.columns)
    if enrichment.document_key is not None:
        key = f"{enrichment.how} join of {enrichment.document_key} with {', '.join(enrichment.on)}"
        return f"{table}: {key} for {columns} as elements of `{enrichment.element}`"
    prefix = f" as {enrichment.prefix}…" if enrichment.prefix else ""
    return f"{table}: {enrichment.how} join on {', '.join(enrichment.on)} for {columns}{prefix}"


def _subscriptions(subscriptions: SubscriptionsConfig) -> Iterator[tuple[str, str]]:
    if subscriptions.index is not None:
        yield "subscriptions", f"index {subscriptions.index}"
        return
    faults = "a fault rejects the change" if subscriptions.on_fault == "reject" else "faulty ones are left out"
    source = subscriptions.path or f"table {subscriptions.table}"
    if subscriptions.store is not None:
        source = f"store {shown(subscriptions.store)}"
    yield "subscriptions", f"{source}; {faults}"
    yield "index versions", subscriptions.keep or "a temporary folder"


def _sink(sink: Sink) -> str:
    details = {
        "kafka": f"topic {sink.topic} of {sink.servers}",
        "jdbc": f"table {sink.table} of {sink.url}{'' if sink.user is None else f' as {sink.user}'}",
        "store": shown(sink.store or ""),
        "console": f"{sink.limit:,} rows a batch",
    }
    options = f" ({_options(sink.options)})" if sink.options else ""
    return f"{sink.format}, {details.get(sink.format, sink.path)}{options}"


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in options.items())
