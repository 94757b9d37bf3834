"""The SQL of SQLite, PostgreSQL, DuckDB and Spark: types, literals, and settings of their planners."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Storage(StrEnum):
    """How a database stores the values of a column. The members' texts are parts of column names."""

    NUMBER = "num"
    TEXT = "txt"
    WHOLE = "whole"
    """Integers, which stand for booleans, dates, timestamps, places in a coded domain, and presence."""


class Dialect(NamedTuple):
    """The SQL of one database."""

    name: str
    types: Mapping[Storage, str]
    infinity: str
    """The literal of the greatest double."""
    double_suffix: str = ""
    """Suffix of a literal of a double, if an exponent does not make it a double."""
    table_suffix: str = ""
    """The end of every CREATE TABLE."""
    by_key: str = ""
    """The end of the CREATE TABLE of a table whose rows are stored in the index of their key."""
    blob: str = "BLOB"
    """The type of bytes."""
    has_escapes: bool = False
    """Whether a backslash in a string literal is an escape, and a dollar may begin a variable."""
    keeps_order: bool = False
    """Whether `CROSS JOIN` makes its left table the outer one, so that rows of the right one are found by an index."""
    has_indexes: bool = True
    is_temporary: bool = False
    """Whether a matcher's tables are temporary tables of its session."""
    emptying: str = "TRUNCATE TABLE"
    """The statement, without the name of the table, that deletes all rows of a table."""
    joined_as_written: tuple[str, ...] = ()
    """Statements after which a session joins tables in the order of their `CROSS JOIN`."""
    planned_once: tuple[str, ...] = ()
    """Statements after which a session plans a query once, instead of for each batch."""
    range_types: Mapping[Storage, str] = MappingProxyType({})
    """Range types by the storage of their ends. An index on such a type finds the ranges that contain a value."""
    own_types: tuple[str, ...] = ()
    """Statements that create the `range_types` that are not built in."""


def postgres_dialect(schema: str = "") -> Dialect:
    """The dialect of PostgreSQL, with its range types in `schema`.

    Types in a session's temporary schema need its name: PostgreSQL does not search it for the functions of a type.
    """
    ranges = f"{schema}harken_ranges"
    return Dialect(
        "postgres",
        {Storage.NUMBER: "DOUBLE PRECISION", Storage.TEXT: 'TEXT COLLATE "C"', Storage.WHOLE: "BIGINT"},
        "'Infinity'::DOUBLE PRECISION",
        blob="BYTEA",
        is_temporary=True,
        joined_as_written=("SET join_collapse_limit = 1",),
        planned_once=("SET plan_cache_mode = force_generic_plan",),
        range_types={Storage.NUMBER: ranges, Storage.WHOLE: "int8range"},
        own_types=(f"CREATE TYPE {ranges} AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi)",),
    )


_DOUBLES: dict[Storage, str] = {Storage.NUMBER: "DOUBLE", Storage.TEXT: "VARCHAR", Storage.WHOLE: "BIGINT"}
DIALECTS: dict[str, Dialect] = {
    "duckdb": Dialect(
        "duckdb",
        _DOUBLES,
        "'Infinity'::DOUBLE",
        has_indexes=False,
        joined_as_written=("SET disabled_optimizers = 'join_order'",),
    ),
    "sqlite": Dialect(
        "sqlite",
        {Storage.NUMBER: "REAL", Storage.TEXT: "TEXT", Storage.WHOLE: "INTEGER"},
        "9e999",
        by_key=" WITHOUT ROWID",
        keeps_order=True,
        emptying="DELETE FROM",
    ),
    "postgres": postgres_dialect(),
    "spark": Dialect(
        "spark",
        {Storage.NUMBER: "DOUBLE", Storage.TEXT: "STRING", Storage.WHOLE: "BIGINT"},
        "double('Infinity')",
        double_suffix="D",
        table_suffix=" USING parquet",
        has_escapes=True,
        has_indexes=False,
    ),
}
