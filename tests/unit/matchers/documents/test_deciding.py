"""Expressions that a program only covers: decided over the tree of a document, within a limit."""

from __future__ import annotations

import numpy as np
import pytest

from harken import Engine
from harken.errors import LimitError
from harken.events.xml.documents import read_document
from harken.language.xpath.parser import parse
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.documents import XPathMatcher
from harken.matchers.documents.node_conditions import NodeCondition
from harken.matchers.documents.node_tree import AXES_OF_NODE, NodeTree, along
from harken.reference.documents import axis_nodes, read
from properties.replay import Bulk
from properties.xpaths import random_document
from unit.deadline import without_hanging

DOCUMENT = b"<a><b i='1'><c>x</c></b><b i='2'>x</b></a>"
BUDGET = DEFAULT_LIMITS.max_xpath_visits


def matches(engine: Engine, document: bytes = DOCUMENT) -> list[str]:
    return sorted(engine.match(document).ids)


def test_the_axes_are_those_of_the_reference():
    for rng in Bulk("axes").rounds(30):
        source = random_document(rng)
        tree, root = NodeTree(read_document(source), 0, BUDGET), read(source)
        nodes, waiting = {}, [root]
        while waiting:
            node = waiting.pop()
            nodes[node.order] = node
            waiting += [*node.attributes, *node.children]
        assert tree.count == len(nodes)
        some = sorted(rng.sample(range(tree.count), rng.randint(1, min(4, tree.count))))
        for axis in AXES_OF_NODE:
            for place in some:
                assert AXES_OF_NODE[axis](tree, place) == [each.order for each in axis_nodes(axis, nodes[place])], axis
            united = {each.order for place in some for each in axis_nodes(axis, nodes[place])}
            assert along(tree, axis, some) == sorted(united), axis


def test_only_candidates_are_decided():
    engine = Engine()
    for number in range(100):
        engine.subscribe(f"s{number}", f"/a[key = '{number}' and b = c]", language="xpath")
    engine.merge()
    match = engine.match(b"<a><key>7</key><b>x</b><c>x</c></a>")
    assert match.ids == ["s7"]
    assert match.candidates <= 2


def test_a_recycled_number_does_not_keep_its_condition():
    engine = Engine()
    engine.subscribe("one", "/a/b[c = ../b/@i]", language="xpath")
    assert matches(engine) == []
    engine.unsubscribe("one")
    engine.subscribe("two", "/a/b", language="xpath")
    assert matches(engine) == ["two"]
    engine.subscribe("three", "/a/b[c = ../b]", language="xpath")
    assert matches(engine) == ["three", "two"]


def test_the_work_for_one_document_is_limited():
    document = b"<a>" + b"<b/>" * 300 + b"</a>"
    text = "//b[count(../b[count(../b) = 1]) = 1] or //b[position() = last()]/preceding-sibling::*[last()]"
    engine = Engine(limits=Limits(max_xpath_visits=1_000))
    engine.subscribe("costly", text, language="xpath")
    engine.subscribe("cheap", "//b[last()]", language="xpath")
    engine.subscribe("plain", "/a/b", language="xpath")
    match = engine.match(document)
    assert sorted(match.ids) == ["cheap", "plain"]
    assert "max_xpath_visits" in str(match.errors)
    in_sql = Engine(limits=Limits(max_xpath_visits=1_000))
    in_sql.subscribe("costly", f"xpath_boolean(doc, '{text}')")
    in_sql.subscribe("plain", "xpath_boolean(doc, '/a/b')")
    assert "plain" in in_sql.match({"doc": document.decode()}).ids


def test_nested_predicates_take_no_power_of_time():
    document = b"<a>" * 50 + b"</a>" * 50
    engine = Engine()
    engine.subscribe("deep", "//a" + "[.//a" * 12 + "[b = c]" + "]" * 12, language="xpath")
    engine.subscribe("wide", "//a[count(.//a) = count(ancestor::a)]", language="xpath")
    with without_hanging():
        assert not engine.match(document).ids
        assert engine.match(document[:-4] + b"</a>").errors == []


def test_an_expression_as_deep_as_the_limits_allow_is_decided():
    text = "/a[b = c or " + "count(" * 0 + "not(" * 97 + "b = d" + ")" * 97 + "]"
    tree = NodeTree(read_document(b"<a><b>1</b><d>2</d></a>"), 0, BUDGET)
    assert NodeCondition(parse(text)).holds(tree)
    nested = "b = c"
    for _ in range(95):
        nested = f"*[{nested}] = d"
    with pytest.raises(LimitError):
        parse(f"/{nested}", Limits(max_nesting=50))
    assert not NodeCondition(parse(f"/{nested}", Limits(max_xpath_steps=200))).holds(tree)


def test_conditions_are_parsed_from_their_text():
    condition = NodeCondition(NodeCondition(parse("/a/b[c = ../b]")).text)
    assert condition.holds(NodeTree(read_document(DOCUMENT), 0, BUDGET))


def test_programs_of_indexable_expressions_have_no_conditions():
    matcher = XPathMatcher()
    matcher.add_expressions({0: parse("/a[b = 'x']/c"), 1: parse("/a[b = c]"), 2: parse("not(/a)")})
    (segment,) = matcher.now()
    assert list(segment.index.programs.conditions) == [1]
    assert np.count_nonzero(segment.index.has_condition) == 1
