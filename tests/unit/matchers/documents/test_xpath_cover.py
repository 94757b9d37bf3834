"""The cover of an expression: what is indexed of it. It is true wherever the expression is."""

from __future__ import annotations

import pytest

from harken.language.xpath.parser import parse
from harken.language.xpath.printer import print_expression
from harken.matchers.documents.xpath_cover import cover, is_indexable
from harken.reference.documents import holds
from properties.replay import Bulk
from properties.wide_xpaths import random_wide_expression
from properties.xpaths import random_document, random_expression


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("/a[b/c/d = b/x/@y]", "/a[b/c/d and b/x/@y]"),
        ("/a[b = 'x' and c = d]/e = 5", "/a[b = 'x' and c and d]/e = 5"),
        ("/a[b = c or d = 5]", "/a[b and c or d = 5]"),
        ("/a[b = c or count(d) = 0]", "/a"),
        ("//a[1]/b = 'x'", "//a/b = 'x'"),
        ("(//a)[2][b = 'x']", "//a[b = 'x']"),
        ("count(//a) > 2", "//a"),
        ("count(//a) = 0", "."),
        ("contains(/a/b, 'x')", "/a/b"),
        ("contains(/a/b, '')", "."),
        ("normalize-space(/a/b) = 'x'", "/a/b"),
        ("/a/b | /a/c", "/a/b or /a/c"),
        ("(/a/b | /a/c[d]) = 'x'", "/a/b = 'x' or /a/c[d] = 'x'"),
        ("/a/b/../c", "/a[b]/c"),
        ("/a/b[d]/following-sibling::c = 5", "/a[b[d]]/c = 5"),
        ("//b/following::c", "//b"),
        ("/a[/b/c = d]", "/a[d]"),
        ("/a[position() = 1 and b]", "/a[b]"),
        ("/a/node()/b", "/a/*/b"),
        ("/a/node()", "/a"),
        ("not(/a) and /b + 1 = 2", "not(/a) and /b"),
        ("not(/a or /b = /c)", "not(/a)"),
        ("not(/a and /b = /c)", "."),
        ("/a or false()", "/a"),
        ("/a = true()", "/a"),
        ("/a = false()", "."),
        ("lang('en')", "."),
    ],
)
def test_covers(text, covered):
    assert print_expression(cover(parse(text))) == covered


def test_a_cover_is_indexable_and_necessary():
    for rng in Bulk("covers").rounds(60):
        documents = [random_document(rng) for _ in range(4)]
        for _ in range(6):
            expression = parse(random_wide_expression(rng, documents))
            covered = cover(expression)
            assert is_indexable(covered)
            for document in documents:
                assert holds(covered, document) or not holds(expression, document)


def test_what_the_index_decides_is_its_own_cover():
    for rng in Bulk("indexable").rounds(30):
        documents = [random_document(rng) for _ in range(2)]
        expression = parse(random_expression(rng, documents))
        assert is_indexable(expression)
        assert not is_indexable(parse("/a[b = c]"))
