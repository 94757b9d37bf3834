"""XPath's core functions of strings and numbers: the examples of the recommendation, and its corners."""

from __future__ import annotations

from math import copysign, inf, isnan, nan

import pytest

from harken.language.xpath.core_functions import (
    CORE_FUNCTIONS,
    applied,
    calculated,
    compared,
    rounded,
    string_of,
    to_boolean,
    to_number,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (-12.5, "-12.5"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        (0.1 + 0.2, "0.30000000000000004"),
        (nan, "NaN"),
        (inf, "Infinity"),
        (-inf, "-Infinity"),
        (True, "true"),
        (False, "false"),
        ("x", "x"),
    ],
)
def test_string(value, text):
    assert string_of(value) == text


def test_number_and_boolean():
    assert (to_number(" -5.5 "), to_number(True), to_number(2.0)) == (-5.5, 1.0, 2.0)
    assert isnan(to_number("1e3"))
    truths = [to_boolean(value) for value in ("", "false", 0.0, -0.0, nan, inf, False)]
    assert truths == [False, True, False, False, False, True, False]


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("substring", ["12345", 2.0, 3.0], "234"),
        ("substring", ["12345", 2.0], "2345"),
        ("substring", ["12345", 1.5, 2.6], "234"),
        ("substring", ["12345", 0.0, 3.0], "12"),
        ("substring", ["12345", nan, 3.0], ""),
        ("substring", ["12345", 1.0, nan], ""),
        ("substring", ["12345", -42.0, inf], "12345"),
        ("substring", ["12345", -inf, inf], ""),
        ("substring", ["12345", -inf], "12345"),
        ("substring", ["12345", 9.0, 2.0], ""),
        ("substring-before", ["1999/04/01", "/"], "1999"),
        ("substring-after", ["1999/04/01", "/"], "04/01"),
        ("substring-after", ["1999/04/01", "19"], "99/04/01"),
        ("substring-before", ["ab", ""], ""),
        ("substring-after", ["ab", ""], "ab"),
        ("substring-after", ["ab", "x"], ""),
        ("translate", ["bar", "abc", "ABC"], "BAr"),
        ("translate", ["--aaa--", "abc-", "ABC"], "AAA"),
        ("translate", ["aa", "aa", "xy"], "xx"),
        ("normalize-space", [" a \n b\u00a0 "], "a b\u00a0"),
        ("string-length", ["\U0001f600a"], 2.0),
        ("concat", ["a", 1.0, True], "a1true"),
        ("contains", ["a", ""], True),
        ("starts-with", ["ab", "b"], False),
        ("floor", [-2.5], -3.0),
        ("ceiling", ["2.1"], 3.0),
        ("round", [2.5], 3.0),
        ("round", [-2.5], -2.0),
        ("round", [0.49999999999999994], 0.0),
        ("number", ["x"], nan),
    ],
)
def test_functions(name, arguments, result):
    found = applied(name, arguments)
    assert found == result or (isnan(found) and isnan(result))


def test_the_sign_of_zero():
    assert [copysign(1, rounded(value)) for value in (-0.0, -0.5, -0.2, 0.2)] == [-1, -1, -1, 1]
    assert calculated(1.0, "div", -0.0) == -inf
    assert isnan(calculated(0.0, "div", 0.0))


@pytest.mark.parametrize(("left", "right", "rest"), [(5, 2, 1), (5, -2, 1), (-5, 2, -1), (1.5, 0.5, 0), (5, inf, 5)])
def test_mod_has_the_sign_of_the_dividend(left, right, rest):
    assert calculated(left, "mod", right) == rest
    assert isnan(calculated(left, "mod", 0.0))


def test_comparisons_convert():
    assert compared("1", "=", 1.0)
    assert compared("x", "=", True)
    assert not compared("", "!=", False)
    assert compared("2", "<", "10")
    assert not compared("x", "<", "y")
    assert compared(True, ">", False)


def test_how_many_arguments():
    assert CORE_FUNCTIONS["concat"].takes(9)
    assert not CORE_FUNCTIONS["concat"].takes(1)
    assert CORE_FUNCTIONS["string"].takes(0)
    assert not CORE_FUNCTIONS["last"].takes(1)
