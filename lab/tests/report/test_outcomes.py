"""Verdicts on items, what stands for them in a line, and that nothing that was found is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harken_lab.experiments.definition import ExperimentResult
from harken_lab.experiments.findings import Finding
from harken_lab.report.measuring import read
from harken_lab.report.outcomes import ItemOutcome, Verdict, brief, others, outcomes

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "experiments"


def result(*holds: bool | None, why: str = "so it is", is_measured: bool = True) -> ExperimentResult:
    findings = [
        Finding(f"claim {place}", "figure 3", "1 µs", each, why, is_measured) for place, each in enumerate(holds)
    ]
    rows = [
        {"workload": "w4", "subscriptions": size, "entrant": name, "us_per_event": size / 8}
        for size, names in ((100, "ab"), (1_000, "ab"), (5_000, "a"))
        for name in names
    ]
    return ExperimentResult("topss-counting", "t", "p", "laptop", 0, {}, {}, rows, findings)


def figure_3(*holds: bool | None, is_measured: bool = True) -> ItemOutcome:
    found = outcomes({"topss-counting": result(*holds, is_measured=is_measured)}, {})
    return next(each for each in found if each.item.key == "topss-figure-3")


@pytest.mark.parametrize(
    ("holds", "verdict", "count"),
    [
        ((True, True), Verdict.HOLDS, "2 of 2 findings hold"),
        ((True, False, None), Verdict.IN_PART, "1 of 3 findings holds, 1 cannot be told"),
        ((False, False), Verdict.FAILS, "0 of 2 findings hold"),
        ((True, None), Verdict.IN_PART, "1 of 2 findings holds, 1 cannot be told"),
        ((False, None), Verdict.FAILS, "0 of 2 findings hold, 1 cannot be told"),
        ((None, None), Verdict.UNTOLD, "0 of 2 findings hold, 2 cannot be told"),
        ((), Verdict.NOT_MEASURED, "0 of 0 findings hold"),
    ],
)
def test_verdicts(holds: tuple[bool | None, ...], verdict: Verdict, count: str) -> None:
    found = figure_3(*holds)
    assert (found.verdict, found.count) == (verdict, count)


def test_findings_that_were_not_measured_are_no_verdict() -> None:
    unmeasured = figure_3(None, is_measured=False)
    assert (unmeasured.verdict, unmeasured.count) == (
        Verdict.NOT_MEASURED,
        "0 of 1 findings hold, 1 is not measured",
    )
    (both,) = (
        each
        for each in outcomes(
            {
                "topss-counting": replace(
                    result(True), findings=[*result(True).findings, *result(None, is_measured=False).findings]
                )
            },
            {},
        )
        if each.item.key == "topss-figure-3"
    )
    assert (both.verdict, both.count) == (Verdict.IN_PART, "1 of 2 findings holds, 1 is not measured")


def test_the_headline_is_of_the_largest_size_that_all_have() -> None:
    assert figure_3(True).headline == "µs per event at 1,000 subscriptions: a 125; b 125"


def test_an_item_does_not_hold_as_a_whole_while_an_experiment_about_it_is_missing() -> None:
    finding = Finding("lists are quicker", "table 1", "2 times", True, "")
    found = ExperimentResult("topss-tables", "t", "p", "laptop", 0, {}, {}, [], [finding])
    results = {"topss-tables": found}
    (table,) = (each for each in outcomes(results, {}) if each.item.key == "topss-table-1")
    assert (table.verdict, table.missing) == (Verdict.IN_PART, ["topss-dbms"])
    assert table.count == "1 of 1 findings holds; `topss-dbms` is not measured"
    results["topss-dbms"] = replace(found, experiment="topss-dbms")
    (table,) = (each for each in outcomes(results, {}) if each.item.key == "topss-table-1")
    assert (table.verdict, table.missing) == (Verdict.HOLDS, [])


def test_the_headline_says_why_nothing_was_measured() -> None:
    assert figure_3(None, is_measured=False).headline == "so it is"
    missing = outcomes({}, {"xml-stock": "no lxml"})
    told = {each.item.key: each.headline for each in missing}
    assert told["xml-table-5.1"] == "no lxml"
    assert told["gryphon-time"] == "there is no result of `gryphon-tree`"
    assert {each.verdict for each in missing} == {Verdict.NOT_MEASURED}


def test_a_headline_is_short() -> None:
    assert brief("a 1 µs: 4 times (holds from 1.1)") == "a 1 µs: 4 times"
    assert brief(", ".join(["counting 12,345"] * 20)) == f"{', '.join(['counting 12,345'] * 7)} …"


def test_whatever_was_found_is_told() -> None:
    """Every finding of the committed results is about an item or told besides; so is every plot with figures."""
    found = read(RESULTS, mixed=True)
    items = outcomes(found.results, found.failures)
    besides = [each for group in others(found.results, items).values() for each in group]
    told = [*(each for outcome in items for each in outcome.measured), *besides]
    for name, known in found.results.items():
        claims = {finding.claim for each in told if each.result is known for finding in each.findings}
        assert claims >= {finding.claim for finding in known.findings}, name
        assert any(each.plots for each in told if each.result is known), name
    assert besides


def test_what_an_item_tells_is_not_told_besides() -> None:
    found = {"topss-counting": result(True, False)}
    items = outcomes(found, {})
    assert [each for group in others(found, items).values() for each in group if each.findings] == []
