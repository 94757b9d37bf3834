"""Look-ups in DuckDB and PostgreSQL against a Python list of rows."""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harken
from harken.errors import OperatorError
from harken.operators.box import table_operator
from harken.operators.box.lookup_databases import database_of
from harken.operators.box.table_operators import quoted_path
from harken.schema.values import KINDS

numbers = count()


@pytest.fixture(params=["duckdb", pytest.param("postgresql", marks=pytest.mark.processes)])
def database(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Callable[..., None]]]:
    """What a look-up connects to, and a function that runs SQL there."""
    if request.param == "duckdb":
        with duckdb.connect() as connection:
            yield (
                connection,
                lambda sql, rows=None: connection.executemany(sql, rows) if rows else connection.execute(sql),
            )
    else:
        url = request.getfixturevalue("postgres_url")
        with psycopg.connect(url, autocommit=True) as connection:

            def run(sql: str, rows: Any = None) -> None:
                with connection.cursor() as cursor:
                    if rows is None:
                        cursor.execute(sql)
                    else:
                        cursor.executemany(sql.replace("%", "%%").replace("?", "%s"), rows)

            yield url, run


@pytest.fixture
def customers(database: Any) -> tuple[Any, str]:
    """A table of customers, by a name of its own."""
    connection, run = database
    name = f"customers{next(numbers)}"
    run(
        f"CREATE TABLE {name} (id integer, country varchar(9), tier text, most numeric(9, 2), "
        "since timestamp, is_big boolean)"
    )
    run(
        f"INSERT INTO {name} VALUES (1, 'DE', 'gold', 1000.50, '2020-01-02 03:04:05', true), "
        "(2, 'DE', 'tin', 10, NULL, false), (2, 'FR', 'gold', 20, NULL, NULL), (3, 'FR', NULL, NULL, NULL, NULL)"
    )
    return connection, name


def test_an_engine_with_a_look_up(customers: tuple[Any, str]) -> None:
    connection, table = customers
    customer = table_operator("customer", connection, table, keys=("id",), values=("tier", "most", "since", "is_big"))
    assert str(customer.signature) == "customer(id, ?tier, ?most, ?since, ?is_big)"
    engine = harken.Engine(operators=[customer])
    engine.subscribe("known", "customer(who)")
    engine.subscribe("unknown", "NOT customer(who)")
    engine.subscribe("gold", "customer(who, 'gold')")
    engine.subscribe("rich", "customer(who, ?tier, ?most) AND ?most > 500 AND ?tier = 'gold'")
    engine.subscribe("over", "customer(who, ?tier, ?most) AND ?most < price")
    engine.subscribe("early", "customer(who, ?t, ?m, ?since) AND ?since < TIMESTAMP '2021-01-01 00:00:00'")
    engine.subscribe("big", "customer(who, ?t, ?m, ?s, TRUE)")
    engine.subscribe("one", "customer(1, ?tier) AND price > 5")
    answers = engine.match_batch(
        [
            {"who": 1, "price": 1},
            {"who": 2.0, "price": 15},
            {"who": 3},
            {"who": 4},
            {"who": "1"},
            {"who": 1.5},
            {"price": 6},
        ]
    )
    assert not answers.errors
    assert [sorted(ids) for ids in answers.ids] == [
        ["big", "early", "gold", "known", "rich"],
        ["gold", "known", "one", "over"],
        ["known"],
        ["unknown"],
        ["unknown"],
        ["unknown"],
        ["one"],
    ]
    assert engine.stats()["operators"]["customer"]["calls"] < 10


KEYS = st.integers(-3, 3) | st.sampled_from(
    [1.0, 2.5, math.nan, 1e300, 2**70, True, "a", "b'", "", "\0", "\ud800", None]
)
TEXTS = st.sampled_from(["a", "b'", "", "ä", "\0", "\ud800", 1, [1], date(2020, 1, 1)])
ROWS = st.lists(
    st.tuples(
        st.integers(-3, 3), st.sampled_from(["a", "b'", "", "ä"]), st.none() | st.integers(0, 2), st.floats(-1, 1)
    ),
    max_size=8,
)


def plain_look_up(rows: list[Any], key: tuple[Any, Any], wanted: list[Any]) -> set[Any] | bool:
    """The same, one row after the other."""

    def same(given: Any, stored: Any) -> bool:
        return KINDS.get(type(given)) is KINDS.get(type(stored)) and given == stored

    fitting = [row for row in rows if same(key[0], row[0]) and same(key[1], row[1])]
    fitting = [
        row for row in fitting if all(want is harken.FREE or same(want, row[2 + at]) for at, want in enumerate(wanted))
    ]
    free = [2 + at for at, want in enumerate(wanted) if want is harken.FREE]
    return {tuple(row[at] for at in free) for row in fitting} if free else bool(fitting)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(ROWS, st.lists(st.tuples(KEYS, TEXTS, st.integers(0, 2)), min_size=1, max_size=8), st.integers(0, 3))
def test_as_a_list_of_rows_would_answer(database: Any, rows: list[Any], calls: list[Any], form: int) -> None:
    connection, run = database
    table = f'"we""ird % table {next(numbers)}"'
    run(f'CREATE TABLE {table} (n integer, "a ""b" text, v integer, f float8)')
    if rows:
        run(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
    operator = table_operator("t", connection, table, keys=("n", 'a "b'), values=("v", "f"))
    events = [{}] * len(calls)
    values: list[Any] = [[], [harken.FREE], [[each[2] for each in calls]], [[each[2] for each in calls], harken.FREE]][
        form
    ]
    answers = operator(events, [each[0] for each in calls], [each[1] for each in calls], *values)
    for at, (number, text, _) in enumerate(calls):
        wanted = [each if each is harken.FREE else each[at] for each in values]
        expected = plain_look_up(rows, (number, text), wanted)
        assert (set(answers[at]) if isinstance(expected, set) else answers[at]) == expected


KINDS_OF_KEYS = [
    ("smallint", 7, 8),
    ("bigint", 2**62 + 1, 2**62),
    ("numeric(30, 0)", 2**62 + 1, 2**62),
    ("numeric(9, 2)", 0.1, 0.2),
    ("double precision", 0.1, 1),
    ("real", 0.5, 1e300),
    ("varchar(9)", "grün", "grun"),
    ("boolean", True, 1),
    ("date", date(2020, 2, 29), datetime(2020, 2, 29, tzinfo=UTC)),
    ("timestamp", datetime(2020, 2, 29, 1, 2, 3, 45, tzinfo=UTC), date(2020, 2, 29)),
    ("timestamp with time zone", datetime(2020, 2, 29, 1, 2, 3, 45, tzinfo=UTC), "2020-02-29"),
]


@pytest.mark.parametrize(("type", "key", "other"), KINDS_OF_KEYS, ids=[kind for kind, _, _ in KINDS_OF_KEYS])
def test_each_type_is_a_key_and_a_value(database: Any, type: str, key: Any, other: Any) -> None:
    connection, run = database
    table = f"typed{next(numbers)}"
    run(f"CREATE TABLE {table} (k {type}, v {type})")
    run(f"INSERT INTO {table} VALUES (?, ?)", [(key, key), (None, key)])
    operator = table_operator("t", connection, table, keys=("k",), values=("v",))
    answers = operator([{}] * 3, [key, other, None], harken.FREE)
    assert answers == [[(key,)], [], []]
    assert KINDS[answers[0][0][0].__class__] is KINDS[key.__class__]
    assert operator([{}] * 2, [key, key], [key, other]) == [True, False]
    assert operator([{}] * 2, [key, other]) == [True, False]


def test_a_batch_takes_one_query(customers: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> None:
    connection, table = customers
    operator = table_operator("customer", connection, table, keys=("id", "country"), values=("tier",))
    calls: list[Any] = []
    kind = operator.function.database.__class__
    rows = kind.rows

    def counted(self: Any, sql: str, parameters: Any = ()) -> Any:
        calls.append(parameters)
        return rows(self, sql, parameters)

    monkeypatch.setattr(kind, "rows", counted)
    answers = operator([{}] * 5, [1, 2, 2, 1, "x"], ["DE", "DE", "FR", "DE", "DE"], harken.FREE)
    assert answers == [[("gold",)], [("tin",)], [("gold",)], [("gold",)], []]
    assert calls == [[[1, 2, 2], ["DE", "DE", "FR"]]]
    assert operator([{}], ["x"], ["DE"], harken.FREE) == [[]]
    assert len(calls) == 1, "no row can have such a key"


def test_a_query_in_place_of_a_table(customers: tuple[Any, str]) -> None:
    connection, table = customers
    query = f"SELECT CAST(id AS varchar) AS id, tier FROM {table} WHERE tier LIKE 'g%';"
    operator = table_operator("golden", connection, query=query, keys=["id"], values=["tier"])
    assert operator([{}] * 3, ["1", "2", "3"]) == [True, True, False]
    with pytest.raises(OperatorError, match="the query fails"):
        table_operator("golden", connection, query="SELECT id FROM nowhere_at_all", keys=["id"])
    with pytest.raises(OperatorError, match=r"the query fails|the database rejects"):
        table_operator("golden", connection, query="SELEKT", keys=["id"])
    with pytest.raises(OperatorError, match=r"there is no column of the query called `idd`: did you mean `id`\?"):
        table_operator("golden", connection, query=query, keys=["idd"])


def test_what_is_not_there_is_said_with_what_is_near(customers: tuple[Any, str]) -> None:
    connection, table = customers
    with pytest.raises(OperatorError, match=f"there is no table `{table}x`: did you mean .*`{table}`"):
        table_operator("customer", connection, f"{table}x", keys=("id",))
    with pytest.raises(
        OperatorError, match=f"there is no column of the table `{table}` called `teir`: did you mean `tier`?"
    ):
        table_operator("customer", connection, table, keys=("id",), values=("teir",))


def test_types_that_no_value_has(database: Any) -> None:
    connection, run = database
    table = f"odd{next(numbers)}"
    run(f"CREATE TABLE {table} (id uuid, several integer[])")
    for column in ("id", "several"):
        with pytest.raises(
            OperatorError, match=f"the column `{column}` of the table `{table}` is of the type"
        ) as caught:
            table_operator("odd", connection, table, keys=(column,))
        assert "a query can cast it" in str(caught.value.hint)


def test_threads_share_a_look_up(customers: tuple[Any, str]) -> None:
    connection, table = customers
    operator = table_operator("customer", connection, table, keys=("id",), values=("country",))

    def ask(seed: int) -> bool:
        keys = [(seed + at) % 5 for at in range(20)]
        known = {1: {("DE",)}, 2: {("DE",), ("FR",)}, 3: {("FR",)}}
        return [set(each) for each in operator([{}] * 20, keys, harken.FREE)] == [known.get(key, set()) for key in keys]

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(64)))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_fork_connects_anew(customers: tuple[Any, str], tmp_path: Path) -> None:
    connection, table = customers
    if not isinstance(connection, str):
        path = tmp_path / "reference.duckdb"
        with duckdb.connect(path) as other:
            other.execute(f"CREATE TABLE {table} AS SELECT 1 AS id")
        connection = path
    operator = table_operator("customer", connection, table, keys=("id",))
    assert operator([{}], [1]) == [True]
    child = os.fork()
    if child == 0:
        os._exit(0 if operator([{}] * 2, [1, 9]) == [True, False] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert operator([{}] * 2, [1, 9]) == [True, False]


# DuckDB


def test_a_file_of_duckdbs_is_opened_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "reference.duckdb"
    with duckdb.connect(path) as writer:
        writer.execute("CREATE SCHEMA of_ours; CREATE TABLE of_ours.people AS SELECT 'ann' AS name, 7 AS age")
        with pytest.raises(OperatorError, match="the database cannot be opened") as caught:
            table_operator("person", str(path), "of_ours.people", keys=("name",))
        assert "pass that connection instead of the path" in str(caught.value.hint)
        with pytest.raises(OperatorError, match="an open connection cannot be sent to another process"):
            pickle.dumps(table_operator("person", writer, "of_ours.people", keys=("name",)))
    for given_path in (path, str(path)):
        person = table_operator("person", given_path, "of_ours.people", keys=("name",), values=("age",))
        assert person([{}], ["ann"], harken.FREE) == [[(7,)]]
        assert pickle.loads(pickle.dumps(person))([{}], ["ann"], harken.FREE) == [[(7,)]]
    with pytest.raises(OperatorError, match=r"there is no table `people`: did you mean `of_ours\.people`"):
        table_operator("person", path, "people", keys=("name",))
    with pytest.raises(OperatorError, match="the database cannot be opened: IO Error"):
        table_operator("person", tmp_path / "nowhere.duckdb", "people", keys=("name",))


def test_a_connection_that_was_closed_is_an_error_of_the_event(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS id")
    engine = harken.Engine(operators=[table_operator("t", connection, "t", keys=("id",))])
    engine.subscribe("a", "t(id)")
    engine.subscribe("b", "t(id) OR id = 1")
    assert sorted(engine.match({"id": 1}).ids) == ["a", "b"]
    connection.close()
    answers = engine.match_batch([{"id": 1}])
    assert answers.ids == [["b"]]
    assert "the operator `t` failed" in str(answers.errors[0][2])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"connection": "mysql://here"}, "`mysql` is no database"),
        ({"connection": 7}, "a int is no database"),
        ({"table": None}, "needs a table or a query, and not both"),
        ({"query": "SELECT 1"}, "needs a table or a query, and not both"),
        ({"keys": ()}, "needs names of key columns"),
        ({"keys": "id"}, "needs names of key columns"),
        ({"table": "a..b"}, "'a..b' is no name of a table"),
        ({"table": ""}, "'' is no name of a table"),
        ({"name": "upper"}, "`upper` is a function of the language already"),
        ({"name": "a b"}, "'a b' is no name of an operator"),
    ],
)
def test_wrong_declarations(changed: dict[str, Any], message: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS id")
        given_to = {"name": "t", "connection": connection, "table": "t", "keys": ("id",)} | changed
        with pytest.raises(OperatorError, match=message):
            table_operator(**given_to)


# Names in SQL


def test_names_with_schemas() -> None:
    assert quoted_path("t") == '"t"'
    assert quoted_path("s.t") == '"s"."t"'
    assert quoted_path('c.s."t.""u"""') == '"c"."s"."t.""u"""'
    assert quoted_path("t; DROP TABLE t") == '"t; DROP TABLE t"'
    for wrong in ("", ".", "a.", ".a", "a..b", '"a', '"a"b', '""', "a\0"):
        with pytest.raises(OperatorError, match="is no name of a table"):
            quoted_path(wrong)


# PostgreSQL


@pytest.mark.processes
def test_a_lost_connection_is_opened_again(postgres_url: str) -> None:
    table = f"lost{next(numbers)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {table} AS SELECT 1 AS id")
        operator = table_operator("t", postgres_url, table, keys=("id",))
        with ThreadPoolExecutor(4) as threads:
            assert all(answers == [True] for answers in threads.map(lambda _: operator([{}], [1]), range(32)))
        for _ in range(2):
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            assert operator([{}] * 2, [1, 2]) == [True, False]
        pids = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ).fetchone()
        assert pids is not None
        assert pids[0] <= 1 + 4


@pytest.mark.processes
def test_a_server_takes_arguments_apart_from_sql(postgres_url: str) -> None:
    database = database_of(postgres_url)
    assert database.rows("SELECT $1::int + 1", [1]) == [(2,)]
    assert pickle.loads(pickle.dumps(database)).rows("SELECT 1") == [(1,)]


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(OperatorError, match="the database cannot be reached") as caught:
        table_operator("t", "postgresql://ann:secret@127.0.0.1:1/db", "t", keys=("id",))
    assert "secret" not in str(caught.value)
