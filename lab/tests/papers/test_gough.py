"""Gough's tree: one path for an event, shared sets, built anew after changes, and rejected where it would explode."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine, Limits
from harken.codes.columns import Column, ColumnPredicates
from harken.codes.flat import Flat
from harken.errors import CapabilityError, LimitError
from harken.events import EventBatch, validate
from harken.limits import DEFAULT_LIMITS
from harken.matchers import algorithm_traits, create_matcher
from harken.matchers.base import Trait
from harken.schema import Kind
from harken_lab.papers import growing
from harken_lab.papers.gough import Gough
from harken_lab.papers.hanson import Hanson
from harken_lab.workloads import generate
from unit.matchers.subscribed import Subscribed, batch


def gough(*texts: str, limit: int = DEFAULT_LIMITS.max_tree_nodes, **options: Any) -> Subscribed:
    return Subscribed("gough", *texts, limits=Limits(max_tree_nodes=limit), **options)


def flat_of(workload: Any, count: int) -> Flat:
    return Flat.of_predicates(np.arange(count, dtype=np.int32), workload.predicates)


def answers(matcher: Any, events: EventBatch) -> list[list[int]]:
    return [sorted(each) for each in matcher.match(events, {}.__getitem__).by_event()]


def equalities(*values: np.ndarray) -> Flat:
    """Rows that each ask for one value of every attribute."""
    rows = np.arange(len(values[0]), dtype=np.int32)
    before, after = np.zeros(len(rows), np.uint8), np.ones(len(rows), np.uint8)
    columns = []
    for number, each in enumerate(values):
        constants, places = np.unique(each, return_inverse=True)
        at = places.astype(np.int32)
        column = Column((f"a{number}",), Kind.NUMBER)
        columns.append(ColumnPredicates(column, constants, rows, at, before, at, after))
    return Flat.of_predicates(rows, columns)


def test_what_is_examined_are_the_rows_of_one_leaf() -> None:
    subscribed = gough("x = 1", "x = 1 AND y = 1", "y = 1", "y > 5 AND z = 2")
    result = subscribed.matcher.match(batch({"x": 1, "y": 1}, {"x": 1}, {"y": 6}, {}), subscribed.forms.__getitem__)
    assert result.candidates.tolist() == [3, 1, 0, 0]
    assert subscribed.match({"x": 1, "y": 1}, {"x": 1}, {"y": 6}, {}) == [[0, 1, 2], [0], [], []]


def test_edges_are_the_intervals_that_rows_tell_apart() -> None:
    stats = gough("x = 1", "x > 3").stats
    # Up to 1, 1, to 3, and beyond; what is missing goes with what is below 1, and leads nowhere.
    assert [stats[name] for name in ("nodes", "edges", "cells", "depth")] == [3, 4, 2, 2]


def test_a_level_that_no_row_asks_of_is_left_out() -> None:
    stats = gough("x = 1 AND z = 1", "x = 2 AND y = 1 AND z = 1").stats
    assert stats["depth"] == 4
    stats = gough("x = 1 AND y = 1", "x = 2 AND z = 1").stats
    assert stats["depth"] == 3


def test_equal_sets_are_shared() -> None:
    texts = [f"x = {value}" for value in range(10)] + ["y = 1", "y = 2"]
    shared, alone = gough(*texts), gough(*texts, share=False)
    assert shared.stats["nodes"] < alone.stats["nodes"]
    events = [{"x": x, "y": y} for x in (-1, 0, 5, 5.5, 10) for y in (0, 1, 2)] + [{"y": 1}, {"x": 3}, {}]
    assert shared.match(*events) == alone.match(*events)


def test_a_wrong_option_is_rejected() -> None:
    with pytest.raises(CapabilityError, match="`share` is True or False, not 'yes'"):
        create_matcher("gough", share="yes")


def test_changes_are_not_in_place() -> None:
    assert algorithm_traits("gough") == frozenset({Trait.UNSUBSCRIBE})


@pytest.mark.parametrize("share", [True, False])
def test_small_sets_are_right(share: bool) -> None:
    workload = generate("le-subscribe", 40, 256)
    matcher, other = Gough(share=share), Hanson()
    for each in (matcher, other):
        each.add_flat(flat_of(workload, 40))
    events = validate(workload.events).batch
    assert answers(matcher, events) == answers(other, events)


def test_an_explosion_is_rejected_and_leaves_all_as_it_was() -> None:
    limits = Limits(max_tree_nodes=50_000)
    workload = generate("le-subscribe", 1_000, 128)
    flat, events = flat_of(workload, 1_000), validate(workload.events).batch
    matcher = Gough(limits)
    few = np.arange(1_000) < 20
    matcher.add_flat(flat.only(few))
    before = answers(matcher, events)
    with pytest.raises(LimitError, match="the tree of 1,000 rows has more than 50,000") as caught:
        matcher.add_flat(flat.only(~few))
    assert caught.value.limit == "max_tree_nodes"
    assert "`columnar`" in str(caught.value.hint)
    assert answers(matcher, events) == before
    assert matcher.stats()["rows"] == 20


def test_an_engine_rejects_one_subscription_and_keeps_the_rest() -> None:
    engine = Engine(algorithm="gough", limits=Limits(max_tree_nodes=300))
    kept = [number for number in range(30) if is_taken(engine, str(number), f"a{number} > 1")]
    event = {f"a{number}": 2 for number in range(30)}
    assert kept == list(range(len(kept)))
    assert 3 < len(kept) < 30
    assert sorted(engine.match(event).ids) == sorted(map(str, kept))
    engine.unsubscribe("0")
    assert is_taken(engine, "again", f"a{len(kept)} > 1")
    assert len(engine.match(event).ids) == len(kept)


def is_taken(engine: Engine, id: str, text: str) -> bool:
    try:
        engine.subscribe(id, text)
    except LimitError:
        return False
    return True


def test_many_equalities_are_held_and_found_on_one_path() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 1_000, 100_000), rng.integers(0, 300, 100_000)
    matcher = Gough()
    matcher.add_flat(equalities(first, second))
    stats = matcher.stats()
    assert stats["depth"] == 3
    assert stats["cells"] == 100_000
    asked = rng.integers(0, 1_000, 64), rng.integers(0, 300, 64)
    events = validate(pa.table({"a0": asked[0], "a1": asked[1]})).batch
    expected = [np.flatnonzero((first == one) & (second == other)).tolist() for one, other in zip(*asked, strict=True)]
    assert answers(matcher, events) == expected
    assert matcher.match(events, {}.__getitem__).candidates.tolist() == [len(each) for each in expected]


def test_many_distinct_equalities_on_one_attribute() -> None:
    matcher = Gough()
    matcher.add_flat(equalities(np.arange(100_000)))
    assert matcher.stats()["edges"] == 200_001
    assert answers(matcher, batch({"a0": 77}, {"a0": 0.5}, {"a0": 99_999}, {})) == [[77], [], [99_999], []]


def test_additions_within_a_sure_bound_are_built_at_the_next_match() -> None:
    subscribed = gough()
    for number in range(500):
        subscribed.add({number: f"x = {number % 50}"})
    assert len(subscribed.match({"x": 7})[0]) == 10
    assert subscribed.stats["builds"] == 1


def test_removed_rows_stay_in_the_tree_until_they_are_most() -> None:
    subscribed = gough("x = 1", "x < 3", "x > 0", "x = 2")
    assert subscribed.match({"x": 1}) == [[0, 1, 2]]
    subscribed.remove(1)
    assert subscribed.match({"x": 1}) == [[0, 2]]
    assert subscribed.stats["builds"] == 1
    subscribed.remove(0, 3)
    assert subscribed.match({"x": 1}) == [[2]]
    assert subscribed.stats["builds"] == 2
    assert subscribed.stats["cells"] == 1


def test_what_was_there_can_be_built_again_when_labels_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition that moves labels and is rejected has all others built anew, whatever their best order is now."""
    monkeypatch.setattr(growing, "_fitted", lambda labels: growing._even(len(labels)))
    rng = Random(7)
    subscribed = gough(limit=4_000)
    held: dict[int, str] = {}
    rejected = 0
    for number in range(120):
        text = " AND ".join(f"{name} < {rng.randint(0, 60) / 8}" for name in rng.sample("vwxyz", rng.randint(1, 3)))
        try:
            subscribed.add({number: text})
            held[number] = text
        except LimitError:
            rejected += 1
        if len(held) > 8 and rng.random() < 0.3:
            gone = rng.choice(sorted(held))
            subscribed.remove(gone)
            del held[gone]
        events = [{name: rng.randint(0, 64) / 8 for name in "vwxyz"} for _ in range(3)]
        expected = [sorted(number for number, each in held.items() if is_true(each, event)) for event in events]
        assert subscribed.match(*events) == expected
    assert rejected
    assert len(held) > 5


def is_true(text: str, event: dict[str, float]) -> bool:
    return all(event[part.split()[0]] < float(part.split()[2]) for part in text.split(" AND "))


@pytest.mark.parametrize("share", [True, False])
def test_churn_leaves_what_a_fresh_build_answers(share: bool) -> None:
    workload = generate("le-subscribe", 40, 128)
    flat, events = flat_of(workload, 40), validate(workload.events).batch
    rng = np.random.default_rng(5)
    order = rng.permutation(40)
    churned, fresh = Gough(share=share), Gough(share=share)
    for number in order[:30]:
        churned.add_flat(flat.only(np.arange(40) == number))
    churned.remove(order[:15].tolist())
    fresh.add_flat(flat.only(np.isin(np.arange(40), order[15:30])))
    assert answers(churned, events) == answers(fresh, events)
    churned.remove(order[15:30].tolist())
    stats = churned.stats()
    assert [stats[name] for name in ("rows", "nodes", "edges", "cells", "depth")] == [0] * 5
    assert answers(churned, events) == [[]] * 128


def test_statistics_name_the_structures() -> None:
    stats = gough("x = 1", "x < 2 AND y > 3").stats
    assert set(stats["memory"]) == {"nodes", "edges", "cells", "rows", "labels"}
    assert stats["bytes"] == sum(stats["memory"].values())
    assert stats["share"] is True
