"""Computes the outcome of a batch: notifications, dead letters and counts, from decoded events.

`outcome` computes everything once and persists it for the sinks until it is released. The source is read a second time
only if events were rejected, for their texts. Rows are joined with the first reading by their number: a source returns
its rows in the same order each time that it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from harken.errors import SchemaError, SourceError
from harken.live.notifications import (
    DECODE,
    EVENT_ID,
    LATE,
    MATCH,
    SUBSCRIPTION_ID,
    TYPE,
    VALIDATE,
    DeadLetterRow,
    NotificationRow,
    Record,
    arrow_schema,
    names_of,
)
from harken.pipeline.config.document_columns import xml_columns
from harken.pipeline.config.value_types import seconds_of
from harken.pipeline.counts import Counts
from harken.pipeline.enrichment import enriched
from harken.pipeline.exact_values import EXACT, whole_event
from harken.pipeline.notification_outbox import event_text, with_events
from harken.pipeline.odd_values import count_odd_values, odd_values
from harken.pipeline.seen_ids import SeenIds
from harken.pipeline.spark_errors import spark_errors
from harken.pipeline.stored_subscriptions import CREATED
from harken.pipeline.stream_sources import FAULT, ID, RAW, event_columns
from harken.pipeline.used_attributes import used_attributes
from harken.schema import Schema
from harken.schema.paths import DOCUMENT
from harken.spark.frames import column, require_column
from harken.spark.index_versions import IndexVersion
from harken.spark.local import opened
from harken.spark.matching import match
from harken.spark.task import OWN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation
    from pyspark.sql.types import StructType

    from harken.pipeline.config import Config

_AT, _TIME, _STAGE, _REASON, _TEXT = (f"{OWN}{name}" for name in ("at", "time", "stage", "reason", "text"))
_COPY = f"{OWN}copy_"
_AS_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a batch is processed with. It is logged before the batch begins, and stays the same if Spark repeats it."""

    batch: int
    version: IndexVersion
    time: datetime
    """The match time of its notifications."""
    late_before: datetime | None = None
    """Events with an earlier time are late."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of a batch. Its DataFrames can be read repeatedly until `release` is called."""

    notifications: DataFrame
    with_events: DataFrame | None
    """The notifications with their events, for sinks of the format store; None if there is none."""
    dead_letters: DataFrame
    counts: Counts
    remember: Callable[[], None]
    """Stores the ids of the events that were not rejected, if the source drops duplicates."""
    release: Callable[[], None]
    """Frees the DataFrames. They must not be used after that."""


def outcome(events: DataFrame, config: Config, stamp: Stamp) -> BatchOutcome:
    """Match the events that `stream_sources.read` returned, or those of one micro-batch.

    Raises HarkenError if that fails; then nothing stays persisted.
    """
    with ExitStack() as persisted, spark_errors():
        return _Batch(events, config, stamp, persisted).outcome()


def spark_schema(record: Record) -> StructType:
    """The columns of dead letters, or of notifications without those that `[match] columns` adds."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema(record))


class _Batch:
    def __init__(self, events: DataFrame, config: Config, stamp: Stamp, persisted: ExitStack) -> None:
        self._events = events
        self._config = config
        self._source = config.source
        self._stamp = stamp
        self._has_exact = EXACT in events.columns
        self._has_store = any(sink.format == "store" for sink in config.sinks)
        self._persisted = persisted

    def outcome(self) -> BatchOutcome:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        self._schema = self._known_schema()
        event_observation, match_observation = Observation(), Observation()
        tagged = self._tagged()
        observed = tagged.observe(event_observation, *self._event_counts())
        fresh = self._fresh(observed.where(column(_STAGE).isNull()).drop(_STAGE, _REASON))
        matched = self._matched(enriched(fresh, self._config.enrichments))
        is_error = column("error").isNotNull()
        match_counts = [f.count_if(is_error).alias("errors"), f.count_if(~is_error).alias("notifications")]
        matched = self._persist(matched.observe(match_observation, *match_counts))
        matched.write.format("noop").mode("overwrite").save()
        of_events = _observed(event_observation, tagged, self._event_counts())
        of_matches = _observed(match_observation, matched, match_counts)
        errors, rejected = of_matches["errors"], of_events["rejected"]
        odd = self._persist(self._odd_values(fresh)) if of_events["exact"] else None
        odd_counts = {} if odd is None else count_odd_values(odd)
        has_dead = errors or rejected or odd_counts
        dead = self._persist(self._dead_letters(tagged, matched, odd)) if has_dead else None
        stages = {} if dead is None else {row["stage"]: row["count"] for row in dead.groupBy("stage").count().collect()}
        counts = Counts(
            events=of_events["events"],
            notifications=of_matches["notifications"],
            dead_letters=dict(sorted(stages.items())),
            duplicates=self._duplicates(of_events["events"] - rejected, fresh),
            late=of_events["late"],
            max_event_time=_time_of(of_events["newest"]),
            odd_values=odd_counts,
        )
        if dead is None:
            dead = self._events.sparkSession.createDataFrame([], spark_schema(DeadLetterRow))
        remember = partial(self._remember, fresh, matched if errors else None)
        good = matched.where(~is_error)
        for_stores = with_events(good, _TEXT, self._source, self._stamp.time) if self._has_store else None
        release = self._persisted.pop_all().close
        return BatchOutcome(self._notifications(good), for_stores, dead, counts, remember, release)

    def _persist(self, frame: DataFrame) -> DataFrame:
        persisted = frame.persist()
        self._persisted.callback(persisted.unpersist)
        return persisted

    def _tagged(self) -> DataFrame:
        """The events with their number and time and, if rejected before matching, the stage and the reason."""
        from pyspark.sql import functions as f

        time = self._time()
        late_before = self._stamp.late_before
        is_late = f.lit(False) if late_before is None else f.coalesce(time < f.lit(late_before), f.lit(False))
        self._is_late = is_late
        rejections: list[tuple[Column, str, Column]] = [
            (column(FAULT).isNotNull(), DECODE, column(FAULT)),
            (column(ID).isNull(), VALIDATE, f.lit(f"the event has no id: `{self._source.event_id}` is missing")),
        ]
        if late_before is not None and self._source.late == "reject":
            bound = f", before {late_before:%F %T%z}"
            text = f.concat(f.lit("the time of the event is "), time.cast("string"), f.lit(bound))
            rejections.append((is_late, LATE, text))
        stage, reason = f.lit(None).cast("string"), f.lit(None).cast("string")
        for condition, name, text in reversed(rejections):
            stage = f.when(condition, f.lit(name)).otherwise(stage)
            reason = f.when(condition, text).otherwise(reason)
        numbered = self._events.withColumns({_AT: f.monotonically_increasing_id(), _TIME: time})
        return numbered.withColumns({_STAGE: stage, _REASON: reason})

    def _time(self) -> Column:
        from pyspark.sql import functions as f
        from pyspark.sql.types import DateType, StringType, TimestampNTZType, TimestampType

        name = self._source.event_time
        if name is None:
            return f.lit(None).cast("timestamp")
        kind = self._events.schema[name].dataType
        if not isinstance(kind, DateType | StringType | TimestampNTZType | TimestampType):
            hint = f"declare it in `columns`, as `{name} TIMESTAMP`"
            raise SourceError(f"`{name}` is {kind.simpleString().upper()}, which is no time of an event", hint=hint)
        return column(name).try_cast("timestamp")

    def _event_counts(self) -> list[Column]:
        """What to count while the events are read."""
        from pyspark.sql import functions as f

        is_good = column(_STAGE).isNull()
        return [
            f.count(f.lit(1)).alias("events"),
            f.count_if(~is_good).alias("rejected"),
            f.count_if(self._is_late & (is_good | (column(_STAGE) == LATE))).alias("late"),
            f.max(f.when(is_good, f.unix_micros(column(_TIME)))).alias("newest"),
            f.count_if(is_good & column(EXACT).isNotNull() if self._has_exact else f.lit(False)).alias("exact"),
        ]

    def _fresh(self, good: DataFrame) -> DataFrame:
        """The events without duplicates: the first of each id, unless an earlier batch had the id."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        if self._source.deduplicate is None:
            return good
        order = Window.partitionBy(column(ID)).orderBy(column(_AT))
        first = good.withColumn(_REASON, f.row_number().over(order)).where(column(_REASON) == 1).drop(_REASON)
        seen = self._seen_ids()
        return self._persist(first if seen is None else seen.without(first, ID))

    def _seen_ids(self) -> SeenIds | None:
        checkpoint, window = self._config.checkpoint, self._source.deduplicate
        if checkpoint is None or window is None:
            return None
        return SeenIds(checkpoint, self._stamp.batch, self._stamp.time, timedelta(seconds=seconds_of(window)))

    def _remember(self, fresh: DataFrame, matched: DataFrame | None) -> None:
        """Store the ids of all events but the rejected ones, which may be sent again once they are corrected."""
        seen = self._seen_ids()
        if seen is None:
            return
        with spark_errors():
            if matched is not None:
                invalid = matched.where(column("error").isNotNull() & column(SUBSCRIPTION_ID).isNull()).select(_AT)
                fresh = fresh.join(invalid, _AT, "left_anti")
            seen.add(fresh, ID)

    def _duplicates(self, good: int, fresh: DataFrame) -> int:
        return 0 if self._source.deduplicate is None else good - fresh.count()

    def _matched(self, events: DataFrame) -> DataFrame:
        """The pairs of an event and a subscription that `match` returns. Errors are rows of their own."""
        settings = self._config.match
        owner = self._config.subscriptions.owner
        visible = self._visible(events)
        for name in settings.columns:
            require_column(events.select(*map(column, event_columns(events))), name, "events")
        fields = list(dict.fromkeys([owner, CREATED] if self._has_store else [owner]))
        reserved = {EVENT_ID, SUBSCRIPTION_ID, *fields, "error"}
        self._carried = {
            name: name if name in visible and name not in reserved else f"{_COPY}{index}"
            for index, name in enumerate(settings.columns)
        }
        exact = [EXACT] if self._has_exact else []
        texts = [event_text(events, self._source, _AS_JSON).alias(_TEXT)] if self._has_store else []
        copies = [column(name).alias(copy) for name, copy in self._carried.items() if name != copy]
        return match(
            events.select(*map(column, [*visible, ID, _AT, _TIME, *exact]), *copies, *texts),
            self._stamp.version,
            event_id=ID,
            strategy=settings.strategy,
            shards=settings.shards,
            columns=[_AT, _TIME, *self._carried.values(), *([_TEXT] if texts else [])],
            fields=fields,
            on_error="tell",
            on_mismatch="ignore",  # mismatches were checked when this version became current
            exact_values=EXACT if self._has_exact else None,
        )

    def _known_schema(self) -> Schema | None:
        """The schema that validates events: that of the index. Raises SchemaError if the pipeline has another."""
        version = self._stamp.version
        # An index that lists its attributes has no event types. It is opened only to compare the schemas.
        is_needed = version.attributes is None or self._config.schema is not None
        schema = opened(version, spark=self._events.sparkSession).schema if is_needed else None
        if self._config.schema is not None and self._config.load_schema() != schema:
            hint = "build the index with the schema of the pipeline, or leave `schema` out"
            raise SchemaError("the index has another schema than the pipeline, or none", hint=hint)
        return schema

    def _visible(self, events: DataFrame) -> list[str]:
        """The columns that are attributes. With event types, the schema has to declare the id and the time for that."""
        names, schema = event_columns(events), self._schema
        if schema is None or not schema.event_types:
            return names
        others = {self._source.event_id, self._source.event_time}
        if self._source.format == "xml":
            others |= set(xml_columns(self._source.row_tag is not None)) - set(DOCUMENT)
        return [name for name in names if name not in others or schema.domain_of((name,)) is not None]

    def _notifications(self, good: DataFrame) -> DataFrame:
        owner = self._config.subscriptions.owner
        chosen = [column(copy).alias(name) for name, copy in self._carried.items()]
        values = {
            EVENT_ID: column(EVENT_ID),
            SUBSCRIPTION_ID: column(SUBSCRIPTION_ID),
            "owner": column(owner),
            "event_time": column(_TIME),
        }
        return good.select(*self._columns(NotificationRow, values), *chosen)

    def _event_text(self) -> Column:
        """The column `event` of a dead letter."""
        from pyspark.sql import functions as f

        whole = whole_event(event_columns(self._events), _AS_JSON, self._has_exact)
        return f.coalesce(column(RAW), whole).alias("event")

    def _odd_values(self, fresh: DataFrame) -> DataFrame:
        """The dead letters of odd values, each with its attribute."""
        used = used_attributes(self._stamp.version, self._events.sparkSession)
        rows = odd_values(fresh.select(column(ID).alias(EVENT_ID), self._event_text(), column(EXACT)), used)
        return rows.select("attribute", *self._dead_letter(TYPE, column(EVENT_ID), column("reason")))

    def _dead_letters(self, tagged: DataFrame, matched: DataFrame, odd: DataFrame | None) -> DataFrame:
        """Dead letters of events rejected before matching, of what failed in matching, and of odd values."""
        from pyspark.sql import functions as f

        rows = tagged.select(column(_AT), column(ID), column(_STAGE), column(_REASON), self._event_text())
        early = rows.where(column(_STAGE).isNotNull())
        letters = early.select(*self._dead_letter(column(_STAGE), column(ID), column(_REASON)))
        # Each shard of a sharded index reports an invalid event, hence dropDuplicates.
        failed = matched.where(column("error").isNotNull()).dropDuplicates([_AT, SUBSCRIPTION_ID, "error"])
        failed = failed.select(_AT, EVENT_ID, SUBSCRIPTION_ID, column("error").alias("reason"))
        texts = rows.select(column(_AT).alias(RAW), column(ID), column("event"))
        same = (column(_AT) == column(RAW)) & (column(EVENT_ID) == column(ID))
        stage = f.when(column(SUBSCRIPTION_ID).isNull(), VALIDATE).otherwise(MATCH)
        letter = self._dead_letter(stage, column(EVENT_ID), column("reason"), column(SUBSCRIPTION_ID))
        letters = letters.unionByName(failed.join(texts, same, "left").select(*letter))
        if self._source.deduplicate is not None:
            letters = letters.unionByName(self._duplicates_of_rejected(rows, failed))
        return letters if odd is None else letters.unionByName(odd.drop("attribute"))

    def _duplicates_of_rejected(self, rows: DataFrame, failed: DataFrame) -> DataFrame:
        """Dead letters of events dropped as duplicates of one that was then rejected: else they would be lost."""
        from pyspark.sql import functions as f

        rejected = failed.where(column(SUBSCRIPTION_ID).isNull()).select(EVENT_ID, column(_AT).alias(RAW)).distinct()
        is_later = (column(ID) == column(EVENT_ID)) & (column(_AT) > column(RAW))
        reason = f.lit("the event came after another one of the same id, which was rejected")
        duplicates = rows.where(column(_STAGE).isNull()).join(rejected, is_later)
        return duplicates.select(*self._dead_letter(VALIDATE, column(EVENT_ID), reason))

    def _dead_letter(
        self, stage: Column | str, event_id: Column, reason: Column, subscription_id: Column | None = None
    ) -> list[Column]:
        """The columns of dead letters, for rows that have a column `event`."""
        from pyspark.sql import functions as f

        values = {
            EVENT_ID: event_id,
            "stage": f.lit(stage),
            "reason": reason,
            SUBSCRIPTION_ID: f.lit(None).cast("string") if subscription_id is None else subscription_id,
            "event": column("event"),
        }
        return self._columns(DeadLetterRow, values)

    def _columns(self, record: Record, values: dict[str, Column]) -> list[Column]:
        """The columns of notifications or dead letters in order: the given ones, and those from the stamp."""
        from pyspark.sql import functions as f

        stamp = self._stamp
        stamped = {
            "match_time": f.lit(stamp.time).cast("timestamp"),
            "index_version": f.lit(stamp.version.version).cast("long"),
            "batch_id": f.lit(stamp.batch).cast("long"),
        }
        return [(values | stamped)[name].alias(name) for name in names_of(record)]


def _observed(observation: Observation, frame: DataFrame, counts: list[Column]) -> dict[str, Any]:
    """What was counted while rows were read. If Spark's optimiser dropped the observation, counts now."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    try:
        values: dict[str, Any] = dict(observation.get)
    except Py4JJavaError:  # what Spark raises if nothing was observed
        values = {}
    if not values:
        second = type(observation)()
        # Reads all columns: Spark detects a malformed line only if the faulty column is read.
        frame.observe(second, *counts).write.format("noop").mode("overwrite").save()
        values = dict(second.get)
    return values


def _time_of(micros: int | None) -> datetime | None:
    return None if micros is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
