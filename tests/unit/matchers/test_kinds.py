"""One matcher per kind of index: plans go to their kind, answers are joined, and numbers leave where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from harken.errors import UnavailableError
from harken.events import validate
from harken.language import Compiler
from harken.language.compiled import Compiled
from harken.matchers import Entry, MatchResult, create_matcher
from harken.matchers.kinds import Indexes, joined
from harken.matchers.naive import Naive

COMPILER = Compiler()
BATCH = validate([{"x": 1}, {"x": 2}, {"x": 3}]).batch


@dataclass
class OtherPlan:
    """A plan that another kind of index holds. Its matcher here takes normal forms too."""

    form: Any
    kind: ClassVar[str] = "other"


class Other(Naive):
    """Takes the forms out of plans of the other kind."""

    def add(self, entries: Any, replaced: Any = ()) -> None:
        inner = [Entry(each.number, COMPILER.compile(each.compiled.text)) for each in entries]
        super().add(inner, replaced)


FORMS: dict[int, Any] = {}


def flat(number: int, text: str) -> Entry:
    compiled = COMPILER.compile(text)
    FORMS[number] = compiled.normal_form
    return Entry(number, compiled)


def other(number: int, text: str) -> Entry:
    compiled = COMPILER.compile(text)
    return Entry(number, Compiled(text, "sql", OtherPlan(compiled.normal_form), ()))  # type: ignore[arg-type]


@pytest.fixture(params=["naive", "scan", "columnar"])
def indexes(request: pytest.FixtureRequest) -> Indexes:
    return Indexes(create_matcher(request.param), lambda kind: Other())


def matches(indexes: Indexes) -> list[list[int]]:
    snapshot = indexes.snapshot()
    whole = [sorted(each) for each in snapshot.match(BATCH, FORMS.__getitem__).by_event()]
    part = snapshot.parts_of(BATCH, FORMS.__getitem__)
    assert [sorted(each) for first in range(3) for each in part(first, first + 1).by_event()] == whole
    snapshot.release()
    return whole


def test_answers_of_all_kinds_are_one(indexes: Indexes) -> None:
    indexes.add([flat(0, "x = 1"), other(1, "x <= 2"), flat(2, "x >= 2"), other(3, "x = 3")])
    assert matches(indexes) == [[0, 1], [1, 2], [2, 3]]
    assert list(indexes.stats()) == ["other"]


def test_only_flat_plans_make_no_other_matcher(indexes: Indexes) -> None:
    indexes.add([flat(0, "x = 1")])
    assert indexes.stats() == {}
    assert matches(indexes) == [[0], [], []]


def test_what_leaves_leaves_the_index_that_holds_it(indexes: Indexes) -> None:
    indexes.add([flat(0, "x = 1"), other(1, "x = 1"), other(2, "x = 2")])
    indexes.remove([1])
    assert matches(indexes) == [[0], [2], []]
    indexes.remove([0, 2])
    assert matches(indexes) == [[], [], []]


@pytest.mark.parametrize(("before", "after"), [(flat, other), (other, flat), (other, other), (flat, flat)])
def test_a_subscription_may_change_its_kind(indexes: Indexes, before: Any, after: Any) -> None:
    indexes.add([before(0, "x = 1"), flat(1, "x = 3")])
    indexes.add([after(2, "x = 2")], [0])
    assert matches(indexes) == [[], [2], [1]]
    indexes.add([before(0, "x = 3")], [2])  # a number that was of another kind comes back
    assert matches(indexes) == [[], [], [0, 1]]


def test_only_removing_is_a_change_too(indexes: Indexes) -> None:
    indexes.add([flat(0, "x = 1"), other(1, "x = 1")])
    indexes.add([], [0, 1])
    assert matches(indexes) == [[], [], []]


def test_a_kind_without_an_index_is_rejected_and_nothing_is_taken() -> None:
    indexes = Indexes(create_matcher("naive"))
    with pytest.raises(UnavailableError, match="'other'"):
        indexes.add([flat(0, "x = 1"), other(1, "x = 1")])
    assert matches(indexes) == [[], [], []]


def test_joining_keeps_events_apart() -> None:
    draw = np.random.default_rng(5)
    parts, expected = [], [set[int]() for _ in range(40)]
    for first in (0, 1000, 2000):
        lists = [first + draw.choice(500, draw.integers(0, 6), replace=False) for _ in range(40)]
        for held, more in zip(expected, lists, strict=True):
            held |= set(more.tolist())
        offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
        numbers = np.concatenate(lists).astype(np.int32)
        parts.append(MatchResult(offsets, numbers, np.full(40, first + 1, np.int64)))
    found = joined(parts)
    assert [set(each) for each in found.by_event()] == expected
    assert len(found.numbers) == sum(map(len, expected))
    assert found.candidates.tolist() == [3003] * 40
