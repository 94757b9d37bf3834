"""Contestants: filled by role, and driven by codes or by the protocol to the same answers."""

from __future__ import annotations

import pytest

from harken.events import validate
from harken.matchers.algorithm_registry import ALGORITHMS
from harken.matchers.roles import AddsInBulk, CountsPredicates, MatchesCodes, Persists, Plans
from harken_lab.harness.contestants import Contestant, FilledMatcher, entries_of, sample_of
from harken_lab.harness.live import LiveMatcher
from harken_lab.harness.verified_answers import Answers, verify
from harken_lab.workloads import generate

WORKLOAD = generate("w4", 300, 16)
SAMPLE = sample_of("w4", 0).events
INDEXED = Contestant.of("columnar", "indexed", small_rows=0, recent_rows=1)
COUNTING = Contestant.of("counting_lists")


def filled(contestant: Contestant) -> FilledMatcher:
    return contestant.fill(WORKLOAD, SAMPLE).take(WORKLOAD.events)


def by_match(of: FilledMatcher) -> Answers:
    found = of.matcher.match(validate(WORKLOAD.events).batch, of.form_of)
    return Answers(found.numbers, found.offsets)


@pytest.mark.parametrize("contestant", [Contestant.of("columnar"), INDEXED, COUNTING], ids=lambda each: each.name)
def test_codes_and_events_have_the_same_answers(contestant: Contestant) -> None:
    each = filled(contestant)
    assert each.answers() == by_match(each)
    one = each.on(WORKLOAD.events.slice(3, 1))
    assert one.answers().of(0).tolist() == each.answers().of(3).tolist()
    each.matcher.remove(range(0, 300, 3))
    left = each.on(WORKLOAD.events).answers()
    assert left == by_match(each)
    assert not (left.numbers % 3 == 0).any()


def test_what_takes_no_codes_is_matched_by_the_protocol() -> None:
    naive, columnar = filled(Contestant.of("naive")), filled(INDEXED)
    assert not naive.takes_codes
    verify(WORKLOAD, {"naive": naive, "columnar": columnar})
    assert naive.memory() == {}
    assert naive.examined(2) is None


def test_what_the_algorithms_can_do() -> None:
    matchers = {name: Contestant.of(name).matcher() for name in ALGORITHMS}
    without_codes = ["naive", "relational_anchored", "predicate_grouping", "sequential_search"]
    assert [name for name, each in matchers.items() if not isinstance(each, AddsInBulk)] == without_codes
    assert [name for name, each in matchers.items() if not isinstance(each, MatchesCodes)] == without_codes
    assert [name for name, each in matchers.items() if isinstance(each, Plans)] == ["columnar"]
    assert [name for name, each in matchers.items() if isinstance(each, Persists)] == ["columnar", *without_codes[1:]]
    assert all(isinstance(each, CountsPredicates) for name, each in matchers.items() if name.startswith("counting"))


def test_memory_is_that_of_the_index_and_the_rest() -> None:
    for contestant in (INDEXED, COUNTING):
        each = filled(contestant)
        assert 0 < each.index_bytes() < sum(each.memory().values())


def test_what_comes_and_goes_is_verified_by_its_own_form() -> None:
    others = generate("w4", 5, 0, 9)
    live = LiveMatcher(filled(Contestant.of("columnar")), entries_of(others, 300))
    before = live.answers(WORKLOAD.events)
    live.add(live.entries)
    live.match(WORKLOAD.events)
    live.remove(live.entries)
    assert live.answers(WORKLOAD.events) == before
