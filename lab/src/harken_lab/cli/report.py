"""`harken report`: all experiments beside the papers' claims, and all benchmarks, on one page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.command_session import session
from harken.cli.exits import ExitCode
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen
from harken_lab.cli.measuring_commands import check_name, progress

if TYPE_CHECKING:
    from harken_lab.report.benchmark_tables import BenchmarkResult
    from harken_lab.report.measuring import Measurements

EXAMPLES = """\b
Examples:
  harken report
  harken report --scale smoke --output /tmp/report
  harken report --plan
  harken report --mixed --from benchmarks/results/experiments --output docs

The folder gets report.html, report.md with its charts in report/, and the
results of the experiments in results/. Experiments that have a result there are
not measured again, so a run that was stopped can be continued.
"""
_RESULTS = "results"


def report(
    scale: Annotated[
        str | None,
        typer.Option(metavar="SCALE", help="smoke, laptop or full: a minute, an hour, hours. [default: laptop]"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for the report.")] = Path(
        "harken-report"
    ),
    seed: Annotated[
        int | None, typer.Option(metavar="S", min=0, help="The same seed draws the same workloads. [default: 0]")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again experiments that have a result.")] = False,
    results: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Measure nothing; use the results in this folder.")
    ] = None,
    benchmarks: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder with results of benchmarks. [default: that of a clone]"),
    ] = None,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Mix results of different commits, and say which is which.")
    ] = (False),
    plan: Annotated[bool, typer.Option("--plan", help="Measure nothing; say how long each experiment takes.")] = False,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Write a report of all experiments and benchmarks.

    For every table and figure of the five papers it has the paper's claim, its numbers beside ours, and whether the
    claim holds here. Experiments without a result in the folder are run first; benchmarks are only read. Results of
    different commits of src and lab/src are not mixed without --mixed: those in the folder are measured again, and
    benchmarks of other commits are left out. The exit code is 1 if an experiment could not be measured.
    """
    with session(json, verbose) as screen:
        from harken_lab.harness.charts import require_altair

        _check_options(scale, seed, fresh, results)
        if plan:
            _show_plan(screen, scale or "laptop", results or output / _RESULTS)
            return
        require_altair()
        saved = _benchmarks(benchmarks)
        measured = _measurements(screen, scale or "laptop", seed or 0, fresh, output, results, mixed)
        command = _command(scale, seed, output, results, benchmarks, mixed)
        pages = _write(screen, measured, saved, output, command, mixed)
        _show(screen, measured, pages)
        if measured.failures:
            raise typer.Exit(ExitCode.FAULTS)


def _check_options(scale: str | None, seed: int | None, fresh: bool, results: Path | None) -> None:
    from harken_lab.experiments.definition import SCALES

    if scale is not None:
        check_name("--scale", scale, SCALES)
    if results is not None and (scale is not None or seed is not None or fresh):
        raise typer.BadParameter(
            "it measures nothing: --scale, --seed and --fresh do not go with it", param_hint="--from"
        )


def _benchmarks(folder: Path | None) -> list[BenchmarkResult]:
    from harken.errors import SourceError
    from harken_lab.bench.peers import BENCHMARKS
    from harken_lab.report.benchmarks import read_benchmarks

    if folder is not None and not folder.is_dir():
        raise SourceError(f"{folder} is not a folder", hint="--benchmarks names a folder with results of benchmarks")
    return read_benchmarks(folder or BENCHMARKS / "results")


def _show_plan(screen: Screen, scale: str, folder: Path) -> None:
    from harken_lab.experiments import EXPERIMENTS
    from harken_lab.experiments.experiment_pages import results
    from harken_lab.experiments.run_plan import planned_minutes

    minutes = planned_minutes(EXPERIMENTS, scale, results(folder))
    for name, each in minutes.items():
        if screen.json:
            screen.line({"kind": "plan", "experiment": name, "scale": scale, "minutes": each})
        else:
            screen.show(f"{name:24}{'unknown' if each is None else f'{each:5.1f} minutes'}")
    known = [each for each in minutes.values() if each is not None]
    if known and not screen.json:
        screen.show(f"{'together':24}{sum(known):5.1f} minutes at scale {scale}")


def _measurements(
    screen: Screen, scale: str, seed: int, fresh: bool, output: Path, results: Path | None, mixed: bool
) -> Measurements:
    from harken_lab.report.measuring import measure, read

    if results is not None:
        return read(results, mixed=mixed)
    return measure(output / _RESULTS, scale, seed, progress(screen), fresh=fresh, mixed=mixed)


def _command(
    scale: str | None, seed: int | None, output: Path, results: Path | None, benchmarks: Path | None, mixed: bool
) -> str:
    """The command that makes the same report."""
    options = {"--scale": scale, "--seed": seed, "--from": results, "--benchmarks": benchmarks, "--output": output}
    words = [f"{name} {value}" for name, value in options.items() if value is not None]
    return " ".join(["harken report", *(["--mixed"] if mixed else []), *words])


def _write(
    screen: Screen, measured: Measurements, saved: list[BenchmarkResult], output: Path, command: str, mixed: bool
) -> list[Path]:
    from harken_lab.report.report_files import write
    from harken_lab.report.result_origins import of_the_same
    from harken_lab.report.sections import report as document

    screen.aside({"kind": "progress", "message": "drawing"}, "drawing the charts")
    same, left_out = (saved, []) if mixed else of_the_same(saved, measured.results.values())
    return write(document(measured, same, command, left_out), output)


def _show(screen: Screen, measured: Measurements, pages: list[Path]) -> None:
    from harken_lab.report.outcomes import Verdict, outcomes

    items = outcomes(measured.results, measured.failures)
    if screen.json:
        for each in items:
            about = {"paper": each.paper.short, "item": each.item.label, "claim": each.item.claim}
            screen.line({"kind": "item", **about, "verdict": str(each.verdict), "here": each.headline})
        screen.line({"kind": "report", "files": [str(path) for path in pages], "failures": dict(measured.failures)})
        return
    counts = Counter(each.verdict for each in items)
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    screen.show(f"{len(items)} items of {len({each.paper.key for each in items})} papers: {verdicts}")
    for name, reason in measured.failures.items():
        screen.show(f"{name} could not be measured: {reason}")
    screen.show(f"Open      {', '.join(map(str, pages))}")
