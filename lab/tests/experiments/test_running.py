"""Running an experiment: contestants are filled, verified and timed; a rejection is a row too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harken.limits import Limits
from harken_lab.experiments.changing import measure_changes, one_row_each
from harken_lab.experiments.running import PACES, Run
from harken_lab.harness.contestants import Contestant, FilledMatcher, entries_of
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.harness.verified_answers import Numbers, Offsets, verify

SMOKE = PACES["smoke"]
NAMES = ("scan", "columnar", "naive")


def run_with(**parameters: object) -> Run:
    return Run({"events": 8, "changes": 3, **parameters}, SMOKE, 0, lambda text: None)


def test_every_kind_of_contestant_has_a_row() -> None:
    run = run_with()
    rows = list(run.compare(run.draw("le-subscribe", 200), tuple(map(Contestant.of, NAMES)), more=7))
    assert [row["entrant"] for row in rows] == list(NAMES)
    for row in rows:
        assert row["us_per_event"] > 0
        assert row["least_us"] <= row["us_per_event"] <= row["most_us"]
        assert row["workload"] == "le-subscribe"
        assert (row["subscriptions"], row["more"]) == (200, 7)
        assert 2 <= row["events"] <= 8
    scan, columnar, naive = rows
    assert scan["bytes"] == sum(scan["memory"].values())
    assert scan["index_bytes"] == 0
    assert scan["examined_per_event"] == 200
    assert columnar["index_bytes"] == columnar["memory"]["index"]
    assert "bytes" not in naive


def test_rejections_are_rows() -> None:
    run = run_with()
    contestants = (Contestant.of("no_such"), Contestant.of("scan", "odd", colour="red"), Contestant.of("scan"))
    unknown, odd, scan = run.compare(run.draw("w4", 50), contestants)
    assert unknown["rejected"].startswith("cannot: there is no algorithm")
    assert "does not take the option" in odd["rejected"]
    assert "rejected" not in scan


def test_who_stops_at_a_limit_is_not_tried_again() -> None:
    run = run_with()
    limits = Limits(max_matrix_bytes=1 << 20)
    first, second = (
        next(iter(run.compare(run.draw("le-subscribe", size), [Contestant.of("counting_bytes")], limits)))
        for size in (2_000, 3_000)
    )
    assert first["limit"] == "max_matrix_bytes"
    assert first["rejected"].startswith("stopped at max_matrix_bytes: ")
    assert "it is skipped: with 2,000 subscriptions it stopped at max_matrix_bytes" in second["rejected"]


def test_who_is_slow_is_left_out_of_larger_sizes() -> None:
    run = run_with()
    run.pace = replace(SMOKE, patience=0.0)
    first, again, larger = (
        next(iter(run.compare(run.draw("w4", size), [Contestant.of("scan")]))) for size in (100, 100, 200)
    )
    assert "us_per_event" in first
    assert "us_per_event" in again
    assert "an event took" in larger["rejected"]


def test_one_by_one_has_an_end() -> None:
    run = run_with()
    run.pace = replace(SMOKE, one_by_one=10)
    (row,) = run.compare(run.draw("w4", 20), [Contestant.of("naive")])
    assert "at most 10 subscriptions" in row["rejected"]


class Wrong(FilledMatcher):
    """Says that another contestant's first event matches nothing."""

    def __init__(self, right: FilledMatcher) -> None:
        self._right, self.events = right, right.events

    def matches(self) -> tuple[Offsets, Numbers]:
        offsets, numbers = self._right.matches()
        gone = offsets[1]
        return np.maximum(offsets - gone, 0), numbers[gone:]


def test_different_answers_are_fatal() -> None:
    run = run_with()
    workload = run.draw("w4", 100)
    right = Contestant.of("scan").fill(workload, run.sample_of(workload))
    right.take(workload.events)
    verify(workload, {"right": right})
    with pytest.raises(WrongAnswerError, match="wrong finds 0 subscriptions"):
        verify(workload, {"right": right, "wrong": Wrong(right)})
    with pytest.raises(WrongAnswerError, match="are true"):
        verify(workload, {"wrong": Wrong(right)})


def test_changes_are_timed_and_undone() -> None:
    run = run_with()
    workload = run.draw("le-subscribe", 100)
    rows = measure_changes(run, workload, [*map(Contestant.of, NAMES), Contestant.of("no_such")])
    scan, columnar, naive, unknown = rows
    for row in (scan, columnar, naive):
        assert 1 <= row["changes"] <= 3
        assert row["insert_us"] > 0
        assert row["delete_us"] > 0
    assert scan["insert_rows_us"] > 0
    assert "insert_rows_us" not in naive
    assert "rejected" in unknown


def test_new_subscriptions_have_numbers_of_their_own() -> None:
    workload = run_with().draw("w4", 5)
    assert [entry.number for entry in entries_of(workload, 100)] == [100, 101, 102, 103, 104]
    flats = one_row_each(workload, 100)
    assert [flat.numbers.tolist() for flat in flats] == [[100], [101], [102], [103], [104]]
    sizes = [sum(len(column.rows) for column in flat.columns) for flat in flats]
    assert sum(sizes) == sum(len(each.rows) for each in workload.conditions)
