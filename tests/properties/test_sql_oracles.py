"""The reference against DuckDB and against Spark SQL, in three-valued truth, on the plain subset of the language.

An oracle answers many expressions at once: they are the columns of a query over a table of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import nan
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.language.ast import Attribute, Between, Comparison, Constant, Expression, In, Not, attributes
from harken.language.sql.parser import parse
from harken.language.sql.printer import print_expression
from harken.reference import expressions as reference
from properties.generators import (
    COLUMNS,
    OPERATORS,
    Expressions,
    RawEvent,
    TameVocabulary,
    Vocabulary,
    plain_events,
    plain_vocabulary,
    tame_events,
)
from properties.replay import Bulk
from properties.scalars import day, near, timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Truth = bool | None
Oracle = Callable[[list[RawEvent], dict[str, str], list[Expression]], list[list[Any]]]
"""Given events, the types of their columns and expressions: a list of answers an expression, with one an event."""

LANGUAGE_PAGE = Path(__file__).parents[2] / "docs" / "language.md"
_ROUNDS, _EXPRESSIONS, _EVENTS = 5, 100, 250


def ask_duckdb(events: list[RawEvent], columns: dict[str, str], expressions: list[Expression]) -> list[list[Any]]:
    with duckdb.connect() as connection:
        connection.register("given", table_of(events, columns))
        # A table of DuckDB's own has statistics, from which its optimiser draws conclusions.
        connection.execute("CREATE TABLE events AS SELECT * FROM given")
        asked = ", ".join(print_expression(expression, "duckdb") for expression in expressions)
        rows = connection.execute(f"SELECT {asked} FROM events").fetchall()
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.fixture
def ask_spark(spark: SparkSession) -> Oracle:
    def ask(events: list[RawEvent], columns: dict[str, str], expressions: list[Expression]) -> list[list[Any]]:
        asked = [f"{print_expression(each, 'spark')} AS c{index}" for index, each in enumerate(expressions)]
        answers = spark.createDataFrame(table_of(events, columns, "UTC")).selectExpr(*asked).toArrow()
        return [column.to_pylist() for column in answers.columns]

    return ask


def table_of(events: list[RawEvent], columns: dict[str, str], zone: str | None = None) -> pa.Table:
    types = {
        "integer": pa.int64(),
        "float": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", zone),
        "date": pa.date32(),
    }
    arrays = {name: pa.array([event[name] for event in events], types[kind]) for name, kind in columns.items()}
    return pa.table(arrays)


# Agreement


def test_reference_agrees_with_duckdb(bulk):
    found = Counter(truth for rng in bulk.rounds(_ROUNDS) for truth in compare_round(bulk, rng, "duckdb", ask_duckdb))
    # The generator is worth its name: neither nearly always true nor nearly never, and seldom unknown.
    assert 0.3 < found[True] / bulk.pairs < 0.6, found
    assert found[None] / bulk.pairs < 0.25, found


def test_reference_agrees_with_spark(bulk, ask_spark):
    for rng in bulk.rounds(_ROUNDS):
        compare_round(bulk, rng, "spark", ask_spark)


def test_functions_agree_with_duckdb(bulk):
    for rng in bulk.rounds(_ROUNDS):
        compare_functions(bulk, rng, "duckdb", ask_duckdb, "aB zé_%\n😀")


def test_functions_agree_with_spark(bulk, ask_spark):
    for rng in bulk.rounds(_ROUNDS):
        compare_functions(bulk, rng, "spark", ask_spark, "aB zéßİΣσ_%\n😀")


def compare_functions(bulk: Bulk, rng: Random, dialect: str, ask: Oracle, letters: str) -> None:
    events = tame_events(rng, _EVENTS, letters)
    held = {name: [event[name] for event in events if event[name] is not None] for name in COLUMNS}
    vocabulary = TameVocabulary({(name,): held[name] for name in COLUMNS}, dialect)
    compare_expressions(bulk, rng, dialect, ask, events, vocabulary)


def test_strings_that_are_times_agree_with_duckdb(bulk):
    for rng in bulk.rounds(_ROUNDS):
        compare_written(bulk, rng, "duckdb", ask_duckdb)


def test_strings_that_are_times_agree_with_spark(bulk, ask_spark):
    for rng in bulk.rounds(_ROUNDS):
        compare_written(bulk, rng, "spark", ask_spark)


def compare_written(bulk: Bulk, rng: Random, dialect: str, ask: Oracle) -> None:
    """Full timestamps and dates as strings, compared with constants of the other kind: SQL casts them as we read them.

    Those in UTC and without a fraction beyond microseconds. DuckDB has no other comparisons of them than = <> and IN.
    """
    operators = OPERATORS if dialect == "spark" else ("=", "<>")
    moments, days = [timestamp(rng) for _ in range(40)], [day(rng) for _ in range(40)]
    events = [
        {"at": f"{moment.date()}{rng.choice('T ')}{moment:%H:%M:%S.%f}{rng.choice(('', 'Z'))}", "day": str(each)}
        for moment, each in zip(moments, days, strict=True)
    ]
    constants = {"at": moments, "day": days}
    expressions: list[Expression] = []
    for _ in range(100):
        name = rng.choice(("at", "day"))
        operand, several = Attribute((name,)), [Constant(near(rng, rng.choice(constants[name]))) for _ in range(3)]
        compared = Comparison(operand, rng.choice(operators), several[0])
        between = Between(operand, *several[:2]) if dialect == "spark" else compared
        predicate = rng.choice((compared, between, In(operand, tuple(several))))
        expressions.append(Not(predicate) if rng.random() < 0.3 else predicate)
    answers = ask(events, {"at": "string", "day": "string"}, expressions)
    for expression, column in zip(expressions, answers, strict=True):
        assert [reference.truth(expression, each, each) for each in events] == column, print_expression(expression)
    bulk.pairs += len(events) * len(expressions)


@given(st.randoms(use_true_random=False))
def test_reference_agrees_with_duckdb_on_small_cases(rng):
    """Far fewer pairs, but Hypothesis reduces a failure to its core."""
    events = plain_events(rng, 4)
    expression = Expressions(rng, plain_vocabulary(rng, events)).expression(2)
    (answers,) = ask_duckdb(events, COLUMNS, [expression])
    assert [reference.truth(expression, event, event) for event in events] == answers, print_expression(expression)


def compare_round(bulk: Bulk, rng: Random, dialect: str, ask: Oracle) -> list[Truth]:
    """Compare every expression on every event. Gives the answers; of the pairs that differ one is reported, alone."""
    events = plain_events(rng, _EVENTS)
    return compare_expressions(bulk, rng, dialect, ask, events, plain_vocabulary(rng, events))


def compare_expressions(
    bulk: Bulk, rng: Random, dialect: str, ask: Oracle, events: list[RawEvent], vocabulary: Vocabulary
) -> list[Truth]:
    generator = Expressions(rng, vocabulary)
    expressions = [generator.expression() for _ in range(_EXPRESSIONS)]
    answers = ask(events, COLUMNS, expressions)
    truths: list[Truth] = []
    apart: list[Pair] = []
    for expression, column in zip(expressions, answers, strict=True):
        own = [reference.truth(expression, event, event) for event in events]
        pairs = [Pair(*each, expression) for each in zip(events, own, column, strict=True)]
        apart += [pair for pair in pairs if pair.truth is not pair.answer][:1]
        truths += own
    if apart:
        shortest = min(apart, key=lambda pair: len(print_expression(pair.expression)))
        pytest.fail(shortest.report(bulk, dialect, ask), pytrace=False)
    bulk.pairs += len(truths)
    return truths


class Pair(NamedTuple):
    """An event and an expression, with the answers of both sides."""

    event: RawEvent
    truth: Truth
    answer: Any
    expression: Expression

    def report(self, bulk: Bulk, dialect: str, ask: Oracle) -> str:
        alone = ask([self.event], COLUMNS, [self.expression])[0][0]
        lines = {
            "event": {path[0]: self.event[path[0]] for path in attributes(self.expression)},
            "expression": print_expression(self.expression),
            "SQL": print_expression(self.expression, dialect),
            "reference": self.truth,
            dialect: self.answer,
            f"{dialect}, asked alone": alone,
        }
        head = f"the reference and {dialect} disagree; HARKEN_SEED={bulk.seed} replays it"
        return "\n".join([head, *(f"  {name}: {value!r}" for name, value in lines.items())])


# Where they differ


@dataclass(frozen=True)
class Difference:
    """A case that the generator leaves out: a row of one column, a text, and the three answers to it."""

    reason: str
    column: tuple[str, str, Any]
    where: str
    reference: Truth
    duckdb: Any
    spark: Any


REJECTED = "rejected"
_CAST = "SQL casts one side to the type of the other where Harken finds unlike types and says unknown"
_READ = "a string beside a timestamp or a date is read as a full one, else unknown; SQL casts it as best it can"
_EXACT = "SQL compares BIGINT with DOUBLE as DOUBLE, which has not all integers beyond 2^53"
_MISSING = "an attribute that an event lacks is missing; a column that a table lacks is an error"
_ONE = "DuckDB maps one letter to one letter"
_JAVA = "Spark's regular expressions are Java's, Harken's and DuckDB's are RE2's"
_FITS = "a number is its value, and an integer has 64 bits"
_ESCAPE = "DuckDB takes an escape of one byte, Spark one of one UTF-16 unit"

# Everything in which SQL answers differently to the plain subset, as its dialect's printer writes it. The generator
# leaves it out; each case is asked below, so that the list stays true. Nothing else is left out: -0.0, infinities,
# subnormal numbers, NUL, characters beyond U+FFFF and the years 1 to 9999 are all generated.
KNOWN_DIFFERENCES = {
    "NaN compared": Difference(
        "NaN is missing; for SQL it is the greatest number", ("x", "float", nan), "x > 1.0", None, True, True
    ),
    "NaN equal": Difference(
        "NaN is missing; for SQL it is equal to itself", ("x", "float", nan), "x = x", None, True, True
    ),
    "NaN is null": Difference("NaN is missing", ("x", "float", nan), "x IS NULL", True, False, False),
    "integer and float constant": Difference(
        _EXACT, ("n", "integer", 2**53 + 1), "n = 9007199254740992.0", False, True, True
    ),
    "float and integer constant": Difference(
        _EXACT, ("x", "float", 2.0**53), "x < 9007199254740993", True, False, False
    ),
    "string and number": Difference(_CAST, ("s", "string", "5"), "s = 5", None, True, True),
    "string that is no number": Difference(_CAST, ("s", "string", "five"), "s = 5", None, REJECTED, REJECTED),
    "number in a list of strings": Difference(_CAST, ("n", "integer", 5), "n IN (1, '5')", None, True, True),
    "boolean and number": Difference(_CAST, ("p", "boolean", True), "p = 1", None, True, REJECTED),
    "date and string": Difference(_CAST, ("d", "date", date(2024, 1, 1)), "d = '2024-01-01'", None, True, True),
    "date and timestamp": Difference(
        _CAST, ("d", "date", date(2024, 1, 1)), "d = TIMESTAMP '2024-01-01 00:00:00'", None, True, True
    ),
    "timestamp and date": Difference(
        _CAST, ("t", "timestamp", datetime(2024, 1, 1, tzinfo=UTC)), "t = DATE '2024-01-01'", None, True, True
    ),
    "string that is a date and timestamp": Difference(
        _READ, ("s", "string", "2024-01-01"), "s = TIMESTAMP '2024-01-01 00:00:00'", None, True, True
    ),
    "string that is no timestamp": Difference(
        _READ, ("s", "string", "soon"), "s = TIMESTAMP '2024-01-01 00:00:00'", None, REJECTED, REJECTED
    ),
    "string that is a timestamp and date": Difference(
        _READ, ("s", "string", "2024-01-01T10:00:00Z"), "s = DATE '2024-01-01'", None, True, True
    ),
    "order of a string and a timestamp": Difference(
        "DuckDB compares them by = <> and IN only",
        ("s", "string", "2024-01-01T10:00:00"),
        "s > TIMESTAMP '2024-01-01 00:00:00'",
        True,
        REJECTED,
        True,
    ),
    "string with a zone": Difference(
        "DuckDB's timestamps have no zone",
        ("s", "string", "2024-01-01T01:00:00+01:00"),
        "s = TIMESTAMP '2024-01-01 00:00:00'",
        True,
        False,
        True,
    ),
    "string that is nearly a date": Difference(
        _READ, ("s", "string", "2024-1-1"), "s = DATE '2024-01-01'", None, True, True
    ),
    "LIKE on a number": Difference(_CAST, ("n", "integer", 55), "n LIKE '5%'", None, REJECTED, True),
    "case of names": Difference(
        "names are case-sensitive, in DuckDB they are not", ("n", "integer", 5), "N = 5", None, True, REJECTED
    ),
    "missing column": Difference(_MISSING, ("n", "integer", 5), "m IS NULL", True, REJECTED, REJECTED),
    "escape beyond ASCII": Difference(_ESCAPE, ("s", "string", "a%"), "s LIKE 'aé%' ESCAPE 'é'", True, REJECTED, True),
    "two letters for one": Difference(_ONE, ("s", "string", "İ"), "length(lower(s)) = 2", True, False, True),
    "last sigma": Difference(_ONE, ("s", "string", "ΑΣ"), "lower(s) = 'ας'", True, False, True),
    "capitals of ß": Difference(_ONE, ("s", "string", "ß"), "upper(s) = 'SS'", True, False, True),
    "case in regular expressions": Difference(_JAVA, ("s", "string", "É"), "s RLIKE '(?i)é'", True, True, False),
    "end in regular expressions": Difference(_JAVA, ("s", "string", "a\n"), "s RLIKE 'a$'", False, False, True),
    "integral floats": Difference(_FITS, ("x", "float", 2.0**62), "x * 2 > 0", None, True, True),
    "remainder by -1": Difference("DuckDB divides first", ("n", "integer", -(2**63)), "n % -1 = 0", True, None, True),
    "floor beyond 64 bits": Difference(_FITS, ("x", "float", 1e30), "floor(x) > 1", None, True, REJECTED),
    "escape beyond U+FFFF": Difference(
        _ESCAPE, ("s", "string", "a%"), "s LIKE 'a😀%' ESCAPE '😀'", True, REJECTED, REJECTED
    ),
}


@pytest.fixture(params=KNOWN_DIFFERENCES.values(), ids=KNOWN_DIFFERENCES)
def difference(request):
    return request.param


def test_the_reference_answers_differently(difference):
    name, _, value = difference.column
    assert reference.truth(parse(difference.where), {name: value}, {name: value}) is difference.reference
    assert difference.duckdb is not difference.reference or difference.spark is not difference.reference


def test_the_page_on_the_language_lists_it(difference):
    words = {True: "true", False: "false", None: "unknown", REJECTED: "an error"}
    answers = " | ".join(words[each] for each in (difference.reference, difference.duckdb, difference.spark))
    assert f"| `{difference.where}` | {answers} |" in LANGUAGE_PAGE.read_text(encoding="utf-8")


def test_duckdb_still_answers_differently(difference):
    assert ask_about(difference, ask_duckdb, duckdb.Error) == difference.duckdb


def test_spark_still_answers_differently(difference, ask_spark):
    from pyspark.errors import PySparkException

    assert ask_about(difference, ask_spark, PySparkException) == difference.spark


def test_spark_reads_a_timestamp_in_the_zone_of_its_session(ask_spark, spark):
    column = ("t", "timestamp", datetime(2024, 1, 1, tzinfo=UTC))
    where = "t = TIMESTAMP '2024-01-01 00:00:00'"
    asked = Difference("the zone", column, where, True, True, True)
    assert reference.truth(parse(where), {"t": column[2]}, {"t": column[2]}) is True
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        answers = []
        for each in ("UTC", "Asia/Tokyo"):
            spark.conf.set("spark.sql.session.timeZone", each)
            answers.append(ask_about(asked, ask_spark, ()))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert answers == [True, False]


def ask_about(difference: Difference, ask: Oracle, rejection: type[Exception] | tuple[()]) -> Any:
    name, kind, value = difference.column
    try:
        return ask([{name: value}], {name: kind}, [parse(difference.where)])[0][0]
    except rejection:
        return REJECTED
