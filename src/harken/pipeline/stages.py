"""The way of a batch: decoded events in; notifications, dead letters and counts out.

Everything is computed once, when `outcome` is called, and kept until it is released: the sinks read what is kept. The
source is read a second time only if something of it is refused, to tell what that was. Rows are found again by their
number, which a source gives in the same order each time that it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from harken.errors import SchemaError, SourceError
from harken.pipeline.asked import asked_of
from harken.pipeline.counts import DECODE, LATE, MATCH, TYPE, VALIDATE, Counts
from harken.pipeline.enriching import enriched
from harken.pipeline.exact import whole_event
from harken.pipeline.failures import told
from harken.pipeline.odd_values import counted_odd, odd_values
from harken.pipeline.seen import Seen
from harken.pipeline.sources import FAULT, ID, RAW, event_columns
from harken.pipeline.values import seconds_of
from harken.schema import Schema
from harken.spark.frames import column, require_column
from harken.spark.index import IndexVersion
from harken.spark.local import opened
from harken.spark.matching import match
from harken.spark.task import EXACT, OWN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

    from harken.pipeline.config import Config

OF_NOTIFICATIONS = (
    "event_id STRING, subscription_id STRING, owner STRING, event_time TIMESTAMP, match_time TIMESTAMP, "
    "index_version BIGINT, batch_id BIGINT"
)
"""The columns of a notification, before those of the event that `[match]` names."""
OF_DEAD_LETTERS = (
    "event_id STRING, stage STRING, reason STRING, subscription_id STRING, event STRING, match_time TIMESTAMP, "
    "index_version BIGINT, batch_id BIGINT"
)
_AT, _TIME, _STAGE, _REASON = f"{OWN}at", f"{OWN}time", f"{OWN}stage", f"{OWN}reason"
_COPY = f"{OWN}copy_"
_AS_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a batch is done with: recorded before it begins, and the same when it is repeated."""

    batch: int
    version: IndexVersion
    time: datetime
    """The time of its matches."""
    late_before: datetime | None = None
    """An event of a time before this is late."""


class Outcome:
    """What came of a batch. The DataFrames can be read as often as need be, until they are released."""

    def __init__(
        self,
        notifications: DataFrame,
        dead_letters: DataFrame,
        counts: Counts,
        remember: Callable[[], None],
        kept: list[DataFrame],
    ) -> None:
        self.notifications = notifications
        self.dead_letters = dead_letters
        self._counts = counts
        self._remember = remember
        self._kept = kept

    def counts(self) -> Counts:
        """How many there are of everything. They are known already."""
        return self._counts

    def remember(self) -> None:
        """Keep the ids of the events that were taken, if they are to be known when they come again."""
        with told():
            self._remember()

    def release(self) -> None:
        """Free what is kept. The DataFrames must not be used after that."""
        for each in self._kept:
            each.unpersist()
        self._kept.clear()


def outcome(events: DataFrame, config: Config, stamp: Stamp) -> Outcome:
    """What comes of the events that `sources.read` gave, or of those of one batch of a stream.

    Raises HarkenError if it cannot be told, and keeps nothing then.
    """
    batch = _Batch(events, config, stamp)
    try:
        with told():
            return batch.outcome()
    except BaseException:
        batch.release()
        raise


class _Batch:
    def __init__(self, events: DataFrame, config: Config, stamp: Stamp) -> None:
        self._events = events
        self._config = config
        self._source = config.source
        self._stamp = stamp
        self._has_exact = EXACT in events.columns
        self._kept: list[DataFrame] = []

    def outcome(self) -> Outcome:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        self._schema = self._known_schema()
        came, found = Observation(), Observation()
        tagged = self._tagged()
        observed = tagged.observe(came, *self._numbers())
        fresh = self._fresh(observed.where(column(_STAGE).isNull()).drop(_STAGE, _REASON))
        matched = self._matched(enriched(fresh, self._config.enrichments))
        is_error = column("error").isNotNull()
        numbers = [f.count_if(is_error).alias("errors"), f.count_if(~is_error).alias("notifications")]
        matched = self._keep(matched.observe(found, *numbers))
        matched.write.format("noop").mode("overwrite").save()
        of_events, of_matches = _told_by(came, tagged, self._numbers()), _told_by(found, matched, numbers)
        errors, refused = of_matches["errors"], of_events["refused"]
        odd = self._keep(self._odd_values(fresh)) if of_events["exact"] else None
        odd_counts = {} if odd is None else counted_odd(odd)
        is_any = errors or refused or odd_counts
        dead = self._keep(self._dead_letters(tagged, matched, odd)) if is_any else None
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
            dead = self._events.sparkSession.createDataFrame([], OF_DEAD_LETTERS)
        remember = partial(self._remember, fresh, matched if errors else None)
        return Outcome(self._notifications(matched), dead, counts, remember, self._kept)

    def release(self) -> None:
        for each in self._kept:
            each.unpersist()

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def _tagged(self) -> DataFrame:
        """The events with their numbers and times, and with the stage at which they are refused, if they are."""
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

    def _numbers(self) -> list[Column]:
        """What is counted of events as they pass."""
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
        """The events without those that came before. Of those that have one id, the first is taken."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        if self._source.deduplicate is None:
            return good
        order = Window.partitionBy(column(ID)).orderBy(column(_AT))
        first = good.withColumn(_REASON, f.row_number().over(order)).where(column(_REASON) == 1).drop(_REASON)
        seen = self._seen()
        return self._keep(first if seen is None else seen.without(first, ID))

    def _seen(self) -> Seen | None:
        checkpoint, window = self._config.checkpoint, self._source.deduplicate
        if checkpoint is None or window is None:
            return None
        return Seen(checkpoint, self._stamp.batch, self._stamp.time, timedelta(seconds=seconds_of(window)))

    def _remember(self, fresh: DataFrame, matched: DataFrame | None) -> None:
        """Keep the ids of all events but those that were refused: these may come again when they are mended."""
        seen = self._seen()
        if seen is None:
            return
        if matched is not None:
            invalid = matched.where(column("error").isNotNull() & column("subscription_id").isNull()).select(_AT)
            fresh = fresh.join(invalid, _AT, "left_anti")
        seen.add(fresh, ID)

    def _duplicates(self, good: int, fresh: DataFrame) -> int:
        return 0 if self._source.deduplicate is None else good - fresh.count()

    def _matched(self, events: DataFrame) -> DataFrame:
        """What `match` finds: pairs, and errors in rows of their own."""
        settings = self._config.match
        owner = self._config.subscriptions.owner
        visible = self._visible(events)
        for name in settings.columns:
            require_column(events.select(*map(column, event_columns(events))), name, "events")
        taken = {"event_id", "subscription_id", owner, "error"}
        self._carried = {
            name: name if name in visible and name not in taken else f"{_COPY}{place}"
            for place, name in enumerate(settings.columns)
        }
        beside = [EXACT] if self._has_exact else []
        copies = [column(name).alias(copy) for name, copy in self._carried.items() if name != copy]
        return match(
            events.select(*map(column, [*visible, ID, _AT, _TIME, *beside]), *copies),
            self._stamp.version,
            event_id=ID,
            strategy=settings.strategy,
            shards=settings.shards,
            columns=[_AT, _TIME, *beside, *self._carried.values()],
            fields=[owner],
            on_error="tell",
            on_mismatch="ignore",  # it was compared when the version was taken
        )

    def _known_schema(self) -> Schema | None:
        """The schema that events are judged by: the index's. Raises SchemaError if it is not the pipeline's."""
        version = self._stamp.version
        # An index that names the columns it needs has no event types; it is opened only if a schema is to be compared.
        is_needed = version.attributes is None or self._config.schema is not None
        found = opened(version, spark=self._events.sparkSession).schema if is_needed else None
        if self._config.schema is not None and self._config.load_schema() != found:
            hint = "build the index with the schema that the pipeline has, or leave `schema` out"
            raise SchemaError("the index has another schema than the pipeline, or none", hint=hint)
        return found

    def _visible(self, events: DataFrame) -> list[str]:
        """The columns that are attributes of the event: the id and the time are none if a closed schema lacks them."""
        names, schema = event_columns(events), self._schema
        if schema is None or not schema.event_types:
            return names
        ours = {self._source.event_id, self._source.event_time}
        return [name for name in names if name not in ours or schema.domain_of((name,)) is not None]

    def _notifications(self, matched: DataFrame) -> DataFrame:
        owner = self._config.subscriptions.owner
        chosen = [column(inside).alias(name) for name, inside in self._carried.items()]
        found = matched.where(column("error").isNull())
        return found.select(
            column("event_id"),
            column("subscription_id"),
            column(owner).alias("owner"),
            column(_TIME).alias("event_time"),
            *self._stamped(),
            *chosen,
        )

    def _event_text(self) -> Column:
        """An event as a dead letter has it."""
        from pyspark.sql import functions as f

        whole = whole_event(event_columns(self._events), _AS_JSON, self._has_exact)
        return f.coalesce(column(RAW), whole).alias("event")

    def _odd_values(self, fresh: DataFrame) -> DataFrame:
        """The dead letters of odd values, each with its attribute."""
        from pyspark.sql import functions as f

        nobody = f.lit(None).cast("string").alias("subscription_id")
        asked = asked_of(self._stamp.version, self._events.sparkSession)
        found = odd_values(fresh.select(column(ID).alias("event_id"), self._event_text(), column(EXACT)), asked)
        return found.select("*", f.lit(TYPE).alias("stage"), nobody).drop(EXACT)

    def _dead_letters(self, tagged: DataFrame, matched: DataFrame, odd: DataFrame | None) -> DataFrame:
        """Events that were refused before they were matched, those that matching refused or failed on, odd values."""
        from pyspark.sql import functions as f

        text = self._event_text()
        nobody = f.lit(None).cast("string").alias("subscription_id")
        rows = tagged.select(column(_AT), column(ID), column(_STAGE), column(_REASON), text)
        early = rows.where(column(_STAGE).isNotNull()).select(
            column(ID).alias("event_id"),
            column(_STAGE).alias("stage"),
            column(_REASON).alias("reason"),
            nobody,
            column("event"),
        )
        # Every shard of an index judges every event.
        failed = matched.where(column("error").isNotNull()).dropDuplicates([_AT, "subscription_id", "error"])
        failed = failed.select(_AT, "event_id", "subscription_id", column("error").alias("reason"))
        texts = rows.select(column(_AT).alias(RAW), column(ID), column("event"))
        same = (column(_AT) == column(RAW)) & (column("event_id") == column(ID))
        stage = f.when(column("subscription_id").isNull(), VALIDATE).otherwise(MATCH).alias("stage")
        later = failed.join(texts, same, "left").select("event_id", stage, "reason", "subscription_id", "event")
        found = early.unionByName(later)
        if self._source.deduplicate is not None:
            found = found.unionByName(self._behind_refused(rows, failed))
        if odd is not None:
            found = found.unionByName(odd.select(*map(column, found.columns)))
        return found.select("*", *self._stamped())

    def _behind_refused(self, rows: DataFrame, failed: DataFrame) -> DataFrame:
        """Events that were taken for duplicates of one that was then refused: they would be lost."""
        from pyspark.sql import functions as f

        refused = failed.where(column("subscription_id").isNull()).select("event_id", column(_AT).alias(RAW)).distinct()
        behind = (column(ID) == column("event_id")) & (column(_AT) > column(RAW))
        reason = f.lit("it came behind an event of the same id, which was refused").alias("reason")
        stage, nobody = f.lit(VALIDATE).alias("stage"), f.lit(None).cast("string").alias("subscription_id")
        return (
            rows.where(column(_STAGE).isNull()).join(refused, behind).select("event_id", stage, reason, nobody, "event")
        )

    def _stamped(self) -> list[Any]:
        from pyspark.sql import functions as f

        return [
            f.lit(self._stamp.time).cast("timestamp").alias("match_time"),
            f.lit(self._stamp.version.version).cast("long").alias("index_version"),
            f.lit(self._stamp.batch).cast("long").alias("batch_id"),
        ]


def _told_by(observation: Observation, frame: DataFrame, numbers: list[Column]) -> dict[str, Any]:
    """What was counted as rows passed. Where Spark found that none of them is needed, it is counted now."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    try:
        found: dict[str, Any] = dict(observation.get)
    except Py4JJavaError:  # what Spark says where there is nothing to tell
        found = {}
    if not found:
        again = type(observation)()
        # All columns are read: a line is not found to be bad by those that an aggregate would need.
        frame.observe(again, *numbers).write.format("noop").mode("overwrite").save()
        found = dict(again.get)
    return found


def _time_of(micros: int | None) -> datetime | None:
    return None if micros is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
