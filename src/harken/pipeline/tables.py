"""Notifications in a table of a database: exactly once, for whatever happens.

Spark's tasks write a batch to a staging table, each in a transaction of its own. Then, in one transaction, the rows of
this batch that a try before may have left are deleted, and those of the staging table inserted. Rows of the staging
table are numbered and bear the name of their try: a task may be run twice, and what a dead driver began may go on.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harken.pipeline.batches import reached
from harken.spark.connectors import driver_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import Sink

PIPELINE, BATCH = "harken_pipeline", "harken_batch"
"""The columns that tell whose rows these are."""
_TRY, _ROW = "harken_try", "harken_row"


def replace_rows(sink: Sink, notifications: DataFrame, batch: int, pipeline: str, is_empty: bool = False) -> None:
    """Have exactly these notifications in the table, for this batch of this pipeline."""
    from pyspark.sql import functions as f

    spark = notifications.sparkSession
    rows = _flat(notifications).withColumns({PIPELINE: f.lit(pipeline), BATCH: f.lit(batch).cast("long")})
    staging, this_try = _staging(sink, pipeline), uuid.uuid4().hex
    if not is_empty:
        staged = rows.withColumns({_TRY: f.lit(this_try), _ROW: f.monotonically_increasing_id()})
        staged.write.format("jdbc").options(**_writing(sink, staging, PIPELINE, _TRY)).mode("overwrite").save()
    reached("wrote staging table")
    quoted = _dialect(sink, spark).quoteIdentifier
    names = ", ".join(map(quoted, rows.columns))
    with _connected(sink, spark) as connection:
        if not _exists(connection, sink, spark):
            empty = rows.limit(0).write.format("jdbc")
            empty.options(**_writing(sink, sink.table or "", PIPELINE)).mode("ignore").save()
            _make_index(connection, sink, quoted(PIPELINE), quoted(BATCH))
        found = f"FROM {staging} WHERE {quoted(_TRY)} = ?"
        if not is_empty and _is_twice(connection, quoted(_ROW), found, this_try):
            found = f"FROM (SELECT DISTINCT {quoted(_ROW)}, {names} {found}) once"
        with _transaction(connection):
            of_batch = f"{quoted(PIPELINE)} = ? AND {quoted(BATCH)} = ?"
            _run(connection, f"DELETE FROM {sink.table} WHERE {of_batch}", pipeline, batch)
            reached("deleted rows")
            if not is_empty:
                _run(connection, f"INSERT INTO {sink.table} ({names}) SELECT {names} {found}", this_try)
            reached("inserted rows")


def has_rows(sink: Sink, spark: SparkSession, pipeline: str) -> bool:
    """Whether the table has rows of a pipeline already."""
    with _connected(sink, spark) as connection:
        if not _exists(connection, sink, spark):
            return False
        name = _dialect(sink, spark).quoteIdentifier(PIPELINE)
        return _row(connection, f"SELECT COUNT(*), 0 FROM {sink.table} WHERE {name} = ?", pipeline)[0] > 0


def _is_twice(connection: Any, row: str, found: str, this_try: str) -> bool:
    """Whether a task of Spark's was run twice, and left its rows twice."""
    count, different = _row(connection, f"SELECT COUNT(*), COUNT(DISTINCT {row}) {found}", this_try)
    return count != different


@contextmanager
def _transaction(connection: Any) -> Iterator[None]:
    connection.setAutoCommit(False)
    try:
        yield
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _flat(notifications: DataFrame) -> DataFrame:
    """The same, with columns that hold more than one value as JSON."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, MapType, StructType

    nested = [each.name for each in notifications.schema if isinstance(each.dataType, ArrayType | MapType | StructType)]
    return notifications.withColumns({name: f.to_json(f"`{name.replace('`', '``')}`") for name in nested})


def _staging(sink: Sink, pipeline: str) -> str:
    """A table beside the sink's, of a name that no other sink has."""
    schema, dot, name = (sink.table or "").rpartition(".")
    told = hashlib.sha256(f"{pipeline}\n{sink.name}\n{name}".encode()).hexdigest()[:12]
    return f"{schema}{dot}harken_staging_{told}"


def _options(sink: Sink) -> dict[str, str]:
    driver = sink.driver or driver_for(sink.url or "")
    given = {"url": sink.url, "user": sink.user, "password": sink.password, "driver": driver}
    return {name: str(value) for name, value in {**sink.options, **given}.items() if value is not None}


def _writing(sink: Sink, table: str, *texts: str) -> dict[str, str]:
    """Options for Spark's writer. Our own texts are short, so that any database can compare and index them."""
    types = [f"{name} VARCHAR(255)" for name in texts]
    given = sink.options.get("createTableColumnTypes")
    return _options(sink) | {
        "dbtable": table,
        "createTableColumnTypes": ", ".join([*([given] if given else []), *types]),
    }


@contextmanager
def _connected(sink: Sink, spark: SparkSession) -> Iterator[Any]:
    """A connection, made as Spark makes its own."""
    jvm: Any = spark._jvm
    options = _options(sink) | {"dbtable": sink.table or ""}
    told = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(jvm.PythonUtils.toScalaMap(options))
    connection = _dialect(sink, spark).createConnectionFactory(told).apply(-1)
    try:
        yield connection
    finally:
        connection.close()


def _dialect(sink: Sink, spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(sink.url)


def _exists(connection: Any, sink: Sink, spark: SparkSession) -> bool:
    return _works(connection, _dialect(sink, spark).getTableExistsQuery(sink.table))


def _make_index(connection: Any, sink: Sink, *columns: str) -> None:
    """Have the rows of a batch found quickly. Where the database cannot index such columns, it only takes longer."""
    told = hashlib.sha256((sink.table or "").encode()).hexdigest()[:12]
    _works(connection, f"CREATE INDEX harken_batches_{told} ON {sink.table} ({', '.join(columns)})")


def _works(connection: Any, text: str) -> bool:
    """Run a statement, and say whether the database took it."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    statement = connection.createStatement()
    try:
        statement.execute(text)
        return True
    except Py4JJavaError:
        return False
    finally:
        statement.close()


def _run(connection: Any, text: str, *values: str | int) -> None:
    with _prepared(connection, text, values) as statement:
        statement.executeUpdate()


def _row(connection: Any, text: str, *values: str | int) -> tuple[int, int]:
    """The two numbers that a query answers with."""
    with _prepared(connection, text, values) as statement:
        found = statement.executeQuery()
        found.next()
        return int(found.getLong(1)), int(found.getLong(2))


@contextmanager
def _prepared(connection: Any, text: str, values: tuple[str | int, ...]) -> Iterator[Any]:
    statement = connection.prepareStatement(text)
    try:
        for place, value in enumerate(values, 1):
            if isinstance(value, int):
                statement.setLong(place, value)
            else:
                statement.setString(place, value)
        yield statement
    finally:
        statement.close()
