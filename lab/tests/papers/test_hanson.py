"""Hanson's algorithm: balanced trees whose marks say exactly what intervals hold, and one chosen predicate a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.flat import Flat
from harken.errors import CapabilityError
from harken.events import validate
from harken.matchers import create_matcher
from harken.schema import Kind
from harken_lab.papers import growing
from harken_lab.papers.hanson import Hanson
from harken_lab.papers.kernels.interval_tree import (
    ABOVE,
    AFTER,
    BELOW,
    COLUMN,
    END,
    ENDS,
    EQUAL,
    FLAG,
    HIGH,
    INTERVALS,
    KEY,
    LEFT,
    LOW,
    MARKED,
    MARKS,
    NODES,
    NONE,
    PARENT,
    RIGHT,
    IntervalTrees,
)
from harken_lab.workloads import generate
from unit.matchers.subscribed import Subscribed, batch


def hanson(*texts: str, **options: Any) -> Subscribed:
    return Subscribed("hanson", *texts, **options)


@dataclass
class Audit:
    """What the trees are, found by walking through them, and whether they are sound."""

    trees: IntervalTrees
    marks: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    """By interval: the lists on which it is marked, each as a node and a kind."""
    expected: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    nodes: int = 0

    def __post_init__(self) -> None:
        trees = self.trees
        alive = np.flatnonzero(trees.intervals[:, COLUMN] != NONE).tolist()
        self.marks = {interval: set() for interval in alive}
        self.expected = {interval: set() for interval in alive}
        for column, root in enumerate(trees.roots.tolist()):
            assert trees.nodes[root, KEY] == END
            assert trees.nodes[root, RIGHT] == NONE
            of_column = [interval for interval in alive if trees.intervals[interval, COLUMN] == column]
            self._walk(root, 0, 2 * END, of_column)
        assert self.marks == self.expected
        assert trees.state[NODES] == self.nodes
        assert trees.state[MARKS] == sum(map(len, self.marks.values()))
        assert trees.state[INTERVALS] == len(alive) + 1
        assert not trees.intervals[alive, FLAG].any()

    def _walk(self, node: int, bottom: int, top: int, intervals: list[int]) -> int:
        """Check a node, whose range lies between bottom and top, and all below it. Returns its height."""
        trees, key = self.trees, int(self.trees.nodes[node, KEY])
        assert bottom < key < top
        self.nodes += 1
        for kind in (BELOW, ABOVE, EQUAL, ENDS):
            self._read(node, kind)
        assert key == END or trees.nodes[node, ENDS] != NONE, "a node where nothing ends"
        for interval in intervals:
            self._expect(interval, node, bottom, key, top)
        heights = []
        for side, (low, high) in enumerate(((bottom, key), (key, top))):
            kid = int(trees.nodes[node, LEFT + side])
            assert kid == NONE or trees.nodes[kid, PARENT] == node
            heights.append(0 if kid == NONE else self._walk(kid, low, high, intervals))
        if key != END:
            assert abs(heights[0] - heights[1]) <= 1
            assert trees.heights[node] == max(heights) + 1
        return max(heights) + 1

    def _read(self, node: int, kind: int) -> None:
        mark = int(self.trees.nodes[node, kind])
        while mark != NONE:
            interval = int(self.trees.marks[mark, MARKED])
            assert (node, kind) not in self.marks[interval], "marked twice"
            self.marks[interval].add((node, kind))
            mark = int(self.trees.marks[mark, AFTER])

    def _expect(self, interval: int, node: int, bottom: int, key: int, top: int) -> None:
        low, high = map(int, self.trees.intervals[interval, [LOW, HIGH]])
        parts = [(low, high)] if low <= high else [(1, high), (low, END - 1)]
        if key != END and key in (low & ~1, (high + 1) & ~1):
            self.expected[interval].add((node, ENDS))
        for least, most in parts:
            sides = {BELOW: (bottom + 1, key - 1), EQUAL: (key, key), ABOVE: (key + 1, top - 1)}
            if least <= bottom + 1 and most >= top - 1:
                continue
            for kind, (first, last) in sides.items():
                if least <= first and last <= most:
                    self.expected[interval].add((node, kind))


def of_numbers(low: np.ndarray, high: np.ndarray, first: int = 0) -> Flat:
    """A row for each pair, that asks for a value from low to high, with both; wrapped, and without both, where high is
    less."""
    constants, places = np.unique(np.concatenate([low, high]), return_inverse=True)
    low_at, high_at = np.split(places.astype(np.int32), 2)
    wrapped = low > high
    low_side, high_side = wrapped.astype(np.uint8), (~wrapped).astype(np.uint8)
    column = Column(("x",), Kind.NUMBER)
    rows = np.arange(len(low), dtype=np.int32)
    return Flat.of_predicates(
        rows + np.int32(first), [ColumnPredicates(column, constants, rows, low_at, low_side, high_at, high_side)]
    )


def test_rows_that_share_an_interval_share_its_marks() -> None:
    subscribed = hanson("x <= 5", "x <= 5 AND y <= 3", "x <= 5 AND z <= 5")
    alone = hanson("x <= 5")
    names = ("nodes", "height", "marks", "intervals")
    assert [subscribed.stats[name] for name in names] == [alone.stats[name] for name in names] == [1, 1, 2, 1]


def test_constants_are_shared_by_open_and_closed_ends() -> None:
    assert hanson("x < 5", "x <= 5", "x = 5", "x >= 5", "x > 5", "x <> 5").stats["nodes"] == 1


def test_the_most_selective_predicate_is_chosen() -> None:
    many = [f"x = {value}" for value in range(20)] + [f"y = {value}" for value in range(3)]
    subscribed = hanson(*many, "x = 50 AND y = 1", "x < 3 AND y = 9", "x > 2 AND y < 1", "x BETWEEN 1 AND 2 AND y > 0")
    assert subscribed.candidates({"y": 1}) == [1], "y = 1; x = 50 and x BETWEEN are chosen, not y = 1 and y > 0"
    assert subscribed.candidates({"x": 0}) == [1], "x = 0; y = 9 and y < 1 are chosen"
    assert subscribed.candidates({"x": 1}) == [2], "x = 1 and x BETWEEN"


def test_the_choice_changes_what_is_examined_and_not_what_is_found() -> None:
    workload = generate("le-subscribe", 3_000, 64)
    flat = Flat.of_predicates(np.arange(3_000, dtype=np.int32), workload.predicates)
    found = {}
    for choose in ("selective", "first"):
        matcher = create_matcher("hanson", choose=choose)
        matcher.add_flat(flat)
        result = matcher.match(validate(workload.events).batch, {}.__getitem__)
        found[choose] = [sorted(each) for each in result.by_event()], matcher.stats()["examined"]
    assert found["selective"][0] == found["first"][0]
    assert found["selective"][1] * 3 < found["first"][1] * 2


def test_a_wrong_choice_is_rejected() -> None:
    with pytest.raises(CapabilityError, match="`choose` is one of selective, first, not 'best'"):
        create_matcher("hanson", choose="best")


def test_rows_that_ask_for_nothing_are_found_by_every_event() -> None:
    subscribed = hanson("TRUE", "x = 1 OR x IS NULL OR x <> 1", "x IS NOT NULL")
    assert subscribed.match({}, {"x": 1}, {"y": 2}, {"x": "a"}) == [[0, 1], [0, 1, 2], [0, 1], [0, 2]]
    subscribed.remove(0, 1, 2)
    assert subscribed.match({}, {"x": 1}) == [[], []]


def test_a_tree_is_balanced_whatever_the_order() -> None:
    values = np.arange(256, dtype=np.int64)
    for order in (values, values[::-1], np.concatenate([values[::2], values[1::2]])):
        matcher = Hanson()
        matcher.add_flat(of_numbers(order, order + 1))
        stats = matcher.stats()
        assert stats["nodes"] == 257
        assert 9 <= stats["height"] <= 11
        Audit(matcher._index.trees)


@pytest.mark.parametrize("seed", range(8))
def test_marks_say_what_intervals_hold_however_rows_came_and_went(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 4 == 3:
        # Every new constant moves the labels of all others.
        monkeypatch.setattr(growing, "_fitted", lambda labels: growing._even(len(labels)))
    rng = Random(seed)
    matcher = Hanson()
    span = rng.choice([4, 20, 200])
    held: dict[int, tuple[int, int]] = {}
    for step in range(60):
        free = [number for number in range(150) if number not in held]
        for number in rng.sample(free, rng.randint(0, min(8, len(free)))):
            low, high = rng.randint(0, span), rng.randint(0, span)
            high = low if rng.random() < 0.3 else high
            matcher.add_flat(of_numbers(np.array([low]), np.array([high]), number))
            held[number] = low, high
        gone = rng.sample(sorted(held), rng.randint(0, min(len(held), 8 if step < 50 else len(held))))
        matcher.remove(gone)
        for number in gone:
            del held[number]
        Audit(matcher._index.trees)
        values = [rng.randint(-1, 2 * span + 1) / 2 for _ in range(20)]
        found = matcher.match(batch(*({"x": value} for value in values)), {}.__getitem__)
        for value, numbers in zip(values, found.by_event(), strict=True):
            expected = {
                number
                for number, (low, high) in held.items()
                if (low <= value <= high if low <= high else not high <= value <= low)
            }
            assert sorted(numbers) == sorted(expected)
    matcher.remove(list(held))
    assert_empty(matcher)


def assert_empty(matcher: Hanson) -> None:
    trees = matcher._index.trees
    Audit(trees)
    stats = matcher.stats()
    assert [stats[name] for name in ("rows", "nodes", "height", "marks", "intervals")] == [0] * 5
    assert (matcher._index.lists.table.rooms == 0).all()


def test_what_is_gone_is_used_again() -> None:
    matcher = Hanson()
    rng = np.random.default_rng(1)
    low = rng.integers(0, 1_000, 500)
    flat = of_numbers(low, low + rng.integers(0, 500, 500))
    matcher.add_flat(flat)
    matcher.remove(range(500))
    assert_empty(matcher)
    sizes = [len(each) for each in matcher._index.trees]
    for _ in range(5):
        matcher.add_flat(flat)
        matcher.remove(range(500))
    assert [len(each) for each in matcher._index.trees] == sizes
    assert_empty(matcher)


def test_churn_leaves_what_a_fresh_build_answers() -> None:
    workload = generate("le-subscribe", 4_000, 128)
    flat = Flat.of_predicates(np.arange(4_000, dtype=np.int32), workload.predicates)
    churned, fresh = Hanson(), Hanson()
    churned.add_flat(flat)
    order = np.random.default_rng(2).permutation(4_000)
    churned.remove(order[:3_000].tolist())
    kept = np.isin(np.arange(4_000), order[3_000:])
    fresh.add_flat(flat.only(kept))
    events = validate(workload.events).batch
    answers = [
        [sorted(each) for each in matcher.match(events, {}.__getitem__).by_event()] for matcher in (churned, fresh)
    ]
    assert answers[0] == answers[1]
    Audit(churned._index.trees)
    # They chose with other constants known: intervals differ a little.
    assert churned.stats()["intervals"] == pytest.approx(fresh.stats()["intervals"], rel=0.1)
    churned.remove(order[3_000:].tolist())
    assert_empty(churned)


def test_a_popular_end() -> None:
    """Many intervals end at one node, which takes the place of its neighbour: all of them are marked anew."""
    high = np.arange(1, 401)
    matcher = Hanson()
    matcher.add_flat(of_numbers(np.zeros(400, np.int64), high))
    assert matcher.stats()["nodes"] == 401
    matcher.remove(range(1, 400, 2))
    Audit(matcher._index.trees)
    matcher.remove(range(0, 400, 2))
    assert_empty(matcher)


def test_statistics_name_the_structures() -> None:
    stats = hanson("x = 1", "x < 2 AND y > 3").stats
    assert set(stats["memory"]) == {"nodes", "marks", "intervals", "lists", "rows", "labels"}
    assert stats["bytes"] == sum(stats["memory"].values())
    assert stats["choose"] == "selective"
