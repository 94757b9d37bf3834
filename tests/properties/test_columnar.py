"""The columnar matcher against the reference and against naive, in every layout and every state of its layers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harken import Engine, Limits
from harken.errors import ContradictionError
from harken.language.ast import Expression
from harken.language.sql.printer import print_expression
from harken.matchers.columnar.costs import Costs
from harken.schema import Schema
from properties.agreement import Judge, check
from properties.generators import Expressions, RawEvent, Vocabulary, nested_events, vocabulary_of
from properties.replay import TIMES
from properties.typed import SCHEMA, TypedVocabulary, typed_events

_ROUNDS, _EXPRESSIONS, _EVENTS = 1, 60, 60 if TIMES > 1 else 30

ALONE = 1 << 30
"""Recent rows that never come to an end: everything stays in the delta."""
STATES: dict[str, dict[str, Any]] = {
    "as planned": {},
    "clusters": {"layouts": ("cluster",)},
    "clusters, never compacted": {"layouts": ("cluster",), "settings": {"compacted_rows": 0}},
    "lists": {"layouts": ("list",)},
    "pools": {"layouts": ("pool",)},
    "sketches": {"layouts": ("sketch",)},
    "sketches and lists": {"layouts": ("sketch", "list")},
    "clusters and pools": {"layouts": ("cluster", "pool")},
    "sieves": {"layouts": ("sieve",)},
    "sieves of few buckets": {"layouts": ("sieve",), "settings": {"most_buckets": 2, "least_buckets": 2}},
    "sieves and lists": {"layouts": ("sieve", "list"), "settings": {"costs": Costs(list_slot=1e6)}},
    "delta": {"recent_rows": ALONE, "settings": {"fixed_worth": ALONE}},
    "small": {"small_rows": ALONE},
    "many layers": {"recent_rows": 8},
    "programs": {"limits": Limits(max_conjunctions=0)},
}


@pytest.mark.parametrize("state", STATES)
def test_columnar_agrees_with_reference_without_a_schema(bulk, state):
    true = 0
    for rng in bulk.rounds(_ROUNDS):
        events = nested_events(rng, _EVENTS)
        true += compare(rng, vocabulary_of(events), events, None, STATES[state])
        bulk.pairs += 3 * _EXPRESSIONS * _EVENTS
    assert true > bulk.pairs * 0.1


@pytest.mark.parametrize("state", STATES)
def test_columnar_agrees_with_reference_with_a_schema(bulk, state):
    true = 0
    for rng in bulk.rounds(_ROUNDS):
        vocabulary = TypedVocabulary(rng)
        true += compare(rng, vocabulary, typed_events(rng, vocabulary, _EVENTS), SCHEMA, STATES[state])
        bulk.pairs += 3 * _EXPRESSIONS * _EVENTS
    assert true > bulk.pairs * 0.1


def compare(
    rng: Random, vocabulary: Vocabulary, events: list[RawEvent], schema: Schema | None, options: dict[str, Any]
) -> int:
    """Match all events with all expressions: as they came, after a merge, and after some went and others came."""
    engine = Engine(schema, "columnar", background=False, **{"small_rows": 0, **options})
    generator = Expressions(rng, vocabulary)
    expressions: dict[str, Expression] = {}
    judge = Judge(schema)
    add(engine, generator, expressions, 0, _EXPRESSIONS)
    true = check(engine, expressions, events, judge)
    if "recent_rows" not in options:
        engine.merge()
    for id in rng.sample(sorted(expressions), len(expressions) // 4):
        engine.unsubscribe(id)
        del expressions[id]
    true += check(engine, expressions, events, judge)
    add(engine, generator, expressions, _EXPRESSIONS, _EXPRESSIONS // 4)
    return true + check(engine, expressions, events, judge)


def add(engine: Engine, generator: Expressions, expressions: dict[str, Expression], first: int, count: int) -> None:
    for number in range(first, first + count):
        expression = generator.expression()
        try:
            engine.subscribe(number, print_expression(expression))
            expressions[str(number)] = expression
        except ContradictionError:
            continue
        if number % 16 == 15:
            engine.stats()  # which has what waits coded
