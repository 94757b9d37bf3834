"""The 23 items of the five papers: complete, in order, each with findings, and with numbers or why there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken_lab.experiments import EXPERIMENTS, find_experiment, topss_dbms, topss_tables, xml_nasa, xml_stock
from harken_lab.experiments.definition import ExperimentResult, read_result
from harken_lab.experiments.findings import Finding
from harken_lab.experiments.plotting import Plot
from harken_lab.report.items import PAPERS, Item, all_items
from harken_lab.report.outcomes import Verdict, outcomes
from harken_lab.report.paper_figures import BITS, KDB, LISTS, PAPER_FIGURES, THE_PAPERS, WITHOUT_NUMBERS, PaperFigure

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "experiments"
ITEMS = {item.key: item for item in all_items()}
LABELS = {
    "topss": ["Figure 2", "Figure 3", "Figure 4", "Table 1", "Table 2", "Update times"],
    "le-subscribe": ["Figure 9", "Figure 10", "Figure 11", "Cost of an insertion"],
    "gryphon": ["Time", "Space", "Exponent"],
    "overlap": ["Figure 4", "Figure 5", "Figure 6", "Figure 7", "Figure 8"],
    "xml": ["Table 5.1", "Table 5.2", "Table 5.3", "Table 5.4", "Figure 5.2"],
}


def plots_of(item: Item) -> dict[str, Plot]:
    """The plots that an item can show, by name."""
    known = [plot for name in item.experiments if name in EXPERIMENTS for plot in find_experiment(name).plots]
    return {plot.name: plot for plot in [*known, *item.plots] if isinstance(plot, Plot)}


def test_all_23_are_there_in_the_order_of_the_papers() -> None:
    assert {paper.key: [item.label for item in paper.items] for paper in PAPERS} == LABELS
    assert len(all_items()) == len(ITEMS) == 23


@pytest.mark.parametrize("key", ITEMS)
def test_an_item_has_numbers_of_the_paper_or_says_why_not(key: str) -> None:
    assert (key in PAPER_FIGURES) != (key in WITHOUT_NUMBERS)
    item = ITEMS[key]
    assert item.claim.endswith(".")
    assert any(name in EXPERIMENTS for name in item.experiments)
    wanted = {plot if isinstance(plot, str) else plot.name for plot in item.plots}
    assert wanted <= set(plots_of(item))
    assert {figure.plot for figure in PAPER_FIGURES.get(key, ())} <= wanted


def test_there_are_no_numbers_of_other_items() -> None:
    assert {*PAPER_FIGURES, *WITHOUT_NUMBERS} == set(ITEMS)


@pytest.mark.parametrize("key", ITEMS)
def test_the_committed_results_have_findings_about_it_or_it_is_not_measured(key: str) -> None:
    item = ITEMS[key]
    paths = [RESULTS / f"{name}.json" for name in item.experiments]
    results = [read_result(path) for path in paths if path.exists()]
    if results:
        assert any(item.findings(result) for result in results)
    else:
        (outcome,) = (each for each in outcomes({}, {}) if each.item is item)
        assert outcome.verdict is Verdict.NOT_MEASURED
        assert item.experiments[0] in outcome.headline


@pytest.mark.parametrize(
    ("key", "claims"),
    [
        ("overlap-figure-8", ["all figures", "popularity"]),
        ("overlap-figure-7", ["all figures"]),
        ("overlap-figure-4", ["all figures", "both"]),
    ],
)
def test_a_pattern_picks_the_findings_of_its_figure(key: str, claims: list[str]) -> None:
    figures = {"all figures": "figures 4 to 8", "popularity": "figure 8, without figures", "both": "figures 4 and 5"}
    findings = [Finding(claim, figure, "1", True, "") for claim, figure in figures.items()]
    result = ExperimentResult("overlap-orders", "t", "p", "smoke", 0, {}, {}, [], findings)
    assert [each.claim for each in ITEMS[key].findings(result)] == claims


@pytest.mark.parametrize(("predicates", "holds"), [(740, True), (500, False), (1_000, False)])
def test_table_53_is_judged_by_the_predicates_of_a_subscription(predicates: int, holds: bool) -> None:
    rows = [
        {"workload": "nasa", "subscriptions": 10, "predicates": 1},
        {"workload": "nasa", "subscriptions": 100, "predicates": predicates},
    ]
    result = ExperimentResult("xml-nasa", "t", "p", "laptop", 0, {}, {}, rows)
    (finding,) = ITEMS["xml-table-5.3"].findings(result)
    assert finding.holds is holds


def test_table_53_is_not_judged_on_made_up_documents() -> None:
    rows = [{"workload": "made-up", "subscriptions": 100, "predicates": 740}]
    (finding,) = ITEMS["xml-table-5.3"].findings(ExperimentResult("xml-nasa", "t", "p", "smoke", 0, {}, {}, rows))
    assert finding.holds is None


@pytest.mark.parametrize(("zipf", "holds"), [(20, True), (40, False), (None, None)])
def test_figure_5_is_judged_by_its_distance_from_figure_4(zipf: int | None, holds: bool | None) -> None:
    figures = {(4, "naive"): 100, (4, "suborder"): 40, (5, "naive"): 100, (5, "suborder"): zipf}
    rows = [
        {"figure": figure, "entrant": name, "place": place, "evaluated_per_event": value}
        | {"options": {"chains": "published"} if name == "suborder" else {}}
        for (figure, name), value in figures.items()
        for place in (10, 5)
    ]
    *_, finding = ITEMS["overlap-figure-5"].findings(
        ExperimentResult("overlap-orders", "t", "p", "smoke", 0, {}, {}, rows)
    )
    assert finding.holds is holds


def test_the_numbers_are_those_that_the_experiments_judge_by() -> None:
    """They stand in both: a figure of the paper is the same in the chart and in the row of the result."""
    (one,), (two,) = PAPER_FIGURES["topss-table-1"], PAPER_FIGURES["topss-table-2"]
    for size, (bits_ms, lists_ms, bits_load, lists_load) in topss_tables._PAPER.items():
        assert (one.series[BITS][size], one.series[LISTS][size]) == pytest.approx((bits_ms * 1_000, lists_ms * 1_000))
        assert (two.series[BITS][size], two.series[LISTS][size]) == pytest.approx((bits_load / 1e3, lists_load / 1e3))
    for size, (matching, loading) in topss_dbms._KDB.items():
        assert one.series[KDB][size] == pytest.approx(matching * 1_000)
        assert two.series[KDB][size] == pytest.approx(loading / 1_000)
    for key, known in (("5.1", xml_stock._BY_NOTIFICATIONS), ("5.2", xml_stock._BY_SUBSCRIPTIONS)):
        (figure,) = PAPER_FIGURES[f"xml-table-{key}"]
        assert {place: tuple(series[place] for series in figure.series.values()) for place in known} == known
    tables = [*PAPER_FIGURES["xml-table-5.3"], *PAPER_FIGURES["xml-table-5.4"]]
    assert {
        size: tuple(each.series[THE_PAPERS][size] for each in tables) for size in xml_nasa._PAPER
    } == xml_nasa._PAPER


def test_a_series_without_numbers_is_rejected() -> None:
    with pytest.raises(ValueError, match="without numbers"):
        PaperFigure("nowhere", "time", {"a": {}})
