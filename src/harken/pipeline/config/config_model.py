"""The configuration of a pipeline as dataclasses, one for each table of the file.

Each field declares the type of its key's value and the formats or modes that have the key. The reference is
docs/pipeline.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from harken.operators import ORDERS
from harken.pipeline.config.config_tables import FieldKey, TableOf, TablesOf
from harken.pipeline.config.field_descriptions import describe
from harken.pipeline.config.value_types import (
    ColumnName,
    ColumnNames,
    ColumnsType,
    Duration,
    LocationType,
    OneOf,
    OperatorNames,
    Options,
    StoreLocation,
    TextType,
    WholeType,
)
from harken.schema import Schema, load_schema

BATCH, STREAM = "batch", "stream"
AVAILABLE_NOW = "available-now"

_FILES = ("json", "csv", "parquet")
_ANY_FILES = (*_FILES, "xml")
_TAG = TextType("the name of an element", r"[^\s<>/@:*\[\]]+(:[^\s<>/@:*\[\]]+)?", 'write "dataset", without marks')
_INT, _LONG = 2**31 - 1, 2**63 - 1
_SERVERS = TextType(
    "the addresses of servers", r"[\w.-]+:\d{1,5}(\s*,\s*[\w.-]+:\d{1,5})*", 'write "host:9092" or "one:9092,two:9092"'
)
_TOPIC = TextType("the name of a topic", r"[A-Za-z0-9._-]{1,249}", "a name has letters, digits, `.`, `_` and `-`")
_TABLE = TextType("the name of a table", r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+))*", 'write "name" or "catalog.name"')
_READER_OPTIONS = Options(
    {
        "path": "path",
        "kafka.bootstrap.servers": "servers",
        "subscribe": "topic",
        "subscribepattern": "topic",
        "assign": "topic",
        "startingoffsets": "starting_offsets",
        "maxfilespertrigger": "max_files_per_trigger",
        "maxoffsetspertrigger": "max_offsets_per_trigger",
        "rowspersecond": "rows_per_second",
        "host": "host",
        "port": "port",
    }
)
_WRITER_OPTIONS = Options(
    {
        "path": "path",
        "kafka.bootstrap.servers": "servers",
        "topic": "topic",
        "url": "url",
        "dbtable": "table",
        "user": "user",
        "password": "password",
        "driver": "driver",
        "numrows": "limit",
        "checkpointlocation": "checkpoint",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """Where the events come from."""

    format: Annotated[str, FieldKey(OneOf((*_ANY_FILES, "kafka", "rate", "socket")), required=True)]
    path: Annotated[str | None, FieldKey(LocationType(), required=True, only={"format": _ANY_FILES})] = None
    """A file, a folder or a glob; in a stream a watched folder."""
    row_tag: Annotated[str | None, FieldKey(_TAG, only={"format": ("xml",)})] = None
    """The name of the elements that are documents; None if each file is one document."""
    columns: Annotated[str | None, FieldKey(ColumnsType(), only={"format": (*_FILES, "kafka", "socket")})] = None
    """The columns in Spark's DDL; None if they come from the schema, or are inferred from the data."""
    event_id: Annotated[str | None, FieldKey(ColumnName())] = None
    """The id column. None only for kafka (topic, partition and offset are the id), xml (path and position) and rate."""
    event_time: Annotated[str | None, FieldKey(ColumnName())] = None
    max_files_per_trigger: Annotated[
        int | None, FieldKey(WholeType(1, _INT), only={"format": _ANY_FILES, "mode": (STREAM,)})
    ] = None
    max_offsets_per_trigger: Annotated[
        int | None, FieldKey(WholeType(1, _LONG), only={"format": ("kafka",), "mode": (STREAM,)})
    ] = None
    rows_per_second: Annotated[int, FieldKey(WholeType(1, _LONG), only={"format": ("rate",)})] = 1
    host: Annotated[str, FieldKey(TextType("the name of a host", r"\S+"), only={"format": ("socket",)})] = "127.0.0.1"
    port: Annotated[int | None, FieldKey(WholeType(1, 65_535), required=True, only={"format": ("socket",)})] = None
    servers: Annotated[str | None, FieldKey(_SERVERS, required=True, only={"format": ("kafka",)})] = None
    topic: Annotated[str | None, FieldKey(_TOPIC, required=True, only={"format": ("kafka",)})] = None
    starting_offsets: Annotated[str, FieldKey(OneOf(("earliest", "latest")), only={"format": ("kafka",)})] = "earliest"
    deduplicate: Annotated[str | None, FieldKey(Duration())] = None
    late_after: Annotated[str | None, FieldKey(Duration(0), only={"mode": (STREAM,)})] = None
    late: Annotated[str, FieldKey(OneOf(("match", "reject")), only={"mode": (STREAM,)})] = "match"
    options: Annotated[Mapping[str, str], FieldKey(_READER_OPTIONS)] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichmentConfig:
    """A join with a reference table that adds columns to events, or elements to their documents.

    Exactly one of `path` and `table` is set.
    """

    path: Annotated[str | None, FieldKey(LocationType())] = None
    table: Annotated[str | None, FieldKey(_TABLE)] = None
    format: Annotated[str | None, FieldKey(OneOf(("parquet", "json", "csv")))] = None
    """Set whenever `path` is."""
    on: Annotated[tuple[str, ...], FieldKey(ColumnNames(), required=True)]
    how: Annotated[str, FieldKey(OneOf(("left", "inner")))] = "left"
    columns: Annotated[tuple[str, ...] | None, FieldKey(ColumnNames())] = None
    """The columns to add; None for all but those of `on`."""
    prefix: Annotated[str, FieldKey(TextType("the beginning of names of columns", r"[^.`\s]+"))] = ""
    document_key: Annotated[str | None, FieldKey(TextType("a path such as /order/customer/@id", r"/.*"))] = None
    """The path of the join key in a document; None to join with columns of events."""
    element: Annotated[str, FieldKey(TextType("the name of an element", r"[^\W\d][\w.\-]*"))] = "reference"
    """The element that is added to a document, around the elements for the columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionsConfig:
    """Where the subscriptions come from: exactly one of `path`, `index`, `table` and `store` is set."""

    path: Annotated[str | None, FieldKey(LocationType())] = None
    index: Annotated[str | None, FieldKey(LocationType())] = None
    table: Annotated[str | None, FieldKey(_TABLE)] = None
    store: Annotated[str | None, FieldKey(StoreLocation())] = None
    keep: Annotated[str | None, FieldKey(LocationType())] = None
    """The folder of the index versions that the pipeline builds; None for a temporary folder."""
    on_fault: Annotated[str, FieldKey(OneOf(("reject", "skip")))] = "reject"
    owner: Annotated[str, FieldKey(TextType("the name of a field"))] = "owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchConfig:
    """How events are matched, and which of their columns notifications have."""

    strategy: Annotated[Literal["auto", "replicate", "shard"], FieldKey(OneOf(("auto", "replicate", "shard")))] = "auto"
    shards: Annotated[int | None, FieldKey(WholeType(1, 65_536), only={"strategy": ("shard",)})] = None
    columns: Annotated[tuple[str, ...], FieldKey(ColumnNames())] = ()
    on_mismatch: Annotated[str, FieldKey(OneOf(("fail", "warn", "ignore")))] = "warn"
    """What to do if subscriptions use attributes that the events do not have."""
    operators: Annotated[tuple[str, ...], FieldKey(OperatorNames())] = ()
    """Operators that subscriptions call, each as "module:name" or the name of an entry point."""
    order: Annotated[str, FieldKey(OneOf(ORDERS))] = ORDERS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where notifications are written."""

    name: Annotated[str, FieldKey(TextType("a name", r"[A-Za-z0-9_-]+", "a name has letters, digits, `_` and `-`"))]
    format: Annotated[str, FieldKey(OneOf(("parquet", "json", "kafka", "jdbc", "store", "console")), required=True)]
    path: Annotated[str | None, FieldKey(LocationType(), required=True, only={"format": ("parquet", "json")})] = None
    servers: Annotated[str | None, FieldKey(_SERVERS, required=True, only={"format": ("kafka",)})] = None
    topic: Annotated[str | None, FieldKey(_TOPIC, required=True, only={"format": ("kafka",)})] = None
    url: Annotated[
        str | None,
        FieldKey(TextType("an address that begins with jdbc:", r"jdbc:\S+"), required=True, only={"format": ("jdbc",)}),
    ] = None
    table: Annotated[
        str | None,
        FieldKey(
            TextType("the plain name of a table", r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", 'write "name" or "schema.name"'),
            required=True,
            only={"format": ("jdbc",)},
        ),
    ] = None
    user: Annotated[str | None, FieldKey(TextType(), only={"format": ("jdbc",)})] = None
    password: Annotated[str | None, FieldKey(TextType(), only={"format": ("jdbc",)})] = None
    driver: Annotated[
        str | None, FieldKey(TextType("the name of a Java class", r"[\w$]+(\.[\w$]+)*"), only={"format": ("jdbc",)})
    ] = None
    store: Annotated[str | None, FieldKey(StoreLocation(), only={"format": ("store",)})] = None
    """Set whenever the format is store."""
    limit: Annotated[int, FieldKey(WholeType(1, _INT), only={"format": ("console",)})] = 20
    options: Annotated[Mapping[str, str], FieldKey(_WRITER_OPTIONS)] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Where rejected events are written."""

    path: Annotated[str, FieldKey(LocationType())]
    format: Annotated[str, FieldKey(OneOf(("json", "parquet")))] = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """Files that report the progress of the run."""

    json: Annotated[str | None, FieldKey(LocationType(local=True))] = None
    prometheus: Annotated[str | None, FieldKey(LocationType(local=True))] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The settings with which Spark is started."""

    master: Annotated[
        str | None,
        FieldKey(
            TextType(
                "the address of a cluster",
                r"local(\[[\d*,]+\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s)://\S+",
                'write "local[*]", "yarn", "spark://host:port" or "k8s://host:port"',
            )
        ),
    ] = None
    config: Annotated[
        Mapping[str, str], FieldKey(Options({"spark.master": "master", "spark.app.name": "name"}, prefix="spark."))
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration of a pipeline. Paths are absolute; addresses such as s3://… are unchanged."""

    mode: Annotated[str, FieldKey(OneOf((BATCH, STREAM)))] = BATCH
    name: Annotated[str, FieldKey(TextType())]
    schema: Annotated[str | None, FieldKey(LocationType(local=True))] = None
    checkpoint: Annotated[str | None, FieldKey(LocationType(), required=True, only={"mode": (STREAM,)})] = None
    trigger: Annotated[str, FieldKey(Duration(0, (AVAILABLE_NOW,)), only={"mode": (STREAM,)})] = "10 seconds"
    source: Annotated[SourceConfig, FieldKey(TableOf(SourceConfig), required=True)]
    enrichments: Annotated[tuple[EnrichmentConfig, ...], FieldKey(TablesOf(EnrichmentConfig), written="enrich")] = ()
    subscriptions: Annotated[SubscriptionsConfig, FieldKey(TableOf(SubscriptionsConfig), required=True)]
    match: Annotated[MatchConfig, FieldKey(TableOf(MatchConfig))] = field(default_factory=MatchConfig)
    sinks: Annotated[tuple[Sink, ...], FieldKey(TablesOf(Sink), required=True, written="sink")]
    dead_letters: Annotated[DeadLetters | None, FieldKey(TableOf(DeadLetters))] = None
    """None if there is no place for dead letters: a rejected event then fails the run."""
    metrics: Annotated[MetricsConfig, FieldKey(TableOf(MetricsConfig))] = field(default_factory=MetricsConfig)
    spark: Annotated[SparkSettings, FieldKey(TableOf(SparkSettings))] = field(default_factory=SparkSettings)

    @property
    def is_stream(self) -> bool:
        return self.mode == STREAM

    def load_schema(self) -> Schema | None:
        """Load the schema of the events; None without one. Raises SourceError and SchemaError."""
        return None if self.schema is None else load_schema(self.schema)

    def describe(self) -> list[tuple[str, str]]:
        """Describe the pipeline in pairs of a label and a line. Secrets are shown as ***."""
        return describe(self)
