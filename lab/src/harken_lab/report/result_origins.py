"""Where each result is from: its commit, date, load and scale; and that results of different sources are not mixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harken.errors import SourceError
from harken_lab.experiments.definition import ExperimentResult
from harken_lab.harness.source_state import UNKNOWN
from harken_lab.report.benchmark_tables import NOTHING, BenchmarkResult
from harken_lab.report.report_document import Block, DataTable, Heading, Paragraph

_SHOWN = 12
"""Characters of a commit that are shown."""


class ResultOrigin(NamedTuple):
    """Where a result is from."""

    name: str
    environment: Mapping[str, Any]
    scale: str

    @property
    def sources(self) -> str:
        """The id of `src` and `lab/src`. A result without one is of its own."""
        return str(self.environment.get("sources") or f"{UNKNOWN} {self.name}")

    @property
    def commit(self) -> str:
        return str(self.environment.get("commit", UNKNOWN))[:_SHOWN]


def origins(results: Iterable[ExperimentResult], benchmarks: Iterable[BenchmarkResult] = ()) -> list[ResultOrigin]:
    """The origins of results of experiments, and of saved benchmarks."""
    experiments = [ResultOrigin(each.experiment, each.environment, f"{each.scale}, {each.drawn}") for each in results]
    saved = [ResultOrigin(f"{each.name}.json", each.data["environment"], NOTHING) for each in benchmarks]
    return [*experiments, *saved]


def are_of_one_run(found: Sequence[ResultOrigin]) -> bool:
    return len({each.sources for each in found}) <= 1


def reject_mixture(results: Iterable[ExperimentResult]) -> None:
    """Raise SourceError if results are of different sources."""
    found = origins(results)
    if are_of_one_run(found):
        return
    commits: dict[str, list[str]] = {}
    for each in found:
        commits.setdefault(each.commit, []).append(each.name)
    listed = "; ".join(f"{commit}: {', '.join(names)}" for commit, names in commits.items())
    raise SourceError(
        f"the results are of different commits of src and lab/src, or of unknown ones: {listed}",
        hint="--mixed shows them on one page, which says which result is of which commit",
    )


def of_the_same(
    benchmarks: Sequence[BenchmarkResult], results: Iterable[ExperimentResult]
) -> tuple[list[BenchmarkResult], list[str]]:
    """The benchmarks of the same sources as the results, and the names of the others."""
    known = {each.sources for each in origins(results)}
    same = [each for each, origin in zip(benchmarks, origins((), benchmarks), strict=True) if origin.sources in known]
    return same, [each.name for each in benchmarks if each not in same]


def origin_summary(found: Sequence[ResultOrigin]) -> Paragraph:
    """One sentence on the commits of all results."""
    if not found:
        return Paragraph("There are no results.", is_aside=True)
    if are_of_one_run(found):
        sources = found[0].sources
        return Paragraph(f"All results are of commit `{found[0].commit}`, with the sources `{sources}`.", is_aside=True)
    counts: dict[str, int] = {}
    for each in found:
        counts[each.commit] = counts.get(each.commit, 0) + 1
    commits = ", ".join(f"{count} of commit `{commit}`" for commit, count in counts.items() if commit != UNKNOWN)
    unknown = (
        f"{counts[UNKNOWN]} of unknown commits, because they were measured before results named theirs or from "
        "sources that are no commit"
        if UNKNOWN in counts
        else ""
    )
    which = "; ".join(filter(None, (commits, unknown)))
    return Paragraph(f"**These results are not of one run**: {which}. [Which is of which](#origins) is at the end.")


def origin_blocks(found: Sequence[ResultOrigin]) -> Iterator[Block]:
    """A table with the origin of each result."""
    yield Heading(2, "Where each result is from", "origins")
    rows = (
        (each.name, each.commit, str(each.environment.get("date", NOTHING))[:16], _load(each.environment), each.scale)
        for each in found
    )
    yield DataTable(("result", "commit", "measured", "load before", "scale and seeds"), tuple(rows))


def _load(environment: Mapping[str, Any]) -> str:
    return NOTHING if environment.get("load") is None else f"{environment['load']:g}"
