"""Equality-preferred and quarantining: clusters of equalities, which come and go, and what is left to count or test."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from harken.codes.flat import Flat
from harken.errors import CapabilityError
from harken.events import validate
from harken.matchers import create_matcher
from harken_lab.workloads import generate
from unit.matchers.subscribed import Subscribed

BOTH = ["equality_preferred", "quarantine"]


@pytest.fixture(params=BOTH)
def algorithm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_rows_by_their_equalities(algorithm: str) -> None:
    found = Subscribed(
        algorithm,
        "x = 1 AND y = 2",
        "x = 1 AND y = 2 AND z > 3",
        "x = 1 AND y = 3",
        "x = 1",
        "z > 3",
        "z > 3 AND z < 9",
        "TRUE",
        "y = 2 AND z <> 5",
    )
    told = found.matcher.stats()
    assert (told["clusters"], told["entries"], told["without_equality"]) == (3, 4, 3)
    assert found.match({"x": 1, "y": 2, "z": 4}, {"x": 1, "y": 2}, {"y": 2, "z": 5}, {"z": 10}, {"x": 2}) == [
        [0, 1, 3, 4, 5, 6, 7],
        [0, 3, 6],
        [4, 5, 6],
        [4, 6],
        [6],
    ]


def test_clusters_and_entries_are_recycled(algorithm: str) -> None:
    found = Subscribed(algorithm, *(f"x = {number} AND y < 5" for number in range(30)))
    for number in range(30):
        found.remove(number)
        found.add({number: f"z{number} = {number} AND y < 5"})
    told = found.matcher.stats()
    assert (told["clusters"], told["entries"]) == (30, 30)
    assert found.matcher._clusters.clusters.state.tolist()[1] <= 31
    assert found.match({"z7": 7, "y": 1}, {"z7": 7, "y": 9}, {"x": 7, "y": 1}) == [[7], [], []]
    found.remove(*range(30))
    told = found.matcher.stats()
    assert (told["clusters"], told["entries"], told["without_equality"]) == (0, 0, 0)


def test_what_is_examined() -> None:
    texts = [f"x = {number % 100} AND y > {number}" for number in range(1_000)]
    preferred, quarantine = Subscribed("equality_preferred", *texts), Subscribed("quarantine", *texts)
    assert preferred.match({"x": 3, "y": 500}) == quarantine.match({"x": 3, "y": 500}) == [[3, 103, 203, 303, 403]]
    assert quarantine.matcher.stats()["examined"] == 10, "the rows with x = 3"
    assert preferred.matcher.stats()["examined"] == 10 + 500, "and every predicate on y that holds"


def test_many_entries() -> None:
    rng = Random(4)
    texts = [{f"c{rng.randrange(4)}": rng.randrange(50) for _ in range(rng.randrange(1, 4))} for _ in range(3_000)]
    found = Subscribed(
        "quarantine", *(" AND ".join(f"{name} = {value}" for name, value in each.items()) for each in texts)
    )
    for _ in range(20):
        event = {f"c{column}": rng.randrange(50) for column in range(4)}
        expected = [number for number, each in enumerate(texts) if each.items() <= event.items()]
        assert found.match(event) == [expected]


@pytest.mark.parametrize("workload", ["w4", "le-subscribe", "stock", "gryphon"])
def test_as_counting_finds(algorithm: str, workload: str) -> None:
    given = generate(workload, 2_000, 40, seed=5)
    events = validate(given.events).batch
    answers = []
    for name in (algorithm, "counting_lists"):
        matcher: Any = create_matcher(name)
        matcher.add_flat(Flat.of_predicates(np.arange(2_000, dtype=np.int32), given.predicates))
        found = matcher.match(events, lambda number: pytest.fail("nothing is to be verified"))
        answers.append([sorted(each) for each in found.by_event()])
    assert answers[0] == answers[1]
    assert sum(map(len, answers[0])) > 0 or workload == "stock"


# One event in several threads


@pytest.mark.parametrize("algorithm", ["equality_preferred", "quarantine"])
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", ["le-subscribe", "w4", "gryphon"])
def test_threads_divide_the_clusters_of_an_event_and_change_no_answer(name: str, threads: int, algorithm: str) -> None:
    workload = generate(name, 800, 40, seed=4)
    events = validate(workload.events).batch
    results = []
    for options in ({}, {"threads": threads}):
        matcher: Any = create_matcher(algorithm, **options)
        matcher.add_flat(Flat.of_predicates(np.arange(800, dtype=np.int32), workload.predicates))
        matcher.remove(range(0, 800, 3))
        result = matcher.match(events, lambda number: pytest.fail("nothing is to be verified"))
        results.append(([sorted(each) for each in result.by_event()], result.candidates.tolist()))
    assert results[0] == results[1]
    assert any(results[0][0])


def test_more_threads_than_clusters_and_more_matches_than_room() -> None:
    found = Subscribed("quarantine", *(f"x = {number % 3}" for number in range(300)), threads=4)
    assert [len(each) for each in found.match(*[{"x": 1}] * 300)] == [100] * 300


def test_threads_are_at_least_one() -> None:
    for threads in (0, True, "2"):
        with pytest.raises(CapabilityError, match="`threads` is the number of threads"):
            create_matcher("quarantine", threads=threads)
