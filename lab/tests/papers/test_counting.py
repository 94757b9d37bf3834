"""Counting in its three layouts and two predicate indexes: predicates stand once, and changes are seen."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from harken import Engine, Limits
from harken.codes.flat import Flat
from harken.errors import CapabilityError, InvalidValueError, LimitError
from harken.events import validate
from harken.matchers import create_matcher
from harken.schema import parse_schema
from harken_lab.papers import row_matcher
from harken_lab.workloads import generate
from unit.matchers.subscribed import Subscribed, batch

LAYOUTS = ["counting_lists", "counting_bits", "counting_bytes"]
PUBLISHED = {
    "counting_lists": {"index": "linked", "vector": "bits", "growth": "constant"},
    "counting_bits": {"index": "linked", "vector": "bits", "deletion": "matrix"},
    "counting_bytes": {"index": "table", "vector": "bits", "deletion": "matrix"},
}
"""The options of each layout that are as ToPSS describes it."""
KINDS = [(layout, {"index": index}) for layout in LAYOUTS for index in ("lists", "table")] + [*PUBLISHED.items()]


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join([kind[0], *kind[1].values()]))
def kind(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    layout, options = request.param
    return layout, options


def subscribed(kind: tuple[str, dict[str, str]], *texts: str, **options: Any) -> Subscribed:
    return Subscribed(kind[0], *texts, **kind[1], **options)


def test_matches_are_numbers_by_event(kind: tuple[str, dict[str, str]]) -> None:
    found = subscribed(kind, "x = 1", "x = 2", "x < 5 OR y = 1", "TRUE", "x < 9 AND x <> 1", "x NOT BETWEEN 2 AND 4")
    assert found.match({"x": 1}, {"x": 9}, {"x": [1, 2]}, {"y": 1}, {}, {"x": 1, "y": 1}, {"x": 3.5}) == [
        [0, 2, 3, 5],
        [3, 5],
        [0, 1, 2, 3, 4, 5],
        [2, 3],
        [3],
        [0, 2, 3, 5],
        [2, 3, 4],
    ]


def test_nothing_to_match(kind: tuple[str, dict[str, str]]) -> None:
    assert subscribed(kind).match({"x": 1}, {}) == [[], []]
    assert subscribed(kind, "x = 1").match() == []


def test_more_matches_than_room(kind: tuple[str, dict[str, str]]) -> None:
    found = subscribed(kind, *(f"x >= {number % 50}" for number in range(500)))
    assert found.match(*[{"x": 100}] * 200, {"x": -1}, {"x": 0}) == [
        *[list(range(500))] * 200,
        [],
        list(range(0, 500, 50)),
    ]


def test_a_value_that_its_domain_does_not_have_is_told_and_the_rest_goes_on() -> None:
    colours = parse_schema(
        '[domains.c]\ntype = "enumerated"\nvalues = ["red", "green", "blue"]\n[attributes]\nc = "c"\nx = "integer"\n'
    )
    found = Subscribed("counting_lists", "c <> 'green'", "x = 1", schema=colours)
    result = found.matcher.match(batch({"c": "pink", "x": 1}), found.forms.__getitem__)
    assert list(result.by_event()) == [[1]]
    ((index, number, error),) = result.errors
    assert (index, number) == (0, 0)
    assert isinstance(error, InvalidValueError)


def test_three_hundred_predicates(kind: tuple[str, dict[str, str]]) -> None:
    found = subscribed(kind, "a0 = 1")
    found.add({1: " AND ".join(f"a{number} > {number}" for number in range(300))})
    event = {f"a{number}": number + 1 for number in range(300)}
    assert found.match(event, {**event, "a7": 7}) == [[0, 1], [0]]


def test_a_predicate_stands_once_and_its_number_is_recycled(kind: tuple[str, dict[str, str]]) -> None:
    found = subscribed(kind, *(f"x > 3 AND y = {number}" for number in range(40)))
    assert found.matcher.stats()["distinct_predicates"] == 41
    for number in range(40):
        found.remove(number)
        found.add({number: f"x > 3 AND y = {100 + number}"})
    assert found.matcher.stats()["distinct_predicates"] == 41
    assert found.matcher._predicates.size <= 42, "one more than there are, for the moment between"
    assert found.match({"x": 4, "y": 120}, {"x": 4, "y": 20}) == [[20], []]
    found.remove(*range(40))
    assert found.matcher.stats()["distinct_predicates"] == 0
    assert found.match({"x": 4, "y": 120}) == [[]]


def test_changes_are_seen_at_the_next_match(kind: tuple[str, dict[str, str]]) -> None:
    found = subscribed(kind, "x = 1", "x = 1", "TRUE")
    assert found.match({"x": 1}) == [[0, 1, 2]]
    found.remove(0)
    assert found.match({"x": 1}) == [[1, 2]]
    found.add({0: "x = 2", 3: "x > 0"})
    assert found.match({"x": 1}, {"x": 2}) == [[1, 2, 3], [0, 2, 3]]
    found.remove(2, 3)
    assert found.match({"x": 1}, {}) == [[1], []]


# Indexes


def test_tables_are_for_integers_within_the_limit() -> None:
    found = Subscribed("counting_lists", "x = 1", "x < 10", "y = 'a'", "z > 2.5", index="table")
    assert found.matcher.stats()["tables"] == 1
    found.add({4: "x > 100000000"})
    assert found.matcher.stats()["tables"] == 0, "too wide for a table, and found all the same"
    assert found.match({"x": 1}, {"x": 200_000_000}, {"y": "a", "z": 3}) == [[0, 1], [4], [2, 3]]


def test_a_table_grows_at_both_ends_and_ends_with_a_fraction() -> None:
    found = Subscribed("counting_lists", "x >= 10", "x = 11", index="table")
    for number, text in enumerate(["x < 3", "x > 40", "x <> 25", "x BETWEEN -5 AND 5"], 2):
        found.add({number: text})
        assert found.matcher.stats()["tables"] == 1
    events = [{"x": value} for value in (-6, -5, 2.5, 11, 25, 41)]
    expected = [[2, 4], [2, 4, 5], [2, 4, 5], [0, 1, 4], [0], [0, 3, 4]]
    assert found.match(*events) == expected
    found.add({6: "x > 10.5"})
    assert found.matcher.stats()["tables"] == 0
    assert found.match(*events) == [[2, 4], [2, 4, 5], [2, 4, 5], [0, 1, 4, 6], [0, 6], [0, 3, 4, 6]]


def test_the_first_stage_alone(kind: tuple[str, dict[str, str]]) -> None:
    found = subscribed(kind, "x = 1 AND y > 0", "x >= 1", "x < 5", "x <> 1", "x <> 2")
    encoded = found.matcher.encode(batch({"x": 1}, {"x": 2, "y": 1}, {}))
    assert found.matcher.satisfied(encoded) == 4 + 4


def test_an_index_that_there_is_not() -> None:
    with pytest.raises(CapabilityError, match="`index` is one of lists, linked, table, not 'hash'"):
        create_matcher("counting_lists", index="hash")


def test_a_column_without_constants_gets_its_first_one(kind: tuple[str, dict[str, str]]) -> None:
    found = subscribed(kind, "b <= 8 OR b >= 2")
    assert found.match({"b": 5}, {}) == [[0], []]
    found.add({1: "b = 5"})
    assert found.match({"b": 5}, {"b": 6}) == [[0, 1], [0]]
    found.remove(0)
    assert found.match({"b": 5}) == [[1]]


def test_most_rows_go_and_the_index_is_built_anew(
    kind: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_matcher, "_FEW", 8)
    found = subscribed(kind, *(f"x = {number} AND y > 3" for number in range(900)))
    found.remove(*range(20, 900))
    found.add({20: "x = 20 AND y > 3", 21: "z = 1"})
    assert found.matcher.stats()["rows"] == 22
    assert found.match({"x": 20, "y": 4}, {"x": 19, "y": 4}, {"x": 21, "y": 4}, {"z": 1}) == [[20], [19], [], [21]]


# Limits


@pytest.mark.parametrize("layout", ["counting_bits", "counting_bytes"])
def test_a_matrix_that_would_be_too_large_is_rejected_and_nothing_changes(layout: str) -> None:
    engine = Engine(algorithm=layout, limits=Limits(max_matrix_bytes=4_000))
    report = engine.subscribe_many((str(number), f"x = {number}") for number in range(60))
    taken = report.accepted
    assert not report.faults
    with pytest.raises(LimitError, match=r"a matrix of .* more than `max_matrix_bytes`, which is 4,000") as caught:
        engine.subscribe("many", " OR ".join(f"y{number} = {number}" for number in range(1_000)))
    assert caught.value.limit == "max_matrix_bytes"
    assert "columnar" in (caught.value.hint or "")
    assert len(engine) == taken
    assert engine.match({"x": taken - 1}).ids == [str(taken - 1)]
    assert engine.match({"x": taken}).ids == []
    engine.unsubscribe("3")
    engine.subscribe("again", "x = 3")
    assert engine.match({"x": 3}).ids == ["again"]


@pytest.mark.parametrize("layout", ["counting_bits", "counting_bytes"])
def test_a_matrix_never_takes_more_than_the_limit_however_rows_come(layout: str) -> None:
    matcher: Any = create_matcher(layout, Limits(max_matrix_bytes=20_000))
    given = generate("le-subscribe", 400, 1)
    rows = [
        Flat.of_predicates(np.arange(400, dtype=np.int32), given.predicates).only(np.arange(400) == number)
        for number in range(400)
    ]
    rng = np.random.default_rng(1)
    there: list[int] = []
    rejected = 0
    for number, row in enumerate(rows):
        try:
            matcher.add_flat(row)
            there.append(number)
        except LimitError:
            rejected += 1
        assert matcher._matrix.nbytes <= 20_000
        if there and rng.random() < 0.2:
            matcher.remove([there.pop(int(rng.integers(len(there))))])
    assert rejected > 0
    assert len(there) > 20
    expected: Any = create_matcher("counting_lists")
    for number in there:
        expected.add_flat(rows[number])
    events = validate(generate("le-subscribe", 1, 100).events).batch
    found = [
        [sorted(each) for each in made.match(events, lambda number: pytest.fail("nothing to verify")).by_event()]
        for made in (matcher, expected)
    ]
    assert found[0] == found[1]


def test_what_fits_is_taken_and_the_rest_is_told() -> None:
    table = generate("le-subscribe", 3_000, 1).table()
    engine = Engine(algorithm="counting_bytes", limits=Limits(max_matrix_bytes=1 << 20))
    report = engine.subscribe_many(table)
    assert 100 < report.accepted == len(engine) < 3_000
    assert len(report.faults) == 3_000 - report.accepted
    assert all(isinstance(fault.error, LimitError) for fault in report.faults)
    assert [fault.position for fault in report.faults] == list(range(report.accepted, 3_000))


# The same answers


@pytest.mark.parametrize("workload", ["w0", "w4", "le-subscribe", "stock", "gryphon"])
def test_all_layouts_agree(workload: str) -> None:
    given = generate(workload, 700, 60, seed=3)
    events = validate(given.events).batch
    answers = []
    for layout, options in KINDS:
        matcher: Any = create_matcher(layout, **options)
        matcher.add_flat(Flat.of_predicates(np.arange(700, dtype=np.int32), given.predicates))
        found = matcher.match(events, lambda number: pytest.fail("nothing is to be verified"))
        answers.append([sorted(each) for each in found.by_event()])
    assert all(each == answers[0] for each in answers)
    assert sum(map(len, answers[0])) > 0 or workload in ("w0", "stock")


def test_stats() -> None:
    found = Subscribed("counting_lists", "x = 1", "x = 1 OR y = 2")
    found.match({"x": 1})
    told = found.matcher.stats()
    assert told["subscriptions"] == 2
    assert (told["rows"], told["predicates"], told["distinct_predicates"], told["list_entries"]) == (3, 3, 2, 3)
    assert told["bytes"] == sum(told["memory"].values()) > 0
    assert (told["events"], told["examined"]) == (1, 2)


# As published


@pytest.mark.parametrize(
    ("layout", "options"),
    [
        ("counting_lists", {"vector": "bytes"}),
        ("counting_lists", {"growth": "never"}),
        ("counting_lists", {"deletion": "matrix"}),
        ("counting_bits", {"deletion": "lists"}),
        ("counting_bits", {"growth": "constant"}),
    ],
)
def test_published_forms_that_there_are_not(layout: str, options: dict[str, str]) -> None:
    with pytest.raises(CapabilityError, match=next(iter(options))):
        create_matcher(layout, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_published_forms_find_what_naive_finds_while_rows_come_and_go(layout: str) -> None:
    rng = Random(5)

    def text() -> str:
        tests = [f"{name} {rng.choice(['=', '<>', '<', '>'])} {rng.randint(1, 12)}" for name in rng.sample("abcd", 2)]
        return " AND ".join(tests)

    published, naive = Subscribed(layout, **PUBLISHED[layout]), Subscribed("naive")
    events = [{name: rng.randint(0, 13) for name in "abcd" if rng.random() < 0.8} for _ in range(20)]
    for step in range(4):
        texts = {100 * step + number: text() for number in range(80)}
        for each in (published, naive):
            each.add(texts)
        for number in rng.sample(sorted(published.forms), 50):
            published.remove(number)
            naive.remove(number)
        assert published.match(*events) == naive.match(*events)
    published.remove(*list(published.forms))
    assert published.matcher.stats()["distinct_predicates"] == 0


def test_a_row_is_removed_by_the_matrix_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = subscribed(("counting_bits", PUBLISHED["counting_bits"]), "x = 1 AND y < 5", "x = 1", "y < 5 AND z > 2")
    monkeypatch.setattr(type(found.matcher), "_release", None)
    found.remove(0, 2)
    assert found.matcher.stats()["distinct_predicates"] == 1
    assert found.match({"x": 1, "y": 1, "z": 9}) == [[1]]


def test_a_list_that_grows_by_a_constant_moves_more_often() -> None:
    texts = [f"x = 1 AND y = {number % 7}" for number in range(200)]
    constant, double = (Subscribed("counting_lists", *texts[:1], growth=growth) for growth in ("constant", "double"))
    for each in (constant, double):
        for number, text in enumerate(texts[1:], 1):
            each.add({number: text})
    rooms = [each.matcher._counted.lists.table.rooms for each in (constant, double)]
    assert int(rooms[0].max()) == 208, "the first multiple of the constant that holds all"
    assert int(rooms[1].max()) == 256
    assert constant.match({"x": 1, "y": 3}) == double.match({"x": 1, "y": 3})


def test_the_vector_has_a_bit_for_every_predicate() -> None:
    bits = Subscribed("counting_lists", *(f"x = {number}" for number in range(640)), vector="bits")
    assert bits.stats["memory"]["predicate vector"] == 80
    assert bits.match({"x": 3}) == [[3]]
    assert not bits.matcher._predicates.index.vector.any(), "cleared for the next event"


# What the paper says of costs


def test_lists_have_an_entry_for_each_predicate_and_are_walked_where_these_hold() -> None:
    workload = generate("w4", 300, 20, seed=2)
    matcher: Any = create_matcher("counting_lists")
    matcher.add_flat(Flat.of_predicates(np.arange(300, dtype=np.int32), workload.predicates))
    events = validate(workload.events).batch
    walked = matcher.match(events, lambda number: pytest.fail("nothing is to be verified")).candidates
    entries, satisfied = 0, np.zeros(20, np.int64)
    for each in workload.conditions:
        values = workload.events.column(each.attribute).to_pylist()
        constants = np.asarray(each.constants)[each.operands]
        entries += len(each.rows)
        for event, value in enumerate(values):
            by_operator = {0: value == constants, 1: value != constants, 2: value < constants, 4: value > constants}
            satisfied[event] += int(np.choose(each.operators, [by_operator.get(o, value < 0) for o in range(6)]).sum())
    assert matcher.stats()["list_entries"] == entries, "n subscriptions times their mean number of predicates"
    assert walked.tolist() == satisfied.tolist(), "the satisfied predicates, each with the rows that have it"


def test_a_matrix_has_a_bit_for_each_predicate_and_row() -> None:
    workload = generate("w4", 5_000, 0, seed=2)
    matcher: Any = create_matcher("counting_bits")
    matcher.add_flat(Flat.of_predicates(np.arange(5_000, dtype=np.int32), workload.predicates))
    stats = matcher.stats()
    cells = 8 * stats["memory"]["matrix"]
    assert stats["distinct_predicates"] * 5_000 <= cells <= stats["distinct_predicates"] * 5_056
