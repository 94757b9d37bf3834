"""Flattening, coding and encoding lose no match; rows that are exact add none where an event has one binding."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harken.codes.conjunctions import Conjunctions
from harken.codes.encode import EncodedBatch, encode
from harken.codes.flat import Flat
from harken.errors import ContradictionError
from harken.events import Event, EventBatch
from harken.language.ast import Expression
from harken.language.normal_form import NormalForm
from harken.language.normalise import normalise
from harken.language.sql.printer import print_expression
from harken.reference import expressions as reference
from harken.schema import Schema
from properties.generators import Expressions, RawEvent, Vocabulary, nested_events, vocabulary_of
from properties.replay import TIMES
from properties.typed import SCHEMA, TypedVocabulary, typed_events

_ROUNDS, _EXPRESSIONS, _EVENTS = 10, 40, 60


def test_rows_agree_with_reference_without_a_schema(bulk):
    found: Counter[str] = Counter()
    for rng in bulk.rounds(_ROUNDS):
        events = half_single(nested_events(rng, _EVENTS))
        found += compare(rng, vocabulary_of(events), events, None)
        bulk.pairs += _EXPRESSIONS * _EVENTS
    assert_worth_the_time(found, bulk.pairs)


def test_rows_agree_with_reference_with_a_schema(bulk):
    found: Counter[str] = Counter()
    for rng in bulk.rounds(_ROUNDS):
        vocabulary = TypedVocabulary(rng)
        found += compare(rng, vocabulary, half_single(typed_events(rng, vocabulary, _EVENTS)), SCHEMA)
        bulk.pairs += _EXPRESSIONS * _EVENTS
    assert_worth_the_time(found, bulk.pairs)


@given(st.randoms(use_true_random=False))
def test_rows_agree_with_reference_on_small_cases(rng):
    events = nested_events(rng, 3)
    compare(rng, vocabulary_of(events), events, None, 2)


def half_single(events: list[RawEvent]) -> list[RawEvent]:
    """Every other event with one element of each array."""
    return [single(event) if index % 2 else event for index, event in enumerate(events)]


def single(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: single(inner) for key, inner in node.items()}
    return single(node[0]) if isinstance(node, list) and node else node


def compare(
    rng: Random, vocabulary: Vocabulary, events: list[RawEvent], schema: Schema | None, count: int = _EXPRESSIONS
) -> Counter[str]:
    """Index some expressions together, and judge every one on every event by its rows and by the reference."""
    generator = Expressions(rng, vocabulary)
    forms: dict[int, tuple[Expression, NormalForm]] = {}
    for number in range(count):
        expression = generator.expression()
        try:
            forms[number] = expression, normalise(expression, schema)
        except ContradictionError:
            continue
    entries = [(number, form) for number, (_, form) in forms.items()]
    rows = Flat.of_forms(entries).coded()
    canonical = tuple(Event.of(event, schema) for event in events)
    batch = encode(EventBatch.of(canonical, tuple(range(len(events)))), rows.columns, rows.dictionaries)
    several = set(batch.several.tolist())
    found: Counter[str] = Counter()
    for index, raw in enumerate(events):
        admitted = admitted_rows(rows, batch, index)
        candidates = Counter(rows.numbers[admitted].tolist())
        exact = set(rows.numbers[admitted & ~rows.inexact].tolist())
        repeated = [number for number, times in candidates.items() if times > 1 and index not in several]
        assert all(len(forms[number][1].conjunctions) > 1 for number in repeated), "rows of one exclude each other"
        for number, (expression, form) in forms.items():
            told = f"event: {raw}\nexpression: {print_expression(expression)}\n{form}"
            expected = reference.matches(expression, raw, schema)
            assert not expected or number in candidates, f"lost\n{told}"
            assert expected or number not in exact or index in several, f"not exact\n{told}"
            found["true"] += expected
            found["several"] += index in several
            found["exact"] += expected and number in exact and index not in several
    return found


def admitted_rows(rows: Conjunctions, batch: EncodedBatch, event: int) -> np.ndarray:
    """The rows all of whose predicates admit some value of the event, by looking at each of them."""
    place = int(np.searchsorted(batch.several, event))
    is_several = place < len(batch.several) and batch.several[place] == event
    admitted = np.ones(len(rows), np.bool_)
    for column, predicates in enumerate(rows.predicates):
        values = batch.of_several(place, column) if is_several else batch.codes[column, event : event + 1]
        if is_several:
            assert not batch.codes[:, event].any()
        hit = np.zeros(len(predicates.rows), np.bool_)
        for value in values[values > 0]:
            assert value <= predicates.top
            above, below = predicates.low <= value, value <= predicates.high
            hit |= np.where(predicates.low <= predicates.high, above & below, above | below)
        admitted[predicates.rows[~hit]] = False
    return admitted


def assert_worth_the_time(found: Counter[str], pairs: int) -> None:
    if TIMES < 1:
        return  # in a few rounds anything may be rare
    assert found["true"] > pairs * 0.15, found
    assert found["several"] > pairs * 0.1, found
    assert found["exact"] > pairs * 0.05, found
