"""The workloads are those of the papers: what is drawn how often, and how many subscriptions an event matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harken_lab.workloads import generate
from harken_lab.workloads.conditions import Conditions
from harken_lab.workloads.workload import Workload

from .brute_force import BruteForce

SUBSCRIPTIONS = 20_000


def condition(workload: Workload, attribute: str) -> Conditions:
    return next(each for each in workload.conditions if each.attribute == attribute)


def sizes(workload: Workload) -> NDArray[np.int64]:
    """How many predicates each subscription has."""
    counts = np.zeros(workload.subscriptions, np.int64)
    for each in workload.conditions:
        counts[each.rows] += 1
    return counts


def shares(values: NDArray[Any], among: int) -> NDArray[np.float64]:
    return np.bincount(values, minlength=among) / len(values)


def values(conditions: Conditions) -> NDArray[np.int64]:
    assert isinstance(conditions.constants, np.ndarray)
    found: NDArray[np.int64] = conditions.constants[conditions.operands]
    return found


# Matches per event at 1,000,000 subscriptions, as other engines counted them. The bounds are 3 sigmas or more.


@pytest.mark.parametrize(
    ("name", "parameters", "subscriptions", "at_a_million", "tolerance"),
    [
        ("w4", {}, SUBSCRIPTIONS, 176_846, 0.03),
        ("le-subscribe", {}, 5 * SUBSCRIPTIONS, 7_007, 0.15),  # a few subscriptions have most of the matches
        ("stock", {"symbols": 30}, SUBSCRIPTIONS, 2.05 * 100, 0.15),  # with a hundredth of the symbols
        ("gryphon", {}, SUBSCRIPTIONS, 6_292, 0.15),
        ("orders", {"countries": 20, "skus": 200}, SUBSCRIPTIONS, 10 * 540, 0.1),  # a tenth of both
    ],
)
def test_matches_per_event(
    name: str, parameters: dict[str, Any], subscriptions: int, at_a_million: float, tolerance: float
) -> None:
    workload = generate(name, subscriptions, 200, **parameters)
    brute_force = BruteForce(workload)
    found = np.mean([len(brute_force.matches(event)) for event in workload.events.to_pylist()])
    assert found * 1_000_000 / subscriptions == pytest.approx(at_a_million, rel=tolerance)


# ToPSS


@pytest.mark.parametrize(
    ("name", "attributes", "most", "domains"),
    [
        ("w0", 120, 20, [(1, 250)]),
        ("w1", 120, 20, [(250, 10_000)]),
        ("w2", 120, 20, [(10_000, 100_000)]),
        ("w3", 120, 20, [(1, 250), (250, 10_000), (10_000, 100_000)]),
        ("w4", 10, 5, [(1, 10)]),
    ],
)
def test_topss(name: str, attributes: int, most: int, domains: list[tuple[int, int]]) -> None:
    workload = generate(name, SUBSCRIPTIONS, 1_000)
    assert [each.attribute for each in workload.conditions] == [f"a{number + 1}" for number in range(attributes)]
    assert shares(sizes(workload), most + 1) == pytest.approx([0, *[1 / most] * most], abs=0.01)
    operators = np.concatenate([each.operators for each in workload.conditions])
    assert shares(operators, 6) == pytest.approx([0.25, 0.25, 0.25, 0, 0.25, 0], abs=0.01)
    for number, each in enumerate(workload.conditions):
        low, high = domains[number % len(domains)]
        spread = high - low
        for drawn in (values(each), workload.events[each.attribute].to_numpy()):
            assert low <= drawn.min() <= low + spread / 20
            assert high - spread / 20 <= drawn.max() <= high
            assert drawn.mean() == pytest.approx((low + high) / 2, abs=spread / 15)
        assert len(each.rows) == pytest.approx(SUBSCRIPTIONS * (most + 1) / 2 / attributes, rel=0.15)
    assert sum(column.null_count for column in workload.events.columns) == 0


def test_topss_events_carry_some_attributes() -> None:
    events = generate("w4", 0, 500, carried=3).events
    present = np.stack([column.is_valid().to_numpy() for column in events.columns], axis=1)
    assert (present.sum(axis=1) == 3).all()
    assert present.mean(axis=0) == pytest.approx([0.3] * 10, abs=0.1)


def test_topss_draws_also_what_no_event_fulfils() -> None:
    """The matches per event, counted above, ask for it."""
    each = condition(generate("w4", SUBSCRIPTIONS, 0), "a1")
    drawn = {(int(operator), int(value)) for operator, value in zip(each.operators, values(each), strict=True)}
    assert drawn == {(operator, value) for operator in (0, 1, 2, 4) for value in range(1, 11)}


# Le Subscribe


def test_le_subscribe() -> None:
    workload = generate("le-subscribe", SUBSCRIPTIONS, 4_000)
    assert [each.attribute for each in workload.conditions] == ["s1", "s2", "s3", "n1", "n2", "n3"]
    for each in workload.conditions:
        assert len(each.rows) / SUBSCRIPTIONS == pytest.approx(0.5 / (1 - 0.5**6), abs=0.02)
        column = workload.events[each.attribute]
        assert column.null_count / 4_000 == pytest.approx(0.5, abs=0.04)
        if each.attribute.startswith("s"):
            assert set(each.constants) == {f"v{number + 1}" for number in range(200)}
            assert set(column.drop_null().to_pylist()) == set(each.constants)
            assert shares(each.operands, 200) == pytest.approx(np.full(200, 1 / 200), abs=0.004)
            assert not each.operators.any()
        else:
            assert shares(each.operators, 6) == pytest.approx([0.5, 0, 0, 0.25, 0, 0.25], abs=0.02)
            for drawn in (values(each), column.drop_null().to_numpy()):
                assert 1 <= drawn.min() < 50
                assert 4_950 < drawn.max() <= 5_000
                assert drawn.mean() == pytest.approx(2_500, abs=120)
    empty = sum(all(value is None for value in event.values()) for event in workload.events.to_pylist())
    assert empty / 4_000 == pytest.approx(1 / 64, abs=0.01), "an event may be empty"


@pytest.mark.parametrize("equality", [0.0, 0.8, 1.0])
def test_le_subscribe_with_other_shares_of_equalities(equality: float) -> None:
    each = condition(generate("le-subscribe", SUBSCRIPTIONS, 0, equality=equality), "n2")
    assert (each.operators == 0).mean() == pytest.approx(equality, abs=0.02)


# Stock


def test_stock() -> None:
    workload = generate("stock", SUBSCRIPTIONS, 4_000)
    assert (sizes(workload) == 5).all()
    symbol = condition(workload, "symbol")
    assert 2_900 < len(symbol.constants) <= 3_000
    assert not symbol.operators.any()
    assert 2_990 < len(set(workload.events["symbol"].to_pylist()) | set(symbol.constants)) <= 3_000
    for name in ("price", "open", "high", "volume"):
        each = condition(workload, name)
        assert shares(each.operators, 6) == pytest.approx([0, 0, 0.5, 0, 0.5, 0], abs=0.02)
        less, more = (values(each)[each.operators == operator] for operator in (2, 4))
        assert 0 <= less.min() < 200
        assert 55_800 < less.max() <= 56_000
        assert 44_000 <= more.min() < 44_200
        assert 99_800 < more.max() <= 100_000
        assert (less.mean(), more.mean()) == pytest.approx((28_000, 72_000), abs=700)
        drawn = workload.events[name].to_numpy()
        assert 0 <= drawn.min() < 500
        assert 99_500 < drawn.max() <= 99_999
        assert drawn.mean() == pytest.approx(50_000, abs=2_000)


# Gryphon


def test_gryphon() -> None:
    workload = generate("gryphon", SUBSCRIPTIONS, 4_000)
    chances = 0.98 * 0.78 ** np.arange(30)
    tested = np.zeros(30)
    for each in workload.conditions:
        tested[int(each.attribute[1:]) - 1] = len(each.rows) / SUBSCRIPTIONS
        assert not each.operators.any()
    assert tested == pytest.approx(chances / (1 - np.prod(1 - chances)), abs=0.015)
    zipf = 1 / np.arange(1, 6)
    assert shares(values(condition(workload, "a1")) - 1, 5) == pytest.approx(zipf / zipf.sum(), abs=0.015)
    assert workload.events.column_names == [f"a{number + 1}" for number in range(30)]
    for column in workload.events.columns:
        assert shares(column.to_numpy() - 1, 5) == pytest.approx([0.2] * 5, abs=0.04)


def test_gryphon_with_even_values() -> None:
    drawn = values(condition(generate("gryphon", SUBSCRIPTIONS, 0, exponent=0, values=4), "a1"))
    assert shares(drawn - 1, 4) == pytest.approx([0.25] * 4, abs=0.015)


# Orders


def test_orders() -> None:
    workload = generate("orders", SUBSCRIPTIONS, 2_000)
    chances = {"customer.country": 0.4, "items.sku": 0.7}
    for name, chance in chances.items():  # given that one of the two is tested
        assert len(condition(workload, name).rows) / SUBSCRIPTIONS == pytest.approx(chance / (1 - 0.6 * 0.3), abs=0.02)
    others = {"customer.segment": 0.3, "customer.age": 0.2, "items.price": 0.5, "items.qty": 0.3, "total": 0.4}
    for name, chance in others.items():
        assert len(condition(workload, name).rows) / SUBSCRIPTIONS == pytest.approx(chance, abs=0.02)
    assert [each.attribute for each in workload.conditions] == [*chances, *others]
    events = workload.events.to_pylist()
    assert shares(np.array([len(event["items"]) for event in events]), 5) == pytest.approx([0, *[0.25] * 4], abs=0.04)
    assert all(event["total"] == sum(item["price"] * item["qty"] for item in event["items"]) for event in events)
    assert {event["customer"]["segment"] for event in events} == {"new", "regular", "business", "vip", None}
    for name in ("segment", "age"):
        assert np.mean([event["customer"][name] is None for event in events]) == pytest.approx(0.1, abs=0.03)
    assert all(event["placed_at"].startswith("2026-") and event["placed_at"].endswith("Z") for event in events)


def test_gryphon_with_ranges() -> None:
    workload = generate("gryphon", 4_000, 0, seed=1, ranges=0.5)
    operators = np.concatenate([each.operators for each in workload.conditions])
    shares = np.bincount(operators, minlength=6) / len(operators)
    assert shares[[0, 3, 5]] == pytest.approx([0.5, 0.25, 0.25], abs=0.02)
    plain = generate("gryphon", 4_000, 0, seed=1, ranges=0.0)
    assert all(not each.operators.any() for each in plain.conditions)


def test_batches_cut_a_workload_and_change_nothing() -> None:
    workload = generate("w4", 25, 23, seed=1)
    size, events = workload.parameters["subscription_batch"], workload.parameters["event_batch"]
    assert (size, events) == (10, 10)
    assert [each.num_rows for each in workload.batches("where", size)] == [10, 10, 5]
    assert [each.num_rows for each in workload.event_batches(events)] == [10, 10, 3]
    other = generate("w4", 25, 23, seed=1, subscription_batch=7, event_batch=9)
    assert other.texts().to_pylist() == workload.texts().to_pylist()
    assert other.events == workload.events
    with pytest.raises(ValueError, match="1 or more"):
        generate("w0", 1, 1, event_batch=0)
