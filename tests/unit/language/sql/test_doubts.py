"""Warnings of texts that are in the language and probably do not say what was meant."""

from __future__ import annotations

import pytest

from harken.language.compiled import Compiler
from harken.language.sql.doubts import doubts_of, may_be_doubtful, substring_doubt
from harken.language.sql.parser import parse
from harken.schema import Schema, parse_schema

ESCAPED = (
    r"the pattern '%\%' ends in a percent sign, not in a wildcard, because \ escapes it: "
    r"for a backslash and then anything write '%\\%'"
)
TYPED = """
[attributes]
title = "string"
tags = "string"

[event_types.book]
title = "mandatory"
tags = "optional multiple"
"""


def warnings_of(text: str, schema: Schema | None = None) -> tuple[str, ...]:
    return Compiler(schema).compile(text).warnings


# Patterns


def test_a_pattern_that_ends_in_an_escaped_percent_sign() -> None:
    assert warnings_of(r"Image LIKE '%\%'") == (ESCAPED,)


def test_the_warning_says_what_to_write_and_that_raises_none() -> None:
    assert warnings_of(r"Image LIKE '%\\%'") == ()


@pytest.mark.parametrize(
    "text",
    [
        r"a LIKE '%\\\%'",
        r"a LIKE '%\%' ESCAPE '!'",
        "a LIKE '%!%' ESCAPE '!'",
        r"a LIKE '\%%'",
        r"a LIKE '\_'",
        r"a = '%\%'",
        "a LIKE '%*%'",
        "a = '*'",
        "a = 1 /* why */",
    ],
)
def test_what_raises_no_doubt(text: str) -> None:
    assert warnings_of(text) == ()


def test_a_star_is_no_wildcard() -> None:
    (warning,) = warnings_of("a LIKE '*.exe'")
    assert warning == "in the pattern '*.exe' the * is a plain character: % stands for any characters"


def test_texts_of_a_known_shape_are_warned_of_too() -> None:
    """Only the first two texts of a shape are parsed, and each has constants of its own."""
    compiler = Compiler()
    texts = ("a LIKE 'x%'", "a LIKE 'z%'", r"a LIKE '%\%'", "a LIKE 'y%'")
    found = [compiler.compile(text).warnings for text in texts]
    assert compiler.stats()["shapes"]["hits"] == 2
    assert found == [(), (), (ESCAPED,), ()]


def test_a_sign_between_names_may_be_part_of_a_name() -> None:
    one_name = "if this is one name, write it in backticks: `cs-method`"
    assert doubts("a = cs-method") == [f"the sign in cs-method is taken for arithmetic; {one_name}"]
    assert doubts("a = cs - method") == doubts("a = 'cs-method'") == doubts("a > 2-b") == []


def doubts(text: str) -> list[str]:
    return list(doubts_of(parse(text), None)(text, [])) if may_be_doubtful(text, None) else []


def test_every_doubt_is_told() -> None:
    assert len(warnings_of(r"a LIKE '%\%' OR b LIKE '*' OR a IS NULL OR a IS NOT NULL")) == 3


def test_the_clock_of_other_dialects_is_an_attribute() -> None:
    (warning,) = warnings_of("ends > CURRENT_TIMESTAMP")
    assert warning == (
        "CURRENT_TIMESTAMP is taken for an attribute's name; "
        "there is no clock: write the time itself, TIMESTAMP '2026-01-31 12:00:00'"
    )
    assert warnings_of("ends > `CURRENT_TIMESTAMP`") == ()
    assert warnings_of("ends > TIMESTAMP '2026-01-31 12:00:00' AND current_price > 3 AND a = 'current_date'") == ()


# CONTAINS


@pytest.mark.parametrize(
    "text", ["title CONTAINS 'x'", "title not contains 'x'", "NOT (price < 3 OR title CONTAINS 'x')"]
)
def test_contains_on_a_string(text: str, schema: Schema) -> None:
    assert warnings_of(text, schema) == (
        "CONTAINS asks whether 'x' is one of the values of title, not whether it is a part of one: "
        "to search in a string write title LIKE '%x%'",
    )


def test_contains_on_an_attribute_that_may_have_several_values() -> None:
    schema = parse_schema(TYPED)
    assert len(warnings_of("title CONTAINS 'x'", schema)) == 1
    assert warnings_of("tags CONTAINS 'x'", schema) == ()


@pytest.mark.parametrize(
    "text", ["colour CONTAINS 'red'", "count CONTAINS 3", "title LIKE '%x%' AND title <> 'contains'"]
)
def test_contains_on_what_cannot_be_searched(text: str, schema: Schema) -> None:
    assert warnings_of(text, schema) == ()


def test_without_a_schema_nothing_is_known_of_an_attribute() -> None:
    assert warnings_of("title CONTAINS 'x'") == ()


def test_the_pattern_that_is_told_means_the_value() -> None:
    assert substring_doubt("a", r"50%_\'").endswith(r"write a LIKE '%50\%\_\\''%'")


# Domains


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("age < 200", ["200"]),
        ("-1 < age", ["-1"]),
        ("age IN (1, 151, 2, -5)", ["151", "-5"]),
        ("price > 3 AND age BETWEEN -5 AND 30 AND count < 999", ["-5"]),
        ("NOT age CONTAINS 1000", ["1000"]),
        ("age < 151 OR age >= 150.5", ["151", "150.5"]),
    ],
)
def test_a_constant_outside_its_interval_of_integers(text: str, constants: list[str], schema: Schema) -> None:
    assert warnings_of(text, schema) == tuple(
        f"{each} is outside the domain of age, integer 0..150" for each in constants
    )
    assert warnings_of(text) == ()


@pytest.mark.parametrize("text", ["age < 150", "age BETWEEN 0 AND 150", "age > 1.5", "count > 999", "age < price"])
def test_a_constant_inside_its_domain_raises_no_doubt(text: str, schema: Schema) -> None:
    assert warnings_of(text, schema) == ()


def test_each_text_of_a_shape_has_its_own_constants_outside(schema: Schema) -> None:
    compiler = Compiler(schema)
    warnings = [compiler.compile(f"age < {bound}").warnings for bound in (10, 20, 200, 30)]
    assert [len(each) for each in warnings] == [0, 0, 1, 0]
