"""`match`: a DataFrame of events in, a DataFrame of matches out."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harken.engine import Engine
from harken.errors import HarkenError, SchemaError, SegmentError, SourceError, did_you_mean
from harken.language.sql.parser import reads_like_condition
from harken.live.mismatch import OnMismatch, require_word
from harken.live.notifications import EVENT_ID, SUBSCRIPTION_ID
from harken.operators import ORDERS, Operator
from harken.schema import Schema
from harken.spark.building import build
from harken.spark.frames import USUAL_IDS, column, mapped, require_column, require_names
from harken.spark.index_files import HadoopFiles, files_of
from harken.spark.index_versions import Index, IndexVersion
from harken.spark.local import packed, shipped_name
from harken.spark.mismatches import columns_of, compare, reject_unreadable
from harken.spark.rehearsing import rehearse
from harken.spark.session_facts import (
    is_connect,
    is_local,
    machine_memory,
    parallelism,
    running_batch,
    scratch,
    session_name,
)
from harken.spark.task import (
    COUNTS,
    FAIL,
    LISTS,
    PAIRS,
    ROW,
    SHARD,
    SKIP,
    TELL,
    MatchTask,
    OnError,
    Output,
    matching_step,
)
from harken.spark.worker_operators import NO_OPERATORS, WorkerOperators, worker_operators
from harken.versions.files import local_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

    from harken.schema.event_columns import EventColumns

StrategyName = Literal["auto", "replicate", "shard"]
AUTO, REPLICATE, SHARDED = STRATEGIES = ("auto", "replicate", "shard")
OUTPUTS = (PAIRS, LISTS, COUNTS)
ON_ERROR = (SKIP, FAIL, TELL)
_SHARE_OF_MEMORY = 4
"""Shard an index that is larger than 1/_SHARE_OF_MEMORY of a machine's memory, unless the caller chooses."""
_WATERMARK = "spark.watermarkDelayMs"
"""The key in a column's metadata by which Spark marks a watermark."""
_shipped: set[tuple[str, str]] = set()
"""The files that were shipped, by session and name. Spark raises an error for a file that it already has."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How an index is distributed: whole on every machine, or in shards."""

    name: str
    shards: int
    reason: str

    def __str__(self) -> str:
        parts = f" in {self.shards} shards" if self.name == SHARDED else ""
        return f"{self.name}{parts} ({self.reason})"


def match(
    events: DataFrame,
    subscriptions: Any,
    *,
    event_id: str | None = None,
    schema: Schema | None = None,
    strategy: StrategyName = "auto",
    output: Output = "pairs",
    columns: Sequence[str] = (),
    fields: Sequence[str] = (),
    shards: int | None = None,
    memory: int | None = None,
    on_error: OnError = "skip",
    on_mismatch: OnMismatch = "warn",
    operators: Iterable[Operator | str] = (),
    order: str = ORDERS[0],
    exact_values: str | None = None,
) -> DataFrame:
    """The subscriptions that are true of each event, for a batch or a stream of them.

    `subscriptions` is a DataFrame with `id` and `where`, an Arrow table, pairs or mappings, an `Engine`, or the path of
    an index that `build_index` published. The index is built at once; of a published one, the query keeps using the
    version that is current now. Events are read when the result is used.

    `output` is "pairs" (event_id, subscription_id), "lists" (event_id, subscription_ids) or "counts" (event_id,
    matches), each with `columns` of the event; pairs also with `fields` of the subscription, as strings. An invalid
    event has no pairs, and a null list or count. With `on_error="tell"` a column `error` has the reason; with "fail"
    the query fails.

    `strategy` is "replicate" (the whole index on each machine), "shard" (`shards` parts of the index) or "auto", which
    shards an index of more than `memory` bytes, by default a quarter of the machine's memory.

    The attributes that subscriptions use are compared with the columns of events: a missing column, a value of another
    type, or a field that no subscription has gives a MismatchWarning; `on_mismatch="fail"` raises MismatchError
    instead, "ignore" does nothing. Raises SourceError if a subscription uses a column that no event can hold, such as
    an interval.

    XPath subscriptions match the XML documents in a string or binary column `document`. If workers run on this machine,
    the kernels that the index needs are compiled before this returns.

    `operators` are the operators that subscriptions call, each an `Operator` or "module:name", which every worker
    imports. `order` is the order in which their predicates are evaluated. Workers call them for many events at once.

    `exact_values` names a column for values that other columns cannot hold, such as a text in a column of numbers: a
    JSON object of values by column, which replace the values of these columns, or null.
    """
    _check_words(strategy, output, on_error, on_mismatch)
    _reject_unfitting(events, output, columns, fields, exact_values)
    spark = events.sparkSession
    identified = id_column(events, event_id)
    types = _answer_schema(events, identified, output, columns, fields, on_error)
    version = pinned(subscriptions, spark, schema, worker_operators(operators, order, subscriptions))
    event_columns = columns_of(events)
    _reject_unreadable(version, event_columns, identified, spark)
    compare(version, event_columns, on_mismatch, spark, fields)
    chosen = choose(version, spark, strategy, shards, memory)
    carried, names = (tuple(columns), tuple(fields)), tuple(types.names)
    parts = _parts(version, chosen, spark)
    task = MatchTask(parts, output, identified, *carried, on_error, names, version.documents, exact_values)
    needed = events.select(*map(column, _needed(events, version, {identified, exact_values, *columns})))
    return _matched(needed, task, types, chosen)


def _check_words(strategy: str, output: str, on_error: str, on_mismatch: str) -> None:
    _reject_unknown("strategy", strategy, STRATEGIES)
    _reject_unknown("output", output, OUTPUTS)
    _reject_unknown("on_error", on_error, ON_ERROR)
    require_word(on_mismatch)


def _reject_unfitting(
    events: DataFrame, output: str, columns: Sequence[str], fields: Sequence[str], exact_values: str | None
) -> None:
    """Raise HarkenError for fields or columns that the result cannot have."""
    require_names(columns, "columns")
    require_names(fields, "fields")
    if fields and output != PAIRS:
        raise HarkenError(f"`fields` of subscriptions are columns of pairs, not of {output}")
    for name in (*columns, *(() if exact_values is None else (exact_values,))):
        require_column(events, name, "events")


def _reject_unreadable(version: IndexVersion, columns: EventColumns, identified: str, spark: SparkSession) -> None:
    """Raise SourceError for a column that no event can hold. The id may be any, unless subscriptions use it."""
    is_used = version.attributes is not None and identified in version.attributes
    reject_unreadable(version, columns if is_used else columns.only(set(columns) - {identified}), spark)


def pinned(
    subscriptions: Any, spark: SparkSession, schema: Schema | None = None, operators: WorkerOperators = NO_OPERATORS
) -> IndexVersion:
    """The index version that `subscriptions` names, or a new one that is built from them.

    Raises HarkenError if some are faulty: `harken.spark.check` lists them.
    """
    if isinstance(subscriptions, str | os.PathLike | Index | IndexVersion):
        if schema is not None:
            raise SchemaError("an index has the schema that it was built with", hint="leave `schema` out")
        version = _published(subscriptions, spark, operators)
        Index(version.root, spark).hold(version.version, running_batch(spark))
        return version
    return Index(scratch(), plugged=operators).publish(_engine_of(subscriptions, schema, operators))


def choose(
    version: IndexVersion,
    spark: SparkSession,
    strategy: str = AUTO,
    shards: int | None = None,
    memory: int | None = None,
) -> Strategy:
    """The strategy for an index, with the reason."""
    limit = max(1, machine_memory() // _SHARE_OF_MEMORY if memory is None else memory)
    size = f"{version.nbytes / 1e6:,.1f} MB"
    if shards is not None and (shards < 1 or strategy == REPLICATE):
        raise HarkenError("`shards` is a number from 1 on, and goes with the strategy shard")
    if strategy == AUTO and shards is None:
        if version.nbytes <= limit:
            return Strategy(REPLICATE, 1, f"an index of {size} is at most {limit / 1e6:,.0f} MB")
        return Strategy(SHARDED, -(-version.nbytes // limit), f"an index of {size} is more than {limit / 1e6:,.0f} MB")
    if strategy == REPLICATE:
        return Strategy(REPLICATE, 1, "as requested")
    return Strategy(SHARDED, shards or max(2, -(-version.nbytes // limit)), "as requested")


def id_column(events: DataFrame, event_id: str | None) -> str:
    """The column that holds the ids of events. Raises SourceError if there is none."""
    if event_id is not None:
        require_column(events, event_id, "events")
        return event_id
    for name in USUAL_IDS:
        if name in events.columns:
            return name
    hint = f"name it with event_id=…; there are {', '.join(events.columns[:12])}"
    raise SourceError("the events have no column of ids", hint=hint)


def _reject_unknown(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        hint = did_you_mean(str(given), known) or f"it is one of {', '.join(known)}"
        raise HarkenError(f"there is no {what} {given!r}", hint=hint)


def _published(
    index: str | os.PathLike[str] | Index | IndexVersion, spark: SparkSession, operators: WorkerOperators
) -> IndexVersion:
    """The current version of a path or an index, or the version itself."""
    if isinstance(index, IndexVersion | Index):
        version = index if isinstance(index, IndexVersion) else index.current()
        return replace(version, plugged=operators) if operators.operators else version
    local = local_path(os.fspath(index))
    if local is not None and (local / "manifest.harken").is_file():  # a folder that Engine.save wrote
        engine = Engine.load(local, operators=operators.operators, order=operators.order)
        return Index(scratch(), plugged=operators).publish(engine)
    try:
        return Index(index, spark, operators).current()
    except SegmentError as error:
        if isinstance(index, str) and reads_like_condition(index):
            error.hint = "it reads like a condition: pass pairs, [('id', 'price > 5')], or a DataFrame"
        raise


def _engine_of(subscriptions: Any, schema: Schema | None, operators: WorkerOperators) -> Engine:
    if isinstance(subscriptions, Engine):
        if schema is not None and schema != subscriptions.schema:
            raise SchemaError("the engine has another schema already", hint="leave `schema` out")
        return subscriptions
    return build(subscriptions, schema, operators=operators).engine_or_raise()


def _needed(events: DataFrame, version: IndexVersion, others: Collection[str | None]) -> list[str]:
    """The columns to send to Python, in their order: the columns that subscriptions use, and these others."""
    wanted = version.attributes
    return [name for name in events.columns if wanted is None or name in wanted or name in others]


def _answer_schema(
    events: DataFrame, identified: str, output: str, columns: Sequence[str], fields: Sequence[str], on_error: str
) -> StructType:
    from pyspark.sql import types

    answer = {
        PAIRS: (SUBSCRIPTION_ID, types.StringType()),
        LISTS: ("subscription_ids", types.ArrayType(types.StringType(), containsNull=False)),
        COUNTS: ("matches", types.LongType()),
    }[output]
    columns_out = [_carried(events, identified, EVENT_ID), types.StructField(*answer)]
    columns_out += [types.StructField(name, types.StringType()) for name in fields]
    columns_out += [_carried(events, name, name) for name in columns]
    if on_error == TELL:
        columns_out.append(types.StructField("error", types.StringType()))
    names = [each.name for each in columns_out]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise HarkenError(
            f"the result would have two columns `{twice[0]}`", hint="rename the column of the event first"
        )
    return types.StructType(columns_out)


def _carried(events: DataFrame, name: str, called: str) -> StructField:
    """A column of events as a column of the result. It keeps its watermark, so that windows over it can close."""
    from pyspark.sql.types import StructField

    field = events.schema[name]
    kept = {key: value for key, value in field.metadata.items() if key == _WATERMARK}
    return StructField(called, field.dataType, metadata=kept)


def _named(task: MatchTask, chosen: Strategy) -> Any:
    """The function of a task, with a name that explains it in Spark's plan."""
    function = matching_step(task)
    version = task.parts[0][0].version
    parts = f"_of_{chosen.shards}" if chosen.name == SHARDED else ""
    function.__name__ = f"harken_{chosen.name}{parts}_index_version_{version}"
    return function


def _matched(events: DataFrame, task: MatchTask, types: StructType, chosen: Strategy) -> DataFrame:
    """Match each event with the whole index in its own partition, or send it to the tasks of all shards."""
    rehearse(task, events)
    if chosen.name == SHARDED:
        return _sharded(events, task, types, chosen)
    return mapped(events, _named(task, chosen), types)


def _sharded(events: DataFrame, task: MatchTask, types: StructType, chosen: Strategy) -> DataFrame:
    """Send every event to a task of every shard, and unite the matches of the shards."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    is_one_row = task.output != PAIRS
    if is_one_row and events.isStreaming:
        hint = 'choose output="pairs" or strategy="replicate", or match inside foreachBatch'
        raise HarkenError(f"a stream cannot be matched in shards to {task.output}", hint=hint)
    spread = max(1, parallelism(events.sparkSession) // chosen.shards)
    shard_task, rows = task, events
    if is_one_row:  # the results of the shards are joined by row
        rows = _numbered(events)
        shard_task = replace(task, columns=(ROW, *task.columns), names=(*types.names[:2], ROW, *types.names[2:]))
        types = StructType([*types.fields[:2], rows.schema[ROW], *types.fields[2:]])
    copies = rows.withColumn(SHARD, f.explode(f.sequence(f.lit(0), f.lit(chosen.shards - 1))))
    # By a hash, so that reading the events again sends each to the same tasks.
    partition = f.col(SHARD) * spread + f.pmod(_hashed(events, [task.event_id]), f.lit(spread)).cast("int")
    placed = _placed(copies, partition, chosen.shards * spread)
    matches = mapped(placed, _named(shard_task, chosen), types)
    return _united(matches, task) if is_one_row else matches


def _numbered(events: DataFrame) -> DataFrame:
    """The events with row numbers that are stable even if Spark reads the rows again in another order."""
    from pyspark.sql import functions as f

    ordered = events.sortWithinPartitions(_hashed(events, events.columns))
    return ordered.withColumn(ROW, f.monotonically_increasing_id())


def _hashed(events: DataFrame, names: Sequence[str]) -> Column:
    """A hash of these columns. Spark does not hash maps, so a column with one is hashed as text."""
    from pyspark.sql import functions as f

    kinds = {name: events.schema[name].dataType for name in names}
    return f.xxhash64(*(column(name).cast("string") if _has_map(kinds[name]) else column(name) for name in names))


def _has_map(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType)


def _placed(rows: DataFrame, partition: Column, partitions: int) -> DataFrame:
    """The rows, each in the partition with this number."""
    from pyspark.sql import functions as f

    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(partitions, partition)
    # Before 4.1 Spark only partitions by a hash: find a key for each partition that hashes to it.
    query = f"SELECT transform(sequence(0, {32 * partitions}), key -> pmod(hash(key), {partitions})) AS places"
    (places,) = rows.sparkSession.sql(query).collect()[0]
    keys = [places.index(place) if place in places else place for place in range(partitions)]
    return rows.repartition(partitions, f.element_at(f.array(*map(f.lit, keys)), partition + 1))


def _united(rows: DataFrame, task: MatchTask) -> DataFrame:
    """The results of all shards, in one row for each event."""
    from pyspark.sql import functions as f

    answer = task.names[1]
    united = f.flatten(f.collect_list(answer)) if task.output == LISTS else f.sum(answer)
    # For an invalid event, the result of every shard is null.
    whole = f.when(f.count(answer) > 0, united).alias(answer)
    others = [name for name in task.names if name != answer]
    kept = [f.first(column(name), ignorenulls=name == "error").alias(name) for name in others]
    return rows.groupBy(ROW).agg(whole, *kept).select(*map(column, task.names))


def _parts(version: IndexVersion, chosen: Strategy, spark: SparkSession) -> tuple[tuple[IndexVersion, str | None], ...]:
    """The index, or its shards in order, each with the name under which it is shipped."""
    parts = Index(version.root, spark).cut(version, chosen.shards) if chosen.name == SHARDED else [version]
    return tuple((part, _ship(part, spark)) for part in parts)


def _ship(version: IndexVersion, spark: SparkSession) -> str | None:
    """Ship a version with the job. Returns the name of its file; None if every machine can read it in place."""
    if local_path(version.root) is None and not isinstance(files_of(version.root, spark), HadoopFiles):
        return None
    if is_local(spark) and local_path(version.root) is not None:
        return None
    name = shipped_name(version)
    session = session_name(spark)
    if (session, name) not in _shipped:
        file = _as_one_file(version, spark)
        if is_connect(spark):
            spark.addArtifact(str(file), file=True)
        else:
            spark.sparkContext.addFile(str(file))
        _shipped.add((session, name))
    return name


def _as_one_file(version: IndexVersion, spark: SparkSession) -> Path:
    folder = Path(scratch())
    if local_path(version.root) is None:  # only the driver can read it
        files_of(version.root, spark).download(version.folder, folder / version.folder)
        version = replace(version, root=str(folder))
    return packed(version, folder)
