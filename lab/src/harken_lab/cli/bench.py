"""`harken bench`: time and memory of matching, compared with targets or with an earlier result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from harken.cli.command_session import session
from harken.cli.exits import ExitCode
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen
from harken_lab.cli.measuring_commands import check_name, progress, show_plots

if TYPE_CHECKING:
    from harken_lab.bench.bench_run import BenchSettings
    from harken_lab.bench.figures import BenchResult
    from harken_lab.bench.grid_result import GridResult

    Result = TypeVar("Result", BenchResult, GridResult)

EXAMPLES = """\b
Examples:
  harken bench --quick
  harken bench --output new.json --plots plots
  harken bench --workload stock --size 100000 --size 1000000 --rounds 11
  harken bench --check new.json
  harken bench --compare old.json new.json
  harken bench --grid --quick
  harken bench --grid --workload text --size 1000 -o grid.json --plots plots
"""


_WorkloadOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="A workload; may be repeated. [default: w4, le-subscribe, stock, gryphon, mixed]"
    ),
]
_SizeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N",
        help="How many subscriptions; may be repeated. NAME=N adds a size to one workload."
        " [default: 10, 1,000, 10,000, 100,000 and 1,000,000]",
    ),
]
_EventsOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="How many events. [default: 8,192; of w4 256]")
]
_MatcherOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A matcher; may be repeated. [default: columnar, counting_lists]"),
]
_RoundsOption = Annotated[int | None, typer.Option(metavar="N", min=1, help="How many rounds are timed. [default: 7]")]
_EngineSizeOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="Most subscriptions for matchers whose index is not saved. [default: 100,000]"
    ),
]
_GridOption = Annotated[
    bool, typer.Option("--grid", help="Measure a grid of shapes, sizes and calls beside a loop of closures.")
]
_QuickOption = Annotated[bool, typer.Option("--quick", help="Small sizes and few rounds: a minute, the grid three.")]
_ShowOption = Annotated[str | None, typer.Option(metavar="FILE", help="Measure nothing; show and draw a saved result.")]
_CheckOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Measure nothing; check a saved result against the targets.")
]
_TargetsOption = Annotated[str | None, typer.Option(metavar="FILE", help="The targets. [default: those of a clone]")]
_CompareOption = Annotated[
    tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="Measure nothing; compare two saved results.")
]


def bench(
    workload: _WorkloadOption = None,
    size: _SizeOption = None,
    events: _EventsOption = None,
    matcher: _MatcherOption = None,
    rounds: _RoundsOption = None,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="The same seed draws the same workloads.")] = 0,
    engine_size: _EngineSizeOption = None,
    grid: _GridOption = False,
    quick: _QuickOption = False,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result.")] = None,
    plots: Annotated[str | None, typer.Option(metavar="FOLDER", help="Draw plots, as SVG and PNG.")] = None,
    show: _ShowOption = None,
    check: _CheckOption = None,
    targets: _TargetsOption = None,
    compare: _CompareOption = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Measure matching: time, memory, building and changes.

    Matchers take turns on the same events, and their answers are verified. docs/benchmarks.md says what is timed, and
    how. With --check and --grid the exit code is 1 if a target is missed.
    """
    with session(json, verbose) as screen:
        if grid:
            _bench_grid(screen, workload, size, rounds, seed, quick, output, plots, show)
        elif check is not None:
            _check(screen, check, targets)
        elif compare is not None:
            _compare(screen, *compare)
        else:
            if plots is not None:
                from harken_lab.harness.charts import require_altair

                require_altair()
            if show is not None:
                from harken_lab.bench.figures import read_result

                result = read_result(show)
            else:
                settings = _settings(workload, size, events, matcher, rounds, seed, engine_size, quick)
                result = _measure(screen, settings, output)
            _show(screen, result)
            if plots is not None:
                _draw(screen, result, plots)


def _bench_grid(
    screen: Screen,
    workloads: list[str] | None,
    sizes: list[str] | None,
    rounds: int | None,
    seed: int,
    quick: bool,
    output: str | None,
    plots: str | None,
    show: str | None,
) -> None:
    from harken_lab.bench.grid import GridSettings, run_grid
    from harken_lab.bench.grid_cells import SHAPES
    from harken_lab.bench.grid_result import read_grid

    if plots is not None:
        from harken_lab.harness.charts import require_altair

        require_altair()
    for name in workloads or ():
        check_name("--workload", name, SHAPES)
    settings = replace(GridSettings(), seed=seed, sizes=tuple(sorted({_size(text) for text in sizes or ()})))
    if quick:
        settings = settings.quick()
    if workloads:
        settings = replace(settings, shapes=tuple(dict.fromkeys(workloads)))
    if rounds is not None:
        settings = replace(settings, rounds=rounds)
    result = _measured(partial(run_grid, settings, progress(screen)), output) if show is None else read_grid(show)
    _show_grid(screen, result)
    if plots is not None:
        from harken_lab.bench.grid_plot import draw_grid

        show_plots(screen, draw_grid(result, plots))
    if result.missed or result.not_measured:
        raise typer.Exit(ExitCode.FAULTS)


def _show_grid(screen: Screen, result: GridResult) -> None:
    if screen.json:
        for each in result.cells:
            screen.line({"kind": "cell", **each.to_dict()})
        for missing in result.not_measured:
            screen.line({"kind": "not measured", **missing})
    else:
        from harken_lab.cli.grid_tables import grid_tables, missed_lines

        for table in grid_tables(result):
            screen.show(table, wrap=True)
        for line in missed_lines(result):
            screen.show(line)
    holding, measured = len(result.cells) - len(result.missed), len(result.cells)
    missing = sum(each["cells"] for each in result.not_measured)
    summary = {"kind": "summary", "cells": measured, "holding": holding, "not_measured": missing}
    more = f"; {missing} could not be measured" if missing else ""
    screen.aside(summary, f"Harken meets its speed target in {holding} of {measured} cases{more}")


def _settings(
    workloads: list[str] | None,
    sizes: list[str] | None,
    events: int | None,
    matchers: list[str] | None,
    rounds: int | None,
    seed: int,
    engine_size: int | None,
    quick: bool,
) -> BenchSettings:
    from harken_lab.bench.bench_run import BenchSettings
    from harken_lab.bench.trials import CONTESTANTS
    from harken_lab.workloads import WORKLOADS

    tables = [name for name, recipe in WORKLOADS.items() if recipe.has_table]
    for option, names, known in (("--workload", workloads, tables), ("--matcher", matchers, list(CONTESTANTS))):
        for name in names or ():
            check_name(option, name, known)
    settings = replace(BenchSettings(), events=events, seed=seed)
    if quick:
        settings = settings.quick()
    chosen: dict[str, Any] = {
        "workloads": tuple(dict.fromkeys(workloads or ())) or None,
        "matchers": tuple(dict.fromkeys(matchers or ())) or None,
        "rounds": rounds,
        "engine_size": engine_size,
    }
    settings = replace(settings, **{name: value for name, value in chosen.items() if value is not None})
    return _with_sizes(settings, sizes or [])


def _with_sizes(settings: BenchSettings, texts: list[str]) -> BenchSettings:
    """Settings with these sizes: N replaces the usual sizes of all workloads, NAME=N adds a size to one of them."""
    for_all: list[int] = []
    for_some: list[tuple[str, int]] = []
    for text in texts:
        name, _, number = text.rpartition("=")
        size = _size(number)
        if name and name not in settings.workloads:
            raise typer.BadParameter(f"{name} is not among the workloads", param_hint="--size")
        if name:
            for_some.append((name, size))
        else:
            for_all.append(size)
    sizes = tuple(sorted(set(for_all))) or settings.sizes
    return replace(settings, sizes=sizes, more_sizes=tuple(for_some))


def _size(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdecimal() or not 1 <= int(digits) < 2**31:
        raise typer.BadParameter(f"write a number such as 100000, not {text}", param_hint="--size")
    return int(digits)


def _measure(screen: Screen, settings: BenchSettings, output: str | None) -> BenchResult:
    from harken_lab.bench.bench_run import run

    return _measured(partial(run, settings, progress(screen)), output)


def _measured(run: Callable[..., Result], output: str | None) -> Result:
    """Measure, and write the result if an output is named. The output is opened first, so that faults show early.

    A run takes long and may be stopped: the result so far is kept in a file beside the output.
    """
    from harken.versions.atomic import output_file

    if output is None:
        return run()
    so_far = Path(f"{output}.so-far")

    def keep(measured: Result) -> None:
        if Path(output).exists() and not Path(output).is_file():
            return  # the output is a pipe: no file is put beside it
        with output_file(str(so_far)) as beside:
            beside.write(measured.to_json().encode())

    with output_file(output) as stream:
        result = run(keep=keep)
        stream.write(result.to_json().encode())
    so_far.unlink(missing_ok=True)
    return result


def _show(screen: Screen, result: BenchResult) -> None:
    if screen.json:
        for figure in result.figures:
            screen.line({"kind": "figure", **figure.to_dict()})
        for each in result.not_measured:
            screen.line({"kind": "not measured", **each.to_dict()})
        return
    from harken_lab.cli.bench_tables import figure_tables, missing_lines

    for table in figure_tables(result):
        screen.show(table, wrap=True)
    for line in missing_lines(result):
        screen.show(line)


def _draw(screen: Screen, result: BenchResult, folder: str) -> None:
    from harken_lab.bench.bench_plots import draw
    from harken_lab.bench.peers import BENCHMARKS, read_peers

    path = BENCHMARKS / "peers.json"
    show_plots(screen, draw(result, folder, read_peers(path) if path.exists() else []))


def _check(screen: Screen, path: str, targets: str | None) -> None:
    from harken_lab.bench.figures import read_result
    from harken_lab.bench.peers import BENCHMARKS, read_peers
    from harken_lab.bench.targets import judge, read_targets, targets_from

    chosen = read_targets(Path(targets) if targets else BENCHMARKS / "targets.json")
    if targets is None:
        chosen += targets_from(read_peers())
    verdicts = judge(read_result(path), chosen)
    reached = sum(verdict.is_reached for verdict in verdicts)
    if screen.json:
        for verdict in verdicts:
            screen.line(verdict.to_dict())
    else:
        from harken_lab.cli.bench_tables import target_table, unmeasured_lines

        screen.show(target_table(verdicts), wrap=True)
        for line in unmeasured_lines(verdicts):
            screen.show(line)
    summary = {"kind": "summary", "targets": len(verdicts), "reached": reached}
    screen.aside(summary, f"{reached} of {len(verdicts)} targets are reached")
    if reached < len(verdicts):
        raise typer.Exit(ExitCode.FAULTS)


def _compare(screen: Screen, old: str, new: str) -> None:
    from harken_lab.bench.comparison import compare
    from harken_lab.bench.figures import read_result

    comparison = compare(read_result(old), read_result(new))
    if screen.json:
        for change in comparison.changes:
            screen.line(change.to_dict())
    else:
        from harken_lab.cli.bench_tables import change_table

        screen.show(change_table(comparison.changes), wrap=True)
    for difference in comparison.differences:
        screen.aside({"kind": "difference", "message": difference}, f"the results differ in {difference}")
    for which, keys in (("old", comparison.only_old), ("new", comparison.only_new)):
        if keys:
            text = f"only in the {which} result: {', '.join(keys)}"
            screen.aside({"kind": "unmatched", "in": which, "figures": keys}, text)
