"""The reference semantics of XPath against lxml (libxml2), and the two ways of the parser against each other.

libxml2 departs from XPath 1.0. What is left out here, and nothing else, is in `DEVIATIONS`.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import HarkenError
from harken.language.xpath.parser import parse, parse_carefully
from harken.language.xpath.printer import print_expression
from harken.reference.documents import holds, number, read
from properties.replay import Bulk, many_examples
from properties.wide_xpaths import random_wide_expression
from properties.xpaths import NAMESPACES, PROLOGUE, random_document, random_expression

etree = pytest.importorskip("lxml.etree")

_TOKENS = "a b and or not( ( ) [ ] / / // // . .. @ * text() text 5 .5 - 'x' = != < | :: : child self:: node()".split()
_TOKENS += ["following::", "..", "count(", "position()", ",", "+", "*", "div", "last()", "-", "$x", "contains("]
_TOKENS += ["descendant-or-self::node()", "p:a", "xml:a", "declare namespace p = 'u';"]

DEVIATIONS = {
    # "1e3" is 1000, and "5e" is 5. By XPath 1.0 both are NaN.
    "exponents": (re.compile(r"[0-9.][eE]"), b"<a>1e3</a>", "/a = 1000"),
    # Digits are summed up one by one, which is not always the nearest binary64, from three decimals on.
    "decimals": (re.compile(r"\.[0-9]{3}"), b"<a>9.694</a>", "/a = 9.69399999999999906"),
    "digits": (re.compile(r"[0-9]{16}"), b"<a>615435776781797177</a>", "/a = 615435776781797120"),
    # An empty CDATA section is a text node. By XPath 1.0 a text node has at least one character.
    # What follows an attribute begins with what is inside its element; libxml2 begins behind the element.
    "following an attribute": (
        re.compile(r"(@|attribute::).*following::", re.DOTALL),
        b"<a b='1'><c/></a>",
        "/a/@b/following::c",
    ),
    # Documents are kept without comments and processing instructions: no step leads to them, or from them.
    "comments": (re.compile(r"<!--|<\?pi|comment\(\)"), b"<a><!-- x --></a>", "/a/node()"),
    "empty CDATA": (re.compile(r"<!\[CDATA\[\]\]>"), b"<a><![CDATA[]]></a>", "/a/text()"),
}
"""How libxml2 departs from XPath 1.0: a pattern of what is left out, a document and a text that show it."""

_NO_NODES = re.compile(rb"<!--.*?-->|<\?pi.*?\?>", re.DOTALL)
"""Comments and processing instructions."""


def lxml_boolean(text: str):
    """The text for libxml2, with the root node as its context."""
    body = text.removeprefix(PROLOGUE)
    return etree.XPath(f"boolean(/self::node()[{body}])", namespaces=NAMESPACES)


def deviates(text: str, *, is_wide: bool = False) -> bool:
    """Whether libxml2 may judge otherwise. Comments matter only to the wide part of the language."""
    return any(pattern.search(text) for name, (pattern, _, _) in DEVIATIONS.items() if is_wide or name != "comments")


@pytest.mark.seconds
def test_the_reference_agrees_with_lxml(bulk: Bulk):
    found_true = 0
    for rng in bulk.rounds(900):
        sources = [random_document(rng) for _ in range(8)]
        sources = [source for source in sources if not deviates(source.decode())] or [b"<a/>"]
        documents = [(read(source), etree.ElementTree(etree.fromstring(source))) for source in sources]
        for _ in range(16):
            text = random_expression(rng, sources)
            if deviates(text):
                continue
            expression, other = parse(text), lxml_boolean(text)
            for source, (root, tree) in zip(sources, documents, strict=True):
                truth = holds(expression, root)
                assert truth is other(tree), (text, source)
                found_true += truth
                bulk.pairs += 1
    assert found_true * 5 >= bulk.pairs


@pytest.mark.seconds
def test_the_reference_agrees_with_lxml_on_the_whole_language(bulk: Bulk):
    found_true = 0
    for rng in bulk.rounds(70):
        sources = [_NO_NODES.sub(b"", random_document(rng)) for _ in range(8)]
        sources = [source for source in sources if not deviates(source.decode(), is_wide=True)] or [b"<a/>"]
        documents = [(read(source), etree.ElementTree(etree.fromstring(source))) for source in sources]
        for _ in range(12):
            text = random_wide_expression(rng, sources)
            if deviates(text, is_wide=True):
                continue
            expression, other = parse(text), lxml_boolean(text)
            for source, (root, tree) in zip(sources, documents, strict=True):
                truth = holds(expression, root)
                assert truth is other(tree), (text, source)
                found_true += truth
                bulk.pairs += 1
    assert found_true * 8 >= bulk.pairs


def test_parsing_undoes_printing_of_the_whole_language(bulk: Bulk):
    for rng in bulk.rounds(150):
        documents = [random_document(rng) for _ in range(2)]
        for _ in range(5):
            written = random_wide_expression(rng, documents)
            expression = parse(written)
            assert parse_carefully(written) == expression
            text = print_expression(expression)
            assert parse(text) == expression, text
            assert print_expression(parse(text)) == text


def test_parsing_undoes_printing(bulk: Bulk):
    for rng in bulk.rounds(400):
        documents = [random_document(rng) for _ in range(3)]
        for _ in range(5):
            expression = parse(random_expression(rng, documents))
            text = print_expression(expression)
            assert parse(text) == expression, text
            assert print_expression(parse(text)) == text


def test_the_quick_way_of_the_parser_is_the_careful_one(bulk: Bulk):
    for rng in bulk.rounds(400):
        documents = [random_document(rng) for _ in range(3)]
        for _ in range(5):
            text = random_expression(rng, documents)
            assert parse(text) == parse_carefully(text), text


def test_any_row_of_tokens_is_parsed_or_rejected_alike(bulk: Bulk):
    parsed = 0
    for rng in bulk.rounds(8_000):
        tokens = rng.choices(_TOKENS, k=rng.randint(1, 9))
        text = "".join(token + rng.choice(("", "", " ")) for token in tokens)
        quick, careful = outcome(parse, text), outcome(parse_carefully, text)
        assert quick == careful, text
        parsed += not isinstance(quick, str)
    assert parsed


def outcome(way, text: str):
    """The expression, or the error as it is shown."""
    try:
        return way(text)
    except HarkenError as error:
        return f"{error.place.line} {error.excerpt} {error}"


@many_examples
@given(st.text(alphabet=" 05.-+eE\t\n\u00a0", max_size=8))
def test_a_number_is_read_as_libxml2_does(text):
    if deviates(text):
        return
    there = float(etree.XPath("number($t)")(etree.Element("a"), t=text))
    here = number(text)
    assert here == there or (here != here and there != there)


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_deviation_is_still_there(name):
    pattern, document, text = DEVIATIONS[name]
    assert pattern.search(document.decode() + text)
    tree = etree.ElementTree(etree.fromstring(document))
    assert lxml_boolean(text)(tree) is not holds(parse(text), document)
