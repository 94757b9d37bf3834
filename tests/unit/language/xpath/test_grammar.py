"""The part of the language that the index does not decide: what each text stands for, and how it is printed."""

from __future__ import annotations

import pytest

from harken.errors import ContradictionError, LimitError
from harken.language.xpath.ast import (
    FALSE,
    TRUE,
    AxisPath,
    AxisStep,
    Calculation,
    Comparison,
    DocumentRoot,
    Exists,
    FilteredNodes,
    FunctionCall,
    Location,
    Minus,
    NodeKind,
    NodeUnion,
    Not,
    Or,
    Step,
    Truth,
    ValueComparison,
)
from harken.language.xpath.front_end import XPathFrontEnd
from harken.language.xpath.parser import parse, parse_carefully
from harken.language.xpath.printer import print_expression
from harken.limits import Limits

ELEMENT = NodeKind.ELEMENT
HERE = Location(())
POSITION, LAST = FunctionCall("position"), FunctionCall("last")


def at(*names: str) -> Location:
    return Location(tuple(Step(False, ELEMENT, name) for name in names))


def step(axis: str, name: str | None, *predicates) -> AxisStep:
    return AxisStep(axis, ELEMENT, name, predicates)


def first(number: float) -> ValueComparison:
    return ValueComparison(POSITION, "=", number)


A, B = at("a"), at("b")
ANYWHERE = AxisStep("descendant-or-self", None, None)
FROM_ROOT = Truth(AxisPath(DocumentRoot(), (AxisStep("child", ELEMENT, "b"),)))
PARENT = AxisStep("parent", None, None)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a = b", ValueComparison(A, "=", B)),
        ("a/b < b", ValueComparison(at("a", "b"), "<", B)),
        ("a[2]", Truth(AxisPath(HERE, (step("child", "a", first(2.0)),)))),
        ("a/b[last()]", Truth(AxisPath(A, (step("child", "b", ValueComparison(POSITION, "=", LAST)),)))),
        ("//a[1]", Truth(AxisPath(HERE, (ANYWHERE, step("child", "a", first(1.0)))))),
        ("(//a)[1]", Truth(FilteredNodes(Location((Step(True, ELEMENT, "a"),)), (first(1.0),)))),
        ("(a)[1]/b", Truth(AxisPath(FilteredNodes(A, (first(1.0),)), (step("child", "b"),)))),
        ("(a)/b", Exists(at("a", "b"))),
        ("..", Truth(AxisPath(HERE, (PARENT,)))),
        ("a/..", Truth(AxisPath(A, (PARENT,)))),
        ("a/ancestor-or-self::b", Truth(AxisPath(A, (step("ancestor-or-self", "b"),)))),
        ("a/self::*", Truth(AxisPath(A, (step("self", None),)))),
        ("a/self::node()/b", Exists(at("a", "b"))),
        ("a//.", Truth(AxisPath(A, (ANYWHERE,)))),
        ("a/@node()", Exists(Location((Step(False, ELEMENT, "a"), Step(False, NodeKind.ATTRIBUTE, None))))),
        ("a | b", Truth(NodeUnion((A, B)))),
        ("a[/b]", Exists(Location((Step(False, ELEMENT, "a", (FROM_ROOT,)),)))),
        ("a + 1 = 3", ValueComparison(Calculation(A, "+", 1.0), "=", 3.0)),
        ("a - b - 1", Truth(Calculation(Calculation(A, "-", B), "-", 1.0))),
        ("a + b * 2", Truth(Calculation(A, "+", Calculation(B, "*", 2.0)))),
        ("* * * = div div mod", ValueComparison(
            Calculation(Location((Step(False, ELEMENT, None),)), "*", Location((Step(False, ELEMENT, None),))),
            "=",
            Calculation(at("div"), "div", at("mod")),
        )),
        ("-a = 2", ValueComparison(Minus(A), "=", 2.0)),
        ("---a", Truth(Minus(A))),
        ("contains(a, 'x')", Truth(FunctionCall("contains", (A, "x")))),
        ("not(contains(a, 'x'))", Not(Truth(FunctionCall("contains", (A, "x"))))),
        ("boolean(a)", Exists(A)),
        ("string(a)", Truth(FunctionCall("string", (A,)))),
        ("boolean(a) = true()", ValueComparison(Exists(A), "=", TRUE)),
        ("a < b < 3", ValueComparison(ValueComparison(A, "<", B), "<", 3.0)),
        ("a = 1 or a = b", Or((Comparison(A, "=", 1.0), ValueComparison(A, "=", B)))),
    ],
)  # fmt: skip
def test_what_it_stands_for(text, expression):
    assert parse(text) == parse_carefully(text) == expression
    assert parse(print_expression(expression)) == expression


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a = 2 + 3", Comparison(A, "=", 5.0)),
        ("a = -(1)", Comparison(A, "=", -1.0)),
        ("a = concat('x', 'y')", Comparison(A, "=", "xy")),
        ("round(2.5) = a", Comparison(A, "=", 3.0)),
        ("a = 0 div 0", ValueComparison(A, "=", Calculation(0.0, "div", 0.0))),
        ("1 = 2", FALSE),
        ("5", TRUE),
        ("''", FALSE),
        ("'x' and a", parse("true() and a")),
        ("a['x']", parse("a[true()]")),
        ("1 < 2 < 3", TRUE),
    ],
)
def test_constants_are_computed(text, expression):
    assert parse(text) == expression
    assert parse(print_expression(expression)) == expression


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a[1]", "/a[position() = 1]"),
        ("//a[1]/b", "//a[position() = 1]/b"),
        ("a[.//b[1]]", "/a[.//b[position() = 1]]"),
        ("(//a)[1]/b", "(//a)[position() = 1]/b"),
        ("a[/b = c]", "/a[/b = c]"),
        ("a[count(/) = 1]", "/a[count((/)) = 1]"),
        ("(a | b)/c", "(/a | /b)/c"),
        ("a/../b", "/a/../b"),
        ("(a + 1) * 2 = 4", "(/a + 1) * 2 = 4"),
        ("-(a + 1) = 4", "-(/a + 1) = 4"),
        ("(a = b) = c", "(/a = /b) = /c"),
        ("string-length() > 2", "string-length() > 2"),
        ("boolean(3 + a)", "boolean(3 + /a)"),
        ("declare namespace p = 'u'; //p:*[1]", "declare namespace n1 = 'u'; //n1:*[position() = 1]"),
    ],
)
def test_printing(text, printed):
    assert print_expression(parse(text)) == printed
    assert parse(printed) == parse(text)


@pytest.mark.parametrize("text", ["false()", "1 = 2", "a and false()", "not(true())", "''", "0", "a and 1 > 2"])
def test_what_no_document_can_match_is_rejected(text):
    with pytest.raises(ContradictionError, match="no document can ever match this"):
        XPathFrontEnd().compile(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("true()", "always true"),
        ("a or 1 = 1", "always true"),
        ("a['x']", "always true"),
        ("a or false()", "never true"),
        ("@a = true() or a", "@a = 'true'"),
        ("name(a) = 'p:b'", "no prefix"),
        ("1 < a < 5", "join comparisons with and"),
        ("count(a/@b/c) = 1", "finds nothing"),
        ("a[1][. < 'x']", "is never true"),
    ],
)
def test_warnings(text, words):
    assert any(words in warning for warning in XPathFrontEnd().compile(text).warnings)


@pytest.mark.parametrize(
    "text", ["a = b", "count(//a) = 0", "a[1]", "a/../b", "lang('en')", "a | b", "string(.) = 'x'"]
)
def test_no_warning(text):
    assert XPathFrontEnd().compile(text).warnings == ()


def test_long_chains_are_limited_like_nesting():
    assert parse(" + ".join("a" * 50))
    with pytest.raises(LimitError, match="nested more than 100 deep"):
        parse(" + ".join("a" * 500))
    assert parse(" or ".join(["a = b + 1"] * 500))
    with pytest.raises(LimitError):
        parse("count(" * 101 + "a" + ")" * 101)
    with pytest.raises(LimitError):
        parse("a/../a/../a", Limits(max_xpath_steps=4))
