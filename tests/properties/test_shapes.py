"""Compiling through the cache of shapes against parsing each text alone: the same normal form or the same error."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import HarkenError
from harken.language.compiled import Compiler
from harken.language.normal_form import NormalForm
from harken.language.normalise import normalise
from harken.language.sql import parser as sql
from harken.language.sql.printer import print_expression
from harken.language.sql.type_check import check
from harken.schema import Schema
from harken.schema.faults import first_of
from harken.schema.values import show
from properties.generators import Expressions, OperatorExpressions, nested_events, vocabulary_of
from properties.replay import TIMES
from properties.scalars import one_in, string
from properties.typed import SCHEMA, TypedVocabulary

# What a text is varied by: a constant for another of its kind, with those that are not valid.
_CONSTANT = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)+`|(?<![\w?])[0-9.]+(?:e[+-]?[0-9]+)?")
_INTEGERS = ("0", "7", "007", "123456789012345678", "1234567890123456789", "9223372036854775807", "9223372036854775808")
_FLOATS = ("0.5", ".5", "5.", "1e3", "1E+3", "0e0", "1.7976931348623157e308", "1e309", "1e-400", "00.10", "5.e-1")
_MOMENTS = ("'2024-02-29'", "'2024-02-30'", "'2024-02-29 12:00:00'", "'2024-02-29T12:00:00+02:00'", "'soon'", "''")


def compiled_alone(text: str, schema: Schema | None) -> NormalForm:
    expression = sql.parse(text)
    faults = check(expression, schema, text)
    if faults:
        raise first_of(faults)
    return normalise(expression, schema)


def error_alone(text: str, schema: Schema | None) -> NormalForm:
    """The same by a compiler that knows no shape yet: its errors have their places."""
    return Compiler(schema).compile(text).normal_form


def outcome(compile_: Callable[[], NormalForm]) -> Any:
    try:
        return compile_()
    except HarkenError as error:
        return type(error), error.message, error.place, error.hint


def assert_same(compiler: Compiler, text: str) -> None:
    found = outcome(lambda: compiler.compile(text).normal_form)
    alone = compiled_alone if isinstance(found, NormalForm) else error_alone
    assert found == outcome(lambda: alone(text, compiler.schema)), text


def varied(rng: Random, text: str) -> str:
    """The text with some of its constants replaced."""
    return _CONSTANT.sub(lambda found: found[0] if one_in(rng, 3) else other_constant(rng, found[0]), text)


def other_constant(rng: Random, old: str) -> str:
    if old[0] == "`":
        return old
    if old[0] == "'":
        return rng.choice(_MOMENTS) if one_in(rng, 4) else show(string(rng))
    if one_in(rng, 4):
        return rng.choice(("-", "- ", "- -", "-(-", "--1\n")) + old
    return rng.choice(_INTEGERS if old.isdecimal() else _FLOATS)


@given(st.randoms(use_true_random=False))
def test_texts_of_a_shape_compile_as_if_alone(rng):
    expressions = (OperatorExpressions if one_in(rng, 5) else Expressions)(rng, vocabulary_of(nested_events(rng, 2)))
    text = print_expression(expressions.expression(2))
    compiler = Compiler()
    for each in [text, *(varied(rng, text) for _ in range(6)), text]:
        assert_same(compiler, each)


@given(st.randoms(use_true_random=False))
def test_texts_of_a_shape_compile_as_if_alone_with_a_schema(rng):
    expressions = Expressions(rng, TypedVocabulary(rng))
    text = print_expression(expressions.expression(2))
    compiler = Compiler(SCHEMA)
    for each in [text, *(varied(rng, text) for _ in range(6)), text]:
        assert_same(compiler, each)


def test_texts_of_many_shapes_share_a_compiler(bulk):
    hits = 0
    for rng in bulk.rounds(4):
        expressions = Expressions(rng, vocabulary_of(nested_events(rng, 10)))
        texts = [print_expression(expressions.expression(1)) for _ in range(30)]
        compiler = Compiler()
        for text in [varied(rng, rng.choice(texts)) for _ in range(300)]:
            assert_same(compiler, text)
        hits += compiler.stats()["shapes"]["hits"]
    assert hits > min(1, TIMES) * 100


def test_texts_of_known_conjuncts_share_a_compiler(bulk):
    hits = texts = 0
    for rng in bulk.rounds(4):
        free = vocabulary_of(nested_events(rng, 10))
        for compiler, vocabulary in ((Compiler(), free), (Compiler(SCHEMA), TypedVocabulary(rng))):
            known = [print_expression(Expressions(rng, vocabulary).predicate()) for _ in range(12)]
            for _ in range(200):
                joint = rng.choice((" AND ", " AND ", " and ", " OR "))
                assert_same(compiler, varied(rng, joint.join(rng.choices(known, k=rng.randrange(1, 5)))))
                texts += 1
            hits += compiler.stats()["shapes"]["hits"]
    assert hits > texts // 50


SHAPES = {
    "negative": ["a = -5", "a = -7", "a = - 7", "a = 7", "a = - -7", "a = -(-7)", "a = -(7)", "a = (7)"],
    "two signs": ["a = - -5", "a = - -7", "a = - - -7"],
    "bracketed sign": ["a = -(-5)", "a = -(-7)"],
    "smallest integer": ["a = -5", "a = -9223372036854775808", "a = 9223372036854775808", "a = - -9223372036854775808"],
    "no space before a point": [
        "a BETWEEN 1 AND.5",
        "a BETWEEN 1 AND.7",
        "a BETWEEN.1 AND.7",
        "a CONTAINS.5",
        "a CONTAINS.6",
    ],
    "long integers": ["a < 1234567890123456789 AND a > 5 AND b = 7"] * 2
    + ["a < 1234567890123456789 AND a > 6 AND b = 8"],
    "leading zeros": ["a = 00000000000000000000005 AND b = 7"] * 2 + ["a = 7 AND b = 00000000000000000000005"] * 2,
    "floats out of range": ["a = 1e3 AND b = 1", "a = 1e400 AND b = 1", "a < 1e400 OR b = 1", "a = 1e-400 AND b = 1"],
    "an integer, then a float": ["a = 5", "a = 5.0", "a = 5.", "a = .5", "a = 5e0", "a = 6"],
    "dates": ["d = DATE '2024-01-01'", "d = DATE '2024-13-01'", "d = date'2024-01-02'", "d = '2024-01-01'"],
    "times": ["t < TIMESTAMP '2024-01-01'", "t < TIMESTAMP '2024-01-01T00:00:00+01:00'", "t < TIMESTAMP '1'"],
    "a date that nobody reads": ["TRUE OR d = DATE '2024-01-01'", "TRUE OR d = DATE 'soon'"],
    "a pattern that nobody reads": ["a = 1 AND a = 1 AND s LIKE 'x'", "a = 1 AND a = 2 AND s LIKE '\\x'"],
    "patterns": [
        "s LIKE 'a%'",
        "s LIKE '%'",
        "s LIKE ''",
        "s LIKE 'a_'",
        "s LIKE '\\%'",
        "s LIKE '\\'",
        "s LIKE '\\a'",
    ],
    "escapes": [
        "s LIKE 'a%' ESCAPE '!'",
        "s LIKE 'a!%' ESCAPE '!'",
        "s LIKE 'a!%' ESCAPE '#'",
        "s LIKE 'a' ESCAPE 'xy'",
    ],
    "lists": ["a IN (1, 2)", "a IN (2, 1)", "a IN (1, 1)", "a IN (1, 2, 3)", "a NOT IN (1, -2)", "a NOT IN (3, -3)"],
    "mixed lists": ["a IN (1, 'x')", "a IN (2, 'y')", "a IN (TRUE, 'y')", "a IN (FALSE, 'z')", "a NOT IN (1, 'x')"],
    "bounds": [
        "a BETWEEN 1 AND 5",
        "a BETWEEN 5 AND 1",
        "a BETWEEN -1 AND -1",
        "NOT a BETWEEN 5 AND 1",
        "NOT a BETWEEN 1 AND 5",
    ],
    "bounds of unlike types": ["a BETWEEN 1 AND 'x'", "a NOT BETWEEN 1 AND 'x'", "a NOT BETWEEN 9 AND 'a'"],
    "comments": ["a = 5 -- 6\n", "a = 7 -- 6\n", "a = /* '5' */ 7", "a = /* '5' */ 8", "a = DATE /* 1 */ '2024-01-01'"]
    * 2,
    "quotes and digits in names": ["`a'1` = 5 AND `2` = 'x'", "`a'1` = 6 AND `2` = 'y'", "`a'2` = 6 AND `2` = 'y'"],
    "digits in names": [
        "a1 = 1 AND a.b2 = 2",
        "a1 = 3 AND a.b2 = 4",
        "a2 = 3 AND a.b2 = 4",
        "?x1 = 1",
        "?x1 = 2",
        "f(1)",
        "f(2)",
    ],
    "names without spaces": ["a=1AND b=2", "a=3AND b=4", "a=1.AND b=2", "a=1e5AND b=2", "a=1eAND b=2"],
    "quotes": ["a = ''''", "a = ''''''", "a = 'it''s'", "a = 'it'", "a = 'it", "a = ''"],
    "marks in the text": [
        "TRUE OR b = 5",
        "TRUE OR b = \0i",
        "b = 5",
        "b = \0i",
        "b = '\0i'",
        "b = 'x'",
        "b = \0s",
        "`\0i` = 5",
    ],
    "errors": [
        "a = 5 5",
        "a = 6 6",
        "a = 5 AND",
        "a = NULL",
        "a == 5",
        "a = 1..5",
        "a = 1.5.3",
        "= 5",
        "a = \u0663",
        "a = 5\u0663",
    ],
    "contradictions": ["a > 5 AND a < 9", "a > 9 AND a < 5", "a > 5 AND a < 5", "a >= 5 AND a <= 5"],
    "constants only": [
        "5 = 5",
        "5 = 6",
        "5 IN (5)",
        "5 IN (6)",
        "'a' LIKE 'a'",
        "'a' LIKE 'b'",
        "6 BETWEEN 5 AND 7",
        "8 BETWEEN 5 AND 7",
    ],
    "empty string": ["a < 'x'", "a < ''", "a >= ''", "a > ''", "NOT a >= ''"],
}


@pytest.mark.parametrize("texts", SHAPES.values(), ids=SHAPES)
def test_shapes_by_example(texts):
    compiler = Compiler()
    for text in texts + texts[::-1]:
        assert_same(compiler, text)


DOMAINS = {
    "outside the domain": ["kind <= 'toy'", "kind <= 'tool'", "TRUE OR kind <= 'tool'", "NOT kind <= 'toy'"],
    "a list with one outside": ["size IN ('S', 'M')", "size IN ('S', 'X')", "size IN ('L', 'L')"],
    "nobody reads it": ["flag OR TRUE OR kind = 'toy'", "flag OR TRUE OR kind = 'tool'"],
    "contains": ["kinds CONTAINS 'toy'", "kinds CONTAINS 'tool'", "TRUE OR kinds CONTAINS 'tool'"],
    "between": [
        "size BETWEEN 'S' AND 'M'",
        "size BETWEEN 'S' AND 'X'",
        "size BETWEEN 'X' AND 'S'",
        "size BETWEEN 'M' AND 'L'",
    ],
    "between with a constant that meets another": [
        "'S' BETWEEN size AND 'L'",
        "'S' BETWEEN size AND ''",
        "'X' BETWEEN size AND ''",
        "'S' BETWEEN '' AND size",
        "'M' BETWEEN size AND size",
        "'X' BETWEEN size AND size",
    ],
    "constant on the left": ["'toy' >= kind", "'tool' >= kind", "'doll' >= kind"],
    "unlike types": ["rating = 5", "rating = 'x'", "rating = 5.5", "rating = 6", "NOT rating = 6"],
    "like on a coded domain": ["kind LIKE 't%'", "kind LIKE 'x%'", "kind LIKE '\\x'", "n LIKE 'x'"],
    "two domains": [
        "kind = size",
        "kind = kinds",
        "n = rating",
        "colour = 'red' AND size = 'S'",
        "colour = 'S' AND size = 'red'",
    ],
    "typed": [
        "at < TIMESTAMP '2024-01-01'",
        "at < DATE '2024-01-01'",
        "day < TIMESTAMP '2024-01-01'",
        "day < '2024-01-01'",
    ],
    "unknown names": ["nn = 5", "nn = 6", "items.qty = 1", "items = 1"],
}


@pytest.mark.parametrize("texts", DOMAINS.values(), ids=DOMAINS)
def test_shapes_by_example_with_a_schema(texts):
    compiler = Compiler(SCHEMA)
    for text in texts + texts[::-1]:
        assert_same(compiler, text)
