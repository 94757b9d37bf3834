"""The experiments on XML documents: how engines are filled and verified, and what follows from given figures."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from harken_lab.experiments import xml_nasa, xml_stock
from harken_lab.experiments.documents import filled_engine, model_of, streams, verify_documents
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Finding
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
        filled_engine(["/a[$x]"], print)


def test_answers_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nasa()
    engine, _ = filled_engine(model.texts(50, streams(0)[0]), lambda text: None)
    engine.subscribe("s50", "/record", language="xpath")
    documents = list(islice(model.collection(), 3))
    verify_documents(engine, documents, 0)
    monkeypatch.setattr(type(engine), "match", lambda *_: SimpleNamespace(ids=["s0", "s1", "s2"]))
    with pytest.raises(WrongAnswerError, match="its explanation says otherwise"):
        verify_documents(engine, documents, 0)


UNMEASURED = [None, None, None, None]
"""What is said of plans in databases where none was measured."""


def nasa_row(size: int, **figures: Any) -> Row:
    usual = {"first_seconds": size**0.5, "linear_paths": int(size**0.5), "predicates": 7 * size, "bytes": 100 * size}
    own = {"leaf_values": 300_000, "leaf_paths": 70, "parse_seconds": 2.0}
    return {"workload": "nasa", "entrant": "xpath", "subscriptions": size, **usual, **own, **figures}


def verdicts(found: Iterable[Finding]) -> list[str]:
    return [each.verdict for each in found]


@pytest.mark.parametrize(("figures", "second"), [({}, "holds"), ({"leaf_paths": 7_000}, "does not hold")])
def test_what_follows_for_nasa(figures: Row, second: str) -> None:
    rows = WorkloadRows([nasa_row(size, **figures) for size in (130_000, 1_400_000)])
    assert verdicts(xml_nasa.judge(rows)) == ["holds", second, "holds", *["not measured"] * 6]


def test_linear_growth_is_told() -> None:
    rows = [nasa_row(size, first_seconds=size, linear_paths=size) for size in (130_000, 13_000_000)]
    time, _, paths, *_ = xml_nasa.judge(WorkloadRows(rows))
    assert (time.holds, paths.holds) == (False, False)
    assert "as subscriptions^1 (0.903 to 1.1) (holds up to 0.9)" in time.ours
    few = list(xml_nasa.judge(WorkloadRows([nasa_row(20_000)])))
    assert verdicts(few)[:3] == ["not measured", "holds", "not measured"]


def test_paths_of_xpath_are_no_path_match() -> None:
    common = {"workload": "nasa", "table": xml_nasa.IN_DATABASES}
    rows = [nasa_row(size, path_seconds=0.0) for size in (130_000, 700_000)]
    rows += [plan_row("Unroll on DuckDB", size, 1.0, path_seconds=0.25, **common) for size in (1_000, 4_000)]
    (paths,) = (each for each in xml_nasa.judge(WorkloadRows(rows)) if "table 5.4: 7 s" in each.paper_figure)
    assert (paths.verdict, "by subscriptions: 1,000: 0.25 s, 4,000: 0.25 s" in paths.ours) == ("not measured", True)


def plan_row(entrant: str, size: int, seconds: float, **more: Any) -> Row:
    rounds = {"rounds": {name: [seconds] * 3 for name in ("seconds", "first_seconds")}}
    return {"entrant": entrant, "subscriptions": size, "seconds": seconds, "first_seconds": seconds, **rounds, **more}


def test_what_follows_for_plans_on_nasa() -> None:
    common = {"workload": "nasa", "table": xml_nasa.IN_DATABASES}
    rows = [nasa_row(size) for size in (130_000, 1_400_000)]
    for size, unroll, share, bucket in ((100_000, 1.0, 1.0, 1.1), (400_000, 1.5, 3.9, 4.0)):
        rows.append(plan_row("xpath", size, 0.1, **common))
        for name, seconds in (("Unroll", unroll), ("Share", share), ("Share-Bucket", bucket)):
            rows.append(plan_row(f"{name} on DuckDB", size, seconds, bytes=size * 50, **common))
    *_, memory, grows, neutral, unroll_scales, kernels = xml_nasa.judge(WorkloadRows(rows))
    assert (grows.holds, neutral.holds, unroll_scales.holds, kernels.holds) == (False, True, True, True)
    assert "Share on DuckDB as subscriptions^0.982" in grows.ours
    assert "10 times at 100,000 (Unroll on DuckDB)" in kernels.ours
    assert (memory.verdict, "limit of memory" in memory.why) == ("not measured", True)
    assert "14 bytes by xpath at 1,400,000 subscriptions, 7 bytes by Share on DuckDB at 400,000" in memory.ours


def test_unroll_is_not_judged_where_all_is_in_memory() -> None:
    common = {"workload": "nasa", "table": xml_nasa.IN_DATABASES}
    rows = [nasa_row(size) for size in (130_000, 1_400_000)]
    rows += [
        plan_row(f"{name} on DuckDB", size, seconds, **common)
        for size in (1_000, 4_000)
        for name, seconds in (("Unroll", size), ("Share", size**0.5))
    ]
    (finding,) = (each for each in xml_nasa.judge(WorkloadRows(rows)) if each.claim.startswith("Unroll scales"))
    assert (finding.verdict, "4,000 are held whole" in finding.why) == ("not measured", True)


def stock_rows(*notifications: int) -> list[Row]:
    """Plans at few and at many notifications: Share and buckets become slower, Unroll does not."""
    rows = []
    for place, unroll, share, bucket in zip(notifications, (1.0, 1.2), (2.0, 9.0), (1.0, 8.9), strict=True):
        for name, seconds in (("Unroll", unroll), ("Share", share), ("Share-Bucket", bucket)):
            more = {"table": xml_stock.IN_5_1, "notifications": place, "path_seconds": 0.01, "events": 1_000}
            rows.append(plan_row(f"{name} on SQLite", 10_000, seconds, **more))
    return rows


def test_what_follows_for_plans_on_stock() -> None:
    flatter, buckets, grows, kernels = list(xml_stock.judge(WorkloadRows(stock_rows(100, 100_000))))[-4:]
    assert (flatter.holds, buckets.holds) == (True, None), "buckets help at one of two points"
    assert "100,000 notifications beside 100: SQLite 1.2 times by Unroll, 4.5 by Share" in flatter.ours
    assert verdicts([grows, kernels]) == ["not measured"] * 2


def test_few_notifications_tell_nothing_of_plans() -> None:
    flatter, buckets, *_ = list(xml_stock.judge(WorkloadRows(stock_rows(1, 1_017))))[-4:]
    assert verdicts([flatter, buckets]) == ["cannot be told"] * 2
    assert "what every batch of messages costs" in flatter.why


def test_a_time_that_does_not_grow_is_overhead() -> None:
    rows = [
        plan_row(f"{name} on DuckDB", size, 1.0 + size / 1e6, table=xml_stock.IN_5_2)
        for size in (2_500, 10_000)
        for name in ("Unroll", "Share")
    ]
    grows, _ = list(xml_stock.judge(WorkloadRows(rows)))[-2:]
    assert (grows.verdict, "does not grow at all" in grows.why) == ("cannot be told", True)


def test_path_match_is_that_of_a_plan() -> None:
    def finding(first: float, path: float) -> Finding:
        more = {"table": xml_stock.IN_5_1, "notifications": 5, "path_seconds": path, "events": 1_000}
        row = plan_row("Unroll on DuckDB", 10_000, first - path, **more) | {"first_seconds": first}
        xpath = {"entrant": "xpath", "table": "5.1", "subscriptions": 10, "notifications": 5, "us_per_event": 1.0}
        found = xml_stock.judge(WorkloadRows([row, xpath | {"parse_share": 0.1}]))
        return next(each for each in found if each.claim.startswith("Matching linear paths"))

    assert finding(1.0, 0.05).holds is True
    assert finding(1.0, 0.5).holds is None


@pytest.mark.parametrize("subscriptions", [200, 10_000, 200_000, 1_000_000])
def test_the_columns_of_table_51_are_what_they_say(subscriptions: int) -> None:
    """10,000 messages have as many notifications, whatever the scale, and a message leads to as many candidates."""
    for notifications in xml_stock._BY_NOTIFICATIONS:
        model = xml_stock._model(subscriptions, notifications)
        assert model.selectivity * subscriptions * 10_000 == pytest.approx(notifications)
        assert subscriptions / model.symbols == pytest.approx(333, rel=0.5)


def test_what_is_drawn_has_them() -> None:
    subscriptions, rng, other = 2_000, *streams(3)
    model = xml_stock._model(subscriptions, 1_000_000)
    engine, _ = filled_engine(list(model.texts(subscriptions, rng)), lambda text: None)
    messages = [text.encode() for text in model.events(100, other)["document"].to_pylist()]
    assert sum(engine.match_batch(messages).counts) == pytest.approx(10_000, rel=0.2)


def test_made_up_records_judge_nothing() -> None:
    found = list(xml_nasa.judge(WorkloadRows([nasa_row(130_000, workload="records")])))
    assert {each.holds for each in found} == {None}
    assert "set HARKEN_DATA" in found[0].why


def test_the_papers_seconds_stand_beside_ours_at_its_sizes() -> None:
    (unroll, share, bucket) = xml_stock._of_paper("5.1", 1_000_000, 10_000, 10_000)
    assert [row["seconds"] for row in (unroll, share, bucket)] == [61, 154, 44.6]
    assert {row["notifications"] for row in (unroll, share, bucket)} == {10_000}
    assert unroll["us_per_event"] == pytest.approx(6_100)
    assert [row["seconds"] for row in xml_stock._of_paper("5.2", 200_000, 100_000, 10_000)] == [55, 221, 119]
    for other in (("5.1", 200_000, 10_000, 10_000), ("5.1", 1_000_000, 10_000, 99), ("5.2", 5, 100_000, 10_000)):
        assert list(xml_stock._of_paper(*other)) == []


def test_what_follows_for_stock() -> None:
    rows = [
        {"entrant": "xpath", "table": "5.1", "subscriptions": 1_000_000, "notifications": place, "us_per_event": time}
        | {"parse_share": 0.7, "least_us": time, "most_us": time, "events": 10_000}
        for place, time in ((1_000, 100.0), (1_000_000, 200.0))
    ]
    rows += [
        {"entrant": "xpath", "table": "5.2", "subscriptions": size, "notifications": 100_000, "us_per_event": size / 10}
        | {"least_us": size / 10, "most_us": size / 10, "events": 10_000}
        for size in (100_000, 1_000_000)
    ]
    found = list(xml_stock.judge(WorkloadRows(rows)))
    assert verdicts(found) == ["holds", "does not hold", "holds", *["not measured"] * 5]
    assert "1,000: 1 s, 1,000,000: 2 s; as notifications^0.1" in found[0].ours
