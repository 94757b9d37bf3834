"""The content of the report: a table of all items, a section for each, further measurements, and the benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harken_lab.experiments import EXPERIMENTS, find_experiment
from harken_lab.experiments.definition import ExperimentResult
from harken_lab.experiments.experiment_pages import FINDINGS, finding_cells, origin
from harken_lab.experiments.findings import Finding
from harken_lab.experiments.plotting import Dots, Plot, chart
from harken_lab.experiments.result_tables import tables
from harken_lab.harness.charts import shown, svg
from harken_lab.report.benchmark_tables import BenchmarkResult
from harken_lab.report.benchmarks import benchmark_blocks
from harken_lab.report.items import PAPERS, Item
from harken_lab.report.measuring import Measurements
from harken_lab.report.outcomes import ItemOutcome, Measured, Verdict, others, outcomes
from harken_lab.report.paper_figures import PAPER_FIGURES, WITHOUT_NUMBERS, PaperFigure
from harken_lab.report.report_document import Block, Chart, Command, DataTable, Folded, Heading, Paragraph
from harken_lab.report.result_origins import origin_blocks, origin_summary, origins

TITLE = "Five papers, measured again"
_SMOKE = (
    "**These results are of the scale `smoke`**, which shows that everything runs. Its sizes are too small: times and "
    "verdicts tell nothing."
)


def report(
    measured: Measurements, benchmarks: Sequence[BenchmarkResult], command: str, left_out: Sequence[str] = ()
) -> list[Block]:
    """The whole document. `command` is the command that makes it; `left_out` names benchmarks of other sources."""
    where = origins(measured.results.values(), benchmarks)
    items = outcomes(measured.results, measured.failures)
    besides = others(measured.results, items)
    blocks = [*_head(measured, items, command, origin_summary(where)), *_overview(items)]
    for paper in PAPERS:
        blocks.append(Heading(2, paper.short, paper.key))
        blocks.append(Paragraph(f"{paper.title}."))
        for outcome in items:
            if outcome.paper is paper:
                blocks += _item(outcome)
        blocks += _besides(besides.get(paper.key, []), f"{paper.key}-besides")
    if "" in besides:
        blocks.append(Heading(2, "Beyond the papers", "beyond"))
        blocks += _besides(besides[""], "beyond-besides")
    blocks += benchmark_blocks(benchmarks)
    if left_out:
        names = ", ".join(f"`{name}`" for name in left_out)
        blocks.append(Paragraph(f"Left out, as results of other commits than the experiments: {names}.", is_aside=True))
    return [*blocks, *origin_blocks(where)]


def _head(measured: Measurements, items: Sequence[ItemOutcome], command: str, where_from: Paragraph) -> Iterator[Block]:
    counts = {verdict: sum(each.verdict is verdict for each in items) for verdict in Verdict}
    yield Heading(1, TITLE)
    yield Paragraph(
        f"Harken is the system that five papers on publish/subscribe describe together. Of their {len(items)} tables, "
        f"figures and statements, {counts[Verdict.HOLDS]} hold here, {counts[Verdict.IN_PART]} hold in part, "
        f"{counts[Verdict.FAILS]} {'does' if counts[Verdict.FAILS] == 1 else 'do'} not hold, {counts[Verdict.UNTOLD]} "
        f"cannot be told, and {counts[Verdict.NOT_MEASURED]} "
        f"{'is' if counts[Verdict.NOT_MEASURED] == 1 else 'are'} not measured. An item holds in part if some findings "
        "about it hold, and others do not, cannot be told or are not measured. docs/experiments.md and "
        "docs/benchmarks.md say how everything is measured and judged."
    )
    yield where_from
    if any(result.scale == "smoke" for result in measured.results.values()):
        yield Paragraph(_SMOKE)
    for machine, names in _machines(measured.results.values()).items():
        which = "All experiments" if len(names) == len(measured.results) else ", ".join(f"`{name}`" for name in names)
        yield Paragraph(f"{which}: {machine}.", is_aside=True)
    for name, reason in measured.failures.items():
        yield Paragraph(f"`{name}` ended without a result: {reason}")
    yield Paragraph("This page is made by:", is_aside=True)
    yield Command(command)


def _machines(results: Iterable[ExperimentResult]) -> dict[str, list[str]]:
    """The names of the experiments by scale, seed and machine."""
    names: dict[str, list[str]] = {}
    for result in results:
        machine = f"scale `{result.scale}`, {result.drawn}, {environment_text(result.environment)}"
        names.setdefault(machine, []).append(result.experiment)
    return names


def environment_text(environment: Mapping[str, Any]) -> str:
    """The machine and the versions of packages, in a line."""
    packages = ", ".join(f"{name} {version}" for name, version in environment.get("packages", {}).items() if version)
    return (
        f"on {environment['processor']} ({environment['cores']} cores, {environment['memory_gib']:g} GiB, "
        f"{environment.get('system', 'unknown system')}), Python {environment['python']}"
        + (f", {packages}" if packages else "")
    )


def _overview(items: Sequence[ItemOutcome]) -> Iterator[Block]:
    yield Heading(2, "At a glance", "overview")
    headings = ("paper", "item", "what the paper says", "measured here", "findings", "verdict")
    rows = (
        (
            each.paper.short,
            f"[{each.item.label}](#{each.item.key})",
            each.item.claim,
            each.headline,
            each.count,
            str(each.verdict),
        )
        for each in items
    )
    yield DataTable(headings, tuple(rows))


def _item(outcome: ItemOutcome) -> Iterator[Block]:
    item = outcome.item
    yield Heading(3, f"{outcome.paper.short}: {item.label}", item.key)
    yield Paragraph(f"The paper: {item.claim}")
    if outcome.verdict is Verdict.NOT_MEASURED:
        yield Paragraph(f"Here: **{outcome.verdict}**: {outcome.headline.removesuffix('.')}.")
    else:
        yield Paragraph(f"Here: **{outcome.verdict}**. {outcome.count}.")
    if item.key in WITHOUT_NUMBERS:
        yield Paragraph(WITHOUT_NUMBERS[item.key], is_aside=True)
    for each in outcome.measured:
        for plot in each.plots:
            yield from _plot(each, plot, _figure_of(item, plot))
        yield from _findings(each.findings)
        yield from _numbers(each)
        yield from _again(each.result)
    if not outcome.measured:
        yield from _papers_numbers(item)


def _figure_of(item: Item, plot: Plot | Dots) -> PaperFigure | None:
    return next((each for each in PAPER_FIGURES.get(item.key, ()) if each.plot == plot.name), None)


def _plot(each: Measured, plot: Plot | Dots, figure: PaperFigure | None) -> Iterator[Block]:
    series = None if figure is None else figure.series

    def draw() -> str:
        return svg(chart(plot, each.result.rows, series))

    yield Chart(f"{each.result.experiment}_{plot.name}", plot.title, draw)
    if figure is not None:
        yield Paragraph(f"In the paper: {figure.source}.", is_aside=True)
        yield Folded("The paper's numbers", (_series(figure, plot),))


def _series(figure: PaperFigure, plot: Plot | Dots | None) -> DataTable:
    """The paper's numbers as a table, headed by the axes of the plot if there is one."""
    axes = f"{plot.y_title}, by {plot.x_title}" if isinstance(plot, Plot) else figure.plot.replace("_", " ")
    places = sorted({place for values in figure.series.values() for place in values})
    rows = (
        (name, *(shown(values[place]) if place in values else "–" for place in places))
        for name, values in figure.series.items()
    )
    headings = (axes, *(f"{place:,}" for place in places))
    return DataTable(headings, tuple(rows), are_numbers=True)


def _papers_numbers(item: Item) -> Iterator[Block]:
    """The paper's numbers alone, for an item that was not measured."""
    named = {
        plot.name: plot for name in item.experiments if name in EXPERIMENTS for plot in find_experiment(name).plots
    }
    named |= {plot.name: plot for plot in item.plots if isinstance(plot, Plot)}
    for figure in PAPER_FIGURES.get(item.key, ()):
        yield Paragraph(f"In the paper: {figure.source}.", is_aside=True)
        yield _series(figure, named.get(figure.plot))


def _findings(findings: Sequence[Finding]) -> Iterator[Block]:
    if findings:
        yield DataTable(FINDINGS, tuple(tuple(finding_cells(each)) for each in findings))


def _numbers(each: Measured) -> Iterator[Block]:
    """The numbers behind the plots, folded."""
    blocks: list[Block] = []
    for table in tables(replace(each.experiment, plots=tuple(each.plots)), each.result):
        blocks.append(Paragraph(f"{table.title}."))
        blocks.append(DataTable(tuple(table.headings), tuple(map(tuple, table.cells)), are_numbers=True))
    if blocks:
        yield Folded("Our numbers", tuple(blocks))


def _again(result: ExperimentResult) -> Iterator[Block]:
    parameters = "; ".join(f"{name.replace('_', ' ')} {_parameter(value)}" for name, value in result.parameters.items())
    what = (
        f"Experiment `{result.experiment}`, with {parameters}." if parameters else f"Experiment `{result.experiment}`."
    )
    yield Paragraph(f"{what} {origin(result)} To run it again:", is_aside=True)
    yield Command(f"harken experiment {result.experiment} --scale {result.scale} --seed {result.seed}")


def _parameter(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_parameter, value)) if not any(isinstance(each, list) for each in value) else str(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _besides(measured: Sequence[Measured], key: str) -> Iterator[Block]:
    """Findings and plots of experiments that belong to no item."""
    for number, each in enumerate(measured):
        yield Heading(3, f"Also measured: {each.result.title}", f"{key}-{number}")
        for plot in each.plots:
            yield from _plot(each, plot, None)
        yield from _findings(each.findings)
        yield from _numbers(each)
        yield from _again(each.result)
