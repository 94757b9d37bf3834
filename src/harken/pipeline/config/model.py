"""A pipeline's configuration as dataclasses, one for each table of its file.

Each field declares what its key may hold and where it belongs. The reference is docs/pipeline.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from harken.operators import ORDERS
from harken.pipeline.config.description import describe
from harken.pipeline.config.tables import Key, TableOf, TablesOf
from harken.pipeline.config.value_types import (
    ColumnName,
    ColumnNames,
    Columns,
    Duration,
    Imported,
    Location,
    OneOf,
    Options,
    StorePlace,
    Text,
    Whole,
)
from harken.schema import Schema, load_schema

BATCH, STREAM = "batch", "stream"
AVAILABLE_NOW = "available-now"

_FILES = ("json", "csv", "parquet")
_ANY_FILES = (*_FILES, "xml")
_TAG = Text("the name of an element", r"[^\s<>/@:*\[\]]+(:[^\s<>/@:*\[\]]+)?", 'write "dataset", without marks')
_INT, _LONG = 2**31 - 1, 2**63 - 1
_SERVERS = Text(
    "the addresses of servers", r"[\w.-]+:\d{1,5}(\s*,\s*[\w.-]+:\d{1,5})*", 'write "host:9092" or "one:9092,two:9092"'
)
_TOPIC = Text("the name of a topic", r"[A-Za-z0-9._-]{1,249}", "a name has letters, digits, `.`, `_` and `-`")
_TABLE = Text("the name of a table", r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+))*", 'write "name" or "catalog.name"')
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
class Source:
    """Where the events come from."""

    format: Annotated[str, Key(OneOf((*_ANY_FILES, "kafka", "rate", "socket")), required=True)]
    path: Annotated[str | None, Key(Location(), required=True, only={"format": _ANY_FILES})] = None
    """A file, a folder or a glob; in a stream a folder that is watched."""
    row_tag: Annotated[str | None, Key(_TAG, only={"format": ("xml",)})] = None
    """The elements of which each is a document; None if a whole file is one."""
    columns: Annotated[str | None, Key(Columns(), only={"format": (*_FILES, "kafka", "socket")})] = None
    """Spark's DDL; None where the schema gives the columns, or Spark finds them."""
    event_id: Annotated[str | None, Key(ColumnName())] = None
    """None only for kafka, where topic, partition and offset make the id, for xml, where path and position do, and for
    rate."""
    event_time: Annotated[str | None, Key(ColumnName())] = None
    max_files_per_trigger: Annotated[
        int | None, Key(Whole(1, _INT), only={"format": _ANY_FILES, "mode": (STREAM,)})
    ] = None
    max_offsets_per_trigger: Annotated[
        int | None, Key(Whole(1, _LONG), only={"format": ("kafka",), "mode": (STREAM,)})
    ] = None
    rows_per_second: Annotated[int, Key(Whole(1, _LONG), only={"format": ("rate",)})] = 1
    host: Annotated[str, Key(Text("the name of a host", r"\S+"), only={"format": ("socket",)})] = "127.0.0.1"
    port: Annotated[int | None, Key(Whole(1, 65_535), required=True, only={"format": ("socket",)})] = None
    servers: Annotated[str | None, Key(_SERVERS, required=True, only={"format": ("kafka",)})] = None
    topic: Annotated[str | None, Key(_TOPIC, required=True, only={"format": ("kafka",)})] = None
    starting_offsets: Annotated[str, Key(OneOf(("earliest", "latest")), only={"format": ("kafka",)})] = "earliest"
    deduplicate: Annotated[str | None, Key(Duration())] = None
    late_after: Annotated[str | None, Key(Duration(0), only={"mode": (STREAM,)})] = None
    late: Annotated[str, Key(OneOf(("match", "refuse")), only={"mode": (STREAM,)})] = "match"
    options: Annotated[Mapping[str, str], Key(_READER_OPTIONS)] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrichment:
    """A join with a reference table, which gives events more columns, or their documents more elements.

    Either `path` or `table` is there.
    """

    path: Annotated[str | None, Key(Location())] = None
    table: Annotated[str | None, Key(_TABLE)] = None
    format: Annotated[str | None, Key(OneOf(("parquet", "json", "csv")))] = None
    """Always there with `path`."""
    on: Annotated[tuple[str, ...], Key(ColumnNames(), required=True)]
    how: Annotated[str, Key(OneOf(("left", "inner")))] = "left"
    columns: Annotated[tuple[str, ...] | None, Key(ColumnNames())] = None
    """None is all but those of `on`."""
    prefix: Annotated[str, Key(Text("the beginning of names of columns", r"[^.`\s]+"))] = ""
    document_key: Annotated[str | None, Key(Text("a path such as /order/customer/@id", r"/.*"))] = None
    """Where a document has the key that `on` names in the table; None to join with columns of events."""
    element: Annotated[str, Key(Text("the name of an element", r"[^\W\d][\w.\-]*"))] = "reference"
    """The element that holds what a document gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriptions:
    """Where the subscriptions come from: one of `path`, `index`, `table` and `store` is there."""

    path: Annotated[str | None, Key(Location())] = None
    index: Annotated[str | None, Key(Location())] = None
    table: Annotated[str | None, Key(_TABLE)] = None
    store: Annotated[str | None, Key(StorePlace())] = None
    keep: Annotated[str | None, Key(Location())] = None
    """Where the index versions that are built are kept; None is a temporary folder."""
    on_fault: Annotated[str, Key(OneOf(("refuse", "skip")))] = "refuse"
    owner: Annotated[str, Key(Text("the name of a field"))] = "owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How events meet subscriptions, and what of an event travels with a notification."""

    strategy: Annotated[Literal["auto", "replicate", "shard"], Key(OneOf(("auto", "replicate", "shard")))] = "auto"
    shards: Annotated[int | None, Key(Whole(1, 65_536), only={"strategy": ("shard",)})] = None
    columns: Annotated[tuple[str, ...], Key(ColumnNames())] = ()
    on_mismatch: Annotated[str, Key(OneOf(("fail", "warn", "ignore")))] = "warn"
    """What to do if subscriptions use attributes that the columns of the events do not have."""
    operators: Annotated[tuple[str, ...], Key(Imported())] = ()
    """What subscriptions call, each as "module:name" or the name of an entry point."""
    order: Annotated[str, Key(OneOf(ORDERS))] = ORDERS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where notifications go."""

    name: Annotated[str, Key(Text("a name", r"[A-Za-z0-9_-]+", "a name has letters, digits, `_` and `-`"))]
    format: Annotated[str, Key(OneOf(("parquet", "json", "kafka", "jdbc", "store", "console")), required=True)]
    path: Annotated[str | None, Key(Location(), required=True, only={"format": ("parquet", "json")})] = None
    servers: Annotated[str | None, Key(_SERVERS, required=True, only={"format": ("kafka",)})] = None
    topic: Annotated[str | None, Key(_TOPIC, required=True, only={"format": ("kafka",)})] = None
    url: Annotated[
        str | None,
        Key(Text("an address that begins with jdbc:", r"jdbc:\S+"), required=True, only={"format": ("jdbc",)}),
    ] = None
    table: Annotated[
        str | None,
        Key(
            Text("the plain name of a table", r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", 'write "name" or "schema.name"'),
            required=True,
            only={"format": ("jdbc",)},
        ),
    ] = None
    user: Annotated[str | None, Key(Text(), only={"format": ("jdbc",)})] = None
    password: Annotated[str | None, Key(Text(), only={"format": ("jdbc",)})] = None
    driver: Annotated[
        str | None, Key(Text("the name of a Java class", r"[\w$]+(\.[\w$]+)*"), only={"format": ("jdbc",)})
    ] = None
    store: Annotated[str | None, Key(StorePlace(), only={"format": ("store",)})] = None
    """Always there with the format store."""
    limit: Annotated[int, Key(Whole(1, _INT), only={"format": ("console",)})] = 20
    options: Annotated[Mapping[str, str], Key(_WRITER_OPTIONS)] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Where refused events go."""

    path: Annotated[str, Key(Location())]
    format: Annotated[str, Key(OneOf(("json", "parquet")))] = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Files that report the progress of the run."""

    json: Annotated[str | None, Key(Location(local=True))] = None
    prometheus: Annotated[str | None, Key(Location(local=True))] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """What Spark is started with."""

    master: Annotated[
        str | None,
        Key(
            Text(
                "the address of a cluster",
                r"local(\[[\d*,]+\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s)://\S+",
                'write "local[*]", "yarn", "spark://host:port" or "k8s://host:port"',
            )
        ),
    ] = None
    config: Annotated[
        Mapping[str, str], Key(Options({"spark.master": "master", "spark.app.name": "name"}, prefix="spark."))
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A pipeline's configuration. Paths are absolute; addresses such as s3://… are as they were written."""

    mode: Annotated[str, Key(OneOf((BATCH, STREAM)))] = BATCH
    name: Annotated[str, Key(Text())]
    schema: Annotated[str | None, Key(Location(local=True))] = None
    checkpoint: Annotated[str | None, Key(Location(), required=True, only={"mode": (STREAM,)})] = None
    trigger: Annotated[str, Key(Duration(0, (AVAILABLE_NOW,)), only={"mode": (STREAM,)})] = "10 seconds"
    source: Annotated[Source, Key(TableOf(Source), required=True)]
    enrichments: Annotated[tuple[Enrichment, ...], Key(TablesOf(Enrichment), written="enrich")] = ()
    subscriptions: Annotated[Subscriptions, Key(TableOf(Subscriptions), required=True)]
    match: Annotated[Matching, Key(TableOf(Matching))] = field(default_factory=Matching)
    sinks: Annotated[tuple[Sink, ...], Key(TablesOf(Sink), required=True, written="sink")]
    dead_letters: Annotated[DeadLetters | None, Key(TableOf(DeadLetters))] = None
    """None if there is no place for them: a refused event then fails the run."""
    metrics: Annotated[Metrics, Key(TableOf(Metrics))] = field(default_factory=Metrics)
    spark: Annotated[SparkSettings, Key(TableOf(SparkSettings))] = field(default_factory=SparkSettings)

    @property
    def is_stream(self) -> bool:
        return self.mode == STREAM

    def load_schema(self) -> Schema | None:
        """The schema of the events, from its file. Raises SourceError and SchemaError."""
        return None if self.schema is None else load_schema(self.schema)

    def describe(self) -> list[tuple[str, str]]:
        """What the pipeline does, as pairs of a label and a line. Secrets are shown as ***."""
        return describe(self)
