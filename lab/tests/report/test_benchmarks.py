"""Benchmarks in the report: every committed one has its figures, its machine and its command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harken.errors import SourceError
from harken_lab.report.benchmarks import benchmark_blocks, read_benchmarks
from harken_lab.report.report_document import Block, Command, DataTable, Heading, Paragraph

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"
NAMES = sorted(path.stem for path in RESULTS.glob("*.json"))
ENVIRONMENT = {"processor": "abacus", "cores": 2, "memory_gib": 4.0, "python": "3.11", "packages": {"harken": "1"}}


def section(blocks: list[Block], name: str) -> list[Block]:
    """The blocks from the heading of a benchmark to the next."""
    places = [place for place, block in enumerate(blocks) if isinstance(block, Heading)]
    (start,) = (place for place in places if blocks[place] == Heading(3, blocks[place].text, f"benchmark-{name}"))  # type: ignore[union-attr]
    return blocks[start : next((place for place in places if place > start), len(blocks))]


def written(folder: Path, name: str, data: object) -> list[Block]:
    (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    return list(benchmark_blocks(read_benchmarks(folder)))


@pytest.mark.parametrize("name", NAMES)
def test_every_committed_one_has_figures_and_its_command(name: str) -> None:
    found = section(list(benchmark_blocks(read_benchmarks(RESULTS))), name)
    tables = [block for block in found if isinstance(block, DataTable)]
    assert tables
    assert all(re.search(r"\d", "".join(cell for row in table.rows for cell in row[1:])) for table in tables)
    (command,) = (block.text for block in found if isinstance(block, Command))
    script = re.match(r"python (benchmarks/\w+\.py) ", command)
    assert (ROOT / script[1]).exists() if script else command.startswith("harken bench ")
    assert script is None or "--save" in command
    processor = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["environment"]["processor"]
    assert any(isinstance(block, Paragraph) and processor in block.text for block in found)


def test_commands_have_the_settings_of_the_result() -> None:
    blocks = list(benchmark_blocks(read_benchmarks(RESULTS)))
    (matching,) = (block.text for block in section(blocks, "matching_le_subscribe_5m") if isinstance(block, Command))
    assert "--workload le-subscribe --size 1000000 --size le-subscribe=5000000 --rounds 3" in matching
    (grid,) = (block.text for block in section(blocks, "grid") if isinstance(block, Command))
    is_quick = json.loads((RESULTS / "grid.json").read_text(encoding="utf-8"))["settings"]["is_quick"]
    assert ("--quick" in grid) == is_quick


def test_one_that_nobody_knows_is_shown_figure_by_figure(tmp_path: Path) -> None:
    data = {
        "what": "turns of a wheel",
        "seed": 7,
        "sizes": [{"subscriptions": 1_000, "turns": {"median": 2.5, "most": 9.0}}, {"turns": None}],
        "by_core": {"1": True, "2000": 3},
        "environment": ENVIRONMENT,
    }
    found = section(written(tmp_path, "wheel", data), "wheel")
    assert next(block for block in found if isinstance(block, Paragraph)) == Paragraph("Measured: turns of a wheel.")
    (table,) = (block for block in found if isinstance(block, DataTable))
    assert dict(table.rows) == {
        "sizes, 1,000, subscriptions": "1,000",
        "sizes, 1,000, turns": "2.5",
        "sizes, 1, turns": "–",
        "by core, 1": "True",
        "by core, 2,000": "3",
    }
    assert found[-1] == Command("python benchmarks/wheel.py --save")
    assert any(isinstance(block, Paragraph) and block.text.startswith("Seed 7, on abacus") for block in found)


def test_long_ones_are_cut(tmp_path: Path) -> None:
    data = {"figures": {f"n{place}": place for place in range(50)}, "environment": ENVIRONMENT}
    found = section(written(tmp_path, "wheel", data), "wheel")
    assert [len(block.rows) for block in found if isinstance(block, DataTable)] == [40]
    assert any(isinstance(block, Paragraph) and block.text == "And 10 more, in wheel.json." for block in found)


def test_databases_have_a_column_each(tmp_path: Path) -> None:
    rows = [
        {"workload": "stock", "engine": engine, "us_per_event": {"predicate_grouping": {"median": time}}}
        for engine, time in (("duckdb", 90.5), ("sqlite", 12.25))
    ]
    found = section(written(tmp_path, "relational", {"rows": rows, "environment": ENVIRONMENT}), "relational")
    (table,) = (block for block in found if isinstance(block, DataTable))
    assert table.headings == ("µs an event", "stock, duckdb", "stock, sqlite")
    assert table.rows == (("Predicate grouping", "90.5", "12.2"),)


@pytest.mark.parametrize("name", ["user", "spark", "documents", "grid", "matching", "relational"])
def test_a_file_that_is_something_else_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match=rf"{name}\.json is not"):
        written(tmp_path, name, {"environment": ENVIRONMENT})


def test_a_file_that_is_no_object_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"wheel\.json is not"):
        written(tmp_path, "wheel", [1, 2])


def test_without_any_it_says_where_they_are(tmp_path: Path) -> None:
    _, told = benchmark_blocks(read_benchmarks(tmp_path))
    assert isinstance(told, Paragraph)
    assert "benchmarks/results" in told.text
