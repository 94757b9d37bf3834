"""The parser: what each text stands for, and for each kind of error its message, its place and its hint."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from harken.errors import LimitError, ParseError
from harken.language.ast import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Constant,
    Contains,
    Expression,
    Function,
    Holds,
    In,
    IsNull,
    IsTruth,
    Like,
    Not,
    Or,
    RLike,
    Variable,
    leaves,
    predicates,
)
from harken.language.sql.parser import parse
from harken.limits import Limits
from unit.deadline import without_hanging

A, B, C = (Attribute((name,)) for name in "abc")
ONE, TWO = Constant(1), Constant(2)
LOWER_A = Function("lower", (A,))


def constant_of(text: str) -> Constant:
    """The constant in `a = text`."""
    comparison = parse(f"a = {text}")
    assert isinstance(comparison, Comparison)
    assert isinstance(comparison.right, Constant)
    return comparison.right


# Predicates


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a = 1", Comparison(A, "=", ONE)),
        ("a <> 1", Comparison(A, "<>", ONE)),
        ("a != 1", Comparison(A, "<>", ONE)),
        ("a < 1", Comparison(A, "<", ONE)),
        ("a <= 1", Comparison(A, "<=", ONE)),
        ("a > 1", Comparison(A, ">", ONE)),
        ("a >= 1", Comparison(A, ">=", ONE)),
        ("1 < a", Comparison(ONE, "<", A)),
        ("a < b", Comparison(A, "<", B)),
        ("1 = 2", Comparison(ONE, "=", TWO)),
        ("a BETWEEN 1 AND b", Between(A, ONE, B)),
        ("a NOT BETWEEN 1 AND 2", Not(Between(A, ONE, TWO))),
        ("a IN (1)", In(A, (ONE,))),
        ("a IN (1, 'x', TRUE)", In(A, (ONE, Constant("x"), Constant(True)))),
        ("a NOT IN (1, 2)", Not(In(A, (ONE, TWO)))),
        ("a LIKE 'x%'", Like(A, Constant("x%"))),
        ("a NOT LIKE 'x%'", Not(Like(A, Constant("x%")))),
        ("a LIKE 'x!%' ESCAPE '!'", Like(A, Constant("x!%"), "!")),
        ("a IS NULL", IsNull(A)),
        ("a IS NOT NULL", Not(IsNull(A))),
        ("a CONTAINS 1", Contains(A, ONE)),
        ("a NOT CONTAINS 1", Not(Contains(A, ONE))),
        ("a", Holds(A)),
        ("TRUE", Holds(Constant(True))),
        ("false", Holds(Constant(False))),
        ("near('Bronx', ?d, a)", Call("near", (Constant("Bronx"), Variable("d"), A))),
        ("near()", Call("near", ())),
        ("a RLIKE '^x+'", RLike(A, Constant("^x+"))),
        ("a NOT REGEXP 'x'", Not(RLike(A, Constant("x")))),
        ("regexp_like(a, 'x')", RLike(A, Constant("x"))),
        ("a ILIKE 'X%'", Like(LOWER_A, Constant("x%"))),
        ("a NOT ILIKE 'x!%' ESCAPE '!'", Not(Like(LOWER_A, Constant("x!%"), "!"))),
        ("a LIKE ANY ('x')", Like(A, Constant("x"))),
        ("a LIKE ANY ('x', 'y')", Or((Like(A, Constant("x")), Like(A, Constant("y"))))),
        ("a like some ('x', 'y')", Or((Like(A, Constant("x")), Like(A, Constant("y"))))),
        ("a LIKE ALL ('x', 'y')", And((Like(A, Constant("x")), Like(A, Constant("y"))))),
        ("a NOT LIKE ANY ('x', 'y')", Or((Not(Like(A, Constant("x"))), Not(Like(A, Constant("y")))))),
        ("a NOT LIKE ALL ('x', 'y')", And((Not(Like(A, Constant("x"))), Not(Like(A, Constant("y")))))),
        ("a ILIKE ANY ('X', 'y')", Or((Like(LOWER_A, Constant("x")), Like(LOWER_A, Constant("y"))))),
        ("startswith(a, '5%_\\')", Like(A, Constant("5\\%\\_\\\\%"))),
        ("endswith(a, 'x')", Like(A, Constant("%x"))),
        ("contains(a, 'x')", Like(A, Constant("%x%"))),
        ("CONTAINS(lower(a), 'x')", Like(LOWER_A, Constant("%x%"))),
        ("a IS TRUE", IsTruth(Holds(A), True)),
        ("a IS NOT FALSE", Not(IsTruth(Holds(A), False))),
        ("(a OR b) IS FALSE", IsTruth(Or((Holds(A), Holds(B))), False)),
        ("a = 1 IS TRUE", IsTruth(Comparison(A, "=", ONE), True)),
        ("NOT a IS TRUE", Not(IsTruth(Holds(A), True))),
        ("cidr_contains('10.0.0.0/8', a)", Holds(Function("cidr_contains", (Constant("10.0.0.0/8"), A)))),
        ("coalesce(a, FALSE)", Holds(Function("coalesce", (A, Constant(False))))),
        ("LOWER(a) = 'x'", Comparison(LOWER_A, "=", Constant("x"))),
        ("length(trim(a)) < 5", Comparison(Function("length", (Function("trim", (A,)),)), "<", Constant(5))),
        ("substr(a, 1, 2) IN ('x')", In(Function("substring", (A, ONE, TWO)), (Constant("x"),))),
        ("abs(a - b) > 1", Comparison(Function("abs", (Arithmetic(A, "-", B),)), ">", ONE)),
        ("a % 2 = 1", Comparison(Arithmetic(A, "%", TWO), "=", ONE)),
        ("-a < b", Comparison(Arithmetic(Constant(0), "-", A), "<", B)),
    ],
)
def test_predicates(text: str, expression: Expression) -> None:
    assert parse(text) == expression


def test_arithmetic_over_variables() -> None:
    two_e = Arithmetic(TWO, "*", Variable("e"))
    assert parse("?d < 2 * ?e + 1") == Comparison(Variable("d"), "<", Arithmetic(two_e, "+", ONE))


def test_arithmetic_of_one_level_groups_to_the_left() -> None:
    left = Arithmetic(Variable("x"), "-", Variable("y"))
    assert parse("?x - ?y - 1 = a") == Comparison(Arithmetic(left, "-", ONE), "=", A)


def test_a_minus_before_a_variable_subtracts_from_zero() -> None:
    assert parse("-?x < 1") == Comparison(Arithmetic(Constant(0), "-", Variable("x")), "<", ONE)


# Names


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("A", ("A",)),
        ("_a1", ("_a1",)),
        ("été", ("été",)),
        ("seller.country", ("seller", "country")),
        ("`a.b`", ("a.b",)),
        ("`a.b`.c", ("a.b", "c")),
        ("`a``b`", ("a`b",)),
        ("`and`", ("and",)),
        ("a.`IN`.b", ("a", "IN", "b")),
        ("a . b", ("a", "b")),
    ],
)
def test_names(text: str, path: tuple[str, ...]) -> None:
    assert parse(text) == Holds(Attribute(path))


@pytest.mark.parametrize(
    "name",
    ["date", "timestamp", "contains", "escape", "DATE", "Contains", "ilike", "rlike", "regexp", "any", "all", "lower"],
)
@pytest.mark.parametrize(
    "text",
    [
        "{} = 1",
        "1 = {}",
        "{}",
        "NOT {}",
        "a AND {}",
        "{} OR a",
        "{}.x = 1",
        "x.{} = 1",
        "{} CONTAINS 1",
        "{} NOT CONTAINS 1",
        "{} LIKE 'a!%' ESCAPE '!'",
        "{} IN (1)",
        "{} IS NULL",
        "{} BETWEEN 1 AND 2",
        "1 BETWEEN {} AND 2",
        "({}) = 1",
    ],
)
def test_common_words_of_the_language_are_names_too(text: str, name: str) -> None:
    assert parse(text.format(name)) == parse(text.format(f"`{name}`"))


def test_a_word_is_a_name_and_a_keyword_in_one_text() -> None:
    day = Constant(date(2026, 1, 1))
    assert parse("date = DATE '2026-01-01'") == Comparison(Attribute(("date",)), "=", day)


@pytest.mark.parametrize("word", ["and", "or", "not", "in", "like", "between", "is", "null", "true", "false"])
def test_other_words_of_the_language_are_no_names(word: str) -> None:
    with pytest.raises(ParseError):
        parse(f"x.{word} = 1")


def test_keywords_in_any_case() -> None:
    assert parse("a iS nOt NuLL And Not B lIKe 'x'") == parse("a IS NOT NULL AND NOT B LIKE 'x'")


def test_a_letter_that_is_only_capitalised_like_a_keyword_s_is_none() -> None:
    assert parse("ıs") == Holds(Attribute(("ıs",)))


# Constants


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("5", 5),
        ("007", 7),
        ("-5", -5),
        ("- 5", -5),
        ("- -5", 5),
        ("-(-5)", 5),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("5.0", 5.0),
        ("5.", 5.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("1.5e+3", 1500.0),
        ("9223372036854775808.0", 2.0**63),
        ("0.1", 0.1),
        ("''", ""),
        ("'it''s'", "it's"),
        ("'a\nb'", "a\nb"),
        (r"'a\n'", r"a\n"),
        ("'-- no comment'", "-- no comment"),
        ("TRUE", True),
        ("False", False),
        ("DATE '2026-02-28'", date(2026, 2, 28)),
        ("TIMESTAMP '2026-01-03'", datetime(2026, 1, 3, tzinfo=UTC)),
        ("TIMESTAMP '2026-01-03 04:05:06.000007'", datetime(2026, 1, 3, 4, 5, 6, 7, UTC)),
        ("TIMESTAMP '2026-01-03T01:00:00+02:00'", datetime(2026, 1, 2, 23, tzinfo=UTC)),
        ("timestamp '2026-01-03T01:00:00Z'", datetime(2026, 1, 3, 1, tzinfo=UTC)),
    ],
)
def test_constants(text: str, value: object) -> None:
    found = constant_of(text).value
    assert found == value
    assert type(found) is type(value)


# Precedence


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("a AND b OR c", "(a AND b) OR c"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a = 1", "NOT (a = 1)"),
        ("NOT NOT a", "NOT (NOT a)"),
        ("a NOT BETWEEN 1 AND 2 AND b", "(NOT (a BETWEEN 1 AND 2)) AND b"),
        ("?x + ?y * 2 = 1", "?x + (?y * 2) = 1"),
        ("((a))", "a"),
        ("(a) = (1)", "a = 1"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert parse(text) == parse(same)


def test_parentheses_decide() -> None:
    assert parse("(a OR b) AND c") == And((Or((Holds(A), Holds(B))), Holds(C)))


def test_nested_conjunctions_are_one() -> None:
    assert parse("a AND (b AND (c AND a))") == And((Holds(A), Holds(B), Holds(C), Holds(A)))


def test_nested_disjunctions_are_one() -> None:
    assert parse("(a OR b) OR c") == Or((Holds(A), Holds(B), Holds(C)))


# Blanks and comments


@pytest.mark.parametrize(
    "text",
    [
        "a=1",
        "\ta\r\n=\n1 ",
        "a = 1 -- the end",
        "-- the start\na = 1",
        "a /* here */ = /* * ** / */ 1",
        "a /* two\nlines */ = 1",
        "a /* it's - > */ = 1",
        "a =-- close\n1",
    ],
)
def test_blanks_and_comments_mean_nothing(text: str) -> None:
    assert parse(text) == Comparison(A, "=", ONE)


# Places


def test_leaves_remember_where_they_stood() -> None:
    text = "a.b = -5 AND c IN ('x', DATE '2026-01-01')"
    found = [text[leaf.at :] for predicate, _ in predicates(parse(text)) for leaf in leaves(predicate)]
    assert [each[:5] for each in found] == ["a.b =", "-5 AN", "c IN ", "'x', ", "DATE "]


# Errors: the text, its message, line and column, hint

EXPECTED_OPERAND = "expected an attribute or a value or `(`"
IN_PARENTHESES = "IN takes values in parentheses, x IN (1, 2); to ask for a value of a set write tags CONTAINS 'red'"
JOIN = "join two conditions with AND or OR"
TWO_COMPARISONS = "join two comparisons with AND: low < x AND x < high"


@pytest.mark.parametrize(
    ("text", "message", "column", "hint"),
    [
        ("", "the text is empty", 1, EXPECTED_OPERAND),
        ("  \t", "the text is empty", 1, EXPECTED_OPERAND),
        ("a =  ", "the text ends too early", 4, EXPECTED_OPERAND),
        ("a AND", "the text ends too early", 6, EXPECTED_OPERAND),
        ("NOT", "the text ends too early", 4, EXPECTED_OPERAND),
        ("(a", "the text ends too early", 3, "expected `)`"),
        ("a IN (1", "the text ends too early", 8, "expected `)` or `,`"),
        ("a NOT IN", "the text ends too early", 9, "expected `(`"),
        ("a BETWEEN 1", "the text ends too early", 12, "expected AND"),
        ("a)", "unexpected `)`", 2, "expected the end"),
        ("a IN (1,)", "unexpected `)`", 9, EXPECTED_OPERAND),
        ("a IN 5", "unexpected `5`", 6, IN_PARENTHESES),
        ("'x' IN tags", "unexpected `tags`", 8, IN_PARENTHESES),
        ("a NOT 5", "unexpected `5`", 7, "expected BETWEEN or IN or LIKE"),
        ("a OR OR b", "unexpected `OR`", 6, "a condition is missing before `OR`; as a name it is written in backticks"),
        ("and = 5", "unexpected `and`", 1, "a condition is missing before `and`; as a name it is written in backticks"),
        ("in = 5", "unexpected `in`", 1, "`in` is a word of the language; as a name it is written in backticks"),
        ("a.in = 5", "unexpected `in`", 3, "if this is one name, write it in backticks: a.`in`"),
        ("a. = 5", "unexpected `=`", 4, "expected a name"),
        ("a IS NOT", "the text ends too early", 9, "expected FALSE or NULL or TRUE"),
        ("a BETWEEN 1 OR 2", "unexpected `OR`", 13, "expected AND"),
        ("a == 1", "unexpected `=`", 4, "equality is written with one ="),
        ("a => 1", "unexpected `>`", 4, "write >="),
        ("a =< 1", "unexpected `<`", 4, "write <="),
        ("a >< 1", "unexpected `<`", 4, "write <>"),
        ("1 < x < 5", "unexpected `<`", 7, TWO_COMPARISONS),
        ("a b", "unexpected `b`", 3, JOIN),
        ("a = 1 b = 2", "unexpected `b`", 7, JOIN),
        ("a = 1 (b)", "unexpected `(`", 7, JOIN),
        ("a = 1 NOT b", "unexpected `NOT`", 7, JOIN),
        ("a = 1 ADN b", "unexpected `ADN`", 7, "did you mean `AND`?"),
        ("a = 1 ADN NOT b", "unexpected `ADN`", 7, "did you mean `AND`?"),
        ("a lik 'x'", "unexpected `lik`", 3, "did you mean `LIKE`?"),
        ("a betwen 1 AND 2", "unexpected `betwen`", 3, "did you mean `BETWEEN`?"),
        ("a = b " + "c" * 40, "unexpected `" + "c" * 40 + "`", 7, JOIN),
        ("a = " + "b" * 41 + " " + "c" * 41, "unexpected `" + "c" * 37 + "...`", 47, JOIN),
    ],
)
def test_a_token_that_cannot_stand_there(text: str, message: str, column: int, hint: str) -> None:
    assert_rejected(text, message, column, hint)


@pytest.mark.parametrize(
    ("text", "character", "column", "hint"),
    [
        ('a = "x"', '"', 5, "a string is written in single quotes, 'like this', and a name in backticks, `like this`"),
        ("a = 'x", "'", 5, "the string that starts here is not closed; inside a string a quote is written twice, ''"),
        ("`a = 1", "`", 1, "the name that starts here is not closed"),
        ("a && b", "&", 3, "write AND"),
        ("a || b", "|", 3, "or is written OR; strings cannot be joined: write a condition for each part"),
        ("a | b", "|", 3, "write OR"),
        ("!a", "!", 1, "write NOT, or <> for not equal"),
        ("a = ?", "?", 5, "a variable is a question mark and a name: ?distance"),
        ("a = 1;", ";", 6, "a subscription is one expression, without a semicolon"),
        ("a = $1", "$", 5, "there are no parameters: write the value itself"),
        ("a = \0", "\0", 5, None),
    ],
)
def test_a_character_that_starts_nothing(text: str, character: str, column: int, hint: str | None) -> None:
    assert_rejected(text, f"unexpected character {character!r}", column, hint)


@pytest.mark.parametrize(
    ("text", "message", "column", "hint"),
    [
        ("a = NULL", "= NULL is never true", 5, "write a IS NULL"),
        ("NULL = a", "= NULL is never true", 1, "write a IS NULL"),
        ("a.b <> NULL", "<> NULL is never true", 8, "write a.b IS NOT NULL"),
        ("1 < NULL", "< NULL is never true", 5, "write attribute IS NULL"),
        ("NULL", "NULL is not a condition", 1, "write attribute IS NULL"),
        ("a AND NULL", "NULL is not a condition", 7, "write attribute IS NULL"),
        ("a IN (1, NULL)", "NULL in IN is never equal to anything", 10, "write a IN (…) OR a IS NULL"),
        ("a IN (NULL)", "NULL in IN is never equal to anything", 7, "write a IS NULL"),
        (
            "a NOT IN (1, NULL)",
            "NOT IN with NULL in its list is never true",
            14,
            "leave NULL out: NOT IN is true only where a has a value",
        ),
        ("a NOT IN (NULL)", "NOT IN with NULL in its list is never true", 11, "write a IS NOT NULL"),
        ("a LIKE NULL", "LIKE NULL is never true", 8, "write a IS NULL"),
        (
            "a CONTAINS NULL",
            "a set of values never has NULL in it",
            12,
            "write a IS NULL to ask whether it has no value at all",
        ),
        ("a BETWEEN NULL AND 1", "NULL is not a value to compare with", 11, "write attribute IS NULL"),
    ],
)
def test_null_where_it_makes_no_sense(text: str, message: str, column: int, hint: str) -> None:
    assert_rejected(text, message, column, hint)


@pytest.mark.parametrize(
    ("text", "message", "column", "hint"),
    [
        (
            "5",
            "a condition is expected here, not a value",
            1,
            "compare it with an attribute; for one of several values write x IN ('a', 'b')",
        ),
        (
            "a AND 'x'",
            "a condition is expected here, not a value",
            7,
            "compare it with an attribute; for one of several values write x IN ('a', 'b')",
        ),
        (
            "NOT (?x)",
            "a condition is expected here, not a value",
            6,
            "compare it with an attribute; for one of several values write x IN ('a', 'b')",
        ),
        ("(a = 1) = TRUE", "a value is expected here, not a condition", 2, "join conditions with AND or OR"),
        ("a IN (1, (b = 1))", "a value is expected here, not a condition", 11, "join conditions with AND or OR"),
        ("b < (NOT a)", "a value is expected here, not a condition", 10, "join conditions with AND or OR"),
        ("5 IS NULL", "IS NULL asks about an attribute", 1, None),
        ("NULL IS NULL", "IS NULL asks about an attribute", 1, None),
        ("lower(a) IS NULL", "IS NULL asks about an attribute", 1, None),
        ("a LIKE ANY ()", "LIKE ANY needs at least one pattern", 8, None),
        ("a ILIKE ALL ('x', 5)", "ILIKE takes a pattern in quotes", 19, None),
        ("a LIKE ANY ('x', NULL)", "LIKE NULL is never true", 18, "write a IS NULL"),
        ("a RLIKE b", "RLIKE takes a pattern in quotes", 9, None),
        ("a ILIKE 'xA%' ESCAPE 'A'", "ILIKE takes no capital letter for its escape", 1, None),
        ("startswith(a, b)", "startswith takes a string in quotes", 15, None),
        ("contains(a)", "`contains` takes 2 arguments, not 1", 1, None),
        ("lower(a, b) = 'x'", "`lower` takes 1 argument, not 2", 1, None),
        ("b = 1 AND substring(a) = 'x'", "`substring` takes 2 to 3 arguments, not 1", 11, None),
        ("coalesce() = 1", "`coalesce` takes 1 or more arguments, not 0", 1, None),
        ("substring(a, b) = 'x'", "the position that `substring` takes is written in the text", 14, None),
        ("substring(a, 'x') = 'x'", "the position that `substring` takes is a number, and this is a string", 14, None),
        ("lower(length(a)) = 'x'", "the text that `lower` takes is a string, and this is a number", 7, None),
        ("size(lower(a)) = 1", "the array that `size` takes is an attribute", 6, None),
        ("lower('X') = a", "a function of constants alone", 1, "write the result"),
        (
            "length(a)",
            "a condition is expected here, not a value",
            1,
            "compare it with an attribute; for one of several values write x IN ('a', 'b')",
        ),
        ("'x' CONTAINS 1", "CONTAINS asks about an attribute", 1, None),
        ("a CONTAINS b", "CONTAINS takes a constant", 12, None),
        ("a IN (1, b)", "IN takes constants", 10, None),
        ("b = 1 AND a IN ()", "IN needs at least one value", 11, None),
        ("a LIKE b", "LIKE takes a pattern in quotes", 8, None),
        ("a LIKE 5", "LIKE takes a pattern in quotes", 8, None),
        ("a LIKE 'x' ESCAPE b", "ESCAPE takes one character in quotes", 19, None),
        ("a LIKE 'x' ESCAPE 5", "ESCAPE takes one character in quotes", 19, None),
        ("a LIKE 'x' ESCAPE 'ab'", "ESCAPE takes one character in quotes", 19, None),
        ("a LIKE 'x' ESCAPE ''", "ESCAPE takes one character in quotes", 19, None),
    ],
)
def test_a_part_of_the_wrong_sort(text: str, message: str, column: int, hint: str | None) -> None:
    assert_rejected(text, message, column, hint)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a = DATE '2026-02-30'", "'2026-02-30' is not a date of the form YYYY-MM-DD", 10),
        ("a = DATE '20260228'", "'20260228' is not a date of the form YYYY-MM-DD", 10),
        ("a = TIMESTAMP 'noon'", "'noon' is not an ISO 8601 timestamp within the years 1 to 9999", 15),
        ("a = 1e999", "a number has to be finite and within the range of binary64", 5),
        ("a = -1e999", "a number has to be finite and within the range of binary64", 5),
    ],
)
def test_a_constant_that_is_none(text: str, message: str, column: int) -> None:
    assert_rejected(text, message, column, None)


STRAY = "the escape before 'c' is stray: only %, _ and the escape need one"
FINAL = "the pattern ends with an escape that escapes nothing"
DOUBLE = r"in this pattern a backslash is written twice: \\"


@pytest.mark.parametrize(
    ("text", "message", "column", "hint"),
    [
        (r"a LIKE '%\cmd.exe'", STRAY, 10, DOUBLE),
        (r"a LIKE '%\\x\cmd.exe'", STRAY, 13, DOUBLE),
        (r"a LIKE 'it''s\cmd.exe'", STRAY, 14, DOUBLE),
        ("a LIKE '\n%\\cmd.exe'", STRAY, 2, DOUBLE),
        ("a LIKE 'x\\'", FINAL, 10, DOUBLE),
        ("a LIKE '%!cmd' ESCAPE '!'", STRAY, 10, "in this pattern ! itself is written twice: !!"),
    ],
)
def test_a_stray_escape_is_pointed_at(text: str, message: str, column: int, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.place is not None
    assert caught.value.place.column == column


RE2 = "a regular expression is one of RE2's syntax"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a RLIKE '(ab'", "missing ), at `(ab`", 10),
        ("a RLIKE 'it''s [a'", "missing ], at `[a`", 16),
        ("a RLIKE 'x(?=y)'", "invalid perl operator, at `(?=`", 11),
        (r"regexp(a, 'x\1')", r"invalid escape sequence, at `\1`", 13),
        ("a RLIKE 'x**'", "bad repetition operator, at `**`", 11),
        ("a RLIKE 'é['", "missing ], at `[`", 11),
        ("a RLIKE '\ud800'", "the regular expression is not text", 10),
    ],
)
def test_a_regular_expression_that_is_none_is_pointed_at(text: str, message: str, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.message.removeprefix("the regular expression cannot be read: ") == message
    assert caught.value.hint == RE2
    assert caught.value.place is not None
    assert caught.value.place.column == column


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "1" + "0" * 5000])
def test_an_integer_beyond_64_bits(number: str) -> None:
    with pytest.raises(ParseError, match="does not fit in 64 bits") as caught:
        parse(f"a = {number}")
    assert caught.value.place is not None
    assert caught.value.place.column == 5
    assert "write it with a point to make it a float" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message", "column", "hint"),
    [
        ("a = ?x + 'y'", "arithmetic is over numbers", 10, None),
        ("a = -TRUE", "arithmetic is over numbers", 6, None),
        ("lower(a) + 1 = b", "arithmetic is over numbers", 1, None),
        ("(a = 1) + 1 = b", "a value is expected here, not a condition", 2, "join conditions with AND or OR"),
        ("a = NULL + 1", "NULL is not a value to compare with", 5, "write attribute IS NULL"),
        ("a = 1 + 2", "arithmetic over constants alone", 5, "write the result"),
        ("near(?x + 1)", "an operator takes attributes, constants and variables", 6, None),
    ],
)
def test_arithmetic_where_there_is_none(text: str, message: str, column: int, hint: str | None) -> None:
    assert_rejected(text, message, column, hint)


def test_a_place_in_a_text_of_several_lines() -> None:
    with pytest.raises(ParseError) as caught:
        parse("a = 1\nAND b = 'é\n'\n  ADN c")
    error = caught.value
    assert error.place is not None
    assert (error.place.line, error.place.column) == (4, 3)
    assert error.excerpt == "  ADN c\n  ^"


def assert_rejected(text: str, message: str, column: int, hint: str | None) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert error.message == message
    assert error.place is not None
    assert (error.place.line, error.place.column) == (1, column)
    assert error.hint == hint


# Limits


@pytest.mark.parametrize(
    ("text", "limits", "limit", "column"),
    [
        ("a = 12345", Limits(max_text_length=8), "max_text_length", 9),
        ("NOT NOT NOT a", Limits(max_nesting=2), "max_nesting", 13),
        ("a AND (b OR NOT (c AND a))", Limits(max_nesting=3), "max_nesting", 18),
        ("?x + (?y - (?z * 2)) = 1", Limits(max_nesting=2), "max_nesting", 1),
        ("a IN (1, 2) AND b = 3", Limits(max_values=2), "max_values", 21),
    ],
)
def test_limits(text: str, limits: Limits, limit: str, column: int) -> None:
    with pytest.raises(LimitError) as caught:
        parse(text, limits)
    assert caught.value.limit == limit
    assert caught.value.place is not None
    assert caught.value.place.column == column


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("a = 12345", Limits(max_text_length=9)),
        ("NOT NOT NOT a", Limits(max_nesting=3)),
        ("a AND (b OR NOT (c AND a))", Limits(max_nesting=4)),
        ("a IN (1, 2) AND b = 3", Limits(max_values=3)),
        ("((((a))))", Limits(max_nesting=0)),
    ],
)
def test_what_is_just_within_a_limit_is_taken(text: str, limits: Limits) -> None:
    assert parse(text, limits) == parse(text)


@pytest.mark.seconds
@pytest.mark.parametrize(
    "text",
    [
        "NOT " * 100_000 + "a",
        "(" * 300_000,
        "(" * 100_000 + "a" + ")" * 100_000 + " x",
        "- " * 100_000 + "?x = 1",
        "a" + " + a" * 100_000 + " = 1",
        "abs(" * 250_000 + "a",
        "abs(" * 50_000 + "a" + ")" * 50_000 + " = 1",
        "a = 1 AND (b = 1 OR " * 10_000 + "a" + ")" * 10_000,
        "a AND (" * 50_000 + "a" + ")" * 50_000,
        "(a IS TRUE) IS FALSE AND " * 10_000 + "(" * 100 + "a",
    ],
    ids=[
        "negations",
        "open",
        "closed",
        "signs",
        "sums",
        "calls",
        "closed calls",
        "junctions",
        "to the right",
        "truths",
    ],
)
def test_a_deep_text_is_rejected_in_good_time(text: str) -> None:
    """Without a RecursionError, too."""
    with without_hanging(), pytest.raises((LimitError, ParseError)):
        parse(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT * FROM events WHERE a = 1", "write only the condition, as it would follow WHERE"),
        ("where a = 1", "write only the condition, as it would follow WHERE"),
        ("a not null", "write IS NOT NULL"),
        ("a = \u2018x\u2019", "a string is written in straight single quotes, 'like this'"),
    ],
)
def test_hints_for_what_people_bring_from_elsewhere(text: str, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.hint == hint


def test_equal_names_are_one_object() -> None:
    found = [leaf for text in ("a.b = 1", "a.b < 2") for each, _ in predicates(parse(text)) for leaf in leaves(each)]
    first, second = (leaf.path for leaf in found if isinstance(leaf, Attribute))
    assert first is second
