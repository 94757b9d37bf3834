"""`harken experiment`: measure the papers' tables and figures again, and check their claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.command_session import session
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen
from harken_lab.cli.measuring_commands import check_name, progress, show_plots

if TYPE_CHECKING:
    from harken_lab.experiments.definition import Experiment, ExperimentResult, Tell
    from harken_lab.experiments.findings import Finding

ALL = "all"
EXAMPLES = """\b
Examples:
  harken experiment --list
  harken experiment le-subscribe-sizes --output sizes.json --plots plots
  harken experiment all --scale smoke
  harken experiment all --scale laptop --output results
  harken experiment --show sizes.json --plots plots
"""


def experiment(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="An experiment, or `all`.")] = None,
    scale: Annotated[str, typer.Option(metavar="SCALE", help="smoke, laptop or full: seconds, minutes, hours.")] = (
        "laptop"
    ),
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the result as JSON; with `all`, a folder."),
    ] = None,
    plots: Annotated[str | None, typer.Option(metavar="FOLDER", help="Draw plots, as SVG and PNG.")] = None,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="The same seed draws the same workloads.")] = 0,
    show: Annotated[
        str | None, typer.Option(metavar="FILE", help="Measure nothing; show and draw a saved result.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Run the papers' experiments again.

    Each shows the paper's figures, ours, and whether the paper's claims hold here. The answers of all algorithms are
    compared before anything is timed. docs/experiments.md says what each experiment does.
    """
    with session(json, verbose) as screen:
        if list_:
            _list(screen)
            return
        if plots is not None:
            from harken_lab.harness.charts import require_altair

            require_altair()
        if show is not None:
            _show_saved(screen, show, plots)
        elif name is None:
            raise typer.BadParameter(f"name an experiment: {', '.join([*_names(), ALL])}", param_hint="NAME")
        else:
            _check_names(name, scale)
            _run(screen, name, scale, seed, output, plots)


def _names() -> list[str]:
    from harken_lab.experiments import EXPERIMENTS

    return list(EXPERIMENTS)


def _check_names(name: str, scale: str) -> None:
    from harken_lab.experiments.definition import SCALES

    check_name("NAME", name, [*_names(), ALL])
    check_name("--scale", scale, SCALES)


def _list(screen: Screen) -> None:
    from harken_lab.experiments import find_experiment

    width = max(map(len, _names()))
    for name in _names():
        chosen = find_experiment(name)
        if screen.json:
            scales = {scale: dict(parameters) for scale, parameters in chosen.scales.items()}
            screen.line({"name": name, "title": chosen.title, "paper": chosen.paper, "scales": scales})
        else:
            screen.show(f"{name:{width}}  {chosen.title}\n{'':{width}}  {chosen.paper}")


def _run(screen: Screen, name: str, scale: str, seed: int, output: str | None, plots: str | None) -> None:
    from harken_lab.experiments import find_experiment

    show_progress = progress(screen)
    names = _names() if name == ALL else [name]
    paths = _paths(names, name, output)
    for each in names:
        chosen = find_experiment(each)
        result = _measured(chosen, scale, seed, show_progress, paths.get(each))
        _show(screen, chosen, result)
        if plots is not None:
            _draw(screen, chosen, result, plots)


def _paths(names: list[str], name: str, output: str | None) -> dict[str, Path]:
    """The file of each result: `output`, or a file for each experiment in that folder."""
    from harken.errors import SourceError

    if output is None:
        return {}
    if name != ALL and not Path(output).is_dir():
        return {name: Path(output)}
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"{output} cannot be written to: {error.strerror or error}") from error
    return {each: Path(output, f"{each}.json") for each in names}


def _measured(chosen: Experiment, scale: str, seed: int, tell: Tell, path: Path | None) -> ExperimentResult:
    """Measure, and write the result if there is a path. The file is opened first, so that faults show early."""
    from harken.versions.atomic import output_file

    if path is None:
        return chosen.run(scale, seed, tell)
    with output_file(str(path)) as stream:
        result = chosen.run(scale, seed, tell)
        stream.write(result.to_json().encode())
    return result


def _show_saved(screen: Screen, path: str, plots: str | None) -> None:
    from harken_lab.experiments import find_experiment
    from harken_lab.experiments.definition import read_result

    result = read_result(path)
    chosen = find_experiment(result.experiment)
    _show(screen, chosen, result)
    if plots is not None:
        _draw(screen, chosen, result, plots)


def _show(screen: Screen, chosen: Experiment, result: ExperimentResult) -> None:
    if screen.json:
        from dataclasses import asdict

        for row in result.rows:
            screen.line({"kind": "row", "experiment": result.experiment, **row})
        for finding in result.findings:
            screen.line({"kind": "finding", "experiment": result.experiment, **asdict(finding)})
        return
    from rich.text import Text

    from harken_lab.experiments.result_tables import tables

    screen.show(Text(f"{result.experiment}: {result.title}", style="bold"))
    screen.show(f"{result.paper}; scale {result.scale}, seed {result.seed}\n")
    for table in tables(chosen, result):
        _show_table(screen, *table)
    for reason in dict.fromkeys(f"{row['entrant']}: {row['rejected']}" for row in result.rows if "rejected" in row):
        screen.show(reason)
    for finding in result.findings:
        _show_finding(screen, finding)


def _show_table(screen: Screen, title: str, headings: list[str], cells: list[list[str]]) -> None:
    from rich import box
    from rich.table import Table

    screen.show(title)
    table = Table(box=box.SIMPLE_HEAD)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    for row in cells:
        table.add_row(*row)
    screen.show(table, wrap=True)


def _show_finding(screen: Screen, finding: Finding) -> None:
    from rich.text import Text

    styles = {True: "bold green", False: "bold red", None: "bold"}
    screen.show(Text.assemble("\n", (finding.verdict, styles[finding.holds]), f": {finding.claim}"), wrap=True)
    for what, text in (("paper", finding.paper_figure), ("here", finding.ours), ("why", finding.why)):
        if text:
            screen.show(f"  {what}: {text}", wrap=True)


def _draw(screen: Screen, chosen: Experiment, result: ExperimentResult, folder: str) -> None:
    from harken_lab.experiments.plotting import draw

    show_plots(screen, draw(chosen, result, folder))
