"""What is found wrong, in words and as data."""

from __future__ import annotations

from harken.cli.input_findings import InputFinding
from harken.errors import HarkenError, Place


def test_every_line_of_a_message_has_its_own_line() -> None:
    error = HarkenError("it is wrong\nfor two reasons", hint="write\nsomething else")
    error.at(Place(2, 3), "x = 1\nAND \x1b")
    text = InputFinding("subscription", "s.jsonl", error, 4, 5, "a\nb").to_text().plain
    assert text.split("\n") == [
        "✗ s.jsonl, line 5, subscription 'a\\nb'",
        "  it is wrong",
        "  for two reasons (line 2, column 3)",
        "    AND  ",
        "      ^",
        "  hint: write",
        "  something else",
    ]


def test_the_place_in_its_file_where_there_are_several() -> None:
    finding = InputFinding("event", "b.parquet", HarkenError("no"), 7, first=5)
    assert finding.where() == "b.parquet, event 7 (2 in this file)"
    assert (finding.to_dict()["position"], finding.to_dict()["file_position"]) == (7, 2)
    assert InputFinding("event", "b.jsonl", HarkenError("no"), 7, line=3, first=5).where() == "b.jsonl, line 3, event 7"
