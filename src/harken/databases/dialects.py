"""How SQLite, PostgreSQL, DuckDB and Spark write SQL: types, literals, and what their planners have to be told."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Storage(StrEnum):
    """How a database stores the values of a column. The values name columns of tables."""

    NUMBER = "num"
    TEXT = "txt"
    WHOLE = "whole"
    """Booleans, dates, timestamps, places in a coded domain, and whether there is a value: as integers."""


class Dialect(NamedTuple):
    """How one engine writes SQL."""

    name: str
    types: Mapping[Storage, str]
    infinity: str
    """The literal of the greatest double."""
    double_suffix: str = ""
    """What makes a literal a double that an exponent does not make one."""
    table_suffix: str = ""
    """What a definition of a table ends with."""
    by_key: str = ""
    """What a definition ends with whose rows are to lie in the index of their key."""
    blob: str = "BLOB"
    """The type of bytes."""
    has_escapes: bool = False
    """Whether a backslash means something in the literal of a text, and a dollar before it is parsed."""
    keeps_order: bool = False
    """Whether `CROSS JOIN` makes the table on the left the outer one, so that the other is found by its index."""
    has_indexes: bool = True
    is_temporary: bool = False
    """Whether a matcher's tables are those of its session."""
    emptying: str = "TRUNCATE TABLE"
    """What deletes all rows of a table whose name follows."""
    joined_as_written: tuple[str, ...] = ()
    """The statements after which a session joins tables in the order in which `CROSS JOIN` names them."""
    planned_once: tuple[str, ...] = ()
    """The statements after which a session plans a query once, and not for each batch."""
    range_types: Mapping[Storage, str] = MappingProxyType({})
    """The types of ranges by what they are ranges of: there an index finds the ranges that a value lies in."""
    own_types: tuple[str, ...] = ()
    """The statements that make those of `range_types` that the engine does not bring."""


def postgres_dialect(schema: str = "") -> Dialect:
    """That of PostgreSQL, with its own types in a schema.

    A session's schema has to be named: functions of it, which make ranges, are not found otherwise.
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
