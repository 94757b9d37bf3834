"""Connections to DuckDB, inside the process. DuckDB scans columns: tables need no indexes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from harken.databases.connection import ColumnValues, Connection
from harken.databases.dialects import DIALECTS, Dialect, Storage
from harken.errors import needing_extra

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class DuckConnection(Connection):
    """A connection to a file, to a private database in memory, or to the database of an open DuckDB connection."""

    dialect: ClassVar[Dialect] = DIALECTS["duckdb"]

    def __init__(self, source: str | duckdb.DuckDBPyConnection = ":memory:", **settings: Any) -> None:
        super().__init__()
        self._source = source
        self._settings = settings
        """Keyword arguments of `duckdb.connect`."""

    def _opened(self) -> duckdb.DuckDBPyConnection:
        with needing_extra():
            import duckdb

        if not isinstance(self._source, str):
            return self._source.cursor()
        driver = duckdb.connect(self._source, **self._settings)
        driver.execute("SET enable_progress_bar = false")  # which a notebook would show
        return driver

    @classmethod
    @cache
    def errors(cls) -> tuple[type[Exception], ...]:
        with needing_extra():
            import duckdb

        return (duckdb.Error,)

    @classmethod
    def is_transient(cls, error: BaseException) -> bool:
        import duckdb

        return isinstance(error, duckdb.IOException | duckdb.ConnectionException)

    def is_lost(self, error: BaseException) -> bool:
        import duckdb

        return isinstance(error, duckdb.ConnectionException | duckdb.FatalException)

    @classmethod
    def is_missing(cls, error: BaseException) -> bool:
        """Whether an error says that a table does not exist."""
        import duckdb

        return isinstance(error, duckdb.CatalogException)

    def integers(self, query: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        import numpy as np

        columns = self.driver.execute(query, values).fetchnumpy().values()
        return np.stack([np.asarray(each).astype(np.int64) for each in columns], axis=1)

    def types(self, relation: str) -> dict[str, str]:
        """The columns of a relation with their types."""
        return {row[0]: row[1] for row in self.rows(f"DESCRIBE SELECT * FROM {relation} AS t")}

    def insert(self, table: str, columns: ColumnValues) -> None:
        names = ", ".join(columns)
        self.driver.register("new_rows", _arrow(columns))
        self.run(f"INSERT INTO {table} ({names}) SELECT {names} FROM new_rows")
        self.driver.unregister("new_rows")

    def relation(self, name: str, columns: ColumnValues) -> tuple[str, list[Any]]:
        self.driver.register(name, _arrow(columns))
        return "", []

    def analyse(self, tables: Sequence[str]) -> None:
        """Do nothing: DuckDB updates its statistics by itself."""

    def size(self, tables: Sequence[str]) -> int:
        return int(self.integers("SELECT sum(memory_usage_bytes) AS bytes FROM duckdb_memory()")[0, 0])


def _arrow(columns: ColumnValues) -> pa.Table:
    import pyarrow as pa

    types = {Storage.NUMBER: pa.float64(), Storage.TEXT: pa.large_string(), Storage.WHOLE: pa.int64()}
    return pa.table({name: pa.array(values, types[storage]) for name, (storage, values) in columns.items()})
