"""Counting with lists: candidates are few, and changes between batches are seen, however they come about."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harken import Engine
from harken.errors import CapabilityError, InvalidValueError
from harken.events import Event, EventBatch
from harken.language import Compiler
from harken.language.normal_form import NormalForm
from harken.limits import Limits
from harken.matchers import Entry, create_matcher
from harken.matchers import counting_lists as module
from harken.matchers.counting_lists import CountingLists
from harken.schema import Schema, parse_schema


def batch(*events: dict[str, Any]) -> EventBatch:
    return EventBatch(tuple(map(Event.of, events)), tuple(range(len(events))))


class Subscribed:
    """A matcher, with the forms that an engine would keep for it."""

    def __init__(self, *texts: str, schema: Schema | None = None, **options: Any) -> None:
        self.matcher = CountingLists(**options)
        self.compiler = Compiler(schema)
        self.forms: dict[int, NormalForm] = {}
        self.add(dict(enumerate(texts)))

    def add(self, texts: dict[int, str]) -> None:
        entries = [Entry(number, self.compiler.compile(text)) for number, text in texts.items()]
        self.matcher.add(entries)
        self.forms.update((entry.number, entry.compiled.normal_form) for entry in entries)

    def remove(self, *numbers: int) -> None:
        self.matcher.remove(numbers)
        for number in numbers:
            del self.forms[number]

    def match(self, *events: dict[str, Any]) -> list[list[int]]:
        return [sorted(found) for found in self.matcher.match(batch(*events), self.forms.__getitem__).by_event()]


def test_matches_are_numbers_by_event() -> None:
    subscribed = Subscribed("x = 1", "x = 2", "x < 5 OR y = 1", "TRUE", "x < 9 AND x <> 1")
    assert subscribed.match({"x": 1}, {"x": 9}, {"x": [1, 2]}, {"y": 1}, {}, {"x": 1, "y": 1}) == [
        [0, 2, 3],
        [3],
        [0, 1, 2, 3, 4],
        [2, 3],
        [3],
        [0, 2, 3],
    ]


def test_candidates_are_those_that_could_be() -> None:
    subscribed = Subscribed("x = 1 AND y = 1", "x = 1", "x LIKE '%a'", "x < y", "x > 1 AND x < 5", "x = 3")
    result = subscribed.matcher.match(batch({"x": 1}, {"x": "ba"}, {"x": [0, 9]}), subscribed.forms.__getitem__)
    assert list(result.by_event()) == [[1], [2], []]
    assert result.candidates.tolist() == [1, 1, 1]


def test_nothing_to_match() -> None:
    assert Subscribed().match({"x": 1}, {}) == [[], []]
    assert Subscribed("x = 1").match() == []


def test_a_block_is_a_multiple() -> None:
    with pytest.raises(CapabilityError, match="does not take these options: a block is a multiple of 64 rows"):
        create_matcher("counting_lists", block=100)


def test_more_rows_than_a_block_and_more_matches_than_room() -> None:
    subscribed = Subscribed(*(f"x >= {number % 50}" for number in range(500)), block=64)
    assert subscribed.match({"x": 100}, {"x": -1}, {"x": 0}) == [
        list(range(500)),
        [],
        list(range(0, 500, 50)),
    ]


def test_a_value_that_its_domain_does_not_have_is_told_and_the_rest_goes_on() -> None:
    colours = parse_schema(
        '[domains.c]\ntype = "enumerated"\nvalues = ["red", "green", "blue"]\n[attributes]\nc = "c"\nx = "integer"\n'
    )
    subscribed = Subscribed("c <> 'green'", "x = 1", schema=colours)
    result = subscribed.matcher.match(batch({"c": "pink", "x": 1}), subscribed.forms.__getitem__)
    assert list(result.by_event()) == [[1]]
    ((index, number, error),) = result.errors
    assert (index, number) == (0, 0)
    assert isinstance(error, InvalidValueError)


def test_three_hundred_predicates() -> None:
    subscribed = Subscribed(" AND ".join(f"a{number} > {number}" for number in range(300)), "a0 = 1")
    event = {f"a{number}": number + 1 for number in range(300)}
    assert subscribed.match(event, {**event, "a7": 7}) == [[0, 1], [1]]


# Changes


def test_changes_are_seen_at_the_next_match() -> None:
    subscribed = Subscribed("x = 1", "x = 1", "TRUE")
    assert subscribed.match({"x": 1}) == [[0, 1, 2]]
    subscribed.remove(0)
    assert subscribed.match({"x": 1}) == [[1, 2]]
    subscribed.add({0: "x = 2", 3: "x > 0"})
    assert subscribed.match({"x": 1}, {"x": 2}) == [[1, 2, 3], [0, 2, 3]]
    subscribed.remove(2, 3)
    assert subscribed.match({"x": 1}, {}) == [[1], []]


def test_a_number_is_recycled_before_the_next_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 2)
    subscribed = Subscribed("x = 1", "x = 2", "x = 3", "x = 4", *("x = 9",) * 16)
    assert subscribed.match({"x": 1}) == [[0]]
    subscribed.remove(0, 1)
    subscribed.add({0: "x = 2"})
    assert subscribed.match({"x": 1}, {"x": 2}) == [[], [0]]
    assert subscribed.matcher.stats()["rebuilds"] == 1
    assert subscribed.matcher.stats()["recent"] == 1


def test_many_changes_build_all_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 4)
    subscribed = Subscribed("x = 1")
    assert subscribed.match({"x": 1}) == [[0]]
    assert subscribed.matcher.stats()["rebuilds"] == 0
    subscribed.add(dict.fromkeys(range(1, 11), "x > 0"))
    assert subscribed.match({"x": 1}) == [list(range(11))]
    assert subscribed.matcher.stats()["rebuilds"] == 1
    subscribed.remove(*range(11))
    assert subscribed.match({"x": 1}) == [[]]
    assert subscribed.matcher.stats()["subscriptions"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_comings_and_goings_against_naive(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(module, "_FEW", 16)
    rng = Random(seed)
    naive, counting = Engine(algorithm="naive"), Engine(algorithm="counting_lists", block=64)
    texts = ["x = {}", "x <> {}", "x < {} OR y = {}", "x IN ({}, {}, 20)", "x >= {} AND y IS NULL", "x < y AND x > {}"]
    for _ in range(40):
        for _ in range(rng.randrange(1, 12)):
            id = f"s{rng.randrange(60)}"
            text = rng.choice(texts).format(rng.randrange(10), rng.randrange(10))
            for engine in (naive, counting):
                if id in engine and text < "x <":
                    engine.unsubscribe(id)
                else:
                    engine.subscribe(id, text, replace=True)
        values = [rng.randrange(10), [rng.randrange(10), rng.randrange(10)], "a", None]
        events = [{"x": rng.choice(values), "y": rng.choice(values)} for _ in range(5)]
        answers = [[sorted(ids) for ids in engine.match_batch(events).ids] for engine in (naive, counting)]
        assert answers[0] == answers[1]


def test_stats() -> None:
    subscribed = Subscribed("x = 1", "x = 1 OR y = 2", limits=Limits())
    subscribed.match({"x": 1})
    told = subscribed.matcher.stats()
    assert told.pop("bytes") > 0
    assert told == {"subscriptions": 2, "recent": 2, "rows": 3, "predicates": 2, "rebuilds": 0}
