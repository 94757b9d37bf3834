"""The front end of XPath: compiling, printing and the warnings."""

from __future__ import annotations

import pytest

from harken.errors import ParseError, UnavailableError
from harken.language.xpath.document_plan import DocumentPlan
from harken.language.xpath.front_end import XPathFrontEnd
from harken.language.xpath.parser import parse

FRONT_END = XPathFrontEnd(None)


def test_compiling():
    compiled = FRONT_END.compile("/a[b = 'x']")
    assert (compiled.text, compiled.language, compiled.warnings) == ("/a[b = 'x']", "xpath", ())
    assert isinstance(compiled.plan, DocumentPlan)
    assert compiled.plan.expression == parse("/a[b = 'x']")
    assert compiled.plan.kind == "documents"
    assert not compiled.plan.always
    assert compiled.plan.names() == {"document"}
    assert compiled.capabilities == frozenset()


def test_faults_are_raised_with_their_place():
    assert FRONT_END.faults("/a") == []
    with pytest.raises(ParseError):
        FRONT_END.faults("/a[1")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a[ ./b/@c=5. ]", "/a[b/@c = 5]"),
        (".//a", "//a"),
        ("a[.//b and .='x']", "/a[.//b and . = 'x']"),
        ("'it' != a", "/a != 'it'"),
        ('a = "it\'s"', '/a = "it\'s"'),
        ("/ and", "/and"),
        ("/ = 'x'", ". = 'x'"),
        ("(a or b) and not(c or d)", "(/a or /b) and not(/c or /d)"),
        ("a and b or c", "/a and /b or /c"),
        ("a > -.5", "/a > -0.5"),
        ("a < 100000000000000000000000", "/a < 100000000000000000000000"),
        ("a < 0.0000001", "/a < 0.0000001"),
        ("a/descendant-or-self::node()/text()", "/a//text()"),
        ("declare namespace z = 'u'; z:a/@xml:lang", "declare namespace n1 = 'u'; /n1:a/@xml:lang"),
        ("declare default element namespace 'u'; a/@b", "declare namespace n1 = 'u'; /n1:a/@b"),
    ],
)
def test_printing(text, printed):
    assert FRONT_END.print(text, "xpath") == printed
    assert parse(printed) == parse(text)


def test_other_dialects_are_rejected():
    with pytest.raises(UnavailableError, match="spark"):
        FRONT_END.print("/a", "spark")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/a < 'x'", ["`/a < 'x'` is never true", "'x' is not one"]),
        ("a[b >= '5e3']", ["`b >= '5e3'` is never true"]),
        ("'+5' > //a", ["`//a < '+5'` is never true"]),
        ("/", ["always true", "root"]),
        ("a[.]", ["`.` is always true"]),
        ("a/@b/c", ["`/a/@b/c` finds nothing", "an attribute"]),
        ("a/text()[@b]", ["`@b` finds nothing", "text has nothing below it"]),
        ("/@b", ["finds nothing", "the root has no attributes"]),
        ("text() = 'x'", ["finds nothing", "the root has no text"]),
    ],
)
def test_warnings(text, words):
    (warning,) = FRONT_END.compile(text).warnings
    for each in words:
        assert each in warning


@pytest.mark.parametrize("text", ["/a < ' -5. '", "/a != 'x'", "//@b", "//text()", "a[. = 'x']", "a/@b[. = 'x']"])
def test_no_warning(text):
    assert FRONT_END.compile(text).warnings == ()
