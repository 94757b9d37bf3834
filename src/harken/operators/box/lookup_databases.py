"""DuckDB and PostgreSQL for look-ups: column types, keys as query parameters, results as values of the language."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from harken.databases.connection import is_postgres
from harken.databases.connection_pool import Pool
from harken.databases.on_duckdb import DuckConnection
from harken.databases.on_postgres import PostgresConnection
from harken.databases.quoting import quoted
from harken.errors import OperatorError, needing_extra, reason_of
from harken.operators.box.declaring import unknown
from harken.schema.values import INT64_MAX, INT64_MIN, KINDS, Kind, Value, utc

if TYPE_CHECKING:
    import duckdb

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_IDLE = 4
"""Unused connections that a pool keeps open."""
TABLES = "SELECT table_schema, table_name FROM information_schema.tables"


class TableColumn(NamedTuple):
    """A column of a table, and the kind of its values."""

    name: str
    kind: Kind
    type: str
    """The database's name of its type, without precision."""
    is_whole: bool = False
    """Whether it holds integers only."""


class LookupDatabase(ABC):
    """A database for look-ups. Threads may share one. A child of `fork()` opens connections of its own."""

    _driver: ClassVar[type[DuckConnection | PostgresConnection]]
    _unreachable: ClassVar[str]
    """The beginning of messages about failed connections."""
    _pool: Pool[Any]

    def __init__(self, source: Any) -> None:
        self._source = source

    def __reduce__(self) -> Any:
        return type(self), (self._source,)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query returns. Its parameters are `$1`, `$2` and so on."""
        return self._pool.run(lambda connection: connection.rows(sql, parameters))

    def types(self, relation: str) -> dict[str, str]:
        """The columns of a relation with their types. Raises OperatorError."""
        try:
            return self._pool.run(lambda connection: connection.types(relation))
        except self._driver.errors() as problem:
            raise self._error(relation, problem) from problem

    def _error(self, relation: str, problem: Exception) -> OperatorError:
        if self._driver.is_missing(problem):
            if relation.startswith("("):
                return OperatorError(f"the query fails: {reason_of(problem)}")
            wanted = relation.replace('"', "")
            names = [each for schema, name in self.rows(TABLES) for each in (name, f"{schema}.{name}")]
            return unknown("table", wanted, [each for each in names if each != wanted])
        if self._driver.is_transient(problem):
            is_written = "different configuration" in str(problem)
            hint = "this process has it open for writing: pass that connection instead of the path"
            return OperatorError(f"{self._unreachable}: {reason_of(problem)}", hint=hint if is_written else None)
        return OperatorError(f"the database rejects {relation:.80}: {reason_of(problem)}")

    @abstractmethod
    def column(self, name: str, type: str) -> TableColumn | None:
        """A column with the kind for its type; None if the language has no values of that type."""

    @abstractmethod
    def keys(self, columns: Sequence[TableColumn]) -> str:
        """SQL for a relation `q` with a row for each key: columns k0, k1, …, and `n`, the number of the key, from 1.

        The parameters of the query are one array for each column.
        """

    def stored(self, column: TableColumn) -> str:
        """SQL that reads a column of the table `t`, to compare with keys and to select."""
        return f"t.{quoted(column.name)}"

    @abstractmethod
    def key(self, column: TableColumn, value: Any) -> Any:
        """A value as an element of the column's array of keys; None if no row can have it."""

    def value(self, column: TableColumn, stored: Any) -> Value | None:
        """A selected value, as a value of the language."""
        return _as_value(stored)


def database_of(given: Any) -> LookupDatabase:
    """The database of a URL, of a path, or of an open DuckDB connection. Raises OperatorError."""
    if isinstance(given, str) and is_postgres(given):
        return PostgresLookups(given)
    if isinstance(given, str) and "://" in given:
        scheme = given.partition("://")[0]
        raise OperatorError(f"`{scheme:.40}` is no database", hint="postgresql://…, or the path of a DuckDB file")
    with needing_extra():
        import duckdb
    if isinstance(given, str | Path | duckdb.DuckDBPyConnection):
        return DuckLookups(given)
    hint = "a postgresql:// URL, the path of a DuckDB file, or an open DuckDB connection"
    raise OperatorError(f"a {type(given).__name__} is no database", hint=hint)


def _plain_key(column: TableColumn, value: Any) -> Any:
    """A value as a column of its kind stores it; None if the column cannot hold it."""
    if KINDS.get(type(value)) is not column.kind or value != value:
        return None
    if column.is_whole:
        is_whole = isinstance(value, int) or value.is_integer()
        return int(value) if is_whole and INT64_MIN <= value <= INT64_MAX else None
    if isinstance(value, str):
        return value if value.isascii() or value.encode(errors="ignore").decode() == value else None
    return utc(value) if isinstance(value, datetime) else value


class DuckLookups(LookupDatabase):
    """A DuckDB file, opened read-only, or an open DuckDB connection."""

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
    _driver = DuckConnection
    _unreachable = "the database cannot be opened"

    def __init__(self, source: str | Path | duckdb.DuckDBPyConnection) -> None:
        super().__init__(str(source) if isinstance(source, Path) else source)
        # An idle cursor would keep a database open that its owner has closed.
        most_idle = _MOST_IDLE if isinstance(self._source, str) else 0
        self._pool = Pool(partial(_duckdb, self._source, os.getpid()), most_idle)

    def __reduce__(self) -> Any:
        if not isinstance(self._source, str):
            hint = "give the path of its file instead"
            raise OperatorError("an open connection cannot be sent to another process", hint=hint)
        return super().__reduce__()

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
        # Selected as microseconds: DuckDB's Python client needs another library for times with zones.
        name = super().stored(column)
        return f"epoch_us({name})" if column.kind is Kind.TIMESTAMP else name

    def key(self, column: TableColumn, value: Any) -> Any:
        plain = _plain_key(column, value)
        if isinstance(plain, datetime):
            return (plain - _EPOCH) // _MICROSECOND
        if column.kind is Kind.NUMBER and not column.is_whole and plain is not None:
            return float(plain) if float(plain) == plain else None
        return plain

    def value(self, column: TableColumn, stored: Any) -> Value | None:
        if column.kind is Kind.TIMESTAMP and stored is not None:
            return _EPOCH + int(stored) * _MICROSECOND
        return super().value(column, stored)


class PostgresLookups(LookupDatabase):
    """A PostgreSQL server. A query reopens a lost connection once."""

    _KINDS: ClassVar[dict[str, Kind]] = {
        **dict.fromkeys(("float4", "float8", "numeric"), Kind.NUMBER),
        **dict.fromkeys(("text", "varchar", "bpchar", "name"), Kind.STRING),
        **dict.fromkeys(("timestamp", "timestamptz"), Kind.TIMESTAMP),
        "bool": Kind.BOOLEAN,
        "date": Kind.DATE,
    }
    _WHOLE: ClassVar[frozenset[str]] = frozenset(("int2", "int4", "int8"))
    _ARRAYS: ClassVar[dict[str, str]] = {
        **{"int2": "int8", "int4": "int8", "float4": "float8"},  # wide enough for every key
        **{"varchar": "text", "bpchar": "text", "name": "text"},
    }
    _driver = PostgresConnection
    _unreachable = "the database cannot be reached"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        # No prepared statements: a pooler in between may run each query in another session.
        self._pool = Pool(partial(PostgresConnection, url, prepare_threshold=None), _MOST_IDLE)

    def column(self, name: str, type: str) -> TableColumn | None:
        if type in self._WHOLE:
            return TableColumn(name, Kind.NUMBER, type, True)
        return TableColumn(name, self._KINDS[type], type) if type in self._KINDS else None

    def keys(self, columns: Sequence[TableColumn]) -> str:
        arrays = [f"${place}::{self._ARRAYS.get(each.type, each.type)}[]" for place, each in enumerate(columns, 1)]
        names = [f"k{place}" for place in range(len(columns))]
        return f"unnest({', '.join(arrays)}) WITH ORDINALITY AS q({', '.join(names)}, n)"

    def key(self, column: TableColumn, value: Any) -> Any:
        plain = _plain_key(column, value)
        if plain is None or (isinstance(plain, str) and "\0" in plain):
            return None
        if column.type == "numeric":
            return Decimal(str(plain)) if abs(plain) != float("inf") else None
        if column.type in ("float4", "float8"):
            return float(plain) if float(plain) == plain else None
        return plain.replace(tzinfo=None) if column.type == "timestamp" else plain


def _duckdb(source: str | duckdb.DuckDBPyConnection, owner: int) -> DuckConnection:
    if not isinstance(source, str) and owner != os.getpid():
        raise OperatorError("a DuckDB connection cannot be used in a child of fork()")
    return DuckConnection(source, read_only=True)


def _as_value(stored: Any) -> Value | None:
    if isinstance(stored, Decimal):
        is_whole = stored.is_finite() and stored.as_tuple().exponent == 0  # by the column's scale: 7.0 stays a float
        stored = int(stored) if is_whole else float(stored)
    if isinstance(stored, int) and not INT64_MIN <= stored <= INT64_MAX:
        return float(stored)
    if isinstance(stored, datetime):
        return utc(stored)
    assert stored is None or isinstance(stored, int | float | str | bool | date)
    return stored
