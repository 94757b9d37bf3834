"""`build_index`: Spark's tasks parse and index parts of the subscriptions; the driver joins and publishes them."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harken.engine import Engine
from harken.errors import HarkenError, SourceError, SubscriptionError, did_you_mean
from harken.internals import join_engines
from harken.limits import DEFAULT_LIMITS, Limits
from harken.live.mismatch import IGNORE, OnMismatch, require_word, tell
from harken.live.subscriptions import Fault
from harken.operators import Operator
from harken.rehearsal import compile_silently
from harken.schema import Schema
from harken.spark.frames import mapped
from harken.spark.index_files import HadoopFiles, files_of
from harken.spark.index_versions import Index, IndexVersion
from harken.spark.mismatches import columns_of
from harken.spark.session_facts import is_connect
from harken.spark.worker_operators import NO_OPERATORS, WorkerOperators, worker_operators
from harken.versions.files import local_path
from harken.versions.root import KEPT

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_STAGED = "staged"
_PART_COLUMNS = "part string, rejected long, faults string"
_MOST_FAULTS = 1_000
"""Faults that are listed. Further ones are only counted."""


@dataclass(frozen=True, slots=True)
class SubscriptionFault:
    """A rejected subscription."""

    id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Built:
    """An engine of all valid subscriptions, and the faults of the others."""

    engine: Engine
    faults: list[SubscriptionFault] = field(default_factory=list)
    """At most the first thousand."""
    rejected: int = 0
    """The number of rejected subscriptions."""

    def engine_or_raise(self) -> Engine:
        """The engine. Raises SubscriptionError if a subscription was rejected."""
        if self.rejected:
            first = self.faults[0]
            others = f", and {self.rejected - 1:,} others" if self.rejected > 1 else ""
            raise SubscriptionError(
                f"the subscription {first.id!r:.60} is faulty{others}: {first.reason}",
                hint='build_index(…, on_fault="skip") leaves them out; harken.spark.check lists all of a DataFrame',
            )
        return self.engine


def build_index(
    subscriptions: Any,
    path: str | PathLike[str],
    *,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    on_fault: Literal["reject", "skip"] = "reject",
    profile: Any = None,
    source: str | None = None,
    keep: int = KEPT,
    events: Any = None,
    on_mismatch: OnMismatch = "warn",
    operators: Iterable[Operator | str] = (),
) -> IndexVersion:
    """Index subscriptions, and publish them as the next version of the index at a path.

    `subscriptions` is a DataFrame with `id` and `where` (other columns become fields of the subscription), or anything
    that `Engine.subscribe_many` takes. A DataFrame is parsed by a task for each partition. A faulty subscription makes
    the build fail or, with `on_fault="skip"`, is left out.

    `profile` is a result of `harken.spark.profile`: the index is planned for such events. The last `keep` versions and
    the pinned ones are kept.

    `events` (a DataFrame, its schema, or an Arrow schema) or else the profile has the columns of future events. If a
    subscription uses what these lack, `on_mismatch` is to warn, to fail without publishing, or to ignore it: see
    `match`.

    `operators` are the operators that subscriptions call. They are not saved: pass them to `match` too.
    """
    require_word(on_mismatch)
    if on_fault not in ("reject", "skip"):
        raise HarkenError(f"on_fault is reject or skip, not {on_fault!r}")
    future = events if events is not None or profile is None else profile.sample
    columns = None if future is None else columns_of(future)
    sent = worker_operators(operators, subscriptions=subscriptions)
    built = build(subscriptions, schema, limits, staging=path, operators=sent)
    engine = built.engine if on_fault == "skip" else built.engine_or_raise()
    if columns is not None and on_mismatch != IGNORE:
        tell(engine.mismatches(columns), on_mismatch)
    if profile is not None:
        engine.learn(profile.sample)
    spark = getattr(subscriptions, "sparkSession", None)
    return Index(path, spark, sent).publish(engine, source=source, keep=keep)


def build(
    subscriptions: Any,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    staging: str | PathLike[str] | None = None,
    operators: WorkerOperators = NO_OPERATORS,
) -> Built:
    """An engine from subscriptions in any form that `build_index` takes.

    For a DataFrame, Spark builds parts and stages them below `staging`, or in a temporary folder.
    """
    if isinstance(subscriptions, Engine):
        return Built(subscriptions)
    if hasattr(subscriptions, "sparkSession"):
        return _built_by_spark(subscriptions, schema, limits, staging, operators)
    return _built_here(subscriptions, schema, limits, operators)


def _built_by_spark(
    subscriptions: DataFrame,
    schema: Schema | None,
    limits: Limits,
    staging: str | PathLike[str] | None,
    operators: WorkerOperators,
) -> Built:
    _reject_unusable(subscriptions)
    place = _staging_place(staging, subscriptions.sparkSession)
    try:
        rows = mapped(_spread(subscriptions), _builder(place, schema, limits, operators), _PART_COLUMNS).collect()
        parts = [
            _fetched(place, part, operators) for part in sorted(row["part"] for row in rows if row["part"] is not None)
        ]
        engine, twice = join_engines(parts) if parts else (operators.engine(schema=schema, limits=limits), [])
        faults = [SubscriptionFault(*each) for row in rows for each in json.loads(row["faults"])]
        faults += [SubscriptionFault(id, f"the id {id!r:.60} is taken") for id in twice]
        return Built(engine, faults[:_MOST_FAULTS], sum(row["rejected"] for row in rows) + len(twice))
    finally:
        files_of(place).remove("")


def _built_here(subscriptions: Any, schema: Schema | None, limits: Limits, operators: WorkerOperators) -> Built:
    engine = operators.engine(schema=schema, limits=limits)
    records: Iterable[Any] = subscriptions.items() if isinstance(subscriptions, Mapping) else subscriptions
    report = engine.subscribe_many(records)
    return Built(engine, [_fault(each) for each in report.faults[:_MOST_FAULTS]], len(report.faults))


def _reject_unusable(subscriptions: DataFrame) -> None:
    names = subscriptions.columns
    if subscriptions.isStreaming:
        hint = "build it from a batch; a pipeline takes changes over from batch to batch"
        raise SourceError("an index cannot be built from a stream of subscriptions", hint=hint)
    for name in ("id", "where"):
        if name not in names and not (name == "where" and "predicates" in names):
            hint = did_you_mean(name, names) or f"there are {', '.join(names[:12])}"
            raise SourceError(f"the subscriptions have no column `{name}`", hint=hint)


def _spread(subscriptions: DataFrame) -> DataFrame:
    """The subscriptions in at least as many partitions as Spark runs tasks at the same time, if it shows the number."""
    if is_connect(subscriptions.sparkSession):
        return subscriptions
    cores = subscriptions.sparkSession.sparkContext.defaultParallelism
    return subscriptions if subscriptions.rdd.getNumPartitions() >= cores else subscriptions.repartition(cores)


def _builder(
    place: str, schema: Schema | None, limits: Limits, operators: WorkerOperators
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function of a task: it builds an engine of its subscriptions, stages it, and returns a row that names it."""

    def harken_build_index(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow
        from pyspark import TaskContext

        several = list(batches)
        if not several:
            return
        compile_silently()
        engine = operators.engine(schema=schema, limits=limits, background=False)
        report = engine.subscribe_many(pyarrow.Table.from_batches(several))
        part = None
        if len(engine):
            context = TaskContext.get()
            part = f"part-{context.partitionId() if context else 0:06d}-{uuid.uuid4().hex[:8]}"
            _stage(engine, place, part)
        faults = json.dumps([astuple(_fault(each)) for each in report.faults[:_MOST_FAULTS]])
        yield pyarrow.RecordBatch.from_pydict({"part": [part], "rejected": [len(report.faults)], "faults": [faults]})

    return harken_build_index


def _fault(fault: Fault) -> SubscriptionFault:
    return SubscriptionFault(fault.id, str(fault.error))


def _stage(engine: Engine, place: str, part: str) -> None:
    """Save a part where the driver can load it."""
    local = local_path(place)
    if local is not None:
        engine.save(local / part)
        return
    with tempfile.TemporaryDirectory(prefix="harken-part-") as folder:
        engine.save(Path(folder) / part)
        files_of(place).upload(Path(folder) / part, part)


def _fetched(place: str, part: str, operators: WorkerOperators) -> Engine:
    """A part that a task staged."""
    local = local_path(place)
    if local is None:
        with tempfile.TemporaryDirectory(prefix="harken-part-") as folder:
            files_of(place).download(part, Path(folder))
            return operators.loaded(folder)  # mapped memory outlives its files
    if not (local / part).is_dir():
        hint = "build the index at a path that all machines can write to"
        raise SourceError(f"a part of the index was built on another machine, in {local}", hint=hint)
    return operators.loaded(local / part)


def _staging_place(staging: str | PathLike[str] | None, spark: SparkSession) -> str:
    """The folder where tasks stage their parts: below `staging` or, if Python cannot write there, a temporary one."""
    root = "" if staging is None else os.fspath(staging)
    if not root or isinstance(files_of(root, spark), HadoopFiles):
        return tempfile.mkdtemp(prefix="harken-staged-")
    local = local_path(root)
    return f"{root.rstrip('/') if local is None else local}/{_STAGED}-{uuid.uuid4().hex[:8]}"
