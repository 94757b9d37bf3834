"""Writes notifications to a database table, exactly once.

Spark's tasks write a batch to a staging table, each in its own transaction. Then one transaction deletes the rows that
an earlier attempt at the batch wrote, and inserts those of the staging table. Staging rows have a row number and the
name of the attempt, because Spark may run a task twice, and tasks of a dead driver may still be writing.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harken.pipeline.connectors import driver_for
from harken.pipeline.steps import Reached, ignore_step
from harken.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harken.pipeline.config import Sink

PIPELINE, BATCH = "harken_pipeline", "harken_batch"
"""The columns with the pipeline and the batch of a row."""
_ATTEMPT, _ROW = "harken_try", "harken_row"


def replace_rows(
    sink: Sink,
    notifications: DataFrame,
    batch: int,
    pipeline: str,
    is_empty: bool = False,
    reached: Reached = ignore_step,
) -> None:
    """Write notifications to the sink's table, in place of the rows that it has of the batch of the pipeline."""
    from pyspark.sql import functions as f

    spark = notifications.sparkSession
    rows = _flat(notifications).withColumns({PIPELINE: f.lit(pipeline), BATCH: f.lit(batch).cast("long")})
    staging, attempt = _staging(sink, pipeline), uuid.uuid4().hex
    if not is_empty:
        staged = rows.withColumns({_ATTEMPT: f.lit(attempt), _ROW: f.monotonically_increasing_id()})
        staged.write.format("jdbc").options(**_writing(sink, staging, PIPELINE, _ATTEMPT)).mode("overwrite").save()
    reached("wrote staging table")
    quoted = _dialect(sink, spark).quoteIdentifier
    names = ", ".join(map(quoted, rows.columns))
    with _connected(sink, spark) as connection:
        if not _exists(connection, sink, spark):
            empty = rows.limit(0).write.format("jdbc")
            empty.options(**_writing(sink, sink.table or "", PIPELINE)).mode("ignore").save()
            _make_index(connection, sink, quoted(PIPELINE), quoted(BATCH))
        staged_rows = f"FROM {staging} WHERE {quoted(_ATTEMPT)} = ?"
        if not is_empty and _has_duplicates(connection, quoted(_ROW), staged_rows, attempt):
            staged_rows = f"FROM (SELECT DISTINCT {quoted(_ROW)}, {names} {staged_rows}) once"
        with _transaction(connection):
            of_batch = f"{quoted(PIPELINE)} = ? AND {quoted(BATCH)} = ?"
            _run(connection, f"DELETE FROM {sink.table} WHERE {of_batch}", pipeline, batch)
            reached("deleted rows")
            if not is_empty:
                _run(connection, f"INSERT INTO {sink.table} ({names}) SELECT {names} {staged_rows}", attempt)
            reached("inserted rows")


def has_rows(sink: Sink, spark: SparkSession, pipeline: str) -> bool:
    """Whether the sink's table has rows of a pipeline."""
    with _connected(sink, spark) as connection:
        if not _exists(connection, sink, spark):
            return False
        name = _dialect(sink, spark).quoteIdentifier(PIPELINE)
        return _row(connection, f"SELECT COUNT(*), 0 FROM {sink.table} WHERE {name} = ?", pipeline)[0] > 0


def _has_duplicates(connection: Any, row: str, staged_rows: str, attempt: str) -> bool:
    """Whether an attempt staged rows twice because Spark ran a task twice."""
    count, distinct = _row(connection, f"SELECT COUNT(*), COUNT(DISTINCT {row}) {staged_rows}", attempt)
    return count != distinct


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
    """Notifications with nested columns converted to JSON."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, MapType, StructType

    nested = [each.name for each in notifications.schema if isinstance(each.dataType, ArrayType | MapType | StructType)]
    return notifications.withColumns({name: f.to_json(column(name)) for name in nested})


def _staging(sink: Sink, pipeline: str) -> str:
    """The name of a sink's staging table, in the schema of its table."""
    schema, dot, name = (sink.table or "").rpartition(".")
    digest = hashlib.sha256(f"{pipeline}\n{sink.name}\n{name}".encode()).hexdigest()[:12]
    return f"{schema}{dot}harken_staging_{digest}"


def _options(sink: Sink) -> dict[str, str]:
    driver = sink.driver or driver_for(sink.url or "")
    fixed = {"url": sink.url, "user": sink.user, "password": sink.password, "driver": driver}
    return {name: str(value) for name, value in {**sink.options, **fixed}.items() if value is not None}


def _writing(sink: Sink, table: str, *texts: str) -> dict[str, str]:
    """Options for Spark's writer. Columns `texts` get a short type, which any database can compare and index."""
    types = [f"{name} VARCHAR(255)" for name in texts]
    user_types = sink.options.get("createTableColumnTypes")
    return _options(sink) | {
        "dbtable": table,
        "createTableColumnTypes": ", ".join([*([user_types] if user_types else []), *types]),
    }


@contextmanager
def _connected(sink: Sink, spark: SparkSession) -> Iterator[Any]:
    """A connection to the sink's database, opened as Spark opens its own and closed at the end."""
    jvm: Any = spark._jvm
    options = _options(sink) | {"dbtable": sink.table or ""}
    settings = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(jvm.PythonUtils.toScalaMap(options))
    connection = _dialect(sink, spark).createConnectionFactory(settings).apply(-1)
    try:
        yield connection
    finally:
        connection.close()


def _dialect(sink: Sink, spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(sink.url)


def _exists(connection: Any, sink: Sink, spark: SparkSession) -> bool:
    return _succeeds(connection, _dialect(sink, spark).getTableExistsQuery(sink.table))


def _make_index(connection: Any, sink: Sink, *columns: str) -> None:
    """Index the table by these columns. If the database cannot index them, replacing rows is merely slower."""
    digest = hashlib.sha256((sink.table or "").encode()).hexdigest()[:12]
    _succeeds(connection, f"CREATE INDEX harken_batches_{digest} ON {sink.table} ({', '.join(columns)})")


def _succeeds(connection: Any, text: str) -> bool:
    """Run a statement. Returns False if the database rejects it."""
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
    """The two numbers that a query returns."""
    with _prepared(connection, text, values) as statement:
        result = statement.executeQuery()
        result.next()
        return int(result.getLong(1)), int(result.getLong(2))


@contextmanager
def _prepared(connection: Any, text: str, values: tuple[str | int, ...]) -> Iterator[Any]:
    statement = connection.prepareStatement(text)
    try:
        for index, value in enumerate(values, 1):
            if isinstance(value, int):
                statement.setLong(index, value)
            else:
                statement.setString(index, value)
        yield statement
    finally:
        statement.close()
