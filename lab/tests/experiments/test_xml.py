"""The experiments on XML documents: how engines are filled and verified, and what follows from given figures."""

from __future__ import annotations

from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from harken_lab.experiments import xml_nasa, xml_stock
from harken_lab.experiments.documents import filled_engine, model_of, streams, verify_documents
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.workloads import generate
from harken_lab.workloads.nasa import Nasa


def nasa() -> Nasa:
    model = model_of("nasa", documents="records")
    assert isinstance(model, Nasa)
    return model


def test_subscriptions_are_loaded_a_chunk_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken_lab.experiments.documents._CHUNK", 40)
    texts = list(nasa().texts(100, streams(3)[0]))
    told: list[str] = []
    engine, seconds = filled_engine(texts, told.append)
    assert [each.where for each in engine] == texts == generate("nasa", 100, 0, 3, documents="records").written
    assert told == [f"{count} subscriptions loaded" for count in (40, 80, 100)]
    assert seconds > 0


def test_what_is_rejected_ends_the_run() -> None:
    with pytest.raises(WrongAnswerError, match="a subscription was rejected"):
        filled_engine(["/a[1]"], print)


def test_answers_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nasa()
    engine, _ = filled_engine(model.texts(50, streams(0)[0]), lambda text: None)
    engine.subscribe("s50", "/record", language="xpath")
    documents = list(islice(model.collection(), 3))
    verify_documents(engine, documents, 0)
    monkeypatch.setattr(type(engine), "match", lambda *_: SimpleNamespace(ids=["s0", "s1", "s2"]))
    with pytest.raises(WrongAnswerError, match="its explanation says otherwise"):
        verify_documents(engine, documents, 0)


UNMEASURED = [None, None, None]
"""What is said of plans in databases where none was measured."""


def nasa_row(size: int, **figures: Any) -> Row:
    usual = {"first_seconds": size**0.5, "linear_paths": int(size**0.5), "predicates": 7 * size, "path_seconds": 1.0}
    own = {"leaf_values": 300_000, "leaf_paths": 70, "parse_seconds": 2.0}
    return {"workload": "nasa", "entrant": "xpath", "subscriptions": size, **usual, **own, **figures}


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({}, [True, True, True, True, *UNMEASURED]),
        ({"leaf_paths": 7_000, "path_seconds": 3.0}, [True, False, True, False, *UNMEASURED]),
    ],
)
def test_what_follows_for_nasa(figures: Row, expected: list[bool]) -> None:
    rows = WorkloadRows([nasa_row(size, **figures) for size in (130_000, 700_000)])
    assert [each.holds for each in xml_nasa.judge(rows)] == expected


def test_linear_growth_is_told() -> None:
    rows = [nasa_row(size, first_seconds=size, linear_paths=size) for size in (130_000, 700_000)]
    time, _, paths, *_ = xml_nasa.judge(WorkloadRows(rows))
    assert (time.holds, paths.holds) == (False, False)
    assert "as subscriptions^1.00 (holds up to 0.9)" in time.ours
    few = list(xml_nasa.judge(WorkloadRows([nasa_row(20_000)])))
    assert [each.holds for each in few] == [None, True, None, True, *UNMEASURED]


def plan_row(entrant: str, size: int, seconds: float, **more: Any) -> Row:
    return {"entrant": entrant, "subscriptions": size, "seconds": seconds, "first_seconds": seconds, **more}


def test_what_follows_for_plans_on_nasa() -> None:
    common = {"workload": "nasa", "table": xml_nasa.IN_DATABASES}
    rows = [nasa_row(size) for size in (130_000, 700_000)]
    for size, unroll, share in ((1_000, 1.0, 1.0), (4_000, 1.5, 3.9)):
        rows.append(plan_row("xpath", size, 0.1, **common))
        rows.append(plan_row("Unroll on DuckDB", size, unroll, **common))
        rows.append(plan_row("Share on DuckDB", size, share, **common))
    grows, unroll_scales, kernels = list(xml_nasa.judge(WorkloadRows(rows)))[4:]
    assert (grows.holds, unroll_scales.holds, kernels.holds) == (False, True, True)
    assert "Share on DuckDB as subscriptions^0.98" in grows.ours
    assert "10 times at 1,000 (Share on DuckDB)" in kernels.ours


def test_what_follows_for_plans_on_stock() -> None:
    rows = []
    for place, unroll, share, bucket in ((1_000, 1.0, 2.0, 1.0), (1_000_000, 1.2, 9.0, 8.9)):
        for name, seconds in (("Unroll", unroll), ("Share", share), ("Share-Bucket", bucket)):
            more = {"table": xml_stock.IN_5_1, "selectivity": place}
            rows.append(plan_row(f"{name} on SQLite", 10_000, seconds, **more))
    flatter, buckets, grows, kernels = list(xml_stock.judge(WorkloadRows(rows)))[-4:]
    assert (flatter.holds, buckets.holds) == (True, False)
    assert "SQLite 1.2 times by Unroll, 4.5 by Share" in flatter.ours
    assert (grows.holds, kernels.holds) == (None, None)


def test_made_up_records_judge_nothing() -> None:
    found = list(xml_nasa.judge(WorkloadRows([nasa_row(130_000, workload="records")])))
    assert {each.holds for each in found} == {None}
    assert "set HARKEN_DATA" in found[0].why


def test_the_papers_seconds_stand_beside_ours_at_its_sizes() -> None:
    (unroll, share, bucket) = xml_stock._of_paper("5.1", 1_000_000, 10_000, 10_000)
    assert [row["seconds"] for row in (unroll, share, bucket)] == [61, 154, 44.6]
    assert unroll["us_per_event"] == pytest.approx(6_100)
    assert [row["seconds"] for row in xml_stock._of_paper("5.2", 200_000, 100_000, 10_000)] == [55, 221, 119]
    for other in (("5.1", 200_000, 10_000, 10_000), ("5.1", 1_000_000, 10_000, 99), ("5.2", 5, 100_000, 10_000)):
        assert list(xml_stock._of_paper(*other)) == []


def test_what_follows_for_stock() -> None:
    rows = [
        {"entrant": "xpath", "table": "5.1", "subscriptions": 1_000_000, "selectivity": place, "seconds": seconds}
        | {"parse_share": 0.6, "path_seconds": 0.01, "parse_seconds": 0.2}
        for place, seconds in ((1_000, 1.0), (1_000_000, 2.0))
    ]
    rows += [
        {"entrant": "xpath", "table": "5.2", "subscriptions": size, "selectivity": 100_000, "seconds": size / 1e5}
        for size in (100_000, 1_000_000)
    ]
    expected = [True, False, True, True, *UNMEASURED, None]
    assert [each.holds for each in xml_stock.judge(WorkloadRows(rows))] == expected
