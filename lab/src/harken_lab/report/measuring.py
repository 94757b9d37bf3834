"""Runs the experiments of the report. Existing results are kept, so that a stopped run can be continued."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from harken.errors import HarkenError, SourceError
from harken.versions.atomic import output_file
from harken_lab.experiments import EXPERIMENTS, find_experiment
from harken_lab.experiments.definition import ExperimentResult, Tell, read_result
from harken_lab.experiments.experiment_pages import results
from harken_lab.experiments.run_plan import planned_minutes
from harken_lab.harness.source_state import source_state
from harken_lab.report.result_origins import reject_mixture


@dataclass(slots=True)
class Measurements:
    """The results of experiments by name, and the errors of those that failed."""

    results: dict[str, ExperimentResult] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def read(folder: str | Path, *, mixed: bool = False) -> Measurements:
    """Read the results in a folder, and measure nothing. Raises SourceError if there are none.

    So it does if they are of different sources, unless they may be `mixed`.
    """
    saved = {result.experiment: result for result in results(Path(folder))}
    if not saved:
        hint = "`harken experiment all --output FOLDER` writes them, and `harken report` without --from"
        raise SourceError(f"{folder} has no results of experiments", hint=hint)
    if not mixed:
        reject_mixture(saved.values())
    return Measurements(saved)


def measure(
    folder: str | Path,
    scale: str,
    seed: int,
    tell: Tell,
    *,
    fresh: bool = False,
    mixed: bool = False,
    names: Sequence[str] | None = None,
) -> Measurements:
    """Run every experiment that has no result of this scale and seed in the folder, and write its result there.

    A result of other sources than those that run is measured again, unless it may be `mixed` with them. An experiment
    that cannot be run is noted among the failures, and the others are run. Raises SourceError if the folder or a result
    in it cannot be used.
    """
    place, chosen = _folder(folder), list(EXPERIMENTS if names is None else names)
    kept = {} if fresh else _kept(place, chosen, scale, seed, mixed)
    if kept:
        tell(f"{len(kept)} of {len(chosen)} experiments are measured already: {', '.join(kept)}")
    measured = Measurements()
    for number, name in enumerate(chosen, 1):
        if name in kept:
            measured.results[name] = kept[name]
            continue
        minutes = planned_minutes([name], scale, ())[name]
        about = "" if minutes is None else f", about {minutes:g} minutes"
        tell(f"experiment {number} of {len(chosen)}: {name}{about}")
        started = perf_counter()
        try:
            result = find_experiment(name).run(scale, seed, tell)
        except HarkenError as error:
            measured.failures[name] = str(error).partition("\n")[0]
            tell(f"{name} cannot be measured: {measured.failures[name]}")
            continue
        _write(place / f"{name}.json", result)
        measured.results[name] = result
        tell(f"{name} took {perf_counter() - started:.1f} s")
    return measured


def _kept(folder: Path, names: Sequence[str], scale: str, seed: int, mixed: bool) -> dict[str, ExperimentResult]:
    """Results of an earlier run with the same scale and seed and, if they may not be mixed, of the same sources."""
    paths = {name: folder / f"{name}.json" for name in names}
    saved = {name: read_result(path) for name, path in paths.items() if path.exists()}
    same = {name: result for name, result in saved.items() if (result.scale, result.seed) == (scale, seed)}
    sources = source_state().sources
    return {name: each for name, each in same.items() if mixed or each.environment.get("sources") == sources}


def _write(path: Path, result: ExperimentResult) -> None:
    # The file appears once it is complete: an interrupted run leaves none.
    with output_file(str(path)) as stream:
        stream.write(result.to_json().encode())


def _folder(path: str | Path) -> Path:
    """The folder, made if missing. Raises SourceError if it cannot be written to, before anything is measured."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"{path} cannot be written to: {error.strerror or error}") from error
    if not os.access(path, os.W_OK):
        raise SourceError(f"{path} cannot be written to")
    return Path(path)
