"""DuckDB and PostgreSQL as look-ups see them: connections for many threads, types of columns, keys as parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol
from weakref import finalize

from harken.concurrency.forking import PART, fork_lock
from harken.errors import OperatorError
from harken.operators.box.declaring import needing_extra, unknown
from harken.schema.values import INT64_MAX, INT64_MIN, KINDS, Kind, Value, utc

if TYPE_CHECKING:
    import duckdb
    import psycopg

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_IDLE = 4
"""Connections to PostgreSQL that are kept when nobody uses them."""
TABLES = "SELECT table_schema, table_name FROM information_schema.tables"


class TableColumn(NamedTuple):
    """A column of a table, with what values of the language it holds."""

    name: str
    kind: Kind
    type: str
    """As the database calls it, without precision."""
    is_whole: bool = False
    """Whether it holds whole numbers only."""


class LookupDatabase(Protocol):
    """What look-ups ask of a database. Threads may share one; in a child of `fork()` it connects anew."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What a query returns. Its parameters are `$1`, `$2` and so on."""

    def types(self, relation: str) -> dict[str, str]:
        """The columns of a relation with their types. Raises OperatorError."""

    def column(self, name: str, type: str) -> TableColumn | None:
        """A column by its type; None if no value of the language is of that type."""

    def keys(self, columns: Sequence[TableColumn]) -> str:
        """A relation q with a row for each key, by one array a column: k0, k1 and so on, and from 1 its number n."""

    def stored(self, column: TableColumn) -> str:
        """The column of the table t, as it is compared with keys and selected."""

    def key(self, column: TableColumn, value: Any) -> Any:
        """A value as an element of its array; None if no row can have it."""

    def value(self, column: TableColumn, stored: Any) -> Value | None:
        """What was selected, as a value of the language."""


def quoted(name: str) -> str:
    """A name of a table or column as SQL writes it, whatever is in it. Raises OperatorError."""
    if not name or "\0" in name:
        raise OperatorError(f"{name!r:.60} is no name of a table or column")
    return '"' + name.replace('"', '""') + '"'


def database_of(given: Any) -> LookupDatabase:
    """The database of a URL, of a path, or of an open connection to DuckDB. Raises OperatorError."""
    if isinstance(given, str) and given.startswith(("postgresql://", "postgres://")):
        return PostgresLookups(given)
    if isinstance(given, str) and "://" in given:
        scheme = given.partition("://")[0]
        raise OperatorError(f"`{scheme:.40}` is no database", hint="postgresql://…, or the path of a file of DuckDB's")
    with needing_extra():
        import duckdb
    if isinstance(given, str | Path | duckdb.DuckDBPyConnection):
        return DuckLookups(given)
    hint = "a postgresql:// URL, the path of a file of DuckDB's, or an open connection to DuckDB"
    raise OperatorError(f"a {type(given).__name__} is no database", hint=hint)


def _missing_table(database: LookupDatabase, relation: str) -> OperatorError:
    wanted = relation.replace('"', "")
    found = database.rows(TABLES)
    names = [each for schema, name in found for each in (name, f"{schema}.{name}") if each != wanted]
    return unknown("table", wanted, names)


def _first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0]


def _plain_key(column: TableColumn, value: Any) -> Any:
    """A value that a column of its kind may hold; None if it cannot."""
    if KINDS.get(type(value)) is not column.kind or value != value:
        return None
    if column.is_whole:
        is_whole = isinstance(value, int) or value.is_integer()
        return int(value) if is_whole and INT64_MIN <= value <= INT64_MAX else None
    if isinstance(value, str):
        return value if value.isascii() or value.encode(errors="ignore").decode() == value else None
    return utc(value) if isinstance(value, datetime) else value


class DuckLookups:
    """A file of DuckDB's, opened for reading, or a connection that somebody else opened."""

    _KINDS: ClassVar[dict[str, Kind]] = {
        **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Kind.NUMBER),
        **dict.fromkeys(("VARCHAR", "ENUM"), Kind.STRING),
        **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.TIMESTAMP),
        "TIMESTAMP WITH TIME ZONE": Kind.TIMESTAMP,
        "BOOLEAN": Kind.BOOLEAN,
        "DATE": Kind.DATE,
    }
    _WHOLE: ClassVar[frozenset[str]] = frozenset(
        f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
    )
    _ARRAYS: ClassVar[dict[Kind, str]] = {
        Kind.NUMBER: "DOUBLE",
        Kind.STRING: "VARCHAR",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "BIGINT",
    }

    def __init__(self, source: str | Path | duckdb.DuckDBPyConnection) -> None:
        self._path = str(source) if isinstance(source, str | Path) else None
        self._connection: Any = None if self._path is not None else source
        self._owner = os.getpid() if self._path is None else None
        self._lock = fork_lock(PART)

    def __reduce__(self) -> Any:
        if self._path is None:
            hint = "give the path of its file instead"
            raise OperatorError("an open connection cannot be sent to another process", hint=hint)
        return DuckLookups, (self._path,)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            return self._cursor().execute(sql, parameters).fetchall()
        except (duckdb.ConnectionException, duckdb.FatalException):  # closed, or of no use any more
            if self._path is None:
                raise
            with self._lock:
                self._connection = None
            return self._cursor().execute(sql, parameters).fetchall()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection for one thread, to the same database."""
        with needing_extra():
            import duckdb
        with self._lock:
            if self._path is None:
                if self._owner != os.getpid():
                    raise OperatorError("a connection to DuckDB cannot be used in a child of fork()")
            elif self._connection is None or self._owner != os.getpid():
                self._connection = duckdb.connect(self._path, read_only=True)
                self._owner = os.getpid()
            cursor: duckdb.DuckDBPyConnection = self._connection.cursor()
            return cursor

    def types(self, relation: str) -> dict[str, str]:
        import duckdb

        try:
            return {row[0]: row[1] for row in self.rows(f"DESCRIBE SELECT * FROM {relation} AS t")}
        except duckdb.CatalogException as problem:
            if relation.startswith("("):
                raise OperatorError(f"the query fails: {_first_line(problem)}") from problem
            raise _missing_table(self, relation) from problem
        except (duckdb.IOException, duckdb.ConnectionException) as problem:
            hint = None
            if "different configuration" in str(problem):
                hint = "this process has it open for writing: give that connection instead of the path"
            raise OperatorError(f"the database cannot be opened: {_first_line(problem)}", hint=hint) from problem
        except duckdb.Error as problem:
            raise OperatorError(f"the database refuses {relation:.80}: {_first_line(problem)}") from problem

    def column(self, name: str, type: str) -> TableColumn | None:
        base, _, precision = type.partition("(")
        if base in self._WHOLE or (base == "DECIMAL" and precision.endswith(",0)")):
            return TableColumn(name, Kind.NUMBER, base, True)
        return TableColumn(name, self._KINDS[base], base) if base in self._KINDS and not type.endswith("]") else None

    def keys(self, columns: Sequence[TableColumn]) -> str:
        arrays = [
            f"unnest(${place}::{'BIGINT' if each.is_whole else self._ARRAYS[each.kind]}[]) AS k{place - 1}"
            for place, each in enumerate(columns, 1)
        ]
        return f"(SELECT {', '.join(arrays)}, unnest(range(1, len($1) + 1)) AS n) AS q"

    def stored(self, column: TableColumn) -> str:
        # As a number: Python's client needs another library for times with zones.
        name = f"t.{quoted(column.name)}"
        return f"epoch_us({name})" if column.kind is Kind.TIMESTAMP else name

    def key(self, column: TableColumn, value: Any) -> Any:
        found = _plain_key(column, value)
        if isinstance(found, datetime):
            return (found - _EPOCH) // _MICROSECOND
        if column.kind is Kind.NUMBER and not column.is_whole and found is not None:
            return float(found) if float(found) == found else None
        return found

    def value(self, column: TableColumn, stored: Any) -> Value | None:
        if column.kind is Kind.TIMESTAMP and stored is not None:
            return _EPOCH + int(stored) * _MICROSECOND
        return _as_value(stored)


class PostgresLookups:
    """A server of PostgreSQL. A connection that is lost is opened again, once a query."""

    _KINDS: ClassVar[dict[str, Kind]] = {
        **dict.fromkeys(("float4", "float8", "numeric"), Kind.NUMBER),
        **dict.fromkeys(("text", "varchar", "bpchar", "name"), Kind.STRING),
        **dict.fromkeys(("timestamp", "timestamptz"), Kind.TIMESTAMP),
        "bool": Kind.BOOLEAN,
        "date": Kind.DATE,
    }
    _WHOLE: ClassVar[frozenset[str]] = frozenset(("int2", "int4", "int8"))
    _ARRAYS: ClassVar[dict[str, str]] = {
        **{"int2": "int8", "int4": "int8", "float4": "float8"},  # which hold any key
        **{"varchar": "text", "bpchar": "text", "name": "text"},
    }

    def __init__(self, url: str) -> None:
        self._url = url
        self._owner = os.getpid()
        self._idle: list[psycopg.Connection[Any]] = []
        self._lock = fork_lock(PART)
        finalize(self, _close, self._idle, self._owner)

    def __reduce__(self) -> Any:
        return PostgresLookups, (self._url,)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with needing_extra():
            import psycopg
        connection, was_idle = self._taken()
        try:
            found = connection.execute(sql, parameters).fetchall()
        except (psycopg.OperationalError, psycopg.InterfaceError):
            was_lost = connection.closed
            connection.close()
            if not (was_idle and was_lost):
                raise
            self._drop_idle()  # those were lost along with it
            return self.rows(sql, parameters)
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return found

    def _taken(self) -> tuple[psycopg.Connection[Any], bool]:
        """A connection for one thread, and whether it was open before."""
        import psycopg

        with self._lock:
            if self._owner != os.getpid():
                self._abandon()
            if self._idle:
                return self._idle.pop(), True
        # Nothing is prepared on the server: poolers in between may give each query another session.
        connection = psycopg.connect(
            self._url, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor
        )
        return connection, False

    def _give_back(self, connection: psycopg.Connection[Any]) -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            idle = list(self._idle)
            self._idle.clear()
        _close(idle, self._owner)

    def _abandon(self) -> None:
        """In a child of `fork()` the sockets are the parent's: they are neither used nor closed."""
        self._idle, self._owner = [], os.getpid()
        finalize(self, _close, self._idle, self._owner)

    def types(self, relation: str) -> dict[str, str]:
        with needing_extra():
            import psycopg
        sql = f"SELECT * FROM {relation} AS t LIMIT 0"
        try:
            connection, _ = self._taken()
            try:
                described = connection.execute(sql).description or []
            finally:
                self._give_back(connection)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as problem:
            if relation.startswith("("):
                raise OperatorError(f"the query fails: {_first_line(problem)}") from problem
            raise _missing_table(self, relation) from problem
        except psycopg.OperationalError as problem:
            raise OperatorError(f"the database cannot be reached: {_first_line(problem)}") from problem
        except psycopg.Error as problem:
            raise OperatorError(f"the database refuses {relation:.80}: {_first_line(problem)}") from problem
        types = psycopg.adapters.types
        found: dict[str, str] = {}
        for each in described:
            info = types.get(each.type_code)  # also that of its elements, if it is an array
            name = info.name if info is not None else "user-defined"
            found[each.name] = name if info is None or info.oid == each.type_code else f"{name}[]"
        return found

    def column(self, name: str, type: str) -> TableColumn | None:
        if type in self._WHOLE:
            return TableColumn(name, Kind.NUMBER, type, True)
        return TableColumn(name, self._KINDS[type], type) if type in self._KINDS else None

    def keys(self, columns: Sequence[TableColumn]) -> str:
        arrays = [f"${place}::{self._ARRAYS.get(each.type, each.type)}[]" for place, each in enumerate(columns, 1)]
        names = [f"k{place}" for place in range(len(columns))]
        return f"unnest({', '.join(arrays)}) WITH ORDINALITY AS q({', '.join(names)}, n)"

    def stored(self, column: TableColumn) -> str:
        return f"t.{quoted(column.name)}"

    def key(self, column: TableColumn, value: Any) -> Any:
        found = _plain_key(column, value)
        if found is None or (isinstance(found, str) and "\0" in found):
            return None
        if column.type == "numeric":
            return Decimal(str(found)) if abs(found) != float("inf") else None
        if column.type in ("float4", "float8"):
            return float(found) if float(found) == found else None
        return found.replace(tzinfo=None) if column.type == "timestamp" else found

    def value(self, column: TableColumn, stored: Any) -> Value | None:
        return _as_value(stored)


def _close(connections: Iterable[psycopg.Connection[Any]], owner: int) -> None:
    for each in connections if owner == os.getpid() else ():
        each.close()


def _as_value(stored: Any) -> Value | None:
    if isinstance(stored, Decimal):
        is_whole = stored.is_finite() and stored.as_tuple().exponent == 0  # its scale, not what it happens to be
        stored = int(stored) if is_whole else float(stored)
    if isinstance(stored, int) and not INT64_MIN <= stored <= INT64_MAX:
        return float(stored)
    if isinstance(stored, datetime):
        return utc(stored)
    assert stored is None or isinstance(stored, int | float | str | bool | date)
    return stored
