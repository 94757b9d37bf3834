"""Bindings: the reference, which factorises them, and the verifier against a plain enumeration of all bindings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import ContradictionError, LimitError
from harken.events import Event
from harken.language.ast import Expression
from harken.language.normalise import normalise
from harken.language.sql.parser import parse
from harken.language.sql.printer import print_expression
from harken.limits import Limits
from harken.matchers import verify
from harken.reference import expressions as reference
from properties.generators import Expressions, RawEvent, nested_events, vocabulary_of
from properties.replay import TIMES
from unit.deadline import without_hanging

_MOST_BINDINGS = 2_000


def bindings(node: Any) -> Iterator[Any]:
    """Every way to pick one element of every array, by the definition: nothing is shared with what is judged.

    Nulls and NaNs are no elements, and neither is an array without any; such an array is missing itself.
    """
    if isinstance(node, list):
        yield from (bound for element in node if has_element(element) for bound in bindings(element))
        if not any(map(has_element, node)):
            yield None
    elif isinstance(node, Mapping):
        for picked in product(*(list(bindings(value)) for value in node.values())):
            yield dict(zip(node, picked, strict=True))
    else:
        yield node


def has_element(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(has_element, node))
    return node is not None and node == node


def number_of_bindings(node: Any) -> int:
    if isinstance(node, list):
        return max(1, sum(number_of_bindings(element) for element in node if has_element(element)))
    count = 1
    for value in node.values() if isinstance(node, Mapping) else ():
        count *= number_of_bindings(value)
    return count


def matches_by_enumeration(expression: Expression, event: RawEvent) -> bool:
    return any(reference.truth(expression, event, bound) is True for bound in bindings(event))


def matches_by_normal_form(expression: Expression, event: RawEvent) -> bool:
    try:
        return verify.is_match(normalise(expression), Event.of(event))
    except ContradictionError:
        return False


def test_definition_on_an_example():
    event = {"a": [1, None, [2, []]], "b": [{"c": [3, 4]}, {}], "d": [], "e": 5}
    found = [(each["a"], each["b"].get("c"), each["d"], each["e"]) for each in bindings(event)]
    assert Counter(found) == Counter((a, c, None, 5) for a in (1, 2) for c in (3, 4, None))
    assert number_of_bindings(event) == len(found)


def test_reference_agrees_with_enumeration(bulk):
    several = 0
    for rng in bulk.rounds(50):
        events = [event for event in nested_events(rng, 30) if number_of_bindings(event) <= _MOST_BINDINGS]
        generator = Expressions(rng, vocabulary_of(events))
        for expression in [generator.expression(2) for _ in range(12)]:
            for event in events:
                assert_agreement(expression, event)
        bulk.pairs += 12 * len(events)
        several += sum(number_of_bindings(event) > 1 for event in events)
    assert several > min(1, TIMES) * 100  # events with one binding show nothing


@given(st.randoms(use_true_random=False))
def test_reference_agrees_with_enumeration_on_small_cases(rng: Random):
    events = [event for event in nested_events(rng, 2) if number_of_bindings(event) <= _MOST_BINDINGS]
    expression = Expressions(rng, vocabulary_of(events)).expression()
    for event in events:
        assert_agreement(expression, event)


def assert_agreement(expression: Expression, event: RawEvent) -> None:
    expected = matches_by_enumeration(expression, event)
    told = print_expression(expression), event
    assert reference.matches(expression, event) is expected, told
    bound = reference.find_binding(expression, event)
    assert bound is None or reference.truth(expression, event, bound) is True, told


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("items.price > 3 AND items.qty = 2", False),  # each of one item, but of no one item both
        ("items.price > 3 AND items.qty = 1", True),
        ("items.price > 3 AND NOT items.qty = 2", True),
        ("NOT (items.price > 3 AND items.qty = 1)", True),  # the other item
        ("items.qty = 1 OR items.qty = 9", True),
        ("items.price IS NULL", False),  # asks about the whole set, though one item has no price
        ("items.qty CONTAINS 2 AND items.price > 3", True),  # CONTAINS does not pick
        ("tags = 'x' AND tags = 'y'", False),
        ("tags CONTAINS 'x' AND tags CONTAINS 'y'", True),
        ("tags = 'x' AND items.qty = 2", True),  # independent arrays
        ("items.qty = other.qty AND items.price > 3", True),
        ("items.qty = other.qty AND items.qty = 2", False),
        ("items.qty = items.qty", True),
        ("items.qty < items.qty", False),
        ("deep = 4 AND deep > 3", True),
        ("deep = 4 AND deep < 3", False),
        ("nothing IS NULL AND empty IS NULL", True),
        ("NOT empty = 1", False),
    ],
)
def test_bindings_by_example(where, expected):
    event = {
        "items": [{"price": 5, "qty": 1}, {"qty": 2}],
        "other": [{"qty": 1}, {"qty": 3}],
        "tags": ["x", "y", None],
        "deep": [[1, [2]], [[4]]],
        "nothing": [None, float("nan"), []],
        "empty": [],
    }
    expression = parse(where)
    assert matches_by_enumeration(expression, event) is expected
    assert reference.matches(expression, event) is expected
    assert matches_by_normal_form(expression, event) is expected


@pytest.mark.parametrize("matches", [reference.matches, matches_by_normal_form], ids=["reference", "verify"])
@pytest.mark.parametrize("last", [11, 99], ids=["true", "false"])
def test_independent_arrays_are_decided_without_their_product(matches, last):
    """12^12 bindings would take days."""
    event = {f"a{index}": list(range(12)) for index in range(12)}
    goals = [f"a{index} = {last if index == 11 else 11}" for index in range(12)]
    assert_quick(matches, " AND ".join(goals), event, last == 11)
    assert_quick(matches, "NOT (" + " OR ".join(f"NOT {goal}" for goal in goals) + ")", event, last == 11)


@pytest.mark.parametrize("matches", [reference.matches, matches_by_normal_form], ids=["reference", "verify"])
def test_arrays_inside_independent_elements_are_decided_without_their_product(matches):
    event = {f"a{index}": [{"b": list(range(6)), "c": list(range(6))} for _ in range(6)] for index in range(6)}
    goals = [f"a{index}.b = 5 AND a{index}.c = {5 if index < 5 else 99}" for index in range(6)]
    assert_quick(matches, " AND ".join(goals[:5]), event, True)
    assert_quick(matches, " AND ".join(goals), event, False)


def test_the_verifier_decides_a_chain_of_arrays_link_by_link():
    event = {f"a{index}": list(range(12)) for index in range(12)}
    chain = [f"a{index} < a{index + 1}" for index in range(11)]
    assert_quick(matches_by_normal_form, " AND ".join(chain), event, True)
    assert_quick(matches_by_normal_form, " AND ".join([*chain, "a0 > 0"]), event, False)


def puzzle(arrays: int) -> tuple[str, RawEvent]:
    """As many arrays as there are different values and one more, and no two of them may pick the same."""
    pairs = [f"a{one} <> a{other}" for one in range(arrays) for other in range(one)]
    return " AND ".join(pairs), {f"a{index}": list(range(arrays - 1)) for index in range(arrays)}


def test_max_bindings():
    """Arrays that are all tied to each other are a puzzle, which neither side tries to solve at any price."""
    where, event = puzzle(12)
    expression = parse(where)
    with pytest.raises(LimitError) as caught:
        verify.is_match(normalise(expression), Event.of(event), Limits(max_bindings=1_000))
    assert caught.value.limit == "max_bindings"
    with pytest.raises(LimitError) as caught:
        reference.find_binding(expression, event, most_tries=1_000)
    assert caught.value.limit == "max_bindings"


def test_puzzles_below_max_bindings_are_solved():
    for arrays in range(2, 6):
        where, event = puzzle(arrays)
        assert_quick(reference.matches, where, event, False)
        assert_quick(matches_by_normal_form, where, event, False)
        more = {name: [*values, 99] for name, values in event.items()}
        assert_quick(reference.matches, where, more, True)
        assert_quick(matches_by_normal_form, where, more, True)


def assert_quick(matches: Any, where: str, event: RawEvent, expected: bool) -> None:
    expression = parse(where)
    with without_hanging():
        assert matches(expression, event) is expected
