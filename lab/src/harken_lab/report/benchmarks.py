"""The section on saved benchmarks: of each its main figures, and the command that measures them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harken.errors import SourceError
from harken_lab.harness.result_files import read_as
from harken_lab.report.benchmark_tables import (
    BenchmarkResult,
    any_tables,
    document_tables,
    grid_tables,
    matching_tables,
    relational_tables,
    spark_tables,
    titled,
    user_tables,
)
from harken_lab.report.report_document import Block, Command, Heading, Paragraph


def script(name: str, options: str = "") -> Callable[[BenchmarkResult], str]:
    """The command of a script of `benchmarks/`."""
    return lambda each: f"python benchmarks/{name}.py{options} --save"


def bench(each: BenchmarkResult) -> str:
    """The command of `harken bench` with the settings of a result."""
    chosen = each.data["settings"]
    words = [f"--workload {name}" for name in chosen["workloads"]]
    words += [f"--size {size}" for size in chosen["sizes"]]
    words += [f"--size {name}={size}" for name, size in chosen["more_sizes"]]
    words += [f"--rounds {chosen['rounds']}", f"--engine-size {chosen['engine_size']}", f"--seed {chosen['seed']}"]
    return f"harken bench {' '.join(words)} --output benchmarks/results/{each.name}.json"


def grid(each: BenchmarkResult) -> str:
    quick = " --quick" if each.data["settings"].get("is_quick") else ""
    return f"harken bench --grid{quick} --seed {each.seed} --output benchmarks/results/grid.json"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark of the report: its title, the command that measures it again, and its tables."""

    title: str
    command: Callable[[BenchmarkResult], str]
    tables: Callable[[BenchmarkResult], Iterator[Block]]


BENCHMARKS: dict[str, Benchmark] = {
    "user": Benchmark(
        "What a call costs its caller", script("user", " --workloads w4 le-subscribe stock gryphon"), user_tables
    ),
    "matching": Benchmark("Matching, by workload", bench, matching_tables),
    "matching_le_subscribe_5m": Benchmark("Matching with 5,000,000 subscriptions", bench, matching_tables),
    "grid": Benchmark("The grid: calls beside a loop of closures", grid, grid_tables),
    "documents": Benchmark("XML documents", script("documents", " --large"), document_tables),
    "relational": Benchmark("Matching inside a database", script("relational"), relational_tables),
    "server": Benchmark("The match server", script("server"), any_tables),
    "shape_cache": Benchmark("Reading the texts of subscriptions", script("shape_cache"), any_tables),
    "spark": Benchmark("Spark", script("spark"), spark_tables),
}
"""Benchmarks by the name of their result file. Others are shown figure by figure."""


def read_benchmarks(folder: str | Path) -> list[BenchmarkResult]:
    """The results in a folder, those of `BENCHMARKS` first. Raises SourceError."""
    order = list(BENCHMARKS)
    paths = sorted(
        Path(folder).glob("*.json"),
        key=lambda path: (order.index(path.stem) if path.stem in order else len(order), path.stem),
    )
    return [
        read_as(path, lambda data, path=path: BenchmarkResult(path.stem, path, dict(data)), "is not a benchmark's")  # type: ignore[misc]
        for path in paths
    ]


def benchmark_blocks(saved: Sequence[BenchmarkResult]) -> Iterator[Block]:
    """A section for every benchmark. Raises SourceError if a file is not the result of the benchmark of its name."""
    yield Heading(2, "Benchmarks", "benchmarks")
    if not saved:
        yield Paragraph("No results of benchmarks were read. A clone has them in `benchmarks/results`.")
        return
    yield Paragraph(
        "These are the saved results: the report measures no benchmarks, but names the commands. Figures are medians "
        "of all rounds; docs/benchmarks.md says what is timed, and how."
    )
    for each in saved:
        benchmark = BENCHMARKS.get(each.name) or Benchmark(titled(each.name), script(each.name), any_tables)
        try:
            yield from list(_section(benchmark, each))
        except (KeyError, TypeError, AttributeError) as error:
            raise SourceError(f"{each.path} is not the result of this benchmark: {error!r}") from error


def _section(benchmark: Benchmark, each: BenchmarkResult) -> Iterator[Block]:
    yield Heading(3, benchmark.title, f"benchmark-{each.name}")
    if " " in str(each.data.get("what", "")):
        yield Paragraph(f"Measured: {each.data['what']}.")
    yield from benchmark.tables(each)
    yield Paragraph(_origin(each), is_aside=True)
    yield Command(benchmark.command(each))


def _origin(each: BenchmarkResult) -> str:
    where = each.data["environment"]
    seed = "On" if each.seed is None else f"Seed {each.seed}, on"
    versions = ", ".join(f"{name} {version}" for name, version in where["packages"].items() if version)
    return (
        f"{seed} {where['processor']} ({where['cores']} cores, {where['memory_gib']:g} GiB), Python {where['python']}, "
        f"{versions}. To measure it again:"
    )
