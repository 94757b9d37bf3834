"""Neon: predicates by operation, none shared; event types apart; attributes compared without verification."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from harken import Engine
from harken.errors import CapabilityError
from harken.language.sql import parse
from harken.matchers import create_matcher
from harken.reference import expressions as reference
from harken.schema import NewEventType, Schema, parse_schema
from harken.schema.event_types import EventType
from harken_lab.papers.kernels.lists import TOP, WASTED
from harken_lab.papers.neon import Neon
from unit.matchers.subscribed import Subscribed


def neon(*texts: str, **options: Any) -> Subscribed:
    return Subscribed("neon", *texts, **options)


def stats(of: Subscribed, *names: str) -> list[Any]:
    return [of.stats[name] for name in names]


def test_matches_are_numbers_by_event() -> None:
    subscribed = neon("x = 1", "x = 2", "x < 5 OR y = 1", "TRUE", "x < 9 AND x <> 1", "x NOT BETWEEN 1 AND 3")
    assert subscribed.match({"x": 1}, {"x": 9}, {"x": [1, 2]}, {"y": 1}, {}, {"x": 1, "y": 1}) == [
        [0, 2, 3],
        [3, 5],
        [0, 1, 2, 3, 4],
        [2, 3],
        [3],
        [0, 2, 3],
    ]


def test_nothing_to_match() -> None:
    assert neon().match({"x": 1}, {}) == [[], []]
    assert neon("x = 1").match() == []


def test_it_takes_no_options() -> None:
    with pytest.raises(CapabilityError, match="`neon` does not take the option"):
        create_matcher("neon", index="table")


# The tables


def test_predicates_are_not_shared() -> None:
    subscribed = neon(*["x = 1 AND y > 2"] * 5)
    assert stats(subscribed, "operations", "predicates", "subscriptions") == [2, 10, 5]


def test_an_interval_with_two_ends_is_two_predicates() -> None:
    assert stats(neon("x > 1 AND x < 5"), "operations", "predicates") == [2, 2]
    assert stats(neon("x > 1", "x <= 5", "x <> 3", "x = 3"), "operations", "predicates") == [4, 4]
    assert stats(neon("x NOT BETWEEN 1 AND 5"), "operations", "predicates") == [2, 2]


def test_all_predicates_of_an_attribute_that_an_event_has_are_evaluated() -> None:
    subscribed = neon("x = 1", "x = 2", "x > 7", "y = 1", "x = 3 AND y = 2")
    assert subscribed.candidates({"x": 1})[0] == 4
    assert subscribed.candidates({"y": 9})[0] == 2
    assert subscribed.candidates({"x": 1, "y": 1})[0] == 6
    assert subscribed.candidates({})[0] == 0
    assert stats(subscribed, "events", "examined") == [4, 12]


def test_what_goes_leaves_nothing() -> None:
    subscribed = neon("x = 1", "x > 2 AND y < 3 OR z = 'a'", "a < b", "event_type = 'sale' AND x = 1", "TRUE")
    subscribed.match({})
    subscribed.remove(0, 1, 2, 3, 4)
    names = ("operations", "predicates", "event_types", "pair_columns", "rows", "subscriptions")
    assert stats(subscribed, *names) == [0, 0, 0, 0, 0, 0]
    table = subscribed.matcher._table()
    assert all(lists.state[TOP] == lists.state[WASTED] for lists in table)
    assert not any(lists.rooms.any() or lists.sizes.any() for lists in table)
    assert subscribed.match({"x": 1, "event_type": "sale"}) == [[]]
    assert subscribed.candidates({"x": 1, "event_type": "sale"})[0] == 0
    assert len(subscribed.matcher._types) == 0
    subscribed.add({0: "x = 1"})
    assert subscribed.match({"x": 1}) == [[0]]


def test_operations_are_numbered_again() -> None:
    subscribed = neon("x = 1", "y = 1", "z = 1")
    for number in range(3, 50):
        subscribed.remove(number - 3)
        subscribed.add({number: f"{'xyz'[number % 3]} = {number}"})
    assert stats(subscribed, "operations", "predicates") == [3, 3]
    assert subscribed.matcher._operations.end <= 4
    assert subscribed.match({"x": 48, "y": 49, "z": 47}) == [[47, 48, 49]]


def test_bytes_are_told_by_structure() -> None:
    memory = neon("x = 1").matcher.stats()["memory"]
    assert set(memory) >= {"predicates", "predicates of rows", "n_predicates", "and", "rows", "labels"}
    assert all(size > 0 for size in memory.values())


# Event types


def test_rows_of_other_event_types_cost_nothing() -> None:
    subscribed = neon(
        *["event_type = 'sale' AND x = 1"] * 10, "event_type = 'rental' AND x = 1", "x = 1", "event_type = 'gift'"
    )
    assert stats(subscribed, "event_types", "operations") == [3, 4]
    assert subscribed.match({"event_type": "sale", "x": 1}) == [[*range(10), 11]]
    assert subscribed.candidates({"event_type": "sale", "x": 1})[0] == 11
    assert subscribed.candidates({"event_type": "rental", "x": 1})[0] == 2
    assert subscribed.candidates({"event_type": "unheard of", "x": 1})[0] == 1
    assert subscribed.candidates({"x": 1})[0] == 1
    assert subscribed.match({"event_type": "gift"}, {"event_type": "gift", "x": 1}) == [[12], [11, 12]]


def test_event_types_that_are_asked_for_otherwise_are_predicates() -> None:
    subscribed = neon("event_type <> 'sale'", "event_type < 'sale'", "event_type IN ('sale', 'gift')")
    assert subscribed.match(*({"event_type": each} for each in ("sale", "gift", "zoo")), {}) == [
        [2],
        [0, 1, 2],
        [0],
        [],
    ]
    assert stats(subscribed, "event_types") == [2]


def test_event_types_may_be_of_any_kind() -> None:
    subscribed = neon("event_type = 1", "event_type = '1'", "event_type = TRUE", "event_type IS NOT NULL")
    assert subscribed.match({"event_type": 1}, {"event_type": "1"}, {"event_type": True}, {"event_type": 2}) == [
        [0, 3],
        [1, 3],
        [2, 3],
        [3],
    ]


def test_an_event_of_several_types() -> None:
    subscribed = neon("event_type = 'a' AND x = 1", "event_type = 'b' AND x = 1", "event_type = 'c' AND x = 1")
    assert subscribed.match({"event_type": ["a", "b"], "x": 1}) == [[0, 1]]


def test_event_types_by_a_schema_that_is_extended() -> None:
    engine = Engine(Schema(event_types={"sale": EventType("sale", {})}), "neon")
    engine.subscribe("sales", "event_type = 'sale'")
    engine.extend_schema(NewEventType(EventType("rental", {})))
    engine.subscribe("rentals", "event_type = 'rental'")
    assert engine.match({"event_type": "rental"}).ids == ["rentals"]
    assert engine.match({"event_type": "sale"}).ids == ["sales"]
    assert sorted(engine.match({"event_type": ["sale", "rental"]}).ids) == ["rentals", "sales"]
    assert engine.stats()["matcher"]["event_types"] == 2


def test_event_types_come_and_go() -> None:
    rng = Random(3)
    subscribed = neon()
    kinds: dict[int, int] = {}
    for number in range(300):
        kind = rng.randrange(40)
        subscribed.add({number: f"event_type = 't{kind}'"})
        kinds[number] = kind
        if len(kinds) > 10:
            gone = rng.choice(sorted(kinds))
            subscribed.remove(gone)
            del kinds[gone]
        asked = rng.randrange(40)
        assert subscribed.match({"event_type": f"t{asked}"}) == [[n for n, each in kinds.items() if each == asked]]
    assert stats(subscribed, "event_types") == [len(set(kinds.values()))]
    assert subscribed.matcher._types.end <= 25


# Attribute against attribute

VALUES: list[Any] = [
    *(
        0,
        1,
        -1,
        0.0,
        -0.0,
        0.5,
        -0.5,
        2**53,
        2**53 + 1,
        2.0**53,
        2**63 - 1,
        2.0**63,
        -(2**63),
        -(2.0**63),
        1e300,
        1e-300,
    ),
    *("", "a", "b", "ab", "é", "\uffee", "😀", True, False, None, {"x": 1}),
]
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def test_comparisons_agree_with_the_reference_and_nothing_is_verified() -> None:
    texts = [f"{'NOT ' * negated}a {operator} b" for operator in OPERATORS for negated in (0, 1)]
    texts += [f"b {operator} a" for operator in OPERATORS] + ["a = a", "a <= a", "NOT a < a"]
    subscribed = neon(*texts)
    expressions = [parse(text) for text in texts]
    events = [{"a": left, "b": right} for left in VALUES for right in VALUES]
    expected = [
        [number for number, each in enumerate(expressions) if reference.matches(each, event)] for event in events
    ]
    assert subscribed.match(*events) == expected
    assert subscribed.verified == 0
    assert stats(subscribed, "pair_columns") == [2]


def test_dates_and_timestamps_are_compared() -> None:
    schema = parse_schema('[attributes]\nd = "date"\ne = "date"\ns = "timestamp"\nt = "timestamp"\n')
    engine = Engine(schema, "neon")
    engine.subscribe("days", "d < e")
    engine.subscribe("times", "s >= t")
    assert engine.match({"d": "2026-01-01", "e": "2026-01-02"}).ids == ["days"]
    assert engine.match({"s": "2026-01-01T00:00:00.000001", "t": "2026-01-01T01:00:00+01:00"}).ids == ["times"]


def test_a_comparison_is_one_predicate_among_others() -> None:
    subscribed = neon("a < b AND x = 1", "a < b AND a <> b AND b >= a", "x = 1")
    assert stats(subscribed, "predicates", "pair_columns") == [4, 1]
    assert subscribed.match({"a": 1, "b": 2, "x": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2, "x": 1}) == [
        [0, 1, 2],
        [1],
        [2],
    ]
    assert subscribed.candidates({"a": 1, "x": 1})[0] == 2
    assert subscribed.verified == 0


def test_comparisons_that_contradict_each_other_are_never_true() -> None:
    subscribed = neon("a = b AND a <> b OR x = 1")
    assert subscribed.match({"a": 1, "b": 2}, {"a": 1, "b": 1, "x": 1}) == [[], [0]]
    subscribed.remove(0)
    assert stats(subscribed, "rows") == [0]


def test_sets_of_values_are_verified() -> None:
    subscribed = neon("a < b", "a < b AND a > 3", "items.a < items.b", "items.a < items.b AND items.c = 1")
    assert subscribed.match(
        {"a": [1, 9], "b": 5},
        {"a": [1, "x"], "b": "y"},
        {"a": [4], "b": [[5]]},
        {"items": [{"a": 1}, {"b": 2}]},
        {"items": [{"a": 1, "b": 2}, {"c": 1}]},
        {"items": [{"a": 1, "b": 2, "c": 1}]},
    ) == [[0], [0], [0, 1], [], [2], [2, 3]]
    assert subscribed.verified > 0


def test_an_array_on_the_way_binds_a_comparison_to_what_else_goes_through_it() -> None:
    subscribed = neon("items.a < b AND items.c = 1")
    assert subscribed.match({"items": [{"a": 1}, {"c": 1}], "b": 5}, {"items": [{"a": 1, "c": 1}], "b": 5}) == [[], [0]]
    alone = neon("items.a < items.b")
    assert alone.match({"items": [{"a": 1}, {"b": 2}]}) == [[]]


def test_a_name_like_that_of_a_pair_is_another_attribute() -> None:
    subscribed = neon("a < b", "`a <=> b` = -1", "`a <=> b`.c = 1")
    assert subscribed.match({"a": 1, "b": 2}, {"a <=> b": -1}, {"a": 2, "b": 1, "a <=> b": {"c": 1}}) == [[0], [1], [2]]
    odd = neon("a < b", "`a <=> b`.c = 1")
    assert odd.match({"a": 1, "b": 2, "a <=> b": {"": 1, "c": 2}}) == [[0]]


SIZES = parse_schema(
    '[domains.size]\ntype = "enumerated"\nvalues = ["S", "M", "L", "none"]\norder = [["S", "M", "L"]]\n'
    '[attributes]\na = "size"\nb = "size"\n'
)


def test_an_order_of_a_domain_is_a_column_too() -> None:
    subscribed = neon("a < b", "NOT a >= b", "a = b", "a <> b", schema=SIZES)
    events = [{"a": "L", "b": "M"}, {"a": "S", "b": "M"}, {"a": "none", "b": "S"}, {"a": "S", "b": "S"}]
    assert subscribed.match(*events) == [[3], [0, 1, 3], [3], [2]]
    assert subscribed.verified == 0
    assert stats(subscribed, "pair_columns") == [1]


def test_comparisons_with_other_residuals_are_verified() -> None:
    subscribed = neon("a < b AND s LIKE '%x%'")
    assert subscribed.match({"a": 1, "b": 2, "s": "axa"}, {"a": 1, "b": 2, "s": "a"}, {"a": 2, "b": 1, "s": "x"}) == [
        [0],
        [],
        [],
    ]
    assert subscribed.verified == 2, "what the comparison excludes is no candidate"


# Churn


def test_churn_leaves_what_a_fresh_build_has() -> None:
    rng = Random(11)
    churned = neon()
    texts: dict[int, str] = {}
    for number in range(400):
        texts[number] = text(rng)
        churned.add({number: texts[number]})
        if len(texts) > 60:
            for gone in rng.sample(sorted(texts), 1 + rng.randrange(2)):
                churned.remove(gone)
                del texts[gone]
    fresh = neon()
    fresh.add(texts)
    events = [event(rng) for _ in range(100)]
    assert churned.match(*events) == fresh.match(*events)
    names = ("operations", "predicates", "event_types", "pair_columns", "rows")
    assert stats(churned, *names) == stats(fresh, *names)
    assert [churned.candidates(each)[0] for each in events] == [fresh.candidates(each)[0] for each in events]
    check_tables(churned.matcher)
    for number in rng.sample(sorted(texts), len(texts)):
        churned.remove(number)
    assert stats(churned, *names) == [0] * len(names)


def text(rng: Random) -> str:
    parts = [
        f"event_type = '{rng.choice('abc')}'",
        f"x {rng.choice(OPERATORS)} {rng.randrange(9)}",
        f"y BETWEEN {rng.randrange(5)} AND {rng.randrange(4, 9)}",
        f"z NOT BETWEEN {rng.randrange(5)} AND {rng.randrange(4, 9)}",
        f"x {rng.choice(OPERATORS)} y",
    ]
    return rng.choice([" AND ", " OR "]).join(rng.sample(parts, rng.randrange(1, 4)))


def event(rng: Random) -> dict[str, Any]:
    every = {"event_type": rng.choice("abcd"), **{name: rng.randrange(9) for name in "xyz"}}
    return {name: value for name, value in every.items() if rng.random() < 0.8}


def check_tables(matcher: Neon) -> None:
    """Every row knows where its predicates are."""
    constants, owners, of_rows = matcher._table()
    assert np.array_equal(constants.sizes, owners.sizes)
    assert 2 * owners.sizes.sum() == of_rows.sizes.sum()
    for row in matcher.rows.alive().tolist():
        cells = of_rows.cells[of_rows.starts[row] : of_rows.starts[row] + of_rows.sizes[row]]
        for which, place in cells.reshape(-1, 2).tolist():
            assert place < owners.sizes[which]
            assert owners.cells[owners.starts[which] + place] == row
