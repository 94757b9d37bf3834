"""Figures: their spread, what they are called, what was not measured, and all of it as JSON and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harken.errors import SourceError
from harken_lab.bench.figures import BenchResult, Figure, Key, read_result
from harken_lab.harness.result_files import Unavailable, read_json

MATCH = Key("match", "w4", 1_000, "columnar")


def result() -> BenchResult:
    made = BenchResult({"rounds": 3, "sizes": [1_000]}, {"cores": 2})
    made.add(MATCH, [3.0, 1.0, 2.00000049])
    made.add(Key("alu_gain"), 1.9)
    with made.unless_unavailable(Key("load", "w4", 1_000, "columnar"), Key("insert", "w4", 1_000, "columnar")):
        raise Unavailable("there is no such thing yet")
    return made


def test_the_spread_of_a_figure() -> None:
    figure = Figure(MATCH, (4.0, 1.0, 2.0, 3.0, 5.0))
    assert (figure.least, figure.quartiles, figure.median, figure.most) == (1.0, (2.0, 4.0), 3.0, 5.0)
    once = Figure(MATCH, (2.0,))
    assert (once.least, once.quartiles, once.median, once.most) == (2.0, (2.0, 2.0), 2.0, 2.0)


def test_a_figure_has_a_known_name_and_was_measured() -> None:
    with pytest.raises(ValueError, match="there is no figure `speed`"):
        Figure(Key("speed"), (1.0,))
    with pytest.raises(ValueError, match="never measured"):
        Figure(MATCH, ())


def test_a_key_reads_well() -> None:
    assert str(MATCH) == "match w4 1,000 columnar"
    assert str(Key("first_match", matcher="columnar", part="engine")) == "first_match columnar engine"


def test_the_json_is_complete_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(result().to_json(), encoding="utf-8")
    data = json.loads(path.read_text(encoding="utf-8"))
    assert list(data) == ["format", "what", "settings", "environment", "figures", "not_measured"]
    assert data["figures"][0] == {
        "name": "match",
        "workload": "w4",
        "size": 1_000,
        "matcher": "columnar",
        "unit": "µs/event",
        "median": 2.0,
        "least": 1.0,
        "lower": 1.5,
        "upper": 2.5,
        "most": 3.0,
        "values": [3.0, 1.0, 2.0],
    }
    assert [each["name"] for each in data["not_measured"]] == ["load", "insert"]
    back = read_result(path)
    assert back == result()
    assert back.to_json() == result().to_json()


def test_nothing_is_found_where_nothing_was_measured() -> None:
    found = result()
    key = Key("load", "w4", 1_000, "columnar")
    assert found.find(key) is None
    assert found.missing_reason(key) == "there is no such thing yet"
    assert found.missing_reason(Key("bytes")) == "this run did not include it"


def test_only_what_is_unavailable_is_noted() -> None:
    made = BenchResult({}, {})
    with pytest.raises(RuntimeError), made.unless_unavailable(MATCH):
        raise RuntimeError("it is broken")
    assert made.not_measured == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 99}', '{"format": 1, "settings": {}}'])
def test_what_is_no_result_is_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=r"other\.json"):
        read_result(path)


def test_a_missing_file_is_told() -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        read_json("/nowhere/at/all.json")
