"""The JSON of results: it comes back as it was, with a line for each item of a list of objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harken.errors import SourceError
from harken_lab.harness.result_files import read_as, to_json

COMMITTED = Path(__file__).parents[3] / "benchmarks" / "results"
DATA = {"format": 1, "settings": {"sizes": [1, 2]}, "rows": [{"a": 1}, {"a": "µs"}], "none": [], "name": None}


def test_it_comes_back() -> None:
    text = to_json(DATA)
    assert json.loads(text) == DATA
    assert '\n    {"a": 1},\n    {"a": "µs"}\n' in text
    assert text.endswith("\n}\n")


@pytest.mark.parametrize("path", sorted(COMMITTED.rglob("*.json")), ids=lambda path: path.name)
def test_committed_results_can_be_written_again(path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    assert json.loads(to_json(data)) == data


def test_what_it_is_not_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")
    assert read_as(path, dict, "is not a dict") == {}
    with pytest.raises(SourceError, match=r"other\.json is not a result: 'rows'"):
        read_as(path, lambda data: data["rows"], "is not a result")
