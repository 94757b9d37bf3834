"""What a matcher asks of a database, and which databases there are, by name or URL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from harken.errors import CapabilityError, StoreUnavailableError, did_you_mean, missing_extra
from harken.relational.typed_values import Storage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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


class EventColumn(NamedTuple):
    """A column of events to be joined with subscriptions: None where an event has no value."""

    name: str
    storage: Storage
    values: list[Any]


class MatchingDatabase(Protocol):
    """A connection to an engine, made when it is first needed. One thread uses it at a time."""

    dialect: ClassVar[Dialect]

    def connect(self) -> None:
        """Open a new connection, without tables."""

    def close(self) -> None:
        """Close the connection, if there is one."""

    def errors(self) -> tuple[type[Exception], ...]:
        """What its driver raises."""

    def transaction(self) -> AbstractContextManager[None]:
        """All that is done inside, or nothing."""

    def parameter(self, place: int) -> str:
        """How a statement names its parameter at a place, from 1."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each sequence of values."""

    def integers(self, query: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        """The rows of a query whose columns are integers, as a matrix."""

    def insert(self, table: str, columns: Mapping[str, tuple[Storage, list[Any]]]) -> None:
        """Insert many rows, given column by column."""

    def events(self, columns: Sequence[EventColumn]) -> tuple[str, list[Any]]:
        """Make a batch known as the table `events`. Returns what a query begins with for that, and its values."""

    def analyse(self, tables: Sequence[str]) -> None:
        """Have the planner look at tables."""

    def size(self, tables: Sequence[str]) -> int:
        """The bytes of tables, with their indexes. A database in memory counts all that it holds."""


_PLACES = {
    "duckdb": "harken.relational.on_duckdb:DuckMatching",
    "sqlite": "harken.relational.on_sqlite:SqliteMatching",
}
_POSTGRES = ("postgresql://", "postgres://")


def open_database(name: object) -> MatchingDatabase:
    """A database by its name or URL. Raises CapabilityError if there is none; nothing is connected yet."""
    place = _PLACES.get(name) if isinstance(name, str) else None
    arguments: list[str] = []
    if isinstance(name, str) and name.startswith(_POSTGRES):
        place, arguments = "harken.relational.on_postgres:PostgresMatching", [name]
    if place is None:
        # What it is not is not quoted: a URL may hold a password.
        near = did_you_mean(name, _PLACES) if isinstance(name, str) and "://" not in name else None
        hint = near or f"it is one of {', '.join(_PLACES)}, or a URL that begins with {_POSTGRES[0]}"
        raise CapabilityError("there is no such `database`", hint=hint)
    module, _, factory = place.partition(":")
    found: MatchingDatabase = getattr(import_module(module), factory)(*arguments)
    return found


@contextmanager
def told_clearly(database: MatchingDatabase) -> Iterator[None]:
    """Raise what the driver raises as StoreUnavailableError, and a driver that is missing as MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None
    except database.errors() as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        message = f"the database of the matcher ({database.dialect.name}) failed: {reason}"
        hint = "match again: the connection is opened and the tables are filled anew"
        raise StoreUnavailableError(message, hint=hint) from error
