"""DuckDB, inside the process and in memory. It has no indexes to be kept: it scans columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.relational.databases import DIALECTS, Dialect, EventColumn
from harken.relational.typed_values import Storage

if TYPE_CHECKING:
    import duckdb

_ARROW: dict[Storage, Any] = {
    Storage.NUMBER: pa.float64(),
    Storage.TEXT: pa.large_string(),
    Storage.WHOLE: pa.int64(),
}


class DuckMatching:
    """A database of one matcher."""

    dialect: ClassVar[Dialect] = DIALECTS["duckdb"]

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None

    def connect(self) -> None:
        import duckdb

        self.close()
        # Threads of its own would cost small queries more than they save, and compete with those that match.
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._connection.execute("SET enable_progress_bar = false")  # it would draw one in a notebook

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def errors(self) -> tuple[type[Exception], ...]:
        import duckdb

        return (duckdb.Error,)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        assert self._connection is not None, "it is not connected"
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.begin()
        yield  # a matcher whose change failed connects anew: there is nothing to roll back
        self.connection.commit()

    def parameter(self, place: int) -> str:
        return f"${place}"

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        self.connection.execute(statement, values)

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        self.connection.executemany(statement, values)

    def integers(self, query: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        found = self.connection.execute(query, values).fetchnumpy()
        return np.stack([np.asarray(each).astype(np.int64) for each in found.values()], axis=1)

    def insert(self, table: str, columns: Mapping[str, tuple[Storage, list[Any]]]) -> None:
        arrays = {name: pa.array(values, _ARROW[storage]) for name, (storage, values) in columns.items()}
        self.connection.register("new_rows", pa.table(arrays))
        names = ", ".join(columns)
        self.connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM new_rows")
        self.connection.unregister("new_rows")

    def events(self, columns: Sequence[EventColumn]) -> tuple[str, list[Any]]:
        table = pa.table({name: pa.array(values, _ARROW[storage]) for name, storage, values in columns})
        self.connection.register("events", table)
        return "", []

    def analyse(self, tables: Sequence[str]) -> None:
        """It keeps its statistics by itself."""

    def size(self, tables: Sequence[str]) -> int:
        return int(self.integers("SELECT sum(memory_usage_bytes) AS bytes FROM duckdb_memory()")[0, 0])
