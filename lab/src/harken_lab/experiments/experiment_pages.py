"""Generates parts of docs/algorithms.md and docs/experiments.md from the registries and the committed results.

    python -m harken_lab.experiments.experiment_pages PAGE… RESULTS_FOLDER

Only text between `<!-- generated: NAME -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harken.errors import CapabilityError
from harken.matchers import Capability, Trait, algorithm_capabilities, algorithm_traits, create_matcher
from harken.matchers.algorithm_registry import ALGORITHMS, DEFAULT_ALGORITHM
from harken_lab.experiments import EXPERIMENTS, find_experiment
from harken_lab.experiments.definition import ExperimentResult, read_result
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import UNMEASURED, Finding
from harken_lab.experiments.run_plan import planned_minutes
from harken_lab.harness.charts import shown
from harken_lab.harness.source_state import UNKNOWN

_PART = re.compile(r"(?P<head><!-- generated: (?P<name>[a-z-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
VERDICTS = {"holds": "yes", "does not hold": "**no**", "cannot be told": "cannot be told", UNMEASURED: UNMEASURED}
"""How the verdicts of findings are written in tables."""
FINDINGS = ("the paper's claim", "its figure", "here", "holds", "why")
"""The columns of a table of findings."""
_MEASURED = {
    "µs per event": lambda row: row["us_per_event"],
    "examined per event": lambda row: row["examined_per_event"],
    "bytes per subscription": lambda row: row["bytes"] / row["subscriptions"],
    "µs to add one": lambda row: row["insert_us"],
    "µs to remove one": lambda row: row["delete_us"],
}

Lines = Iterator[str]


def updated_page(text: str, folder: str | Path) -> str:
    """The page with its generated parts rewritten from a folder of results. Raises CapabilityError."""

    def part(match: re.Match[str]) -> str:
        if match["name"] not in PARTS:
            raise CapabilityError(f"there is no part `{match['name']}`", hint=f"there are: {', '.join(PARTS)}")
        lines = "\n".join(PARTS[match["name"]](Path(folder)))
        return f"{match['head']}\n{lines}\n\n{match['end']}"

    return _PART.sub(part, text)


def results(folder: Path) -> Iterator[ExperimentResult]:
    """The results of a folder, in the order of the experiments."""
    for name in EXPERIMENTS:
        path = folder / f"{name}.json"
        if path.exists():
            yield read_result(path)


def _capabilities(folder: Path) -> Lines:
    """A sentence with what all algorithms can do, and a table of capabilities, traits and options."""
    abilities = {name: {*algorithm_capabilities(name), *algorithm_traits(name)} for name in ALGORITHMS}
    every: list[Capability | Trait] = [*Capability, *Trait]
    common = [each for each in every if all(each in own for own in abilities.values())]
    others = [each for each in every if each not in common]
    if common:
        yield f"All of them: {', '.join(common)}."
        yield ""
    yield from table_lines(
        ["algorithm", *others, "options with their defaults"],
        (
            [_named(name), *("✓" if each in abilities[name] else "" for each in others), _options(name)]
            for name in ALGORITHMS
        ),
    )


def _named(name: str) -> str:
    return f"`{name}` (the default)" if name == DEFAULT_ALGORITHM else f"`{name}`"


def _options(name: str) -> str:
    parameters = inspect.signature(type(create_matcher(name))).parameters
    return ", ".join(f"`{each.name}={_plain(each.default)}`" for each in parameters.values() if each.name != "limits")


def _plain(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _measured(folder: Path) -> Lines:
    """A table for each workload of the overview."""
    path = folder / "overview.json"
    if not path.exists():
        yield "Nothing was measured yet: `harken experiment overview --output benchmarks/results/experiments`."
        return
    result = read_result(path)
    yield f"{origin(result)} Events are matched in batches; a row is the median of all rounds, the quickest first."
    rows = WorkloadRows(result.rows)
    for workload in rows.each("workload"):
        inside = rows.where(workload=workload)
        yield ""
        yield f"**{workload}**, {result.parameters['size']:,} subscriptions, {_matches(inside)} matches an event"
        yield ""
        timed = sorted((row for row in inside if "rejected" not in row), key=lambda row: float(row["us_per_event"]))
        rejected = [row for row in inside if "rejected" in row]
        yield from table_lines(["algorithm", *_MEASURED], map(_measured_cells, timed))
        if rejected:
            yield ""
            yield from (f"- `{row['entrant']}`: {row['rejected']}" for row in rejected)


def _measured_cells(row: Row) -> list[str]:
    return [f"`{row['entrant']}`", *(_figure(row, figure) for figure in _MEASURED.values())]


def _figure(row: Row, figure: Callable[[Row], float | None]) -> str:
    try:
        value = figure(row)
    except KeyError:
        return ""
    return "" if value is None else shown(value)


def _matches(rows: WorkloadRows) -> str:
    most = max((row for row in rows if "events" in row), key=lambda row: int(row["events"]), default=None)
    return "no" if most is None else shown(most["matches_per_event"])


def origin(result: ExperimentResult) -> str:
    """The scale, the seeds and the commit of a result, and where and when it was measured."""
    where = result.environment
    commit = where.get("commit", UNKNOWN)
    made = "an unknown commit" if commit == UNKNOWN else f"commit {commit[:12]}"
    date = f", {where['date'][:10]}" if "date" in where else ""
    return (
        f"Scale `{result.scale}`, {result.drawn}, of {made}{date}, on {where['processor']} ({where['cores']} cores, "
        f"{where['memory_gib']:g} GiB), Python {where['python']}."
    )


def _experiments(folder: Path) -> Lines:
    """The list of experiments."""
    rows = ([f"`{each.name}`", each.title, each.paper] for each in map(find_experiment, EXPERIMENTS))
    yield from table_lines(["name", "what", "paper"], rows)


def _durations(folder: Path) -> Lines:
    """How long each experiment takes at laptop scale, and with how many seeds."""
    saved = {result.experiment: result for result in results(folder)}
    minutes = planned_minutes(EXPERIMENTS, "laptop", saved.values())
    known = [each for each in minutes.values() if each is not None]
    yield f"Together {sum(known):.0f} minutes."
    yield ""
    rows = (
        (
            f"`{name}`",
            str(find_experiment(name).seeds),
            "unknown" if each is None else f"{each:.1f}",
            "measured" if name in saved and saved[name].seconds else "estimated",
        )
        for name, each in minutes.items()
    )
    yield from table_lines(("experiment", "seeds", "minutes", ""), rows)


def _findings(folder: Path) -> Lines:
    """The papers' claims beside our figures."""
    judged = [result for result in results(folder) if result.findings]
    if not judged:
        yield "Nothing was measured yet: `harken experiment all --output benchmarks/results/experiments`."
        return
    every = [finding for result in judged for finding in result.findings]
    counts = {verdict: sum(finding.verdict == verdict for finding in every) for verdict in VERDICTS}
    holding, failing, untold, unmeasured = counts.values()
    yield (
        f"{holding} of {len(every)} claims hold, {failing} do not, {untold} cannot be told, {unmeasured} are not "
        "measured."
    )
    for result in judged:
        yield ""
        yield f"### {result.experiment}"
        yield ""
        yield f"{result.paper}. {origin(result)}"
        yield ""
        yield from table_lines(FINDINGS, map(finding_cells, result.findings))


def finding_cells(finding: Finding) -> list[str]:
    """The cells of a finding in a table of findings."""
    return [finding.claim, finding.paper_figure, finding.ours, VERDICTS[finding.verdict], finding.why]


def table_lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Lines:
    """A table in Markdown."""
    yield _line(headings)
    yield _line(["---"] * len(headings))
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


PARTS: dict[str, Callable[[Path], Lines]] = {
    "capabilities": _capabilities,
    "measured": _measured,
    "experiments": _experiments,
    "durations": _durations,
    "findings": _findings,
}


def main(arguments: Sequence[str]) -> None:
    """Update pages. The last argument is the folder of results."""
    if len(arguments) < 2:
        sys.exit("usage: python -m harken_lab.experiments.experiment_pages PAGE… RESULTS_FOLDER")
    *pages, folder = arguments
    for page in map(Path, pages):
        page.write_text(updated_page(page.read_text(encoding="utf-8"), folder), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
