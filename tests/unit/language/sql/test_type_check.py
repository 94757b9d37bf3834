"""The check against a schema: every fault of a text, each with its place, for each kind of predicate."""

from __future__ import annotations

import pytest

from harken.errors import CheckError, UnavailableError
from harken.language.sql import check, parse
from harken.schema import EventType, Schema, parse_schema


def faults(text: str, schema: Schema | None) -> list[tuple[int, str]]:
    """The column and the message of every fault."""
    found = []
    for error in check(parse(text), schema, text):
        assert error.place is not None
        assert error.place.column is not None
        found.append((error.place.column, error.message))
    return found


# What fits


@pytest.mark.parametrize(
    "text",
    [
        "category = 'toy' AND category <= 'thing' AND category <> 'lamp'",
        "size < 'large' OR size IN ('small', 'unknown')",
        "colour = other_colour",
        "age < 5 AND age < 5.5 AND age > -1 AND age < count AND age < price",
        "age = 200",
        "price BETWEEN 1 AND age",
        "1 BETWEEN age AND price",
        "title = 'x' AND title LIKE 'x%' AND category LIKE 't%'",
        "sold AND sold = TRUE AND NOT sold",
        "ends < TIMESTAMP '2026-01-01' AND day = DATE '2026-01-01'",
        "title IS NULL AND colour IS NOT NULL",
        "title CONTAINS 'x' AND colour CONTAINS 'red'",
        "1 = 2 AND TRUE",
    ],
)
def test_what_fits_has_no_faults(text: str, schema: Schema) -> None:
    assert faults(text, schema) == []


def test_without_a_schema_types_are_free() -> None:
    assert faults("a = 1 AND a = 'x' AND a AND a LIKE 'x'", None) == []


def test_event_type_is_an_attribute_of_every_schema_with_event_types() -> None:
    schema = Schema(event_types={"sale": EventType("sale", {})})
    assert faults("event_type = 'sale'", schema) == []
    assert faults("event_type = 'rental'", schema) == [(14, "'rental' is not a value of `event_type`")]


# Names


@pytest.mark.parametrize(
    "text",
    [
        "{} = 1",
        "1 = {}",
        "price < {}",
        "{} BETWEEN 1 AND 2",
        "price BETWEEN 1 AND {}",
        "{} IN (1)",
        "{} LIKE 'x'",
        "{} IS NULL",
        "{} CONTAINS 1",
        "{}",
        "NOT (sold AND {})",
    ],
)
def test_an_unknown_name_in_any_predicate(text: str, schema: Schema) -> None:
    assert faults(text.format("prise"), schema) == [
        (text.index("{}") + 1, "the schema has no attribute `prise`"),
    ]


def test_a_name_that_is_near_is_guessed(schema: Schema) -> None:
    (error,) = check(parse("prise < 5"), schema)
    assert error.hint == "did you mean `price`?"


def test_where_none_is_near_some_are_named(schema: Schema) -> None:
    (error,) = check(parse("zzz < 5"), schema)
    names = "category size colour other_colour age count price title".split()
    assert (
        error.hint
        == f"the schema has {', '.join(f'`{name}`' for name in names)}, …; a string is written in single quotes"
    )


def test_where_none_is_near_and_they_are_few_all_are_named() -> None:
    schema = parse_schema("[attributes]\n" + "".join(f'a{n} = "float"\n' for n in range(8)))
    (error,) = check(parse("zzz < 5"), schema)
    assert (
        error.hint == f"the schema has {', '.join(f'`a{n}`' for n in range(8))}; a string is written in single quotes"
    )


def test_names_mind_their_case(schema: Schema) -> None:
    assert faults("Price < 5", schema) == [(1, "the schema has no attribute `Price`")]


@pytest.mark.parametrize("name", ["Price", "PRICE", "PRISE"])
def test_a_name_in_another_case_is_guessed(name: str, schema: Schema) -> None:
    (error,) = check(parse(f"{name} < 5"), schema)
    assert error.hint == "did you mean `price`?"


def test_a_name_that_needs_backticks_is_guessed_as_it_is_written() -> None:
    schema = parse_schema('[attributes]\n"`user-agent`" = "string"\n')
    (error,) = check(parse("user_agent = 'x'"), schema)
    assert error.hint == "did you mean `user-agent`?"
    (error,) = check(parse("zzz = 'x'"), schema)
    assert error.hint == "the schema has `user-agent`; a string is written in single quotes"


def test_there_is_no_clock(schema: Schema) -> None:
    (error,) = check(parse("ends > current_timestamp"), schema)
    assert error.hint == "there is no clock: write the time itself, TIMESTAMP '2026-01-31 12:00:00'"


def test_a_path_into_an_attribute_is_another_name(schema: Schema) -> None:
    assert faults("price.eur < 5", schema) == [(1, "the schema has no attribute `price.eur`")]


def test_an_empty_schema_names_nothing() -> None:
    (error,) = check(parse("a = 1"), Schema())
    assert error.hint is None


def test_a_misspelt_event_type_is_guessed() -> None:
    (error,) = check(parse("event_typ = 'sale'"), Schema(event_types={"sale": EventType("sale", {})}))
    assert error.hint == "did you mean `event_type`?"


# Kinds


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("price < 'cheap'", 9, "`price` (number) does not compare with the string 'cheap'"),
        ("'cheap' > price", 1, "`price` (number) does not compare with the string 'cheap'"),
        ("title = 5", 9, "`title` (string) does not compare with the number 5"),
        ("sold = 'yes'", 8, "`sold` (boolean) does not compare with the string 'yes'"),
        ("age = TRUE", 7, "`age` (integer 0..150) does not compare with the boolean TRUE"),
        ("ends < '2026-01-01'", 8, "`ends` (ISO 8601 timestamp) does not compare with the string '2026-01-01'"),
        (
            "day = TIMESTAMP '2026-01-01'",
            7,
            "`day` (date YYYY-MM-DD) does not compare with the timestamp TIMESTAMP '2026-01-01 00:00:00'",
        ),
        ("price < title", 9, "`price` (number) does not compare with `title` (string)"),
        ("1 = 'x'", 5, "the number 1 does not compare with the string 'x'"),
        ("price BETWEEN 1 AND 'x'", 21, "`price` (number) does not compare with the string 'x'"),
        ("price NOT BETWEEN 'x' AND 1", 19, "`price` (number) does not compare with the string 'x'"),
        ("1 BETWEEN title AND 2", 1, "`title` (string) does not compare with the number 1"),
        ("price IN (1, 'x', 2)", 14, "`price` (number) does not compare with the string 'x'"),
        ("title CONTAINS 5", 16, "`title` (string) does not compare with the number 5"),
        ("price LIKE '1%'", 1, "LIKE is for strings, and this is `price` (number)"),
        ("title", 1, "only a boolean can stand alone as a condition, and this is `title` (string)"),
        ("NOT price", 5, "only a boolean can stand alone as a condition, and this is `price` (number)"),
    ],
)
def test_kinds_that_do_not_fit(text: str, column: int, message: str, schema: Schema) -> None:
    assert faults(text, schema) == [(column, message)]


# Domains with a list of values


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("category <= 'Toy'", 13, "'Toy' is not a value of `category`"),
        ("'Toy' >= category", 1, "'Toy' is not a value of `category`"),
        ("size BETWEEN 'small' AND 'huge'", 26, "'huge' is not a value of `size`"),
        ("colour NOT IN ('red', 'pink')", 23, "'pink' is not a value of `colour`"),
        ("colour CONTAINS 'pink'", 17, "'pink' is not a value of `colour`"),
        (
            "colour = size",
            10,
            "`colour` (one of 'red', 'green', 'blue') does not compare with"
            " `size` (one of 'small', 'large', 'unknown')",
        ),
        (
            "category = title",
            12,
            "`category` (one of 5 kinds of 'thing') does not compare with `title` (string)",
        ),
        (
            "title = category",
            9,
            "`title` (string) does not compare with `category` (one of 5 kinds of 'thing')",
        ),
    ],
)
def test_values_outside_their_domain(text: str, column: int, message: str, schema: Schema) -> None:
    assert faults(text, schema) == [(column, message)]


def test_a_value_that_is_near_is_guessed(schema: Schema) -> None:
    (error,) = check(parse("category = 'Toy'"), schema)
    assert error.hint == "did you mean `toy`?"


def test_where_no_value_is_near_they_are_described(schema: Schema) -> None:
    (error,) = check(parse("colour = 'zzz'"), schema)
    assert error.hint == "expected one of 'red', 'green', 'blue' (domain `colour`), got 'zzz'"


# What is not available


def test_operators_are_not_available() -> None:
    (error,) = check(parse("sold AND near('Bronx', ?d)"), None, "sold AND near('Bronx', ?d)")
    assert isinstance(error, UnavailableError)
    assert error.message == "the operator `near` is not available: this engine has no operators"
    assert error.place is not None
    assert error.place.column == 10


@pytest.mark.parametrize("text", ["?d < 5", "5 < ?d", "price BETWEEN 1 AND ?d", "price < 2 * ?d", "?d IN (1, 2)"])
def test_variables_are_not_available(text: str) -> None:
    assert faults(text, None) == [
        (text.index("?") + 1, "the variable ?d is not available: this engine has no operator that could bind it"),
    ]


def test_what_a_variable_is_compared_with_is_not_judged(schema: Schema) -> None:
    assert faults("?d < 'x' AND 5 > ?d AND ?d = price", schema) == [
        (column, "the variable ?d is not available: this engine has no operator that could bind it")
        for column in (1, 18, 25)
    ]


# All of them


def test_all_faults_are_listed_in_the_order_of_the_text(schema: Schema) -> None:
    text = "prise < 5 OR NOT (title AND colour IN ('red', 'pink', 'grey')) OR near(price)"
    assert faults(text, schema) == [
        (1, "the schema has no attribute `prise`"),
        (19, "only a boolean can stand alone as a condition, and this is `title` (string)"),
        (47, "'pink' is not a value of `colour`"),
        (55, "'grey' is not a value of `colour`"),
        (67, "the operator `near` is not available: this engine has no operators"),
    ]


def test_places_in_a_text_of_several_lines(schema: Schema) -> None:
    text = "sold\nAND price\n  < 'x'"
    (error,) = check(parse(text), schema, text)
    assert isinstance(error, CheckError)
    assert error.place is not None
    assert (error.place.line, error.place.column) == (3, 5)
    assert error.excerpt == "  < 'x'\n    ^"


def test_without_the_text_faults_have_no_place() -> None:
    (error,) = check(parse("a = 1"), parse_schema('[attributes]\nb = "float"\n'))
    assert error.place is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ends < '2026-01-01'", "write TIMESTAMP '2026-01-01'"),
        ("sold = 'true'", "write TRUE, without quotes"),
        ("price < '5'", "write 5, without quotes"),
        ("price < 'cheap'", None),
        ("title = 5", "write '5', in quotes"),
        ("title IN ('x', 1.5)", "write '1.5', in quotes"),
        ("title = TRUE", None),
        ("sold = 1", "write TRUE"),
        ("sold = 0", "write FALSE"),
        ("sold = 2", None),
        ("ends < DATE '2026-01-31'", "write TIMESTAMP '2026-01-31 00:00:00'"),
        ("day = TIMESTAMP '2026-01-31 12:00:00'", "write DATE '2026-01-31'"),
        ("day = 20260131", None),
        ("colour = red", "a string is written in single quotes: 'red'"),
    ],
)
def test_a_value_in_the_wrong_clothes(text: str, hint: str | None) -> None:
    schema = parse_schema(
        '[domains.colour]\ntype = "enumerated"\nvalues = ["red"]\n'
        '[attributes]\nends = "timestamp"\nsold = "boolean"\nprice = "float"\ncolour = "colour"\n'
        'title = "string"\nday = "date"\n'
    )
    (error,) = check(parse(text), schema)
    assert error.hint == hint
