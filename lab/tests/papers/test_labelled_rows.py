"""Rows that come and go: their numbers and their room are used again, and what they say stays."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest

from harken.codes.flat import Flat
from harken.events import Event, EventBatch
from harken.language import Compiler
from harken.language.normal_form import NormalForm
from harken.matchers.verify import is_match
from harken_lab.papers import growing
from harken_lab.papers import labelled_rows as module
from harken_lab.papers.kernels.row_table import row_holds
from harken_lab.papers.labelled_rows import NONE, LabelledRows, grown, longer

COMPILER = Compiler()


def batch(*events: dict[str, Any]) -> EventBatch:
    return EventBatch.of(tuple(map(Event.of, events)), tuple(range(len(events))))


class Kept:
    """Rows, with the forms that they were made of."""

    def __init__(self, widest: int = 0) -> None:
        self.rows = LabelledRows(widest)
        self.forms: dict[int, NormalForm] = {}

    def add(self, texts: dict[int, str]) -> tuple[list[int], bool]:
        forms = {number: COMPILER.compile(text).normal_form for number, text in texts.items()}
        self.forms |= forms
        rows, has_moved = self.rows.add(Flat.of_forms(forms.items()))
        return rows.tolist(), has_moved

    def remove(self, *numbers: int) -> None:
        self.rows.remove(self.rows.of(numbers))
        for number in numbers:
            del self.forms[number]

    def true_of(self, *events: dict[str, Any]) -> list[set[int]]:
        """The subscriptions that have a row that holds, for each event."""
        codes = self.rows.encode(batch(*events)).codes
        alive = self.rows.alive().tolist()
        return [
            {int(self.rows.numbers[row]) for row in alive if row_holds(self.rows.table, row, codes, event)}
            for event in range(len(events))
        ]

    def expected(self, *events: dict[str, Any]) -> list[set[int]]:
        return [{number for number, form in self.forms.items() if is_match(form, Event.of(event))} for event in events]


def numbered(texts: Iterable[str]) -> dict[int, str]:
    return dict(enumerate(texts))


def test_there_are_none_at_first() -> None:
    kept = Kept()
    assert (kept.rows.size, kept.rows.count, kept.rows.predicates) == (0, 0, 0)
    assert kept.rows.alive().tolist() == []
    assert kept.true_of({"x": 1}) == [set()]
    assert kept.rows.encode(batch({"x": 1})).codes.shape == (0, 1)


def test_rows_are_what_the_forms_are() -> None:
    kept = Kept()
    texts = ["x = 1", "x <> 1", "x > 1 AND x <= 3", "x NOT BETWEEN 1 AND 2", "TRUE", "x < 1 OR y = 'a'", "y IS NULL"]
    rows, has_moved = kept.add(numbered(texts))
    assert rows == list(range(8))
    assert not has_moved
    events: list[dict[str, Any]] = [{"x": x} for x in (0, 1, 1.5, 2, 3, 4)]
    events += [{}, {"y": "a"}, {"x": "a"}, {"x": 1, "y": "b"}]
    assert kept.true_of(*events) == kept.expected(*events)
    assert kept.rows.repeats
    assert kept.rows.predicates == 7


def test_predicates_of_a_row_stand_in_the_order_of_columns() -> None:
    kept = Kept()
    kept.add({0: "b = 1 AND c = 1"})
    ((row,), _) = kept.add({1: "a = 1 AND c = 2 AND b > 3"})
    table = kept.rows.table
    columns = table.columns[table.starts[row] : table.starts[row] + table.sizes[row]]
    assert columns.tolist() == sorted(columns.tolist())
    assert [str(kept.rows.columns[place]) for place in columns] == ["b number", "c number", "a number"]


def test_numbers_of_rows_are_used_again_without_holes() -> None:
    kept = Kept()
    kept.add(numbered(f"x = {number}" for number in range(10)))
    kept.remove(3, 7, 5)
    assert kept.rows.count == 7
    assert kept.rows.numbers[[3, 5, 7]].tolist() == [NONE] * 3
    rows, _ = kept.add({20: "x = 1 OR y = 2", 21: "y = 3", 22: "y = 4"})
    assert sorted(rows) == [3, 5, 7, 10]
    assert kept.rows.size == 11
    assert kept.rows.alive().tolist() == list(range(11))


def test_rows_that_were_added_last_can_be_taken_back() -> None:
    kept = Kept()
    kept.add(numbered(f"x = {number}" for number in range(4)))
    kept.remove(1, 2)
    forms = dict(kept.forms)
    rows, _ = kept.add({5: "x = 7", 6: "x = 8 OR y = 1 OR z = 1"})
    assert sorted(rows) == [1, 2, 4, 5]
    kept.rows.take_back(np.array(rows, np.int32))
    kept.forms = forms
    assert (kept.rows.size, kept.rows.count) == (4, 2)
    assert kept.rows.alive().tolist() == [0, 3]
    assert kept.true_of({"x": 3}, {"x": 7}, {"z": 1}) == [{3}, set(), set()]
    rows, _ = kept.add({1: "y = 1", 2: "y = 2", 4: "y = 3"})
    assert sorted(rows) == [1, 2, 4]


def test_the_rows_of_a_subscription_are_found() -> None:
    kept = Kept()
    kept.add({4: "x = 1 OR y = 2 OR z = 3", 5: "x = 2"})
    assert sorted(kept.rows.of([4]).tolist()) == [0, 1, 2]
    assert kept.rows.of([5, 4]).tolist()[0] == 3
    assert kept.rows.of([]).tolist() == []
    kept.remove(4)
    assert kept.rows.of([5]).tolist() == [3]


def test_inexact_rows_are_known() -> None:
    kept = Kept()
    kept.add({0: "x = 1", 1: "x LIKE '%a'", 2: "y = 1"})
    assert kept.rows.inexact[:3].tolist() == [False, True, False]
    kept.remove(1)
    kept.add({1: "y = 2"})
    assert not kept.rows.inexact[:3].any()


def test_rows_move_with_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_LEAST_STEP", 1 << 40)
    kept = Kept()
    kept.add(numbered(["x >= 10", "x <> 10", "x = 20", "x NOT BETWEEN 10 AND 20", "x < 10", "x IS NOT NULL"]))
    _, has_moved = kept.add({6: "x = 15 AND y = 1"})
    assert has_moved
    events = [{"x": x, "y": 1} for x in (9, 10, 12, 15, 18, 20, 21)]
    assert kept.true_of(*events) == kept.expected(*events)


def test_dense_labels_move_and_stay_right() -> None:
    kept = Kept(widest=1_000)
    kept.add(numbered(["x >= 10", "x = 20", "x > 14 AND x < 15", "x <> 12"]))
    _, has_moved = kept.add({4: "x < 5"})
    assert has_moved
    assert kept.rows.dictionaries[0].is_dense
    events = [{"x": x} for x in (4, 5, 9, 10, 12, 14, 14.5, 15, 20, 99)]
    assert kept.true_of(*events) == kept.expected(*events)


def test_what_goes_is_collected_and_answers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 8)
    kept = Kept()
    kept.add(numbered(f"x = {number} AND y > {number}" for number in range(20)))
    kept.remove(*range(0, 20, 2))
    assert len(kept.rows.dictionaries[0]) == 20
    kept.remove(*range(1, 10, 2))
    assert [len(each) for each in kept.rows.dictionaries] == [5, 5], "constants that no row has are forgotten"
    assert kept.rows.predicates == 10
    events = [{"x": x, "y": x + 1} for x in range(20)]
    assert kept.true_of(*events) == kept.expected(*events)
    kept.remove(*kept.forms)
    assert (kept.rows.count, kept.rows.predicates) == (0, 0)
    assert [len(each) for each in kept.rows.dictionaries] == [0, 0]


@pytest.mark.parametrize("widest", [0, 5, 1_000])
@pytest.mark.parametrize("least_step", [4, 1 << 28])
def test_churn(widest: int, least_step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 8)
    monkeypatch.setattr(growing, "_LEAST_STEP", least_step)
    rng = Random(f"{widest} {least_step}")
    kept = Kept(widest)
    events = [{name: rng.choice([rng.randrange(-3, 12), rng.random() * 9]) for name in "xy"} for _ in range(30)]
    most = 0
    for _ in range(60):
        free = [number for number in range(40) if number not in kept.forms]
        kept.add({number: conjunction(rng) for number in rng.sample(free, min(len(free), rng.randrange(1, 5)))})
        most = max(most, kept.rows.count)
        kept.remove(*rng.sample(sorted(kept.forms), min(len(kept.forms), rng.randrange(5))))
        assert kept.true_of(*events) == kept.expected(*events)
        assert len(kept.rows.alive()) == kept.rows.count
    assert kept.rows.size <= most, "no holes grow"


def conjunction(rng: Random) -> str:
    parts = []
    for name in rng.sample("xy", rng.randrange(1, 3)):
        low = rng.choice([rng.randrange(10), rng.randrange(20) / 2])
        parts.append(
            rng.choice(
                [
                    f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {low}",
                    f"{name} BETWEEN {low} AND {low + rng.randrange(4)}",
                    f"{name} NOT BETWEEN {low} AND {low + rng.randrange(4)}",
                    f"{name} IN ({low}, {low + 2})",
                ]
            )
        )
    return " AND ".join(parts)


def test_arrays_grow_by_more_than_is_needed() -> None:
    assert grown(0, 1) == 64
    assert grown(100, 101) == 150
    assert grown(100, 1_000) == 1_000
    assert longer(np.array([1, 2], np.int32), 4, 7).tolist() == [1, 2, 7, 7]


def test_columns_that_nobody_asks_for_give_their_places_to_others() -> None:
    kept = Kept()
    kept.add({0: "a = 1"})
    for number in range(1, 50):
        kept.add({number: f"b{number} = {number} AND c{number} LIKE 'x%'"})
        events = [{"a": 1, f"b{number}": number, f"c{number}": "xy"}, {f"b{number}": [number, 7], f"c{number}": "x"}]
        assert kept.true_of(*events[:1]) == kept.expected(*events[:1])
        several = kept.rows.encode(batch(*events))
        assert several.several.tolist() == [1]
        assert len(several.starts) == len(kept.rows.columns) + 1
        kept.remove(number)
    assert len(kept.rows.columns) == 3
    assert kept.rows.inexact_count == 0
    assert kept.true_of({"a": 1}) == [{0}]
