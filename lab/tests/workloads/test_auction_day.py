"""A day at the auction house: the same seed gives the same day, and its parts fit each other and the schema."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from harken import Engine
from harken.schema import HierarchicalDomain
from harken_lab.workloads.auction.day import COLUMNS, ancestors, event_lines, goods, schema, sellers, wishes

COUNT = 6_000


@pytest.fixture(scope="module")
def day() -> list[tuple[int, str]]:
    return list(event_lines(COUNT, 3))


@pytest.fixture(scope="module")
def events(day: list[tuple[int, str]]) -> list[dict[str, Any]]:
    """Those that can be read, in their order."""
    return [json.loads(line) for _, line in day if line.endswith("}")]


def test_the_same_seed_gives_the_same_day(day: list[tuple[int, str]]) -> None:
    assert list(event_lines(COUNT, 3)) == day
    assert list(event_lines(COUNT, 4)) != day
    assert sellers(3).equals(sellers(3))
    assert list(wishes(200, 3, COUNT)) == list(wishes(200, 3, COUNT)) != list(wishes(200, 4, COUNT))


@pytest.mark.parametrize("count", [1, 10, 500])
def test_there_are_as_many_events_as_were_asked_for(count: int) -> None:
    lines = [line for _, line in event_lines(count, 5)]
    assert count <= len(lines) <= count + count // 50
    assert len(set(lines)) == count


def test_events_come_in_the_order_of_their_time(day: list[tuple[int, str]], events: list[dict[str, Any]]) -> None:
    assert all(before["at"] <= after["at"] for before, after in pairwise(events))
    assert all(f"T{hour:02d}:" in line[: line.index('"kind"')] for hour, line in day if line.endswith("}"))
    assert {hour for hour, _ in day} == set(range(24))


def test_an_event_has_the_columns_that_are_told(events: list[dict[str, Any]]) -> None:
    names = {each.split()[0] for each in COLUMNS.split(", ")}
    assert {name for event in events for name in event} == names
    assert names - {"id"} <= {path[0] for path in schema().attributes}


def test_a_lot_s_price_only_rises_with_its_bids(events: list[dict[str, Any]]) -> None:
    prices: dict[str, list[float]] = {}
    for event in events:
        if event["kind"] == "bid" and isinstance(event["price"], float):
            prices.setdefault(event["lot"], []).append(event["price"])
    assert any(len(each) > 5 for each in prices.values())
    assert all(each == sorted(each) for each in prices.values())


def test_some_lines_are_broken_wrong_nameless_or_come_twice() -> None:
    lines = [line for _, line in event_lines(40_000, 1)]
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    faults = {
        "cut": len(lines) - len(whole),
        "price": sum(isinstance(event["price"], str) for event in whole),
        "category": sum(event["category"] == "Miscellaneous" for event in whole),
        "id": sum("id" not in event for event in whole),
        "twice": len(lines) - len(set(lines)),
    }
    assert all(0 < count < 200 for count in faults.values()), faults


def test_all_that_is_sold_is_a_leaf_of_the_hierarchy() -> None:
    domain = schema().domains["category"]
    assert isinstance(domain, HierarchicalDomain)
    above = {parent for _, parent in domain.parents}
    assert {good.category for good in goods()} == {value for value in domain.values if value not in above}
    assert ancestors()["Lenses"] == ("Cameras", "Electronics")


def test_every_seller_of_an_event_is_known(events: list[dict[str, Any]]) -> None:
    assert {event["seller"] for event in events} <= set(sellers(3)["seller"].to_pylist())


def test_wishes_are_accepted_and_of_every_kind() -> None:
    wanted = list(wishes(3_000, 1, COUNT))
    report = Engine(schema()).subscribe_many((wish.id, wish.where) for wish in wanted)
    assert (report.accepted, report.faults, report.warnings) == (3_000, [], [])
    assert len(Counter(wish.kind for wish in wanted)) >= 10
    text = " ".join(wish.where for wish in wanted)
    for part in (" OR ", " NOT ", " IN ", " LIKE ", " BETWEEN ", " IS NULL", "TIMESTAMP ", "price < reserve", "<="):
        assert part in text
