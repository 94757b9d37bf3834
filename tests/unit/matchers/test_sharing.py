"""A batch that threads share has the answers that it has alone, whichever way the matcher does its parts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from harken.engine import Engine
from harken.limits import Limits

SUBSCRIPTIONS = {
    "number": "x > 20 AND x <= 90",
    "string": "kind = 'a' OR tags = 'b'",
    "several": "tags = 'b' AND kind = 'a'",
    "pattern": "kind LIKE '%b%'",
    "absent": "x IS NULL",
    "attributes": "x > y",
}
EVENTS: list[dict[str, Any]] = [
    {"x": n % 101, "y": 50, "kind": "abc"[n % 3]} if n % 7 else {"kind": ["a", "b"][: n % 2 + 1], "tags": ["a", "b"]}
    for n in range(200)
]


@pytest.mark.parametrize("algorithm", ["columnar", "naive", "counting_lists"])
@pytest.mark.parametrize("form", ["dicts", "arrow"])
@pytest.mark.parametrize("together", [1_024, 1])
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_shared_as_alone(algorithm: str, form: str, together: int, threads: int) -> None:
    options = {"settings": {"encoded_together": together}} if algorithm == "columnar" else {}
    engine = Engine(algorithm=algorithm, **options)
    for id, where in SUBSCRIPTIONS.items():
        engine.subscribe(id, where)
    events = EVENTS if form == "dicts" else pa.Table.from_pylist([each for each in EVENTS if "x" in each])
    # The table has the columns of its first row, and lacks what others ask for.
    alone = engine.match_batch(events, on_mismatch="ignore")
    shared = engine.match_batch(events, threads=threads, on_mismatch="ignore")
    assert (len(alone._results), len(shared._results)) == (1, threads)
    assert list(map(sorted, shared.ids)) == list(map(sorted, alone.ids))
    assert {id for ids in alone.ids for id in ids} >= {"number", "string", "pattern", "attributes"}
    if form == "dicts":
        assert {id for ids in alone.ids for id in ids} == set(SUBSCRIPTIONS)
    assert shared.candidates == alone.candidates
    assert shared.positions == alone.positions


def test_what_fails_is_told_with_its_event() -> None:
    engine = Engine(limits=Limits(max_bindings=50))
    engine.subscribe("tied", "a < b AND b < c AND c < d AND d < a OR a = 0 AND d = 3")
    puzzle = {name: list(range(10)) for name in "abcd"} | {"a": list(range(1, 10))}
    events = [puzzle if n % 5 == 3 else {"a": 0, "b": 1, "c": 2, "d": n % 4} for n in range(40)]
    alone, shared = engine.match_batch(events), engine.match_batch(events, threads=3)
    assert [(position, id) for position, id, _ in shared.errors] == [(n, "tied") for n in range(3, 40, 5)]
    assert [position for position, _, _ in alone.errors] == [position for position, _, _ in shared.errors]
    assert shared.counts == alone.counts
    assert sum(shared.counts) > 0


@pytest.mark.parametrize(("events", "parts"), [(5, 1), (6, 3), (7, 3)])
def test_two_events_for_each_thread_are_shared(events: int, parts: int) -> None:
    engine = Engine()
    engine.subscribe("one", "x = 1")
    found = engine.match_batch([{"x": 1}] * events, threads=3)
    assert found.ids == [["one"]] * events
    assert len(found._results) == parts
