"""Explanations of XPath texts: how far a path led, which nodes failed, and branches that no one node meets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.errors import DecodeError
from harken.explain.documents import explain, explain_xpath
from harken.language.xpath.front_end import XPathFrontEnd
from harken.language.xpath.parser import parse
from harken.reference.documents import holds
from properties.replay import Bulk
from properties.wide_xpaths import random_wide_expression
from properties.xpaths import random_document, random_expression
from unit.deadline import without_hanging

DOCUMENT = b"<a><b><c>v1</c><x y='v3'><z>v5</z></x></b><b><x y='v3'><w><z>v4</z></w></x></b></a>"


def lines(text: str, document: bytes = DOCUMENT) -> list[str]:
    return str(explain(parse(text), document)).split("\n")


def test_a_match():
    assert lines("/a/b[c = 'v1']/x/@y = 'v3' and not(//q)") == [
        "matches",
        "✓ and",
        "  ✓ /a/b[c = 'v1']/x/@y = 'v3'   (/a/b[1]/x/@y is 'v3')",
        "    ✓ c = 'v1'   (/a/b[1]/c is 'v1')",
        "  ✓ not",
        "    ✗ //q   -- no `q` below /",
    ]


def test_how_far_a_path_led():
    assert lines("/a/b/x/k/l") == ["does not match", "✗ /a/b/x/k/l   -- no `k` below /a/b/x"]
    assert lines("/a/b/x/@k") == ["does not match", "✗ /a/b/x/@k   -- no `@k` on /a/b/x"]


def test_the_nodes_that_failed_a_comparison():
    assert lines("//z < 4") == [
        "does not match",
        "✗ //z < 4   (/a/b[1]/x/z is 'v5', /a/b[2]/x/w/z is 'v4')",
    ]


def test_the_nodes_that_failed_a_predicate():
    assert lines("/a/b[c = 'v2' or e]/x") == [
        "does not match",
        "✗ /a/b[c = 'v2' or e]/x   (/a/b[1] is 'v1v5', /a/b[2] is 'v4')   -- no `b` meets its predicate",
        "  ✗ or",
        "    ✗ c = 'v2'   (/a/b[1]/c is 'v1')",
        "    ✗ e   -- no `e` below /a/b",
    ]


@pytest.mark.parametrize(
    "text",
    ["/a/b[c = 'v1']/x//z = 'v4'", "/a/b[c = 'v1' and x/w]", "/a/b[c = 'v1'][x/w]", "/a[b[c][x/w]]"],
)
def test_branches_that_no_one_node_meets(text):
    found = lines(text)
    assert found[0] == "does not match"
    assert any("-- each branch holds somewhere, but not below one `b`" in line for line in found)


def test_no_more_than_eight_nodes_are_shown():
    (_, line) = lines("/a/b = 'x'", b"<a>" + b"<b/>" * 20 + b"</a>")
    assert line.count(" is ''") == 8
    assert line.endswith("-- and 12 more nodes")


def test_long_values_are_cut():
    (_, line) = lines("/a = 'x'", b"<a>" + b"y" * 1000 + b"</a>")
    assert len(line) < 120


def test_names_of_namespaces_have_the_prefix_that_the_text_is_shown_with():
    found = lines("declare namespace p = 'u'; /p:a/p:b = 'x'", b"<a xmlns='u'><b>y</b></a>")
    assert found[1] == "✗ /n1:a/n1:b = 'x'   (/n1:a/n1:b is 'y')"


def explained(text: str, event: dict[str, Any]) -> str:
    return str(explain_xpath(XPathFrontEnd(None), text, lambda names: {key: event[key] for key in names & {*event}}))


def test_an_event_and_its_document():
    assert explained("/a", {"document": "<a/>"}).startswith("matches")
    assert explained("/a", {"document": b"<a/>"}).startswith("matches")
    assert explained("/a", {}) == "does not match\n✗ /a   (document is missing)   -- the event has no document"
    assert "not a string" in explained("/a", {"document": 5})
    with pytest.raises(DecodeError):
        explained("/a", {"document": "<a>"})


def test_the_tree_agrees_with_the_reference():
    for rng in Bulk("explain_xpath").rounds(60):
        documents = [random_document(rng) for _ in range(4)]
        for _ in range(4):
            expression = parse(random_expression(rng, documents))
            for document in documents:
                found = explain(expression, document)
                assert found.matched is found.tree.truth is holds(expression, document)
                json.dumps(found.to_dict())


def test_the_tree_agrees_with_the_reference_on_the_whole_language():
    for rng in Bulk("explain_wide_xpath").rounds(25):
        documents = [random_document(rng) for _ in range(3)]
        for _ in range(4):
            expression = parse(random_wide_expression(rng, documents))
            for document in documents:
                found = explain(expression, document)
                assert found.matched is found.tree.truth is holds(expression, document)
                json.dumps(found.to_dict())


def test_two_paths_that_do_not_compare():
    assert lines("/a/b[c = x/z]") == [
        "does not match",
        "✗ /a/b[c = x/z]   (/a/b[1] is 'v1v5', /a/b[2] is 'v4')   -- no `b` meets its predicate",
        "  ✗ c = x/z   (/a/b[1]/c is 'v1', /a/b[1]/x/z is 'v5')",
    ]


def test_the_values_of_functions_and_positions():
    assert lines("count(//b) = 3 or contains(//z, 'q')") == [
        "does not match",
        "✗ or",
        "  ✗ count(//b) = 3   (count(//b) is 2)",
        "  ✗ contains(//z, 'q')   (/a/b[1]/x/z is 'v5', /a/b[2]/x/w/z is 'v4')",
    ]
    assert lines("/a/b[2][c]/following-sibling::b") == [
        "does not match",
        "✗ /a/b[position() = 2][c]/following-sibling::b   -- no node of `b` meets its predicates",
        "  ✓ position() = 2   (position() is 2)",
        "  ✗ c   -- no `c` below /a/b",
    ]
    assert lines("//z/ancestor::q")[1] == "✗ //z/ancestor::q   -- no `ancestor::q` from /a/b/x/z or /a/b/x/w/z"


def test_nested_predicates_on_nested_elements_take_no_power_of_time():
    document = b"<a>" * 60 + b"</a>" * 60
    text = "//a" + "[.//a" * 12 + "[b]" + "]" * 12
    with without_hanging():
        assert not holds(parse(text), document)
        assert not explain(parse(text), document).matched
