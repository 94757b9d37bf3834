"""Hints for what people write out of habit: each tells what to write here, or plainly that there is no such thing."""

from __future__ import annotations

import pytest

from harken.errors import HarkenError, ParseError, UnavailableError
from harken.language.compiled import Compiler
from harken.language.sql.habits import CHARACTERS, OPERATORS, SIGNS
from harken.language.sql.parser import parse
from unit.deadline import without_hanging

REGULAR = "a regular expression is written x RLIKE"


def rejection(text: str) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        Compiler().compile(text)
    return caught.value


def hint_of(text: str) -> str:
    return rejection(text).hint or ""


def column_of(text: str) -> int | None:
    place = rejection(text).place
    assert place is not None
    return place.column


# Operators and functions of others


@pytest.mark.parametrize("word", ["SIMILAR", "matches", "XOR", "STARTSWITH", "HAS", "eq", "COLLATE", "WHERE"])
@pytest.mark.parametrize("text", ["a {} 'x'", "a NOT {} 'x'"])
def test_an_operator_of_others_is_named_as_such(text: str, word: str) -> None:
    """It is not taken for a misspelt one of ours."""
    error = rejection(text.format(word))
    assert error.message == f"`{word}` is not part of the language"
    assert "did you mean" not in str(error)
    assert error.place is not None
    assert error.place.column == text.index("{") + 1


@pytest.mark.parametrize(
    "text", ["price < 5 order = 'x'", "a = 1 end.x IS NULL", "a = 1 limit IN (1)", "a = date b = 2", "a = 1 match<2"]
)
def test_a_name_that_others_keep_for_an_operator_is_a_name(text: str) -> None:
    error = rejection(text)
    assert error.message.startswith("unexpected `")
    assert error.hint == "join two conditions with AND or OR"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a COLLATE nocase = 'x'", "= and LIKE tell upper from lower case: write lower(x)"),
        ("a MOD 2 = 0", "write x % 2"),
        ("a SIMILAR TO 'x'", REGULAR),
        ("a ~ 'x'", REGULAR),
        ("a !~ 'x'", REGULAR),
        ("a =~ 'x'", REGULAR),
        ("a !=~ 'x'", REGULAR),
        ("a STARTS WITH 'x'", "write x LIKE 'start%'"),
        ("a XOR b", "write (a OR b) AND NOT (a AND b)"),
        ("a ISNULL", "write x IS NULL"),
        ("a NOTNULL", "write x IS NOT NULL"),
        ("a eq 1", "write ="),
        ("CASE WHEN a = 1 THEN b ELSE c END", "there is no CASE"),
        ("CASE a WHEN 1 THEN b END", "there is no CASE"),
        ("CAST(a AS INT) = 1", "there are no casts"),
        ("a::int = 1", "there are no casts"),
        ("a = 1 ORDER BY b", "write only the condition"),
        ("a = 1 WHERE b = 2", "write only the condition"),
        ("a IN (SELECT 1)", "there are no subqueries"),
        ("EXISTS a", "write x IS NOT NULL"),
        ("a = 550e8400-e29b-41d4-a716-446655440000", "a UUID is a string: '550e8400-e29b-41d4-a716-446655440000'"),
        ("a = f50e8400-e29b-41d4-a716-446655440000", "a UUID is a string: 'f50e8400-e29b-41d4-a716-446655440000'"),
    ],
)
def test_operators(text: str, hint: str) -> None:
    assert hint_of(text).startswith(hint)


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ("initcap(a) = 'x'", "initcap", "= and LIKE tell upper from lower case"),
        ("a = ANY (1, 2)", "ANY", "write x IN (…) for a list of values, x LIKE ANY (…) for patterns"),
        ("a > ALL (1, 2)", "ALL", "join conditions with AND"),
        ("len(a) > 3", "len", "write length(x)"),
        ("ifnull(a, 1) = 1", "ifnull", "write coalesce(x, 1)"),
        ("a > now()", "now", "there is no clock"),
        ("a > DATE('2026-01-31')", "DATE", "write DATE '2026-01-31'"),
        ("sqrt(a) > 3", "sqrt", "the functions are lower, upper, trim, "),
    ],
)
def test_functions(text: str, name: str, hint: str) -> None:
    error = rejection(text)
    assert type(error) is ParseError
    assert error.message == f"`{name}(…)` is not part of the language"
    assert (error.hint or "").startswith(hint)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("starts_with(a, 'x')", "write x LIKE 'start%' or startswith(x, 'start')"),
        ("instr(a, 'x')", "write x LIKE '%part%' to search in a string"),
        ("array_contains(a, 'x')", "write tags CONTAINS 'red'"),
        ("EXISTS(a)", "write x IS NOT NULL"),
        ("near(a)", "harken.Engine(operators=[…]) takes them"),
    ],
)
def test_functions_that_could_be_operator_predicates(text: str, hint: str) -> None:
    error = rejection(text)
    assert type(error) is UnavailableError
    assert (error.hint or "").startswith(hint)


def test_a_function_is_no_method() -> None:
    assert hint_of("a.startswith('x')") == "a function is written before its argument: lower(x)"


# Strings joined, several events, conditions on elements of arrays


@pytest.mark.parametrize(
    "text", ["a || 'x' = 'bx'", "a || 'x'", "a = 'x' || 'y'", "a = 1 || b = 2", "a||b = 'x'", "a = 'x'||-1"]
)
def test_two_bars_may_be_meant_to_join_strings(text: str) -> None:
    assert hint_of(text).startswith("or is written OR; strings cannot be joined: write a condition for each part")


def test_one_bar_is_not() -> None:
    assert hint_of("a = 1 | b = 2") == "write OR"


@pytest.mark.parametrize("name", ["concat", "CONCAT_WS"])
def test_a_function_that_joins_strings(name: str) -> None:
    assert hint_of(f"{name}(a, 'x') = 'bx'") == "strings cannot be joined: write a condition for each part"


SEVERAL = "a condition is about one event, and knows nothing of others"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("cpu > 90 FOR 5 minutes", "`FOR` is not part of the language", 10),
        ("cpu > 90 FOR 5 MINUTES BY host", "`FOR` is not part of the language", 10),
        ("cpu > 90 WITHIN 10 MINUTES", "`WITHIN` is not part of the language", 10),
        ("cpu > 90 UNTIL cpu < 70", "`UNTIL` is not part of the language", 10),
        ("cpu > 90 DURING 5", "`DURING` is not part of the language", 10),
        ("(a = 1) THEN (b = 2)", "`THEN` is not part of the language", 9),
        ("(a = 1) FOLLOWED BY (b = 2)", "`FOLLOWED` is not part of the language", 9),
        ("a > 5 ONCE PER 1 DAY", "`ONCE` is not part of the language", 7),
        ("price CHANGED", "`CHANGED` is not part of the language", 7),
        ("a = 'x' HAVING count(*) > 5", "`HAVING` is not part of the language", 9),
        ("count(*) > 5", "`count(…)` is not part of the language", 1),
        ("a = 1 AND COUNT ( * ) > 5", "`COUNT(…)` is not part of the language", 11),
        ("COUNT(DISTINCT x) > 5", "`COUNT(…)` is not part of the language", 1),
        ("count(x) > 5", "`count(…)` is not part of the language", 1),
        ("avg(price) > 3", "`avg(…)` is not part of the language", 1),
        ("lag(price) < price", "`lag(…)` is not part of the language", 1),
    ],
)
def test_a_condition_is_about_one_event(text: str, message: str, column: int) -> None:
    error = rejection(text)
    assert error.message == message
    assert (error.hint or "").startswith(SEVERAL)
    assert column_of(text) == column


def test_the_size_of_a_set_is_what_is_left_of_counting() -> None:
    assert hint_of("count(tags) > 2").endswith("size(tags) counts the values of a set")


@pytest.mark.parametrize("text", ["for = 1", "a = 1 AND until < 5", "during LIKE 'x%'", "within", "changed AND once"])
def test_words_about_several_events_are_names_too(text: str) -> None:
    assert parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "EXISTS(items, x -> x.price > 3)",
        "exists(items.price, x->x > 3)",
        "any_match(items, x => x > 3)",
        "arrayExists(x -> x > 3, items)",
        "a = 1 AND forall(items, x -> (x > 1))",
    ],
)
def test_a_lambda(text: str) -> None:
    hint = "conditions on a path hold within one element of its array: items.price > 3 AND items.qty = 2"
    assert hint_of(text) == hint
    assert parse(hint.partition(": ")[2])


@pytest.mark.parametrize("text", ["lower(a->'b') = 'x'", "lower(a ->> 'b') = 'x'", "a -> b", "abs(a->0) = 1"])
def test_an_arrow_into_json_is_none(text: str) -> None:
    assert hint_of(text) == "a path is written with points: a.b"


# Contradictions


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("tags = 'red' AND tags = 'blue'", "tags CONTAINS 'red' AND tags CONTAINS 'blue'"),
        ("a = 1 AND 'it''s' = tags AND tags = 'b'", "tags CONTAINS 'it''s' AND tags CONTAINS 'b'"),
        ("(x = 1 AND x = 2) AND b = 1", "x CONTAINS 1 AND x CONTAINS 2"),
        ("`a b`.c = 1 AND `a b`.c = 2 AND `a b`.c = 3", "`a b`.c CONTAINS 1 AND `a b`.c CONTAINS 2"),
        ("x = 1 AND x = 2 OR x = 3 AND x = 4", "x CONTAINS 1 AND x CONTAINS 2"),
    ],
)
def test_two_values_of_one_attribute_are_asked_for_by_contains(text: str, written: str) -> None:
    hint = hint_of(text)
    assert "leave no value that meets them all" in hint
    assert hint.endswith(f"; where it may have several values, write {written}")
    assert Compiler().compile(written)


@pytest.mark.parametrize("text", ["x > 5 AND x < 3", "x = 1 AND x <> 1", "x = 1 AND x IS NULL", "x = 1 AND x > 2"])
def test_other_contradictions_are_not_about_sets(text: str) -> None:
    assert "CONTAINS" not in hint_of(text)


# IS


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a IS UNKNOWN", "write x IS NOT TRUE AND x IS NOT FALSE"),
        ("a IS NOT UNKNOWN", "write x IS TRUE OR x IS FALSE"),
        ("a IS NOT MISSING", "write IS NOT NULL"),
        ("a IS DISTINCT FROM 1", "write (x <> 1 OR x IS NULL)"),
        ("a IS NOT DISTINCT FROM 1", "write x = 1"),
        ("a IS 5", "IS asks for NULL, TRUE and FALSE alone; a value is compared with ="),
        ("a IS NOT 'x'", "IS asks for NULL, TRUE and FALSE alone; a value is compared with <>"),
    ],
)
def test_is_asks_for_no_value(text: str, hint: str) -> None:
    assert hint_of(text) == hint


# Names that need backticks


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("user-agent = 'x'", "`user-agent`"),
        ("user-agent LIKE 'x%'", "`user-agent`"),
        ("user-agent", "`user-agent`"),
        ("a = 1 AND cs-uri-stem IN ('x')", "`cs-uri-stem`"),
        ("cs-method IS NULL", "`cs-method`"),
        ("cs-method CONTAINS 'x'", "`cs-method`"),
        ("cs-method ILIKE 'x'", "`cs-method`"),
        ("a = 1 AND cs-method BETWEEN 'x' AND 'y'", "`cs-method`"),
        ("http.user-agent = 'x'", "http.`user-agent`"),
        ("@type = 'x'", "`@type`"),
        ("a = 1\nAND @type = 'x'", "`@type`"),
        ("a.@type = 'x'", "a.`@type`"),
        ("a:b = 1", "`a:b`"),
        ("$ref = 'x'", "`$ref`"),
        ("a$b = 1", "`a$b`"),
        ("#a = 1", "`#a`"),
        ("a/b = 'x'", "`a/b`"),
        ("a.1 = 1", "a.`1`"),
        ("a.in = 1", "a.`in`"),
    ],
)
def test_a_name_that_needs_backticks(text: str, name: str) -> None:
    assert hint_of(text) == f"if this is one name, write it in backticks: {name}"
    assert parse(f"{name} = 1")


@pytest.mark.parametrize("text", ["a = 'x-y' b = 1", "a = @", "a = 1 # b-c"])
def test_what_is_no_name_gets_another_hint(text: str) -> None:
    assert "one name" not in hint_of(text)


@pytest.mark.parametrize("text", ["1a = 1", "a = 0x1F", "a = 1_000", "a = 5L"])
def test_what_starts_with_a_digit(text: str) -> None:
    assert hint_of(text).startswith("a number is written with digits, 1000 or 1.5 or 1e6; a name is written in backt")


# Values and signs


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a = 2026-01-31", "a date is written DATE '2026-01-31'"),
        ("a = 10:30", "a time is written TIMESTAMP"),
        ("a = DATE 2026-01-31", "write the date in quotes"),
        ("a = TIMESTAMP 2026-01-31", "write the time in quotes"),
        ("a = 'it's'", "inside a string a quote is written twice: 'it''s'"),
        ("a = +5", "a number is written without +"),
        ("a = 1, b = 2", "join two conditions with AND or OR"),
        ("a <=> 1", "write =, and OR x IS NULL"),
        ("a === 1", "equality is written with one ="),
        ("a ==-1", "equality is written with one ="),
        ("a := 1", "equality is written with ="),
        ("a NOT = 1", "NOT is written before the whole comparison"),
        ("a->b = 1", "a path is written with points"),
        ("a->>'b' = 1", "a path is written with points"),
        ("a[0] = 1", "a path goes through all elements of an array"),
        ("a = :p", "there are no parameters"),
        ("a ≠ 1", "write <>"),
        ("a = 1 // why", "a comment is written -- to the end of the line"),
        ("a = 1 # why", "a comment is written -- to the end of the line"),
        ("a LIKE %x", "% belongs in a LIKE pattern"),
        ("a LIKE x%", "% belongs in a LIKE pattern"),
        ("a = “x”", "a string is written in straight single quotes"),
    ],
)
def test_values_and_signs(text: str, hint: str) -> None:
    assert hint_of(text).startswith(hint)


@pytest.mark.parametrize(
    ("text", "column"),
    [("a = 1 /* open", 7), ("/* open", 1), ("a /* open = 1 AND 'x", 3), ("a = 1 /* /* it's * /", 7), ("a //* b", 4)],
)
def test_a_comment_that_is_not_closed(text: str, column: int) -> None:
    error = rejection(text)
    assert error.message == "the comment that starts here is not closed"
    assert error.hint == "end it with */"
    assert column_of(text) == column


def test_every_hint_is_a_line() -> None:
    for hint in (*OPERATORS.values(), *SIGNS.values(), *CHARACTERS.values()):
        assert hint
        assert "\n" not in hint


@pytest.mark.parametrize(
    "text",
    ["a-" * 30_000 + "b = 1", "a = " + "1-" * 30_000 + "a", "=" * 60_000, "a " + "@b" * 30_000],
    ids=["hyphens", "differences", "signs", "names"],
)
def test_a_long_text_gets_a_short_hint_in_good_time(text: str) -> None:
    with without_hanging():
        assert len(hint_of(text)) < 200


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("tags CONTAINS ('a', 'b')", "write one CONTAINS for each value, joined with AND or OR"),
        ("category = 'Toy' OR 'Book'", "compare it with an attribute; for one of several values write x IN ('a', 'b')"),
        ("`` = 1", "write the name between the backticks"),
    ],
)
def test_lists_of_values_and_names_that_are_empty(text: str, hint: str) -> None:
    with pytest.raises(HarkenError) as raised:
        parse(text)
    assert raised.value.hint == hint
