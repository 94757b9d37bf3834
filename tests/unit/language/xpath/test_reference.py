"""The reference semantics of XPath on documents: cases whose answer is written down."""

from __future__ import annotations

import math

import pytest

from harken.errors import DecodeError, LimitError
from harken.language.xpath.parser import parse
from harken.limits import Limits
from harken.reference.documents import holds, number

FIG_3_2 = '/a//b[.//c/d/text()="v1" AND p//q/text()="v2"]/x[@y="v3"]//z/text() = "v4"'
ONE_B = b"<a><k><b><m><c><d>v1</d></c></m><p><n><q>v2</q></n></p><x y='v3'><z>v4</z></x></b></k></a>"
TWO_B = b"<a><b><c><d>v1</d></c><p><q>v2</q></p></b><b><x y='v3'><z>v4</z></x></b></a>"


@pytest.mark.parametrize(
    ("text", "document", "truth"),
    [
        (FIG_3_2, ONE_B, True),
        (FIG_3_2, TWO_B, False),
        ("a", b"<a/>", True),
        ("b", b"<a><b/></a>", False),
        ("//a//a", b"<a/>", False),
        ("//a//a", b"<a><b><a/></b></a>", True),
        ("/a//@y = '1'", b"<a y='1'/>", True),
        ("/a//text() = 'x'", b"<a>x</a>", True),
        ("/a = 'xyz'", b"<a>x<b>y</b><!-- no -->z</a>", True),
        ("/a/text() = 'xz'", b"<a>x<!-- no -->z</a>", False),
        ("/a/text() = 'xyz'", b"<a>x<![CDATA[y]]>&#122;</a>", True),
        ("/a/text()", b"<a><![CDATA[]]></a>", False),
        ("/a/text() != 'x'", b"<a>x<b/> </a>", True),
        ("/a/b != 'x'", b"<a><b>x</b></a>", False),
        ("/a/b != 'x'", b"<a/>", False),
        ("not(/a/b = 'x')", b"<a/>", True),
        ("/a = 5", b"<a> 5.0\n</a>", True),
        ("/a = '5'", b"<a>5.0</a>", False),
        ("/a < '5.5'", b"<a>5</a>", True),
        ("/a != 5", b"<a>x</a>", True),
        ("/a < 5 or /a >= 5", b"<a>x</a>", False),
        ("/a/@xmlns or /a/@*", b"<a xmlns='u' xmlns:p='v'/>", False),
        ("/a", b"<a xmlns='u'/>", False),
        ("declare namespace p = 'u'; /p:a[b]", b"<a xmlns='u'><b xmlns=''/></a>", True),
        ("declare namespace p = 'u'; /p:a/@p:b", b"<q:a xmlns:q='u' b='1'/>", False),
        ("/a/@xml:lang = 'en'", b"<a xml:lang='en'/>", True),
        ("/a/@b/c or /a/@b//text()", b"<a b='1'>x<c/></a>", False),
        (". = 'x'", b"<a><b>x</b></a>", True),
        ("/", b"<a/>", True),
    ],
)
def test_holds(text, document, truth):
    assert holds(parse(text), document) is truth


@pytest.mark.parametrize(("text", "value"), [("5", 5), (" 5 ", 5), ("-5", -5), ("5.", 5), (".5", 0.5), ("-.5", -0.5)])
def test_numbers(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    "text", ["", " ", ".", "-", "-.", "+5", "1e3", "0x10", "5 5", "- 5", "NaN", "inf", "٣", "1_0", "1.2.3"]
)
def test_what_is_no_number(text):
    assert math.isnan(number(text))


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<a>",
        b"<a/><b/>",
        b"<a><b></a>",
        b"<p:a/>",
        b"<!DOCTYPE a><a/>",
        b"\xff<a/>",
        b"<a>\xe9</a>",
        "<a>\ud800</a>",
    ],
)
def test_what_is_no_document(document):
    with pytest.raises(DecodeError):
        holds(parse("/a"), document)


def test_limits():
    from harken.reference.documents import read

    with pytest.raises(LimitError):
        read(b"<a>" * 5 + b"</a>" * 5, Limits(max_event_depth=4))
    with pytest.raises(LimitError):
        read(b"<a/>", Limits(max_event_bytes=3))
