"""The outcome of a batch: decoded events in; notifications, dead letters and counts out.

Everything is computed once, in `outcome`, and persisted until it is released; the sinks read what is persisted. The
source is read a second time only if events were refused, for their texts. Rows are found again by their number: a
source returns its rows in the same order each time that it is read.
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
from harken.pipeline.odd_values import counted_odd, odd_values
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
    """What a batch is processed with. It is recorded first, and is the same when the batch is repeated."""

    batch: int
    version: IndexVersion
    time: datetime
    """The time of its matches."""
    late_before: datetime | None = None
    """Events with an earlier time are late."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of a batch. The DataFrames can be read repeatedly until they are released."""

    notifications: DataFrame
    with_events: DataFrame | None
    """The notifications as a store takes them, with their events; None if no sink is a store."""
    dead_letters: DataFrame
    counts: Counts
    remember: Callable[[], None]
    """Stores the ids of the events that were taken, if duplicates are to be dropped."""
    release: Callable[[], None]
    """Frees what is persisted. The DataFrames must not be used after that."""


def outcome(events: DataFrame, config: Config, stamp: Stamp) -> BatchOutcome:
    """Match the events that `sources.read` returned, or those of one micro-batch.

    Raises HarkenError if that fails; then nothing stays persisted.
    """
    with ExitStack() as persisted, spark_errors():
        return _Batch(events, config, stamp, persisted).outcome()


def spark_schema(record: Record) -> StructType:
    """The columns of notifications, before those that `[match]` names, or of dead letters."""
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
        observed = tagged.observe(event_observation, *self._event_numbers())
        fresh = self._fresh(observed.where(column(_STAGE).isNull()).drop(_STAGE, _REASON))
        matched = self._matched(enriched(fresh, self._config.enrichments))
        is_error = column("error").isNotNull()
        match_numbers = [f.count_if(is_error).alias("errors"), f.count_if(~is_error).alias("notifications")]
        matched = self._persist(matched.observe(match_observation, *match_numbers))
        matched.write.format("noop").mode("overwrite").save()
        of_events = _observed(event_observation, tagged, self._event_numbers())
        of_matches = _observed(match_observation, matched, match_numbers)
        errors, refused = of_matches["errors"], of_events["refused"]
        odd = self._persist(self._odd_values(fresh)) if of_events["exact"] else None
        odd_counts = {} if odd is None else counted_odd(odd)
        has_dead = errors or refused or odd_counts
        dead = self._persist(self._dead_letters(tagged, matched, odd)) if has_dead else None
        stages = {} if dead is None else {row["stage"]: row["count"] for row in dead.groupBy("stage").count().collect()}
        counts = Counts(
            events=of_events["events"],
            notifications=of_matches["notifications"],
            dead_letters=dict(sorted(stages.items())),
            duplicates=self._duplicates(of_events["events"] - refused, fresh),
            late=of_events["late"],
            max_event_time=_time_of(of_events["newest"]),
            odd_values=odd_counts,
        )
        if dead is None:
            dead = self._events.sparkSession.createDataFrame([], spark_schema(DeadLetterRow))
        remember = partial(self._remember, fresh, matched if errors else None)
        good = matched.where(~is_error)
        told = with_events(good, _TEXT, self._source, self._stamp.time) if self._has_store else None
        return BatchOutcome(self._notifications(good), told, dead, counts, remember, self._persisted.pop_all().close)

    def _persist(self, frame: DataFrame) -> DataFrame:
        persisted = frame.persist()
        self._persisted.callback(persisted.unpersist)
        return persisted

    def _tagged(self) -> DataFrame:
        """The events with their number and time and, for those refused before matching, the stage and the reason."""
        from pyspark.sql import functions as f

        time = self._time()
        late_before = self._stamp.late_before
        is_late = f.lit(False) if late_before is None else f.coalesce(time < f.lit(late_before), f.lit(False))
        self._is_late = is_late
        refusals: list[tuple[Column, str, Column]] = [
            (column(FAULT).isNotNull(), DECODE, column(FAULT)),
            (column(ID).isNull(), VALIDATE, f.lit(f"the event has no id: `{self._source.event_id}` is missing")),
        ]
        if late_before is not None and self._source.late == "refuse":
            text = f.concat(f.lit("the event is of "), time.cast("string"), f.lit(f", before {late_before:%F %T%z}"))
            refusals.append((is_late, LATE, text))
        stage, reason = f.lit(None).cast("string"), f.lit(None).cast("string")
        for condition, name, text in reversed(refusals):
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
            hint = f"give it in `columns`, as `{name} TIMESTAMP`"
            raise SourceError(f"`{name}` is to be the time of events, and is {kind.simpleString().upper()}", hint=hint)
        return column(name).try_cast("timestamp")

    def _event_numbers(self) -> list[Column]:
        """What is counted while the events are read."""
        from pyspark.sql import functions as f

        is_good = column(_STAGE).isNull()
        return [
            f.count(f.lit(1)).alias("events"),
            f.count_if(~is_good).alias("refused"),
            f.count_if(self._is_late & (is_good | (column(_STAGE) == LATE))).alias("late"),
            f.max(f.when(is_good, f.unix_micros(column(_TIME)))).alias("newest"),
            f.count_if(is_good & column(EXACT).isNotNull() if self._has_exact else f.lit(False)).alias("exact"),
        ]

    def _fresh(self, good: DataFrame) -> DataFrame:
        """The events without duplicates: the first of each id, unless an earlier batch had that id."""
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
        """Store the ids of all events but the refused ones: these may come again once they are corrected."""
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
        """The pairs that `match` finds, with errors in rows of their own."""
        settings = self._config.match
        owner = self._config.subscriptions.owner
        visible = self._visible(events)
        for name in settings.columns:
            require_column(events.select(*map(column, event_columns(events))), name, "events")
        fields = list(dict.fromkeys([owner, CREATED] if self._has_store else [owner]))
        taken = {EVENT_ID, SUBSCRIPTION_ID, *fields, "error"}
        self._carried = {
            name: name if name in visible and name not in taken else f"{_COPY}{index}"
            for index, name in enumerate(settings.columns)
        }
        beside = [EXACT] if self._has_exact else []
        texts = [event_text(events, self._source, _AS_JSON).alias(_TEXT)] if self._has_store else []
        copies = [column(name).alias(copy) for name, copy in self._carried.items() if name != copy]
        return match(
            events.select(*map(column, [*visible, ID, _AT, _TIME, *beside]), *copies, *texts),
            self._stamp.version,
            event_id=ID,
            strategy=settings.strategy,
            shards=settings.shards,
            columns=[_AT, _TIME, *self._carried.values(), *([_TEXT] if texts else [])],
            fields=fields,
            on_error="tell",
            on_mismatch="ignore",  # it was checked when this version became current
            exact_values=EXACT if self._has_exact else None,
        )

    def _known_schema(self) -> Schema | None:
        """The schema that events are validated against: the index's. Raises SchemaError if the pipeline has another."""
        version = self._stamp.version
        # An index that lists its attributes has no event types: it is opened only to compare the schemas.
        is_needed = version.attributes is None or self._config.schema is not None
        found = opened(version, spark=self._events.sparkSession).schema if is_needed else None
        if self._config.schema is not None and self._config.load_schema() != found:
            hint = "build the index with the schema that the pipeline has, or leave `schema` out"
            raise SchemaError("the index has another schema than the pipeline, or none", hint=hint)
        return found

    def _visible(self, events: DataFrame) -> list[str]:
        """The columns that are attributes: without the id and the time where a closed schema does not declare them."""
        names, schema = event_columns(events), self._schema
        if schema is None or not schema.event_types:
            return names
        ours = {self._source.event_id, self._source.event_time}
        if self._source.format == "xml":
            ours |= set(xml_columns(self._source.row_tag is not None)) - set(DOCUMENT)
        return [name for name in names if name not in ours or schema.domain_of((name,)) is not None]

    def _notifications(self, good: DataFrame) -> DataFrame:
        owner = self._config.subscriptions.owner
        chosen = [column(inside).alias(name) for name, inside in self._carried.items()]
        values = {
            EVENT_ID: column(EVENT_ID),
            SUBSCRIPTION_ID: column(SUBSCRIPTION_ID),
            "owner": column(owner),
            "event_time": column(_TIME),
        }
        return good.select(*self._columns(NotificationRow, values), *chosen)

    def _event_text(self) -> Column:
        """An event as a dead letter has it."""
        from pyspark.sql import functions as f

        whole = whole_event(event_columns(self._events), _AS_JSON, self._has_exact)
        return f.coalesce(column(RAW), whole).alias("event")

    def _odd_values(self, fresh: DataFrame) -> DataFrame:
        """The dead letters of odd values, each with its attribute."""
        used = used_attributes(self._stamp.version, self._events.sparkSession)
        found = odd_values(fresh.select(column(ID).alias(EVENT_ID), self._event_text(), column(EXACT)), used)
        return found.select("attribute", *self._dead_letter(TYPE, column(EVENT_ID), column("reason")))

    def _dead_letters(self, tagged: DataFrame, matched: DataFrame, odd: DataFrame | None) -> DataFrame:
        """Events refused before matching, events and pairs that failed in matching, and odd values."""
        from pyspark.sql import functions as f

        rows = tagged.select(column(_AT), column(ID), column(_STAGE), column(_REASON), self._event_text())
        early = rows.where(column(_STAGE).isNotNull())
        found = early.select(*self._dead_letter(column(_STAGE), column(ID), column(_REASON)))
        # With a sharded index every shard reports an invalid event.
        failed = matched.where(column("error").isNotNull()).dropDuplicates([_AT, SUBSCRIPTION_ID, "error"])
        failed = failed.select(_AT, EVENT_ID, SUBSCRIPTION_ID, column("error").alias("reason"))
        texts = rows.select(column(_AT).alias(RAW), column(ID), column("event"))
        same = (column(_AT) == column(RAW)) & (column(EVENT_ID) == column(ID))
        stage = f.when(column(SUBSCRIPTION_ID).isNull(), VALIDATE).otherwise(MATCH)
        letter = self._dead_letter(stage, column(EVENT_ID), column("reason"), column(SUBSCRIPTION_ID))
        found = found.unionByName(failed.join(texts, same, "left").select(*letter))
        if self._source.deduplicate is not None:
            found = found.unionByName(self._behind_refused(rows, failed))
        return found if odd is None else found.unionByName(odd.drop("attribute"))

    def _behind_refused(self, rows: DataFrame, failed: DataFrame) -> DataFrame:
        """Events dropped as duplicates of one that was then refused: without a dead letter they would be lost."""
        from pyspark.sql import functions as f

        refused = failed.where(column(SUBSCRIPTION_ID).isNull()).select(EVENT_ID, column(_AT).alias(RAW)).distinct()
        behind = (column(ID) == column(EVENT_ID)) & (column(_AT) > column(RAW))
        reason = f.lit("it came behind an event of the same id, which was refused")
        found = rows.where(column(_STAGE).isNull()).join(refused, behind)
        return found.select(*self._dead_letter(VALIDATE, column(EVENT_ID), reason))

    def _dead_letter(
        self, stage: Column | str, event_id: Column, reason: Column, subscription_id: Column | None = None
    ) -> list[Column]:
        """The columns of a dead letter, of rows that have a column `event`."""
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
        """The columns of a notification or a dead letter, in their order, with those that the stamp gives."""
        from pyspark.sql import functions as f

        stamp = self._stamp
        stamped = {
            "match_time": f.lit(stamp.time).cast("timestamp"),
            "index_version": f.lit(stamp.version.version).cast("long"),
            "batch_id": f.lit(stamp.batch).cast("long"),
        }
        return [(values | stamped)[name].alias(name) for name in names_of(record)]


def _observed(observation: Observation, frame: DataFrame, numbers: list[Column]) -> dict[str, Any]:
    """What was counted while rows were read. If Spark's optimiser dropped the reading, it is counted now."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    try:
        found: dict[str, Any] = dict(observation.get)
    except Py4JJavaError:  # what Spark raises if nothing was observed
        found = {}
    if not found:
        again = type(observation)()
        # All columns are read: Spark finds a malformed line only if the faulty column is read.
        frame.observe(again, *numbers).write.format("noop").mode("overwrite").save()
        found = dict(again.get)
    return found


def _time_of(micros: int | None) -> datetime | None:
    return None if micros is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
