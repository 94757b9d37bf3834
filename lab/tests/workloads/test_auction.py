"""The auction market: the same seed gives the same market, its subscriptions are accepted, and the demo adds up."""

from __future__ import annotations

import io
import json
from itertools import islice

import pytest

from harken import Engine
from harken.errors import EventError
from harken.events import read_rows, validate
from harken.live.subscriptions import records_of_rows
from harken_lab.workloads.auction import events, readable_subscriptions, schema, subscriptions
from harken_lab.workloads.auction.market_tour import DemoResult, run

EVENTS = 1_500


# Generators


def test_the_same_seed_gives_the_same_events() -> None:
    assert list(events(200, 7)) == list(events(200, 7))


def test_another_seed_gives_other_events() -> None:
    assert list(events(20, 7)) != list(events(20, 8))


def test_more_events_begin_with_the_same() -> None:
    assert list(islice(events(1_000, 7), 50)) == list(events(50, 7))


def test_the_same_seed_gives_the_same_subscriptions() -> None:
    assert list(subscriptions(200, 7)) == list(subscriptions(200, 7))


def test_another_seed_gives_other_subscriptions() -> None:
    assert list(subscriptions(20, 7)) != list(subscriptions(20, 8))


@pytest.mark.parametrize("count", [0, 1, 37])
def test_there_are_as_many_as_were_asked_for(count: int) -> None:
    assert len(list(events(count, 7))) == count
    assert len({each["id"] for each in subscriptions(count, 7)}) == count


def test_events_are_as_json_brings_them() -> None:
    market = list(events(100, 7))
    assert json.loads(json.dumps(market)) == market


# Against the schema


def test_a_few_events_are_rejected_and_each_for_what_was_spoilt() -> None:
    rejected = validate(events(EVENTS, 1), schema()).rejected
    assert 0 < len(rejected) < EVENTS / 50
    assert all(isinstance(each.error, EventError) for each in rejected)
    spoilt = ("price", "quantity", "period")
    assert all(any(f"`{name}`" in each.error.message for name in spoilt) for each in rejected)


def test_every_type_of_event_is_there() -> None:
    found = {tuple(event["event_type"]) for event in events(500, 1)}
    assert found == {("antiques",), ("furniture",), ("antiques", "furniture")}


def test_the_readable_subscriptions_are_accepted_without_a_warning() -> None:
    engine = Engine(schema())
    rows = read_rows(io.BytesIO(readable_subscriptions()), "jsonl")
    report = engine.subscribe_many(records_of_rows(rows))
    assert (report.accepted, report.faults, report.warnings) == (10, [], [])
    assert all(subscription.fields["owner"] for subscription in engine)


def test_the_generated_subscriptions_are_accepted() -> None:
    report = Engine(schema()).subscribe_many(subscriptions(500, 1))
    assert (report.accepted, report.faults, report.warnings) == (500, [], [])


# The demo


@pytest.fixture(scope="module")
def steps() -> list[int]:
    return []


@pytest.fixture(scope="module")
def result(steps: list[int]) -> DemoResult:
    return run(50, 400, seed=1, progress=steps.append)


def test_the_demo_counts_what_it_was_asked_for(result: DemoResult) -> None:
    assert (result.subscriptions, result.events) == (60, 400)


def test_the_demo_s_matches_are_those_of_an_engine_of_our_own(result: DemoResult) -> None:
    engine = Engine(schema())
    engine.subscribe_many(records_of_rows(read_rows(io.BytesIO(readable_subscriptions()), "jsonl")))
    engine.subscribe_many(subscriptions(50, 1))
    found = engine.match_batch(events(400, 1))
    assert result.matches == sum(found.counts) > 0
    assert [each.position for each in result.rejected] == [each.position for each in found.rejected]


def test_the_demo_tells_its_progress(result: DemoResult, steps: list[int]) -> None:
    assert steps == [64] * 6 + [16]
    assert sum(steps) == result.events


def test_the_demo_has_a_summary_for_every_readable_subscription(result: DemoResult) -> None:
    assert len({summary.subscription.id for summary in result.summaries}) == 10
    for summary in result.summaries:
        assert (summary.example is None) is (summary.matched == 0)


def test_a_summary_s_example_is_a_match(result: DemoResult) -> None:
    engine = Engine(schema())
    for summary in result.summaries:
        if summary.example is not None:
            engine.subscribe("s", summary.subscription.where, replace=True)
            assert engine.match(summary.example).ids == ["s"]


def test_the_demo_tells_how_long_it_took(result: DemoResult) -> None:
    assert 0 < result.seconds_to_subscribe < 60
    assert 0 < result.seconds_to_match < 60


def test_the_demo_explains_a_near_miss(result: DemoResult) -> None:
    assert result.explained == result.summaries[0].subscription.id
    assert not result.explanation.matched
    truths = [part.truth for part in result.explanation.tree.parts]
    assert truths.count(True) == len(truths) - 1


def test_the_demo_is_the_same_again(result: DemoResult) -> None:
    again = run(50, 400, seed=1)
    assert (again.matches, again.explained, again.event) == (result.matches, result.explained, result.event)
