"""`harken report`: all experiments, judged against the papers, and all benchmarks, on one page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.command_session import session
from harken.cli.exits import ExitCode
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen
from harken_lab.cli.telling import progress, refuse_unknown

if TYPE_CHECKING:
    from harken_lab.report.benchmark_tables import BenchmarkResult
    from harken_lab.report.measuring import Measurements

EXAMPLES = """\b
Examples:
  harken report
  harken report --scale smoke --output /tmp/report
  harken report --from benchmarks/results/experiments --output docs

The folder has report.html, report.md, the charts of the latter in report/, and
the results of the experiments in results/. A result that is there already is
kept: a run that was stopped goes on where it was.
"""
_RESULTS = "results"


def report(
    scale: Annotated[
        str | None,
        typer.Option(metavar="SCALE", help="smoke, laptop or full: a minute, an hour, hours. [default: laptop]"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the report goes.")] = Path(
        "harken-report"
    ),
    seed: Annotated[
        int | None, typer.Option(metavar="S", min=0, help="The same seed draws the same workloads. [default: 0]")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what is measured already.")] = False,
    results: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Measure nothing; take the results of this folder.")
    ] = None,
    benchmarks: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The results of benchmarks. [default: those of a clone]"),
    ] = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Write a report of all experiments and benchmarks.

    It has every table and figure of the five papers: what the paper says, its numbers beside ours, and whether the
    claim holds here. Experiments that have no result in the folder are run first; benchmarks are only read. The exit
    code is 1 if an experiment could not be measured.
    """
    with session(json, verbose) as screen:
        from harken_lab.harness.charts import refuse_without_altair

        _refuse(scale, seed, fresh, results)
        refuse_without_altair()
        saved = _benchmarks(benchmarks)
        found = _measurements(screen, scale or "laptop", seed or 0, fresh, output, results)
        pages = _write(screen, found, saved, output, _command(scale, seed, output, results, benchmarks))
        _show(screen, found, pages)
        if found.failures:
            raise typer.Exit(ExitCode.FAULTS)


def _refuse(scale: str | None, seed: int | None, fresh: bool, results: Path | None) -> None:
    from harken_lab.experiments.definition import SCALES

    if scale is not None:
        refuse_unknown("--scale", scale, SCALES)
    if results is not None and (scale is not None or seed is not None or fresh):
        raise typer.BadParameter(
            "it measures nothing: --scale, --seed and --fresh do not go with it", param_hint="--from"
        )


def _benchmarks(folder: Path | None) -> list[BenchmarkResult]:
    from harken.errors import SourceError
    from harken_lab.bench.peers import BENCHMARKS
    from harken_lab.report.benchmarks import read_benchmarks

    if folder is not None and not folder.is_dir():
        raise SourceError(f"{folder} is not a folder", hint="--benchmarks names one with results of benchmarks")
    return read_benchmarks(folder or BENCHMARKS / "results")


def _measurements(
    screen: Screen, scale: str, seed: int, fresh: bool, output: Path, results: Path | None
) -> Measurements:
    from harken_lab.report.measuring import measure, read

    if results is not None:
        return read(results)
    return measure(output / _RESULTS, scale, seed, progress(screen), fresh=fresh)


def _command(scale: str | None, seed: int | None, output: Path, results: Path | None, benchmarks: Path | None) -> str:
    """The command that makes the same report again."""
    options = {"--scale": scale, "--seed": seed, "--from": results, "--benchmarks": benchmarks, "--output": output}
    return " ".join(["harken report", *(f"{name} {value}" for name, value in options.items() if value is not None)])


def _write(screen: Screen, found: Measurements, saved: list[BenchmarkResult], output: Path, command: str) -> list[Path]:
    from harken_lab.report.report_files import write
    from harken_lab.report.sections import report as document

    screen.aside({"kind": "progress", "message": "drawing"}, "drawing the charts")
    return write(document(found, saved, command), output)


def _show(screen: Screen, found: Measurements, pages: list[Path]) -> None:
    from harken_lab.report.outcomes import Verdict, outcomes

    items = outcomes(found.results, found.failures)
    if screen.json:
        for each in items:
            about = {"paper": each.paper.short, "item": each.item.label, "claim": each.item.claim}
            screen.line({"kind": "item", **about, "verdict": str(each.verdict), "here": each.headline})
        screen.line({"kind": "report", "files": [str(path) for path in pages], "failures": dict(found.failures)})
        return
    counts = Counter(each.verdict for each in items)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    screen.show(f"{len(items)} items of {len({each.paper.key for each in items})} papers: {told}")
    for name, reason in found.failures.items():
        screen.show(f"{name} could not be measured: {reason}")
    screen.show(f"Look at   {', '.join(map(str, pages))}")
