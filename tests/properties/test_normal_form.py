"""The normal form and the verifier against the reference, on the whole language, without a schema and with one."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import ContradictionError, LimitError
from harken.events import Event
from harken.language.ast import Expression, Not, conjunction, disjunction
from harken.language.ast import constants as constants_of
from harken.language.normalise import Template, normalise
from harken.language.sql.parser import parse
from harken.language.sql.printer import print_expression
from harken.language.sql.type_check import check
from harken.language.trees import FALSE
from harken.limits import DEFAULT_LIMITS
from harken.matchers import verify, verify_trees
from harken.reference import expressions as reference
from harken.schema import Schema
from properties.generators import Expressions, RawEvent, Vocabulary, nested_events, vocabulary_of
from properties.replay import TIMES, Bulk
from properties.scalars import one_in
from properties.typed import SCHEMA, TypedVocabulary, typed_events

_ROUNDS, _EXPRESSIONS, _EVENTS = 22, 40, 60


def test_verifier_agrees_with_reference_without_a_schema(bulk):
    found: Counter[str] = Counter()
    for rng in bulk.rounds(_ROUNDS):
        events = nested_events(rng, _EVENTS)
        found += compare_round(bulk, rng, vocabulary_of(events), events, None)
    assert_worth_the_time(found, bulk)


def test_verifier_agrees_with_reference_with_a_schema(bulk):
    found: Counter[str] = Counter()
    for rng in bulk.rounds(_ROUNDS):
        vocabulary = TypedVocabulary(rng)
        found += compare_round(bulk, rng, vocabulary, typed_events(rng, vocabulary, _EVENTS), SCHEMA)
    assert_worth_the_time(found, bulk)


@given(st.randoms(use_true_random=False))
def test_verifier_agrees_with_reference_without_a_schema_on_small_cases(rng):
    events = nested_events(rng, 2)
    compare(expression_of(rng, vocabulary_of(events)), [(event, Event.of(event)) for event in events], None)


@given(st.randoms(use_true_random=False))
def test_verifier_agrees_with_reference_with_a_schema_on_small_cases(rng):
    vocabulary = TypedVocabulary(rng)
    events = typed_events(rng, vocabulary, 2)
    compare(expression_of(rng, vocabulary), [(event, Event.of(event, SCHEMA)) for event in events], SCHEMA)


def test_long_lists_agree_with_the_reference(bulk):
    """Many alternatives on few attributes, and their negations: they are joined at once, not one after the other."""
    found: Counter[str] = Counter()
    for rng in bulk.rounds(_ROUNDS):
        schema = SCHEMA if one_in(rng, 2) else None
        events = nested_events(rng, _EVENTS // 2)
        vocabulary = vocabulary_of(events)
        if schema is not None:
            vocabulary = TypedVocabulary(rng)
            events = typed_events(rng, vocabulary, _EVENTS // 2)
        pairs = [(event, Event.of(event, schema)) for event in events]
        for _ in range(_EXPRESSIONS // 8):
            generator = Expressions(rng, vocabulary)
            several = [generator.predicate() for _ in range(rng.choice([3, 10, 40]))]
            listed = [Not(each) if one_in(rng, 3) else each for each in several]
            expression = (conjunction if one_in(rng, 4) else disjunction)(listed)
            found += compare(Not(expression) if one_in(rng, 3) else expression, pairs, schema)
            bulk.pairs += len(pairs)
    assert found["true"] > 0


def compare_round(
    bulk: Bulk, rng: Random, vocabulary: Vocabulary, events: list[RawEvent], schema: Schema | None
) -> Counter[str]:
    pairs = [(event, Event.of(event, schema)) for event in events]
    found: Counter[str] = Counter()
    for _ in range(_EXPRESSIONS):
        found += compare(expression_of(rng, vocabulary), pairs, schema)
    bulk.pairs += _EXPRESSIONS * len(events)
    return found


def compare(expression: Expression, pairs: list[tuple[RawEvent, Event]], schema: Schema | None) -> Counter[str]:
    """Compare both sides on every event, and count what was true, what never can be and what always is.

    The reference sees the raw event with its nulls and NaNs, the verifier its canonical form.
    """
    assert schema is None or not check(expression, schema), print_expression(expression)
    is_large = False
    try:
        form = normalise(expression, schema)
    except ContradictionError:
        form = None
    except LimitError:  # then there is a tree alone
        form, is_large = None, True
    try:
        tree = Template(expression, schema).tree([each.value for each in constants_of(expression)])
    except ContradictionError:
        tree = FALSE
    found = Counter({"never": form is None and not is_large, "always": form is not None and form.always})
    for raw, event in pairs:
        expected = reference.matches(expression, raw, schema)
        by_tree = verify_trees.holds(tree, event, DEFAULT_LIMITS)
        answer = by_tree if is_large else form is not None and verify.is_match(form, event)
        assert (answer, by_tree) == (expected, expected), (
            f"reference {expected}, verify {answer}, the tree {by_tree}\nevent: {raw}\n"
            f"expression: {print_expression(expression)}\n{form}\n{tree}"
        )
        found["true"] += expected
    return found


def expression_of(rng: Random, vocabulary: Vocabulary) -> Expression:
    """An expression; now and then one that is joined with its own negation, so that little or nothing is left of it."""
    generator = Expressions(rng, vocabulary)
    if not one_in(rng, 6):
        return generator.expression()
    expression = generator.expression(1)
    return (disjunction if one_in(rng, 2) else conjunction)([expression, Not(expression), generator.predicate()])


def assert_worth_the_time(found: Counter[str], bulk: Bulk) -> None:
    assert found["true"] > bulk.pairs * 0.15, found
    assert found["never"] > 0, found
    assert found["always"] > 0 or TIMES < 1, found


@pytest.mark.parametrize(
    "where",
    [
        "rating > 3 AND rating < 4",
        "rating > 5",
        "rating = 2.5",
        "NOT rating >= 1",
        "huge < 9007199254740992.0 AND huge > 9007199254740991",
        "flag AND NOT flag",
        "day > DATE '9999-12-31'",
        "at < TIMESTAMP '0001-01-01 00:00:00'",
        "s < ''",
        "s NOT LIKE '%'",
        "kind < 'cube'",
        "kind <= 'toy' AND kind <= 'lamp'",
        "size > 'no size'",
        "size < 'S' AND size IS NOT NULL",
        "n = 1 AND n IS NULL",
        "colour NOT IN ('red', 'green', 'blue')",
        "items.rating > 5 OR items.rating < 1",
        "FALSE",
    ],
)
def test_contradictions_are_rejected(where):
    with pytest.raises(ContradictionError):
        normalise(parse(where), SCHEMA)


@pytest.mark.parametrize(
    "where",
    [
        "TRUE",
        "NOT FALSE",
        "n IS NULL OR n IS NOT NULL",
        "NOT (n IS NULL AND n IS NOT NULL)",
        "rating >= 1 OR rating IS NULL",
        "flag OR NOT flag OR flag IS NULL",
        "kind <= 'toy' OR NOT kind <= 'toy' OR kind IS NULL",
        "colour IN ('red', 'green', 'blue') OR colour IS NULL",
        "1 < 2 OR n = 5",
    ],
)
def test_what_is_always_true_is_seen_to_be(where):
    assert normalise(parse(where), SCHEMA).always


@pytest.mark.parametrize("where", ["n >= 1 OR n < 1", "items.rating >= 1 AND items.name = 'x'", "rating >= 1"])
def test_what_holds_for_every_value_still_asks_for_one(where):
    form = normalise(parse(where), SCHEMA)
    assert not form.always
    assert not verify.is_match(form, Event.of({}, SCHEMA))
    apart = {"n": 0, "rating": 3, "items": [{"rating": 1}, {"name": "x"}]}
    assert verify.is_match(form, Event.of(apart, SCHEMA)) is reference.matches(parse(where), apart, SCHEMA)
