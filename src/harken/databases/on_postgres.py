"""Connections to PostgreSQL servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from harken.databases.connection import ColumnValues, Connection, Row
from harken.databases.dialects import Dialect, Storage, postgres_dialect
from harken.errors import needing_extra

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

_TYPES = {Storage.NUMBER: "float8", Storage.TEXT: "text", Storage.WHOLE: "int8"}
_IDLE = 0
"""libpq's transaction status of a session without a transaction."""
_READ_ONLY, _MISSING = "25006", ("42P01", "3F000")
"""Codes of errors: a read-only server; a table or a schema that does not exist."""
_FEW_ROWS = 8
"""Fewest rows that are inserted by COPY."""
SECONDS = 10
"""Timeout for opening a connection."""
PASSWORD_HINT = "a password, %, / and @ are written %25, %2F and %40"
"""Part of hints about URLs that cannot be parsed. The word before it is `in`."""


class PostgresConnection(Connection):
    """A connection to a PostgreSQL server, with a session of its own."""

    dialect: ClassVar[Dialect] = postgres_dialect("pg_temp.")

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__()
        self._url = url
        self._settings = settings
        """Keyword arguments of `psycopg.connect`."""

    def _opened(self) -> psycopg.Connection[Any]:
        with needing_extra():
            import psycopg

        driver = psycopg.connect(self._url, autocommit=True, cursor_factory=psycopg.RawCursor, **self._settings)
        driver.server_cursor_factory = psycopg.RawServerCursor
        return driver

    @property
    def is_usable(self) -> bool:
        return super().is_usable and self.driver.info.transaction_status == _IDLE

    @classmethod
    @cache
    def errors(cls) -> tuple[type[Exception], ...]:
        with needing_extra():
            import psycopg

        return (psycopg.Error,)

    @classmethod
    def is_transient(cls, error: BaseException) -> bool:
        import psycopg

        # A server may be read-only for a while, as after a failover.
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or _state(error) == _READ_ONLY

    def is_lost(self, error: BaseException) -> bool:
        return self.driver.closed or _state(error) == _READ_ONLY

    @classmethod
    def is_missing(cls, error: BaseException) -> bool:
        """Whether an error says that a table or schema does not exist."""
        return _state(error) in _MISSING

    def marked(self, text: str) -> str:
        """A statement with a `?` for each value, and no other `?`, rewritten with the driver's placeholders."""
        return _numbered(text)

    def run_many(self, text: str, rows: Sequence[Sequence[Any]]) -> None:
        with self.driver.cursor() as cursor:
            cursor.executemany(text, rows)

    def stream(self, text: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        with self.driver.cursor("stream") as cursor:
            cursor.itersize = 2_000
            cursor.execute(text, values)
            yield from cursor

    def integers(self, query: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        import numpy as np

        with self.driver.cursor(binary=True) as cursor:
            cursor.execute(query, values or None)
            return np.array(cursor.fetchall(), np.int64).reshape(-1, len(cursor.description or ()))

    def types(self, relation: str) -> dict[str, str]:
        """The columns of a relation with their types, without precision."""
        import psycopg

        registry = psycopg.adapters.types
        types: dict[str, str] = {}
        for each in self.driver.execute(f"SELECT * FROM {relation} AS t LIMIT 0").description or []:
            info = registry.get(each.type_code)  # for an array, the type of its elements
            name = info.name if info is not None else "user-defined"
            types[each.name] = name if info is None or info.oid == each.type_code else f"{name}[]"
        return types

    def insert(self, table: str, columns: ColumnValues) -> None:
        rows = zip(*(values for _, values in columns.values()), strict=True)
        types = [_TYPES[storage] for storage, _ in columns.values()]
        self._copy(f"{table} ({', '.join(columns)})", rows, types)

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows. PostgreSQL converts the values to the types of the columns."""
        into = f"{table} ({', '.join(columns)})"
        if len(rows) < _FEW_ROWS:
            marks = ", ".join(map(self.parameter, range(1, len(columns) + 1)))
            self.run_many(f"INSERT INTO {into} VALUES ({marks})", rows)
        else:
            self._copy(into, rows)

    def _copy(self, into: str, rows: Iterable[Sequence[Any]], types: Sequence[str] = ()) -> None:
        form = " (FORMAT BINARY)" if types else ""
        with self.driver.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN{form}") as copy:
            if types:
                copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def relation(self, name: str, columns: ColumnValues) -> tuple[str, list[Any]]:
        """Pass the rows as arrays: a table would have to be emptied and analysed for every batch."""
        types = [_TYPES[storage] for storage, _ in columns.values()]
        arrays = ", ".join(f"{self.parameter(place)}::{each}[]" for place, each in enumerate(types, 1))
        beginning = f"WITH {name}({', '.join(columns)}) AS MATERIALIZED (SELECT * FROM unnest({arrays})) "
        return beginning, [values for _, values in columns.values()]

    def analyse(self, tables: Sequence[str]) -> None:
        self.run(f"ANALYZE {', '.join(tables)}")

    def size(self, tables: Sequence[str]) -> int:
        sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in tables)
        return int(self.integers(f"SELECT {sizes}")[0, 0])


def _state(error: BaseException) -> str | None:
    return getattr(error, "sqlstate", None)


@lru_cache(1_024)
def _numbered(text: str) -> str:
    first, *rest = text.split("?")
    return first + "".join(f"${place}{each}" for place, each in enumerate(rest, 1))
