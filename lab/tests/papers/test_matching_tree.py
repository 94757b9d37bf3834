"""The matching tree: what stands where, what is visited, and that nothing is left behind."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from harken import Engine
from harken.errors import CapabilityError, LimitError
from harken.events import Event, EventBatch
from harken.language import Compiler
from harken.limits import Limits
from harken.matchers import Entry, create_matcher
from harken_lab.papers.kernels import matching_tree_kernels as kernels
from harken_lab.papers.matching_tree import MatchingTree

OPTIONS = [
    {"test_order": test_order, "collapse": collapse, "successors": successors, "factor": factor}
    for test_order, collapse, successors, factor in product(
        ("popularity", "given"), (True, False), (True, False, "ahead"), (0, 1, 2)
    )
]


class Grown:
    """A tree of subscriptions, numbered as they come."""

    def __init__(self, *texts: str, limits: Limits | None = None, **options: Any) -> None:
        self.matcher: Any = MatchingTree(limits or Limits(), **options)
        self.forms: dict[int, Any] = {}
        self.add(*texts)

    def add(self, *texts: str, first: int | None = None) -> None:
        start = len(self.forms) if first is None else first
        entries = [Entry(start + i, Compiler(None).compile(text)) for i, text in enumerate(texts)]
        self.matcher.add(entries)
        self.forms.update((entry.number, entry.compiled.normal_form) for entry in entries)

    def found(self, **event: Any) -> set[int]:
        return set(self._match(event).numbers.tolist())

    def visited(self, **event: Any) -> int:
        return int(self._match(event).candidates[0])

    def stat(self, name: str) -> Any:
        return self.matcher.stats()[name]

    def _match(self, event: dict[str, Any]) -> Any:
        return self.matcher.match(EventBatch.of((Event.of(event),), (0,)), self.forms.__getitem__)


def check_structure(matcher: MatchingTree) -> None:
    """All nodes are reached, once; what is counted is there; what is there leads to a row."""
    tree, state = matcher._tree.table, matcher._tree.table.state
    ends: dict[int, list[tuple[int, int, int]]] = {}
    slots = tree.slots[tree.slots[:, kernels.KEY] != kernels.NONE]
    for key, end in slots.tolist():
        ends.setdefault(key >> 32, []).append((kernels.BY_LABEL, key & 0xFFFF_FFFF, end))
    assert len(slots) == state[kernels.HASHED]
    seen: set[int] = set()
    rows: list[int] = []
    todo = [(int(state[kernels.ROOT]), kernels.NONE, kernels.BY_STAR, 0)] if state[kernels.NODES] else []
    while todo:
        node, parent, edge, label = todo.pop()
        assert node not in seen
        seen.add(node)
        column, kind, star, yes, no, _, _, above = tree.nodes[node].tolist()
        low = int(tree.labels[node, kernels.LOW])
        assert (above, tree.edges[node], tree.marks[node]) == (parent, edge, label)
        assert kind != kernels.UNUSED
        if kind == kernels.LEAF:
            rows += entries_of(tree, node)
            continue
        results = ends.get(node, [])
        if kind == kernels.RANGE:
            assert not results
            results = [(kernels.BY_YES, 0, yes), (kernels.BY_NO, 0, no)]
        else:
            assert len(results) == no
            assert (low == 0) == (yes == kernels.NONE)
            results = [*results, (kernels.BY_LABEL, low, yes)]
        results = [each for each in results if each[2] != kernels.NONE]
        assert results or star != kernels.NONE
        if matcher._collapses and kind != kernels.FACTOR:
            assert results, "a node with a *-edge only"
        assert 0 <= column < len(matcher.rows.columns)
        todo += [(end, node, edge, label) for edge, label, end in results]
        todo += [(star, node, kernels.BY_STAR, 0)] if star != kernels.NONE else []
    assert len(seen) == state[kernels.NODES]
    assert len(rows) == state[kernels.ENTRIES]
    assert set(rows) == set(matcher.rows.alive().tolist())


def entries_of(tree: Any, leaf: int) -> list[int]:
    found = []
    entry = int(tree.nodes[leaf, kernels.FIRST])
    while entry != kernels.NONE:
        assert tree.entries[entry, kernels.LEAF_OF] == leaf
        found.append(int(tree.entries[entry, kernels.ROW]))
        entry = int(tree.entries[entry, kernels.NEXT])
    assert found
    return found


def is_empty(matcher: MatchingTree) -> bool:
    state = matcher._tree.table.state
    counts = (kernels.NODES, kernels.LEAVES, kernels.HASHED, kernels.ENTRIES)
    return all(state[each] == 0 for each in counts) and state[kernels.ROOT] == kernels.NONE


# What stands where


def test_rows_share_the_tests_that_they_begin_with() -> None:
    tree = Grown("a = 1 AND b = 2", "a = 1 AND b = 3", "a = 1")
    assert {name: tree.stat(name) for name in ("nodes", "edges", "leaves", "depth")} == {
        "nodes": 5,
        "edges": 4,
        "leaves": 3,
        "depth": 3,
    }
    assert tree.found(a=1, b=2) == {0, 2}
    assert tree.found(a=1) == {2}
    assert tree.found(b=2) == set()


def test_equal_rows_share_a_leaf() -> None:
    tree = Grown("a = 1 AND b < 2", "b < 2 AND a = 1", "a = 1 AND b < 2")
    assert (tree.stat("leaves"), tree.stat("entries")) == (1, 3)
    assert tree.found(a=1, b=0) == {0, 1, 2}


def test_many_values_of_one_column_are_one_test() -> None:
    tree = Grown(*(f"a = {value}" for value in range(100)))
    assert tree.stat("nodes") == 101
    assert tree.visited(a=50) == 2
    assert tree.found(a=50) == {50}


@pytest.mark.parametrize("factor", [0, 2])
def test_a_row_without_tests_always_holds(factor: int) -> None:
    tree = Grown("a IS NULL OR a IS NOT NULL", factor=factor)
    assert tree.stat("predicates") == 0
    assert tree.found() == {0}
    tree.add("a = 1 AND b = 1", "b = 2")
    assert tree.found() == tree.found(a=2) == tree.found(a=1, b=3) == {0}
    assert tree.found(a=1, b=1) == {0, 1}
    assert tree.found(a=1, b=2) == {0, 2}
    tree.matcher.remove([0])
    assert tree.found(a=1, b=1) == {1}
    check_structure(tree.matcher)


def test_the_column_that_is_asked_for_most_comes_first() -> None:
    texts = ("a = 1 AND b = 1", "b = 2", "b = 3 AND c = 1")
    assert Grown(*texts).stat("columns")[0] == "b number"
    assert Grown(*texts, test_order="given").stat("columns")[0] == "a number"


def test_a_column_of_equalities_comes_before_one_of_as_many_ranges() -> None:
    assert Grown("a < 1 AND b = 1", "a < 2 AND b = 2").stat("columns") == ["b number", "a number"]


def test_later_columns_come_behind_and_the_order_stays_until_the_tree_is_empty() -> None:
    tree = Grown("a = 1")
    tree.add(*(f"b = {value}" for value in range(9)))
    assert tree.stat("columns") == ["a number", "b number"]
    tree.matcher.remove(range(10))
    tree.add("b = 1", first=20)
    tree.add("b = 1 AND a = 1", first=21)
    assert tree.stat("columns")[0] == "b number"
    assert tree.found(a=1, b=1) == {20, 21}


# Ranges


def test_a_range_below_one_that_it_lies_in_is_not_visited_where_that_fails() -> None:
    tree = Grown("a < 10")
    tree.add("a < 5")
    tree.add("a BETWEEN 1 AND 3")
    assert tree.visited(a=20) == 1
    assert tree.found(a=2) == {0, 1, 2}
    assert tree.found(a=4) == {0, 1}
    assert tree.found(a=7) == {0}


def test_a_range_outside_another_is_visited_only_where_that_fails() -> None:
    tree = Grown("a < 10", successors=False)
    tree.add("a > 20")
    assert tree.visited(a=1) == 2
    assert tree.visited(a=15) == 2
    assert tree.found(a=30) == {1}
    assert tree.visited() == 1, "a missing value is neither inside nor outside"


def test_ranges_that_overlap_and_other_than() -> None:
    tree = Grown("a < 10", "a > 5", "a <> 7", "a BETWEEN 6 AND 12", "a <> 20", "a IS NOT NULL")
    assert tree.found(a=7) == {0, 1, 3, 4, 5}
    assert tree.found(a=20) == {1, 2, 5}
    assert tree.found(a=1) == {0, 2, 4, 5}
    assert tree.found() == set()


def test_rows_that_come_together_make_no_chain_even_if_they_are_sorted() -> None:
    tree = Grown(*(f"a < {value}" for value in range(1_000)))
    assert tree.stat("depth") < 60
    assert tree.visited(a=990) < 60
    assert len(tree.found(a=990)) == 9


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        ((4, 6), (4, 6), True),
        ((4, 6), (2, 6), True),
        ((4, 7), (2, 6), False),
        ((4, 6), (11, 9), True),
        ((4, 12), (11, 9), False),
        ((11, 9), (4, 6), False),
        ((13, 5), (11, 9), True),
        ((11, 9), (1, 0xFFFF_FFFF), True),
        ((1, 9), (11, 9), True),
    ],
)
def test_an_interval_lies_in_another(inner: tuple[int, int], outer: tuple[int, int], expected: bool) -> None:
    labels = [np.uint32(label) for label in (*inner, *outer)]
    assert kernels.within(*labels) == expected


# The optimisations

STARS = ("a = 1 AND z = 1", "b = 1 AND z = 1", "c = 1 AND z = 1", "d = 1 AND z = 1", "z = 2")


def test_collapsing_leaves_out_tests_that_nobody_asks_for() -> None:
    collapsed = Grown(*STARS, test_order="given", successors=False)
    plain = Grown(*STARS, test_order="given", successors=False, collapse=False)
    assert collapsed.stat("nodes") < plain.stat("nodes")
    assert collapsed.visited(a=1, z=1) < plain.visited(a=1, z=1)
    assert plain.stat("depth") == 6, "a level an attribute, and the leaf"


def test_successors_skip_tests_that_the_way_has_decided() -> None:
    texts = ["a = 1 AND b = 1 AND c = 1 AND d = 1", "b = 1 AND c = 1 AND d = 2", "c = 1 AND d = 3"]
    event = {"a": 1, "b": 1, "c": 1, "d": 3}
    plain, jumping = (Grown(*texts, test_order="given", successors=each) for each in (False, True))
    assert plain.found(**event) == jumping.found(**event) == {2}
    assert jumping.visited(**event) < plain.visited(**event)
    assert jumping.stat("successors") > 0
    assert plain.stat("successors") == 0


def test_an_equality_decides_the_ranges_of_its_column() -> None:
    texts = ["a = 50 AND b = 1", *(f"a < {bound} AND b = {bound}" for bound in range(1, 40))]
    plain, jumping = (Grown(*texts, test_order="given", successors=each) for each in (False, True))
    assert plain.found(a=50, b=1) == jumping.found(a=50, b=1) == {0}
    assert jumping.visited(a=50, b=1) == 3
    assert plain.visited(a=50, b=1) > 3


def test_successors_are_void_after_a_change() -> None:
    tree = Grown("a = 1 AND b = 1", "b = 1 AND c = 1", test_order="given")
    event = {"a": 1, "b": 1, "c": 1}
    assert tree.found(**event) == {0, 1}
    tree.add("b = 1", "c = 1", "a = 1 AND c = 1")
    assert tree.found(**event) == {0, 1, 2, 3, 4}
    tree.matcher.remove([1, 4])
    assert tree.found(**event) == {0, 2, 3}


@pytest.mark.seconds
def test_a_node_with_too_many_successors_is_cut_off() -> None:
    width = 150
    ones = [f"a{number} = 1" for number in range(width)]
    texts = [" AND ".join([*ones[:length], f"b{length} = 1"]) for length in range(1, width)]
    event = {f"{letter}{number}": 1 for letter in "ab" for number in range(width)}
    plain, jumping = (Grown(*texts, successors=each) for each in (False, True))
    assert plain.found(**event) == jumping.found(**event) == set(range(width - 1))
    assert jumping.visited(**event) <= plain.visited(**event)
    check_structure(jumping.matcher)


def test_the_version_of_successors_starts_again_when_its_numbers_end() -> None:
    tree = Grown("a = 1", "b = 1")
    assert tree.found(a=1, b=1) == {0, 1}
    assert tree.matcher._successors is not None
    tree.matcher._successors._state[0] = np.iinfo(np.int32).max
    tree.add("a = 1 AND b = 1")
    assert tree.found(a=1, b=1) == {0, 1, 2}


def test_factoring_puts_a_row_that_does_not_care_into_every_subtree() -> None:
    tree = Grown("a = 1", "a = 2", "a = 3", "b = 1", factor=1)
    assert tree.stat("entries") == 3 + 4
    assert tree.found(a=2, b=1) == {1, 3}
    assert tree.found(a=9, b=1) == tree.found(b=1) == {3}
    tree.add("a = 9 AND b = 1")
    assert tree.stat("entries") == 3 + 5 + 1
    assert tree.found(a=9, b=1) == {3, 4}


def test_factoring_tests_ranges_only_where_they_are_not_decided() -> None:
    tree = Grown("a = 1", "a = 5", "a = 9", "a < 6", "a <> 5", factor=1)
    assert tree.stat("entries") == 3 + 3 + 3
    assert tree.visited(a=5) == 2
    for value in (1, 3, 5, 7, 9, 11):
        assert tree.found(a=value) == {
            number for number, holds in enumerate((value == 1, value == 5, value == 9, value < 6, value != 5)) if holds
        }
    assert tree.found() == set()


def test_factoring_takes_the_columns_that_are_asked_for_one_value() -> None:
    tree = Grown("a < 1", "a < 2", "a < 3 AND b = 1", "c = 1 AND b = 2", factor=2)
    assert tree.stat("columns") == ["b number", "c number", "a number"]


def test_subtrees_of_values_that_nobody_asks_for_go_when_these_are_the_most() -> None:
    tree = Grown("b = 1", *(f"a = {value}" for value in range(20)), factor=1)
    full = tree.stat("entries")
    tree.matcher.remove(range(1, 6))
    assert tree.stat("entries") == full - 5
    tree.matcher.remove(range(6, 20))
    assert tree.stat("entries") == 2 + 1
    assert tree.found(a=19, b=1) == {0, 20}
    check_structure(tree.matcher)


# Successors ahead


def sets_of(matcher: MatchingTree) -> dict[int, list[int] | None]:
    """The successors of every node; None if it was cut off."""
    cache, tree = matcher._successors, matcher._tree.table
    assert cache is not None
    arrays = cache.arrays(len(tree.nodes), 0)
    used = np.flatnonzero(tree.nodes[:, kernels.KIND] != kernels.UNUSED).tolist()
    assert all(arrays.lists[node, 0] == arrays.state[0] for node in used), "all are computed"
    sets: dict[int, list[int] | None] = {}
    for node in used:
        _, start, size = arrays.lists[node].tolist()
        sets[node] = None if size < 0 else sorted(arrays.cells[start : start + size].tolist())
    return sets


@pytest.mark.parametrize("equalities_only", [True, False])
@pytest.mark.parametrize("options", [{}, {"collapse": False}, {"factor": 1}])
def test_sets_that_are_maintained_are_those_computed_afresh(options: dict[str, Any], equalities_only: bool) -> None:
    rng = Random(11)
    tree = Grown(*(subscription(rng, equalities_only) for _ in range(40)), successors="ahead", **options)
    alive = set(range(40))
    for number in range(40, 160):
        if rng.random() < 0.5 and alive:
            gone = {rng.choice(sorted(alive)) for _ in range(rng.randint(1, 3))}
            tree.matcher.remove(gone)
            alive -= gone
        else:
            tree.add(subscription(rng, equalities_only), first=number)
            alive.add(number)
        maintained = sets_of(tree.matcher)
        tree.matcher._rebuild_successors()
        assert maintained == sets_of(tree.matcher)
    stats = tree.matcher.stats()
    assert stats["successors"] == sum(len(each or ()) for each in maintained.values())
    assert stats["successor_sets"] == sum(bool(each) for each in maintained.values())
    assert stats["space"] == stats["edges"] + stats["successors"]


def test_sets_ahead_are_there_before_the_first_event_and_void_ones_leave_no_garbage() -> None:
    tree = Grown("a = 1 AND b = 1", "b = 1 AND c = 1", "c = 1", test_order="given", successors="ahead")
    assert tree.stat("successors") > 0
    used = []
    for step in range(3_000):
        tree.add(f"a = 1 AND d = {step % 50}", first=10 + step)
        tree.matcher.remove([10 + step])
        used.append(int(tree.matcher._successors._state[1]))
    assert max(used) < 5_000
    assert tree.found(a=1, b=1, c=1) == {0, 1, 2}


def test_one_change_leaves_the_sets_that_it_cannot_touch() -> None:
    rng = Random(5)
    tree = Grown(*(subscription(rng, equalities_only=True) for _ in range(300)), successors="ahead")
    before = int(tree.matcher._successors._state[1])
    tree.add("a = 1 AND b = 77", first=1_000)
    computed = int(tree.matcher._successors._state[1]) - before
    assert 0 < computed < before / 2


# Churn


def subscription(rng: Random, equalities_only: bool = False) -> str:
    parts = []
    for attribute in rng.sample("abcdef", rng.randint(1, 4)):
        operator = "=" if equalities_only else rng.choice(["=", "=", "<", ">", "<=", ">=", "<>", "BETWEEN"])
        bound = rng.randint(0, 5)
        if operator == "BETWEEN":
            parts.append(f"{attribute} BETWEEN {bound} AND {bound + rng.randint(1, 3)}")
        else:
            parts.append(f"{attribute} {operator} {bound}")
    return " AND ".join(parts)


def event(rng: Random) -> dict[str, int]:
    return {attribute: rng.randint(-1, 8) for attribute in "abcdef" if rng.random() < 0.85}


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())))
def test_all_options_find_what_naive_finds(options: dict[str, Any]) -> None:
    rng = Random(7)
    tree, naive = Grown(**options), Grown()
    naive.matcher = create_matcher("naive")
    texts: dict[int, str] = {}
    for step in range(4):
        new = {60 * step + number: subscription(rng) for number in range(60)}
        for each in (tree, naive):
            each.add(*new.values(), first=60 * step)
        texts |= new
        gone = rng.sample(sorted(texts), 45)
        for number in gone:
            del texts[number]
        for start in range(0, 45, 9):
            tree.matcher.remove(gone[start : start + 9])
            naive.matcher.remove(gone[start : start + 9])
        check_structure(tree.matcher)
        events = [event(rng) for _ in range(40)]
        assert [tree.found(**each) for each in events] == [naive.found(**each) for each in events]
    fresh = Grown(*texts.values(), **options)
    numbers = list(texts)
    for each in events:
        assert {numbers[place] for place in fresh.found(**each)} == tree.found(**each)
    for number in numbers:
        tree.matcher.remove([number])
    assert is_empty(tree.matcher)


@pytest.mark.parametrize("collapse", [True, False])
def test_with_equalities_the_tree_does_not_remember_what_is_gone(collapse: bool) -> None:
    rng = Random(3)
    texts = ["a = 0 AND b = 0 AND c = 0 AND d = 0 AND e = 0 AND f = 0"]
    texts += [subscription(rng, equalities_only=True) for _ in range(200)]
    tree = Grown(*texts, test_order="given", collapse=collapse)
    gone = set(rng.sample(range(1, 201), 150))
    tree.matcher.remove(gone)
    fresh = Grown(
        *(text for number, text in enumerate(texts) if number not in gone), test_order="given", collapse=collapse
    )
    for name in ("nodes", "leaves", "depth", "entries"):
        assert tree.stat(name) == fresh.stat(name)


def test_nodes_and_entries_are_recycled() -> None:
    tree = Grown("f = 1", *(f"a = {value} AND b < {value}" for value in range(50)))
    before = {name: tree.stat("memory")[name] for name in ("nodes", "edges", "leaves")}
    for number in range(51, 500):
        tree.add(f"a = {number % 77} AND b < {number % 5}", first=number)
        tree.matcher.remove([number - 50])
    assert {name: tree.stat("memory")[name] for name in before} == before
    check_structure(tree.matcher)


# Rejections


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"test_order": "best"}, "popularity, given"),
        ({"collapse": 1}, "True or False"),
        ({"successors": None}, "True or False"),
        ({"successors": "behind"}, "False or 'ahead'"),
        ({"factor": -1}, "factored out"),
        ({"factor": True}, "factored out"),
        ({"depth": 3}, "depth"),
    ],
)
def test_wrong_options_are_rejected(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CapabilityError, match=said):
        Engine(None, "matching_tree", **options)


@pytest.mark.parametrize("factor", [0, 1])
def test_a_tree_that_grows_too_large_is_rejected_and_stays_as_it_was(factor: int) -> None:
    tree = Grown("a = 1", "b = 1", limits=Limits(max_tree_nodes=30), factor=factor)
    before = [tree.stat(name) for name in ("nodes", "leaves", "entries", "columns")]
    with pytest.raises(LimitError, match="more than 30 nodes") as caught:
        tree.add(*(f"a = {value} AND c = {value}" for value in range(2, 20)))
    assert caught.value.limit == "max_tree_nodes"
    assert "columnar" in (caught.value.hint or "")
    assert [tree.stat(name) for name in ("nodes", "leaves", "entries")] == before[:3]
    assert tree.stat("columns")[:2] == before[3][:2]
    assert tree.found(a=1, b=1, c=2) == {0, 1}
    check_structure(tree.matcher)


def test_a_first_load_that_is_rejected_leaves_nothing() -> None:
    limits = Limits(max_tree_nodes=1_000)
    tree = Grown(limits=limits, factor=2)
    texts = [f"a = {value} AND b = {value}" for value in range(30)]
    with pytest.raises(LimitError):
        tree.add(*texts, "c = 1", "c = 2")
    assert is_empty(tree.matcher)
    tree.add(*texts)
    assert tree.found(a=3, b=3) == {3}


# Statistics


def test_statistics_tell_nodes_and_bytes_and_what_was_visited() -> None:
    tree = Grown("a = 1", "a = 2 AND b < 3")
    tree.found(a=2, b=1)
    stats = tree.matcher.stats()
    assert stats["examined"] == 3
    assert stats["options"] == {"test_order": "popularity", "collapse": True, "successors": True, "factor": 0}
    assert set(stats["memory"]) == {"nodes", "edges", "leaves", "successors", "rows", "labels"}
    assert all(size > 0 for size in stats["memory"].values())
