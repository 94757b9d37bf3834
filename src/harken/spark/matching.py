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
from harken.spark.mismatches import columns_of, compare, refuse_unreadable
from harken.spark.plugged import NO_OPERATORS, Plugged, plugged
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
    OnError,
    Output,
    Question,
    answers,
)
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
"""The files that were shipped, by session and name. Spark refuses one that it has."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How an index reaches the events: whole on every machine, or in shards."""

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
    an index that `build_index` published. The index is built, or its current version taken, now, and it stays that one
    as long as the query lives; events are read when the answer is asked for.

    `output` is "pairs" (event_id, subscription_id), "lists" (event_id, subscription_ids) or "counts" (event_id,
    matches), each with `columns` of the event; pairs also with `fields` of the subscription, as strings. An invalid
    event has no pairs, and a null list or count; with `on_error="tell"` a column `error` says why, with "fail" the
    query fails.

    `strategy` is "replicate" (the whole index on each machine), "shard" (in `shards` parts) or "auto", which shards an
    index that needs more than `memory`, in bytes, by default a quarter of the machine's.

    What subscriptions ask for is compared with the columns: a name that is no column, a value of another type, or a
    field that no subscription has gives a MismatchWarning; `on_mismatch="fail"` raises MismatchError instead, "ignore"
    does nothing. Raises SourceError if they ask for a column that no event can hold, such as an interval.

    A string or binary column `document` holds the XML documents that XPath subscriptions are about.

    Where workers run on this machine, what the index needs is compiled here and now, unless it is kept already.

    `operators` are those that subscriptions call, each as such or as "module:name", which every worker imports; `order`
    is the order in which they are asked. They are called in the workers, for many events at once.

    `exact_values` is a column for values that other columns cannot hold, such as a text where nearly all values are
    numbers: a JSON object of values by column, which are matched in place of those of the columns, or null.
    """
    _refuse_words(strategy, output, on_error, on_mismatch)
    _refuse_unfitting(events, output, columns, fields, exact_values)
    spark = events.sparkSession
    identified = id_column(events, event_id)
    types = _answer_schema(events, identified, output, columns, fields, on_error)
    version = pinned(subscriptions, spark, schema, plugged(operators, order, subscriptions))
    found = columns_of(events)
    _refuse_unreadable(version, found, identified, spark)
    compare(version, found, on_mismatch, spark, fields)
    chosen = choose(version, spark, strategy, shards, memory)
    sent, beside = _parts(version, chosen, spark), (tuple(columns), tuple(fields))
    names = tuple(types.names)
    question = Question(sent, output, identified, *beside, on_error, names, version.documents, exact_values)
    needed = events.select(*map(column, _needed(events, version, {identified, exact_values, *columns})))
    return _answered(needed, question, types, chosen)


def _refuse_words(strategy: str, output: str, on_error: str, on_mismatch: str) -> None:
    _refuse_unknown("strategy", strategy, STRATEGIES)
    _refuse_unknown("output", output, OUTPUTS)
    _refuse_unknown("on_error", on_error, ON_ERROR)
    require_word(on_mismatch)


def _refuse_unfitting(
    events: DataFrame, output: str, columns: Sequence[str], fields: Sequence[str], exact_values: str | None
) -> None:
    """Raise HarkenError for an answer that there cannot be."""
    require_names(columns, "columns")
    require_names(fields, "fields")
    if fields and output != PAIRS:
        raise HarkenError(f"`fields` of subscriptions come along with pairs, not with {output}")
    for name in (*columns, *(() if exact_values is None else (exact_values,))):
        require_column(events, name, "events")


def _refuse_unreadable(version: IndexVersion, found: EventColumns, identified: str, spark: SparkSession) -> None:
    """Raise SourceError for a column that no event can hold. The id is one only where subscriptions ask for it."""
    is_asked = version.attributes is not None and identified in version.attributes
    refuse_unreadable(version, found if is_asked else found.only(set(found) - {identified}), spark)


def pinned(
    subscriptions: Any, spark: SparkSession, schema: Schema | None = None, plugs: Plugged = NO_OPERATORS
) -> IndexVersion:
    """The index version that `subscriptions` names, or one that is built from them now.

    Raises HarkenError if some are faulty: `harken.spark.check` lists them.
    """
    if isinstance(subscriptions, str | os.PathLike | Index | IndexVersion):
        if schema is not None:
            raise SchemaError("an index has the schema that it was built with", hint="leave `schema` out")
        version = _published(subscriptions, spark, plugs)
        Index(version.root, spark).hold(version.version, running_batch(spark))
        return version
    return Index(scratch(), plugged=plugs).publish(_engine_of(subscriptions, schema, plugs))


def choose(
    version: IndexVersion,
    spark: SparkSession,
    strategy: str = AUTO,
    shards: int | None = None,
    memory: int | None = None,
) -> Strategy:
    """The strategy for an index, and why."""
    limit = max(1, machine_memory() // _SHARE_OF_MEMORY if memory is None else memory)
    size = f"{version.nbytes / 1e6:,.1f} MB"
    if shards is not None and (shards < 1 or strategy == REPLICATE):
        raise HarkenError("`shards` is a number from 1 on, and goes with the strategy shard")
    if strategy == AUTO and shards is None:
        if version.nbytes <= limit:
            return Strategy(REPLICATE, 1, f"an index of {size} is no more than the {limit / 1e6:,.0f} MB for it")
        return Strategy(SHARDED, -(-version.nbytes // limit), f"an index of {size} is more than {limit / 1e6:,.0f} MB")
    if strategy == REPLICATE:
        return Strategy(REPLICATE, 1, "as asked for")
    return Strategy(SHARDED, shards or max(2, -(-version.nbytes // limit)), "as asked for")


def id_column(events: DataFrame, event_id: str | None) -> str:
    """The column that holds the ids of events. Raises SourceError if there is none."""
    if event_id is not None:
        require_column(events, event_id, "events")
        return event_id
    for name in USUAL_IDS:
        if name in events.columns:
            return name
    hint = f"name it with event_id=…; there are {', '.join(events.columns[:12])}"
    raise SourceError("no column says which event is which", hint=hint)


def _refuse_unknown(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        hint = did_you_mean(str(given), known) or f"it is one of {', '.join(known)}"
        raise HarkenError(f"there is no {what} {given!r}", hint=hint)


def _published(
    index: str | os.PathLike[str] | Index | IndexVersion, spark: SparkSession, plugs: Plugged
) -> IndexVersion:
    """The version that a path or an index stands for."""
    if isinstance(index, IndexVersion | Index):
        version = index if isinstance(index, IndexVersion) else index.current()
        return replace(version, plugged=plugs) if plugs.operators else version
    local = local_path(os.fspath(index))
    if local is not None and (local / "manifest.harken").is_file():  # a folder that Engine.save wrote
        engine = Engine.load(local, operators=plugs.operators, order=plugs.order)
        return Index(scratch(), plugged=plugs).publish(engine)
    try:
        return Index(index, spark, plugs).current()
    except SegmentError as error:
        if isinstance(index, str) and reads_like_condition(index):
            error.hint = "it reads like a condition: pass pairs, [('id', 'price > 5')], or a DataFrame"
        raise


def _engine_of(subscriptions: Any, schema: Schema | None, plugs: Plugged) -> Engine:
    if isinstance(subscriptions, Engine):
        if schema is not None and schema != subscriptions.schema:
            raise SchemaError("the engine has another schema already", hint="leave `schema` out")
        return subscriptions
    return build(subscriptions, schema, operators=plugs).engine_or_raise()


def _needed(events: DataFrame, version: IndexVersion, others: Collection[str | None]) -> list[str]:
    """The columns that Python needs, in their order: those that subscriptions use, and these others."""
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
    found = [_carried(events, identified, EVENT_ID), types.StructField(*answer)]
    found += [types.StructField(name, types.StringType()) for name in fields]
    found += [_carried(events, name, name) for name in columns]
    if on_error == TELL:
        found.append(types.StructField("error", types.StringType()))
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise HarkenError(
            f"the answer would have two columns `{twice[0]}`", hint="rename the column of the event first"
        )
    return types.StructType(found)


def _carried(events: DataFrame, name: str, called: str) -> StructField:
    """A column of the events in the answer. It keeps its watermark, so that windows over it can close."""
    from pyspark.sql.types import StructField

    given = events.schema[name]
    kept = {key: value for key, value in given.metadata.items() if key == _WATERMARK}
    return StructField(called, given.dataType, metadata=kept)


def _named(question: Question, chosen: Strategy) -> Any:
    """The function of a task, with a name that explains it in Spark's plan."""
    function = answers(question)
    version = question.parts[0][0].version
    parts = f"_of_{chosen.shards}" if chosen.name == SHARDED else ""
    function.__name__ = f"harken_{chosen.name}{parts}_index_version_{version}"
    return function


def _answered(events: DataFrame, question: Question, types: StructType, chosen: Strategy) -> DataFrame:
    """Match every event where it is with the whole index, or in the tasks of all shards."""
    rehearse(question, events)
    if chosen.name == SHARDED:
        return _sharded(events, question, types, chosen)
    return mapped(events, _named(question, chosen), types)


def _sharded(events: DataFrame, question: Question, types: StructType, chosen: Strategy) -> DataFrame:
    """Send every event to a task of every shard, and unite what the shards find."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    is_one_row = question.output != PAIRS
    if is_one_row and events.isStreaming:
        hint = 'ask for output="pairs", use strategy="replicate", or match inside foreachBatch'
        raise HarkenError(f"a stream cannot be matched in shards to {question.output}", hint=hint)
    spread = max(1, parallelism(events.sparkSession) // chosen.shards)
    asked, rows = question, events
    if is_one_row:  # the answers of the shards are joined by row
        rows = _numbered(events)
        asked = replace(question, columns=(ROW, *question.columns), names=(*types.names[:2], ROW, *types.names[2:]))
        types = StructType([*types.fields[:2], rows.schema[ROW], *types.fields[2:]])
    copies = rows.withColumn(SHARD, f.explode(f.sequence(f.lit(0), f.lit(chosen.shards - 1))))
    # By a hash, so that reading the events again sends each to the same tasks.
    partition = f.col(SHARD) * spread + f.pmod(_hashed(events, [question.event_id]), f.lit(spread)).cast("int")
    placed = _placed(copies, partition, chosen.shards * spread)
    found = mapped(placed, _named(asked, chosen), types)
    return _united(found, question) if is_one_row else found


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
    # Before 4.1 Spark only partitions by a hash, so each partition gets a key whose hash leads there.
    tried = f"SELECT transform(sequence(0, {32 * partitions}), key -> pmod(hash(key), {partitions})) AS places"
    (places,) = rows.sparkSession.sql(tried).collect()[0]
    keys = [places.index(place) if place in places else place for place in range(partitions)]
    return rows.repartition(partitions, f.element_at(f.array(*map(f.lit, keys)), partition + 1))


def _united(found: DataFrame, question: Question) -> DataFrame:
    """The answers of all shards, in one row for each event."""
    from pyspark.sql import functions as f

    answer = question.names[1]
    united = f.flatten(f.collect_list(answer)) if question.output == LISTS else f.sum(answer)
    # An invalid event has no answer from any shard.
    whole = f.when(f.count(answer) > 0, united).alias(answer)
    others = [name for name in question.names if name != answer]
    kept = [f.first(column(name), ignorenulls=name == "error").alias(name) for name in others]
    return found.groupBy(ROW).agg(whole, *kept).select(*map(column, question.names))


def _parts(version: IndexVersion, chosen: Strategy, spark: SparkSession) -> tuple[tuple[IndexVersion, str | None], ...]:
    """The index, or its shards in order, each with the name under which it is shipped."""
    parts = Index(version.root, spark).cut(version, chosen.shards) if chosen.name == SHARDED else [version]
    return tuple((part, _sent(part, spark)) for part in parts)


def _sent(version: IndexVersion, spark: SparkSession) -> str | None:
    """The name under which a version is shipped with the job; None if every machine can read it in place."""
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
