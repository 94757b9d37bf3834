"""The printer: the exact text of every node, in every dialect."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from harken.errors import UnavailableError
from harken.language.ast import (
    And,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Constant,
    Contains,
    Expression,
    Holds,
    In,
    Like,
    Not,
    Or,
    Variable,
)
from harken.language.sql import parse, print_expression
from harken.schema.values import Value

A, B, C = (Attribute((name,)) for name in "abc")


@pytest.mark.parametrize(
    ("text", "spark", "duckdb"),
    [
        ("a = 1", "`a` = CAST('1' AS BIGINT)", "\"a\" = CAST('1' AS BIGINT)"),
        ("a <> b", "`a` <> `b`", '"a" <> "b"'),
        ("1 <= a", "CAST('1' AS BIGINT) <= `a`", "CAST('1' AS BIGINT) <= \"a\""),
        ("a BETWEEN b AND c", "`a` BETWEEN `b` AND `c`", '"a" BETWEEN "b" AND "c"'),
        ("a NOT BETWEEN b AND c", "`a` NOT BETWEEN `b` AND `c`", '"a" NOT BETWEEN "b" AND "c"'),
        ("a IN ('x', 'y')", "`a` IN ('x', 'y')", "\"a\" IN ('x', 'y')"),
        ("a NOT IN ('x')", "`a` NOT IN ('x')", "\"a\" NOT IN ('x')"),
        ("a LIKE 'x%'", "`a` LIKE 'x%'", "\"a\" LIKE 'x%' ESCAPE '\\'"),
        ("a NOT LIKE 'x%'", "`a` NOT LIKE 'x%'", "\"a\" NOT LIKE 'x%' ESCAPE '\\'"),
        (r"a LIKE '\%'", r"`a` LIKE '\\%'", "\"a\" LIKE '\\%' ESCAPE '\\'"),
        ("a LIKE '!%' ESCAPE '!'", "`a` LIKE '!%' ESCAPE '!'", "\"a\" LIKE '!%' ESCAPE '!'"),
        ("a IS NULL", "`a` IS NULL", '"a" IS NULL'),
        ("a IS NOT NULL", "`a` IS NOT NULL", '"a" IS NOT NULL'),
        ("a CONTAINS 'x'", "array_contains(`a`, 'x')", "list_contains(\"a\", 'x')"),
        ("a NOT CONTAINS 'x'", "NOT array_contains(`a`, 'x')", "NOT list_contains(\"a\", 'x')"),
        ("a", "`a`", '"a"'),
        ("TRUE", "TRUE", "TRUE"),
        ("FALSE", "FALSE", "FALSE"),
        ("NOT a", "NOT `a`", 'NOT "a"'),
        ("a AND b", "`a` AND `b`", '"a" AND "b"'),
        ("a OR b", "`a` OR `b`", '"a" OR "b"'),
        ("(a OR b) AND NOT c", "(`a` OR `b`) AND NOT `c`", '("a" OR "b") AND NOT "c"'),
    ],
)
def test_every_node_in_every_dialect(text: str, spark: str, duckdb: str) -> None:
    expression = parse(text)
    assert print_expression(expression) == text
    assert print_expression(expression, "spark") == spark
    assert print_expression(expression, "duckdb") == duckdb


@pytest.mark.parametrize(
    ("value", "harken", "sql"),
    [
        (5, "5", "CAST('5' AS BIGINT)"),
        (-(2**63), "-9223372036854775808", "CAST('-9223372036854775808' AS BIGINT)"),
        (5.0, "5.0", "CAST('5.0' AS DOUBLE)"),
        (0.1, "0.1", "CAST('0.1' AS DOUBLE)"),
        (1e300, "1e+300", "CAST('1e+300' AS DOUBLE)"),
        (True, "TRUE", "TRUE"),
        (date(2026, 1, 3), "DATE '2026-01-03'", "DATE '2026-01-03'"),
        (date(1, 1, 1), "DATE '0001-01-01'", "DATE '0001-01-01'"),
        (datetime(2026, 1, 3, 4, tzinfo=UTC), "TIMESTAMP '2026-01-03 04:00:00'", "TIMESTAMP '2026-01-03 04:00:00'"),
        (
            datetime(2026, 1, 3, 4, 5, 6, 7, UTC),
            "TIMESTAMP '2026-01-03 04:05:06.000007'",
            "TIMESTAMP '2026-01-03 04:05:06.000007'",
        ),
    ],
)
def test_constants(value: Value, harken: str, sql: str) -> None:
    expression = Comparison(A, "=", Constant(value))
    assert print_expression(expression) == f"a = {harken}"
    assert print_expression(expression, "spark") == f"`a` = {sql}"
    assert print_expression(expression, "duckdb") == f'"a" = {sql}'


@pytest.mark.parametrize(
    ("value", "harken", "spark", "duckdb"),
    [
        ("", "''", "''", "''"),
        ("it's", "'it''s'", r"'it\'s'", "'it''s'"),
        ("a\\b", "'a\\b'", r"'a\\b'", "'a\\b'"),
        ("\\'", "'\\'''", r"'\\\''", "'\\'''"),
        ("a\nb", "'a\nb'", "'a\nb'", "'a\nb'"),
        ("${x}", "'${x}'", r"'\u0024{x}'", "'${x}'"),  # Spark would replace it by a variable
        ("$5", "'$5'", "'$5'", "'$5'"),
    ],
)
def test_strings(value: str, harken: str, spark: str, duckdb: str) -> None:
    expression = Comparison(A, "=", Constant(value))
    assert print_expression(expression) == f"a = {harken}"
    assert print_expression(expression, "spark") == f"`a` = {spark}"
    assert print_expression(expression, "duckdb") == f'"a" = {duckdb}'


@pytest.mark.parametrize(
    ("path", "harken", "spark", "duckdb"),
    [
        (("seller", "country"), "seller.country", "`seller`.`country`", '"seller"."country"'),
        (("a.b",), "`a.b`", "`a.b`", '"a.b"'),
        (("and",), "`and`", "`and`", '"and"'),
        (("date",), "date", "`date`", '"date"'),
        (("a`b",), "`a``b`", "`a``b`", '"a`b"'),
        (('a"b',), '`a"b`', '`a"b`', '"a""b"'),
        (("1a",), "`1a`", "`1a`", '"1a"'),
        (("été",), "été", "`été`", '"été"'),
    ],
)
def test_names(path: tuple[str, ...], harken: str, spark: str, duckdb: str) -> None:
    expression = Holds(Attribute(path))
    assert print_expression(expression) == harken
    assert print_expression(expression, "spark") == spark
    assert print_expression(expression, "duckdb") == duckdb


@pytest.mark.parametrize(
    "text",
    [
        "a OR b AND c",
        "(a OR b) AND c",
        "NOT (a AND b)",
        "NOT (a OR b)",
        "NOT NOT a",
        "NOT a = 1",
        "NOT a AND b",
        "NOT (NOT a AND b)",
        "NOT a IN (1)",
        "(a OR NOT (b AND c)) AND a IS NOT NULL",
    ],
)
def test_parentheses_only_where_they_are_needed(text: str) -> None:
    expected = text.replace("NOT a IN", "a NOT IN")
    assert print_expression(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((a)) OR ((b AND (c)))", "a OR b AND c"),
        ("a!=1", "a <> 1"),
        ("not a", "NOT a"),
        ("a = - - 5", "a = 5"),
        ("a = 5.", "a = 5.0"),
        ("`a`.`b c` = .5", "a.`b c` = 0.5"),
        ("a = TIMESTAMP '2026-01-03T01:00:00+02:00'", "a = TIMESTAMP '2026-01-02 23:00:00'"),
    ],
)
def test_one_writing_for_what_is_the_same(text: str, printed: str) -> None:
    assert print_expression(parse(text)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "near('Bronx', ?d, a)",
        "near()",
        "`my operator`(1)",
        "?d < 2 * ?e + 1",
        "(?x + 1) * 2 = a",
        "?x - (?y - 1) = a",
        "?x - ?y - 1 = a",
        "?x - ?y * 2 = a",
        "?x / (?y * 2) = a",
        "0 - ?x < -5",
    ],
)
def test_operators_and_variables(text: str) -> None:
    assert print_expression(parse(text)) == text


def test_a_minus_before_a_variable_is_written_out() -> None:
    assert print_expression(parse("-?x < 1")) == "0 - ?x < 1"


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
@pytest.mark.parametrize("text", ["a AND near('Bronx')", "?d < 5", "a BETWEEN 1 AND ?d", "a = 2 * ?d"])
def test_operators_and_variables_have_no_form_in_sql(text: str, dialect: str) -> None:
    with pytest.raises(UnavailableError, match="no form in SQL"):
        print_expression(parse(text), dialect)


def test_a_name_that_spark_would_replace_has_no_form_in_spark() -> None:
    expression = Holds(Attribute(("a", "${x}")))
    with pytest.raises(UnavailableError, match="no form in Spark SQL"):
        print_expression(expression, "spark")
    assert print_expression(expression, "duckdb") == '"a"."${x}"'


@pytest.mark.parametrize(
    "expression",
    [
        Not(Not(Contains(A, Constant(1)))),
        And((Or((Holds(A), Not(In(B, (Constant(1), Constant("x")))))), Not(And((Holds(A), Holds(C)))))),
        Like(A, Constant("''\\\\"), "\\"),
        Like(A, Constant("''"), "'"),
        Comparison(Arithmetic(Variable("x"), "-", Constant(-5)), "<", Constant(-0.5)),
        Call("and", (A, Constant("x"), Variable("y"))),
        Holds(Attribute(("TRUE", "contains", "a b"))),
    ],
)
def test_what_is_printed_is_read_back(expression: Expression) -> None:
    assert parse(print_expression(expression)) == expression


def test_an_unknown_dialect() -> None:
    with pytest.raises(KeyError):
        print_expression(Holds(A), "oracle")
