"""`backtest`: the matches that subscriptions would have had in a history of events.

Events are matched once. Each task counts matches by subscription and period, and keeps a few examples. All results of a
backtest come from these counts and examples, which Spark caches.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from harken.concurrency.caching import cached_property
from harken.engine import Engine
from harken.errors import HarkenError, SourceError, did_you_mean
from harken.live.mismatch import OnMismatch, require_word
from harken.live.notifications import EVENT_ID
from harken.schema import Schema
from harken.spark.frames import USUAL_IDS, column, from_arrow, mapped, reject_stream, require_column
from harken.spark.index_versions import Index, IndexVersion
from harken.spark.local import opened
from harken.spark.matching import StrategyName, match, pinned
from harken.spark.mismatches import columns_of, compare
from harken.spark.stream_leases import reading_for
from harken.spark.tallies import EVENT, MATCHES, PERIOD, SUBSCRIPTION, TALLIED, WHEN, tallying
from harken.versions.leases import Reader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Period = Literal["minute", "hour", "day", "week", "month"]
PERIODS: tuple[str, ...] = get_args(Period)
ONE = "subscription"
"""The id of a subscription that is passed as a text."""

_MOST_SHOWN = 10
_WIDEST = 100
_readers: set[Reader] = set()
"""The readers of backtests that are not closed: their DataFrames may be in use after the backtest is deleted."""


class Backtest:
    """The matches that subscriptions would have had in a history of events.

    The first use of a result matches the events; later uses read the cache. Close a backtest, or use it in a `with`, to
    free the cache and the version of the index.
    """

    def __init__(
        self,
        matches: DataFrame,
        tallies: DataFrame,
        columns: Sequence[str],
        ids: Sequence[str],
        examples: int,
        by: str | None,
        reader: Reader,
    ) -> None:
        self.matches = matches
        """Every match, with the columns of its event. Not cached: each use matches the events again."""
        self.by = by
        """The period of `rate`; None if no `event_time` was passed."""
        self._tallies = tallies.persist()
        self._columns = columns
        self._ids = ids
        self._examples = examples
        self._reader = reader
        _readers.add(reader)

    @cached_property
    def counts(self) -> DataFrame:
        """The matches of each subscription (`subscription_id`, `matches`), the most first, zeros included."""
        import pyarrow
        from pyspark.sql.functions import coalesce, desc, lit, sum

        summed = self._counted.groupBy(SUBSCRIPTION).agg(sum(MATCHES).alias(MATCHES))
        every = pyarrow.table({SUBSCRIPTION: pyarrow.array(self._ids, pyarrow.string())})
        counts = from_arrow(self._tallies.sparkSession, every).join(summed, SUBSCRIPTION, "left")
        return counts.select(SUBSCRIPTION, coalesce(MATCHES, lit(0)).alias(MATCHES)).orderBy(
            desc(MATCHES), SUBSCRIPTION
        )

    @cached_property
    def rate(self) -> DataFrame:
        """The matches of each subscription by period (`subscription_id`, `day`, `matches`), in order, without zeros.

        The column of the period has its name. Raises HarkenError if no `event_time` was passed.
        """
        from pyspark.sql.functions import sum

        if self.by is None:
            raise HarkenError("a rate needs the time of events", hint="backtest(…, event_time=…) names their column")
        rates = self._counted.groupBy(SUBSCRIPTION, column(PERIOD).alias(self.by)).agg(sum(MATCHES).alias(MATCHES))
        return rates.orderBy(SUBSCRIPTION, self.by)

    @cached_property
    def examples(self) -> DataFrame:
        """Some events that each subscription matched, with all columns: the latest ones if events have a time."""
        from pyspark.sql import Window
        from pyspark.sql.functions import desc_nulls_last, row_number

        rank = row_number().over(Window.partitionBy(SUBSCRIPTION).orderBy(desc_nulls_last(WHEN)))
        ranked = self._tallies.where(column(EVENT).isNotNull()).withColumn("rank", rank)
        fields = [column(EVENT).getField(name).alias(name) for name in self._columns]
        chosen = ranked.where(column("rank") <= self._examples).orderBy(SUBSCRIPTION, "rank")
        return chosen.select(SUBSCRIPTION, *fields)

    def summary(self) -> BacktestSummary:
        """The subscriptions with the most matches, each with its busiest period and an example, to print."""
        from pyspark.sql.functions import count, count_if, sum

        (totals,) = self.counts.agg(count("*"), sum(MATCHES), count_if(column(MATCHES) == 0)).collect()
        busiest = [(row[0], row[1]) for row in self.counts.limit(_MOST_SHOWN).collect()]
        is_shown = column(SUBSCRIPTION).isin([id for id, matches in busiest if matches])
        periods: dict[str, list[tuple[str, int]]] = {}
        if self.by is not None:
            timed = self.rate.where(is_shown & column(self.by).isNotNull())
            for id, period, matches in _texts(timed).collect():
                periods.setdefault(id, []).append((period, int(matches)))
        examples: dict[str, list[dict[str, str]]] = {}
        for row in _texts(self.examples.where(is_shown)).collect():
            shown = zip(self._columns, row[1:], strict=True)
            examples.setdefault(row[0], []).append({name: text for name, text in shown if text is not None})
        lines = (BacktestLine(id, matches, periods.get(id, []), examples.get(id, [])) for id, matches in busiest)
        return BacktestSummary(totals[0], totals[1] or 0, totals[2], tuple(lines), self.by)

    def close(self) -> None:
        """Free the cache. Later uses match the events again, if the index still has its version."""
        self._tallies.unpersist()
        self._reader.close()
        _readers.discard(self._reader)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Backtest of {len(self._ids):,} subscriptions, with counts, rate, examples and summary()>"

    @property
    def _counted(self) -> DataFrame:
        return self._tallies.where(column(MATCHES).isNotNull())


@dataclass(frozen=True, slots=True)
class BacktestLine:
    """One subscription in the summary."""

    subscription_id: str
    matches: int
    periods: list[tuple[str, int]]
    """(period, matches), in order; empty if events have no time."""
    examples: list[dict[str, str]]
    """Events with their values as texts, without nulls."""

    def cells(self, by: str | None) -> tuple[str, ...]:
        """The subscription as a row of the printed table."""
        shown = ", ".join(f"{name}={text}" for name, text in (self.examples or [{}])[0].items())
        example = shown if len(shown) <= _WIDEST else shown[: _WIDEST - 1] + "…"
        if by is None:
            return self.subscription_id, f"{self.matches:,}", example
        period, matches = max(self.periods, key=lambda each: each[1], default=(None, 0))
        busiest = f"{period} ({matches:,})" if matches else ""
        return self.subscription_id, f"{self.matches:,}", f"{len(self.periods):,}", busiest, example


@dataclass(frozen=True, slots=True, repr=False)
class BacktestSummary:
    """A short summary of a backtest: print it, or read its attributes."""

    subscriptions: int
    matches: int
    silent: int
    """Subscriptions without a match."""
    lines: tuple[BacktestLine, ...]
    """The subscriptions with the most matches."""
    by: str | None

    def __str__(self) -> str:
        times = () if self.by is None else (f"{self.by}s", f"busiest {self.by}")
        headings = ("subscription", "matches", *times, "example")
        rows = [headings, *(line.cells(self.by) for line in self.lines)]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ["  ".join(map(_aligned, row, widths, headings)).rstrip() for row in rows]
        more = self.subscriptions - len(self.lines)
        if more:
            lines.append(f"… and {more:,} more")
        silent = f", {self.silent:,} without any" if self.silent else ""
        many = "subscription" if self.subscriptions == 1 else "subscriptions"
        lines.append(f"{self.matches:,} matches of {self.subscriptions:,} {many}{silent}")
        return "\n".join(lines)

    __repr__ = __str__


def backtest(
    events: DataFrame,
    subscriptions: Any,
    *,
    event_id: str | None = None,
    event_time: str | None = None,
    schema: Schema | None = None,
    examples: int = 5,
    by: Period = "day",
    strategy: StrategyName = "auto",
    shards: int | None = None,
    memory: int | None = None,
    on_mismatch: OnMismatch = "warn",
) -> Backtest:
    """The matches that subscriptions would have had in a history of events.

    `subscriptions` is one text, a mapping of ids to texts, or anything that `match` takes. A string is always a text:
    pass the path of an index as a `pathlib.Path`. With `event_time`, a column of timestamps or dates, the backtest has
    a `rate` by minute, hour, day, week or month, in the session's time zone, and the latest matches as examples.
    Invalid events match nothing: `validate` lists them. `on_mismatch` is as in `match`.

    Raises LanguageError, with its place, for a faulty text, and SourceError for a missing column or a stream.
    """
    if examples < 0:
        raise ValueError(f"there cannot be {examples} examples")
    if by not in PERIODS:
        hint = did_you_mean(str(by), PERIODS) or f"it is one of {', '.join(PERIODS)}"
        raise HarkenError(f"there is no period {by!r}", hint=hint)
    require_word(on_mismatch)
    if not hasattr(events, "sparkSession"):
        hint = "backtest(events, subscriptions) takes its arguments in the order of match"
        raise SourceError(f"the events must be a DataFrame, not a {type(events).__name__}", hint=hint)
    reject_stream(events, "backtesting")
    for name in (event_id, event_time):
        if name is not None:
            require_column(events, name, "events")
    _reject_timeless(events, event_time)
    spark = events.sparkSession
    reader = Reader(secrets.token_hex(4))
    with reading_for(reader):
        version = _indexed(subscriptions, spark, schema)
        compare(version, columns_of(events), on_mismatch, spark)
        names = events.columns
        # The examples need all columns, so any column can serve as the id if there is none.
        identified = event_id or next(name for name in (*USUAL_IDS, *names) if name in names)
        matches = match(
            events,
            version,
            event_id=identified,
            columns=[name for name in names if name != identified],
            strategy=strategy,
            shards=shards,
            memory=memory,
            on_mismatch="ignore",
        )
    tallies = _tallied(matches, names, identified, event_time, by, examples)
    ids = [each.id for each in opened(version, spark=spark)]
    return Backtest(matches, tallies, names, ids, examples, None if event_time is None else by, reader)


def _tallied(
    matches: DataFrame, names: Sequence[str], identified: str, event_time: str | None, by: str, examples: int
) -> DataFrame:
    """The tallies of the matches, made by each task."""
    from pyspark.sql.functions import date_trunc, lit, struct, unix_micros
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    whole = struct(*(column(EVENT_ID if name == identified else name).alias(name) for name in names))
    period: Column = lit(None).cast("date")
    when: Column = lit(None).cast("long")
    if event_time is not None:
        time = column(EVENT_ID if event_time == identified else event_time).cast("timestamp")
        period = date_trunc(by, time).cast("date") if by == "day" else date_trunc(by, time)
        when = unix_micros(time)
    rows = matches.select(SUBSCRIPTION, period.alias(PERIOD), when.alias(WHEN), whole.alias(EVENT))
    kinds = {name: rows.schema[name].dataType for name in rows.columns}
    types = {SUBSCRIPTION: StringType(), **kinds, MATCHES: LongType()}
    tallied = StructType([StructField(name, types[name]) for name in TALLIED])
    return mapped(rows, tallying(examples), tallied)


def _indexed(subscriptions: Any, spark: SparkSession, schema: Schema | None) -> IndexVersion:
    """The index of the subscriptions. Raises the error of the first faulty text."""
    is_indexed = isinstance(subscriptions, Engine | Index | IndexVersion | os.PathLike)
    if is_indexed or hasattr(subscriptions, "sparkSession"):
        return pinned(subscriptions, spark, schema)
    records = {ONE: subscriptions} if isinstance(subscriptions, str) else subscriptions
    engine = Engine(schema)
    faults = engine.subscribe_many(records.items() if isinstance(records, Mapping) else records).faults
    if faults:
        error = faults[0].error
        if len(faults) > 1 or not isinstance(subscriptions, str):
            others = f", and {len(faults) - 1:,} others are faulty too" if len(faults) > 1 else ""
            error.add_note(f"This is the subscription {faults[0].id!r:.60}{others}.")
        elif os.path.exists(subscriptions):
            error.add_note("A string is taken for the text of a subscription; for an index, pass a pathlib.Path.")
        raise error
    return pinned(engine, spark)


def _texts(rows: DataFrame) -> DataFrame:
    """The rows with all values as text: times in the session's zone, nested values as JSON."""
    from pyspark.sql.functions import to_json
    from pyspark.sql.types import ArrayType, MapType, StructType

    nested = ArrayType, MapType, StructType
    texts = [
        to_json(column(field.name)) if isinstance(field.dataType, nested) else column(field.name).cast("string")
        for field in rows.schema.fields
    ]
    return rows.select(*texts)


def _aligned(cell: str, width: int, heading: str) -> str:
    """Numbers are aligned to the right."""
    return cell.rjust(width) if heading.endswith("s") else cell.ljust(width)


def _reject_timeless(events: DataFrame, event_time: str | None) -> None:
    from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

    if event_time is None:
        return
    kind = events.schema[event_time].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType | DateType):
        hint = "cast it to a timestamp first"
        raise SourceError(f"the column `{event_time}` is no time of events, but a {kind.simpleString()}", hint=hint)
