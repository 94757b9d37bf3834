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


@dataclass(slots=True)
class Measurements:
    """The results of experiments by name, and the errors of those that failed."""

    results: dict[str, ExperimentResult] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def read(folder: str | Path) -> Measurements:
    """Read the results in a folder, and measure nothing. Raises SourceError if there are none."""
    saved = {result.experiment: result for result in results(Path(folder))}
    if not saved:
        hint = "`harken experiment all --output FOLDER` writes them, and `harken report` without --from"
        raise SourceError(f"{folder} has no results of experiments", hint=hint)
    return Measurements(saved)


def measure(
    folder: str | Path, scale: str, seed: int, tell: Tell, *, fresh: bool = False, names: Sequence[str] | None = None
) -> Measurements:
    """Run every experiment that has no result of this scale and seed in the folder, and write its result there.

    An experiment that cannot be run is noted among the failures, and the others are run. Raises SourceError if the
    folder or a result in it cannot be used.
    """
    place, chosen = _folder(folder), list(EXPERIMENTS if names is None else names)
    kept = {} if fresh else _kept(place, chosen, scale, seed)
    if kept:
        tell(f"{len(kept)} of {len(chosen)} experiments are measured already: {', '.join(kept)}")
    measured = Measurements()
    for number, name in enumerate(chosen, 1):
        if name in kept:
            measured.results[name] = kept[name]
            continue
        tell(f"experiment {number} of {len(chosen)}: {name}")
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


def _kept(folder: Path, names: Sequence[str], scale: str, seed: int) -> dict[str, ExperimentResult]:
    """Results of an earlier run with the same scale and seed."""
    paths = {name: folder / f"{name}.json" for name in names}
    saved = {name: read_result(path) for name, path in paths.items() if path.exists()}
    return {name: result for name, result in saved.items() if (result.scale, result.seed) == (scale, seed)}


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
