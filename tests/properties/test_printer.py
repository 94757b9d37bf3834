"""Printing and parsing: each undoes the other, and nothing but the tokens of a text counts."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import UnavailableError
from harken.language.ast import Call, Expression, Not, Predicate, Variable, leaves, predicates
from harken.language.sql.parser import parse
from harken.language.sql.printer import DIALECTS, print_expression
from properties.generators import OperatorExpressions, nested_events, vocabulary_of
from properties.replay import many_examples
from properties.scalars import one_in

randoms = st.randoms(use_true_random=False)
_TOKEN = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)+`|\?\w+|[0-9.]+(?:e[+-]?[0-9]+)?|\w+|<=|>=|<>|\S")
_KEYWORD = re.compile(r"AND|OR|NOT|BETWEEN|IN|LIKE|ESCAPE|IS|NULL|CONTAINS|TRUE|FALSE|DATE|TIMESTAMP")
_GAPS = (" ", "  ", "\n", "\t\r\n", "\u00a0", " -- it's `1`\n", " /* 'a' * / 5 -- \n */ ", " /**/ ", "\n--\n")


def any_expression(rng: Random) -> Expression:
    """An expression that uses all that the language can say."""
    return OperatorExpressions(rng, vocabulary_of(nested_events(rng, 3))).expression()


@many_examples
@given(randoms)
def test_parsing_undoes_printing(rng):
    expression = any_expression(rng)
    text = print_expression(expression)
    assert parse(text) == expression
    assert print_expression(parse(text)) == text


@many_examples
@given(randoms)
def test_whitespace_comments_and_the_case_of_keywords_change_nothing(rng):
    expression = any_expression(rng)
    tokens = _TOKEN.findall(print_expression(expression))
    text = "".join(rng.choice(_GAPS) + in_any_case(rng, token) for token in tokens) + rng.choice(_GAPS)
    assert parse(text) == expression


def in_any_case(rng: Random, token: str) -> str:
    if not _KEYWORD.fullmatch(token):
        return token
    return "".join(letter.lower() if one_in(rng, 2) else letter for letter in token)


@many_examples
@given(randoms)
def test_parentheses_that_change_nothing_are_left_out(rng):
    expression = any_expression(rng)
    text = print_expression(expression)
    assert parse(f"(({text}))") == expression
    assert parse(f"NOT ({text})") == Not(expression)


@many_examples
@given(randoms)
def test_the_dialects_of_sql_reject_operators_and_variables_and_nothing_else(rng):
    expression = any_expression(rng)
    sayable = not any(has_operator(predicate) for predicate, _ in predicates(expression))
    for dialect in DIALECTS.keys() - {"harken"}:
        try:
            print_expression(expression, dialect)
        except UnavailableError:
            assert not sayable
        else:
            assert sayable


def has_operator(predicate: Predicate) -> bool:
    return isinstance(predicate, Call) or any(isinstance(leaf, Variable) for leaf in leaves(predicate))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a.b = 1", "a.b = 1"),
        ("`a.b` = 1", "`a.b` = 1"),
        ("`a``b` = 1", "`a``b` = 1"),
        ("`plain` = 1", "plain = 1"),
        ("`and` = 1 AND date = 2", "`and` = 1 AND date = 2"),
        ("a != -0", "a <> 0"),
        ("a = - - 5", "a = 5"),
        ("a = 1e2", "a = 100.0"),
        ("NOT a BETWEEN 1 AND 2", "a NOT BETWEEN 1 AND 2"),
        ("NOT (a = 1 AND (b OR c))", "NOT (a = 1 AND (b OR c))"),
        ("a LIKE 'x' ESCAPE '\\'", "a LIKE 'x'"),
        ("t > TIMESTAMP '2024-01-01T00:00:00+01:00'", "t > TIMESTAMP '2023-12-31 23:00:00'"),
        ("?d < 2 * (?e + 1) - -?f", "?d < 2 * (?e + 1) - (0 - ?f)"),
        ("near('Bronx', ?d, a.b)", "near('Bronx', ?d, a.b)"),
    ],
)
def test_printed_by_example(text, printed):
    assert print_expression(parse(text)) == printed
    assert parse(printed) == parse(text)


def test_names_whose_capitals_are_keywords_are_names():
    assert parse("ın = 1 AND lıke = 2 OR ıſ") == parse("`ın` = 1 AND `lıke` = 2 OR `ıſ`")
