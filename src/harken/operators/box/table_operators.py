"""Look-ups of reference data: an operator that finds rows of a database table by their keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.databases.quoting import quoted
from harken.errors import OperatorError
from harken.operators.box.declaring import declared, rows_of, unknown
from harken.operators.box.lookup_databases import LookupDatabase, TableColumn, database_of
from harken.operators.operator import FREE, Operator
from harken.schema.signatures import OperatorParameter
from harken.schema.values import KINDS, utc

if TYPE_CHECKING:
    import duckdb

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
Key = tuple[Any, ...]


def table_operator(
    name: str,
    connection: str | Path | duckdb.DuckDBPyConnection,
    table: str | None = None,
    *,
    keys: Sequence[str],
    values: Sequence[str] = (),
    query: str | None = None,
    cost: float | None = None,
    timeout: float | None = None,
    retries: int = 0,
) -> Operator:
    """An operator that looks up rows: `table_operator("customer", …, keys=("id",), values=("tier", "limit"))`.

    Its arguments in a text are all keys, then any number of the values: `customer(customer_id, ?tier)` binds the tier
    of each row with that key, `customer(customer_id, 'gold')` is true if a row is gold, and `customer(customer_id)` if
    there is a row. NULL is never bound.

    `connection` is a `postgresql://` URL, the path of a DuckDB file, which is opened read-only, or an open DuckDB
    connection. `table` may have its schema before a dot; a name that contains a dot is written in double quotes.
    `query` is a SELECT in place of the table. A batch of events takes one query, whose parameters are the keys. A key
    matches no row if its kind is not that of the column: the number 7 is not the string '7'. Times without a zone are
    in UTC.

    Threads may share the operator: each uses a connection of its own. Lost connections to PostgreSQL are reopened.
    Raises OperatorError if the database, the table or a column is missing, or a column has a type that no value has;
    MissingExtraError.
    """
    if (table is None) == (query is None):
        raise OperatorError(f"the operator `{name}` needs a table or a query, and not both")
    if not keys or isinstance(keys, str) or isinstance(values, str):
        raise OperatorError(f"the operator `{name}` needs names of key columns", hint="keys=('customer_id',)")
    database = database_of(connection)
    relation = f"({(query or '').strip().rstrip(';')}\n)" if table is None else quoted_path(table)
    types = database.types(relation)
    key_columns = tuple(_column(database, each, types, table) for each in keys)
    value_columns = tuple(_column(database, each, types, table) for each in values)
    parameters = [OperatorParameter(each.name, each.kind) for each in key_columns]
    parameters += [OperatorParameter(each.name, each.kind, True, True) for each in value_columns]
    look_up = LookUp(database, relation, key_columns, value_columns)
    return declared(name, look_up, *parameters, cost=cost, timeout=timeout, retries=retries)


def quoted_path(path: str) -> str:
    """A table name, with schema and catalogue if it has them, quoted for SQL. Raises OperatorError."""
    parts, end = [], 0
    while part := _PART.match(path, end):
        inner, plain = part.groups()
        parts.append(quoted(plain if inner is None else inner.replace('""', '"')))
        end = part.end() + 1
        if part.end() == len(path):
            return ".".join(parts)
        if path[part.end()] != ".":
            break
    raise OperatorError(f"{path!r:.60} is no name of a table", hint="'table', 'schema.table', '\"a.b\"'")


def _column(database: LookupDatabase, name: str, types: dict[str, str], table: str | None) -> TableColumn:
    where = f"table `{table}`" if table is not None else "query"
    if name not in types:
        raise unknown(f"column of the {where} called", name, types)
    column = database.column(name, types[name])
    if column is None:
        message = f"the column `{name}` of the {where} is of the type {types[name]:.60}, which no value has"
        raise OperatorError(message, hint="a query can cast it: query='SELECT CAST(… AS VARCHAR) AS …'")
    return column


@dataclass(frozen=True, slots=True)
class LookUp:
    """Finds rows by their keys, with one query for a batch of events."""

    database: LookupDatabase
    relation: str
    keys: tuple[TableColumn, ...]
    values: tuple[TableColumn, ...]

    def __call__(self, events: Sequence[Any], *columns: Any) -> list[Any]:
        count = len(self.keys)
        wanted = self.values[: len(columns) - count]
        rows = list(rows_of(events, *columns))
        keys = [self._key(row) for row in rows]
        stored = self._rows_by_key([each for each in dict.fromkeys(keys) if each is not None], wanted)
        return [_answer(stored.get(key, []), row[count:]) for key, row in zip(keys, rows, strict=True)]

    def _key(self, row: Sequence[Any]) -> Key | None:
        """The key in a row of arguments, as parameters of the query; None if no row can have it."""
        key = tuple(self.database.key(column, value) for column, value in zip(self.keys, row, strict=False))
        return None if None in key else key

    def _rows_by_key(
        self, keys: Sequence[Key], wanted: Sequence[TableColumn]
    ) -> dict[Key | None, list[tuple[Any, ...]]]:
        """The wanted columns of all rows with one of the keys, by key."""
        if not keys:
            return {}
        database = self.database
        selected = ", ".join(["q.n", *map(database.stored, wanted)])
        joined = " AND ".join(f"{database.stored(each)} = q.k{place}" for place, each in enumerate(self.keys))
        sql = f"SELECT DISTINCT {selected} FROM {database.keys(self.keys)} JOIN {self.relation} AS t ON {joined}"
        rows: dict[Key | None, list[tuple[Any, ...]]] = {}
        for number, *values in database.rows(sql, [list(column) for column in zip(*keys, strict=True)]):
            row = tuple(database.value(column, value) for column, value in zip(wanted, values, strict=True))
            rows.setdefault(keys[number - 1], []).append(row)
        return rows


def _answer(rows: Sequence[tuple[Any, ...]], wanted: Sequence[Any]) -> bool | list[tuple[Any, ...]]:
    """The bindings of the variables among the values, or whether a row fits if there are no variables."""
    fitting = [row for row in rows if all(each is FREE or _is_same(each, row[at]) for at, each in enumerate(wanted))]
    free = [at for at, each in enumerate(wanted) if each is FREE]
    return [tuple(row[at] for at in free) for row in fitting] if free else bool(fitting)


def _is_same(given: Any, stored: Any) -> bool:
    if KINDS.get(type(given)) is not KINDS.get(type(stored)):
        return False
    return bool((utc(given) if isinstance(given, datetime) else given) == stored)
