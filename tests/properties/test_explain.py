"""Explanations against the reference: the mark at the top tells whether the event matches, and telling never fails."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harken.events import Event
from harken.explain.expressions import MARKS, Clause, explain
from harken.language.ast import And, Expression, IsTruth, Not, Or
from harken.language.sql.printer import print_expression
from harken.reference import expressions as reference
from harken.schema import Schema
from properties.generators import Expressions, nested_events, vocabulary_of
from properties.typed import SCHEMA, TypedVocabulary, typed_events


def test_explanations_agree_with_the_reference(bulk):
    for rng in bulk.rounds(6):
        events = nested_events(rng, 20)
        generator = Expressions(rng, vocabulary_of(events))
        for expression in [generator.expression() for _ in range(20)]:
            for event in events:
                assert_explained(expression, Event.of(event), None)
        bulk.pairs += 400


def test_explanations_agree_with_the_reference_with_a_schema(bulk):
    for rng in bulk.rounds(6):
        vocabulary = TypedVocabulary(rng)
        events = typed_events(rng, vocabulary, 20)
        generator = Expressions(rng, vocabulary)
        for expression in [generator.expression() for _ in range(20)]:
            for event in events:
                assert_explained(expression, Event.of(event, SCHEMA), SCHEMA)
        bulk.pairs += 400


@given(st.randoms(use_true_random=False))
def test_explanations_agree_with_the_reference_on_small_cases(rng: Random):
    events = nested_events(rng, 2)
    expression = Expressions(rng, vocabulary_of(events)).expression()
    for event in events:
        assert_explained(expression, Event.of(event), None)


def assert_explained(expression: Expression, event: Event, schema: Schema | None) -> None:
    explanation = explain(expression, event.attributes, schema)
    expected = reference.matches(expression, event.attributes, schema)
    told = print_expression(expression), event.attributes, str(explanation)
    assert explanation.matched is expected, told
    assert (explanation.tree.truth is True) is expected, told
    first, second, *_ = str(explanation).split("\n")
    assert first == ("matches" if expected else "does not match"), told
    assert second.startswith(MARKS[explanation.tree.truth]), told
    assert json.loads(json.dumps(explanation.to_dict()))["matched"] is expected, told
    assert_follows(expression, explanation.tree, not has_array(event.attributes), told)


def assert_follows(node: Expression, part: Clause, flat: bool, told: Any) -> None:
    """The tree has the form of the expression; where nothing is bound, the marks follow from those below them."""
    items = node.items if isinstance(node, And | Or) else ()
    if isinstance(node, Not | IsTruth) and isinstance(node.item, And | Or | Not):
        items = (node.item,)
    if isinstance(node, Not) and isinstance(node.item, IsTruth) and isinstance(node.item.item, And | Or | Not):
        items = (node.item,)
    assert len(part.parts) == len(items), told
    if flat and items:
        below = [each.truth for each in part.parts]
        assert part.truth is joined(node, below), told
    for item, below_it in zip(items, part.parts, strict=True):
        assert_follows(item, below_it, flat, told)


def has_array(node: Any) -> bool:
    return isinstance(node, list) or (isinstance(node, dict) and any(map(has_array, node.values())))


def joined(node: Expression, truths: list[bool | None]) -> bool | None:
    if isinstance(node, Not):
        return None if truths[0] is None else not truths[0]
    if isinstance(node, IsTruth):
        return truths[0] is node.wanted
    decisive = isinstance(node, Or)
    return decisive if decisive in truths else None if None in truths else not decisive
