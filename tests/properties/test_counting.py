"""Counting with lists against the reference, on expressions and events at random."""

from __future__ import annotations

from random import Random

from harken import Engine
from harken.errors import ContradictionError
from harken.language.ast import Expression
from harken.language.printer import print_expression
from harken.schema import Schema
from properties.agreement import check
from properties.generators import Expressions, RawEvent, Vocabulary, nested_events, vocabulary_of
from properties.typed import SCHEMA, TypedVocabulary, typed_events

_ROUNDS, _EXPRESSIONS, _EVENTS = 10, 80, 60


def test_counting_agrees_with_reference_without_a_schema(bulk):
    true = 0
    for rng in bulk.rounds(_ROUNDS):
        events = nested_events(rng, _EVENTS)
        true += compare(rng, vocabulary_of(events), events, None)
        bulk.pairs += _EXPRESSIONS * _EVENTS
    assert true > bulk.pairs * 0.15


def test_counting_agrees_with_reference_with_a_schema(bulk):
    true = 0
    for rng in bulk.rounds(_ROUNDS):
        vocabulary = TypedVocabulary(rng)
        true += compare(rng, vocabulary, typed_events(rng, vocabulary, _EVENTS), SCHEMA)
        bulk.pairs += _EXPRESSIONS * _EVENTS
    assert true > bulk.pairs * 0.15


def compare(rng: Random, vocabulary: Vocabulary, events: list[RawEvent], schema: Schema | None) -> int:
    """Match all events with all expressions, some of which go again, and tell how often one was true."""
    engine = Engine(schema, "counting_lists", block=64)
    generator = Expressions(rng, vocabulary)
    expressions: dict[str, Expression] = {}
    for number in range(_EXPRESSIONS):
        expression = generator.expression()
        try:
            engine.subscribe(number, print_expression(expression))
            expressions[str(number)] = expression
        except ContradictionError:
            continue
    engine.match_batch(events[:1])
    for id in rng.sample(sorted(expressions), 5):
        engine.unsubscribe(id)
        del expressions[id]
    return check(engine, expressions, events, schema)
