"""The tables of examples in the language references are run: each text has the truth that the page says."""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.language.functions import ALIASES, FUNCTIONS
from harken.schema import BUILT_IN

DOCS = Path(__file__).parent.parent / "docs"
TRUTHS = {"true": True, "false": False, "unknown": None}
ROW = re.compile(r"^\| (?P<text>`.+`) \| (?P<event>`.+`) \| (?P<truth>true|false|unknown) \|$", re.MULTILINE)
READERS = {"at": datetime.fromisoformat, "on": date.fromisoformat}
"""Attributes of the examples that are no values of JSON."""
WORDS = """= <> != < <= > >= BETWEEN IN LIKE ILIKE ANY ALL RLIKE REGEXP regexp_like( ESCAPE NULL TRUE FALSE CONTAINS AND
OR NOT startswith( endswith( contains( xpath_boolean( DATE TIMESTAMP + - * / %"""


def code(cell: str) -> str:
    """What stands between backticks, of which there may be two where one is inside."""
    marks = cell[: len(cell) - len(cell.lstrip("`"))]
    inner = cell[len(marks) : -len(marks)]
    return inner.strip() if len(marks) > 1 else inner


def examples(page: str, title: str) -> list[tuple[str, str, bool | None]]:
    section = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [(code(each["text"]), code(each["event"]), TRUTHS[each["truth"]]) for each in ROW.finditer(section)]
    assert len(rows) == len(re.findall(r"\| (?:true|false|unknown) \|$", section, re.MULTILINE)) > 0
    return rows


SQL = examples("language.md", "By example")
XPATH = examples("xml.md", "By example")


def read(event: str) -> dict[str, Any]:
    return {name: READERS.get(name, lambda value: value)(value) for name, value in json.loads(event).items()}


@pytest.mark.parametrize(("text", "event", "truth"), SQL, ids=str)
def test_a_text_has_the_truth_that_the_page_says(text: str, event: str, truth: bool | None) -> None:
    given = read(event)
    engine = harken.Engine()
    engine.subscribe("example", text)
    found = engine.explain(text=text, event=given)
    assert (found.tree.truth, found.matched) == (truth, truth is True)
    assert engine.match(given).ids == (["example"] if truth else [])
    assert engine.match_batch([{}, given], on_mismatch="ignore").counts[1] == (truth is True)


@pytest.mark.parametrize(("text", "document", "truth"), XPATH, ids=str)
def test_an_xpath_has_the_truth_that_the_page_says(text: str, document: str, truth: bool) -> None:
    engine = harken.Engine()
    engine.subscribe("example", text, language="xpath")
    assert engine.explain("example", document.encode()).matched is truth
    assert engine.match(document.encode()).ids == (["example"] if truth else [])


def test_every_function_and_word_has_an_example() -> None:
    texts = " ".join(text for text, _, _ in SQL)
    names = [f"{name}(" for name in (*FUNCTIONS, *ALIASES)]
    assert [each for each in names + WORDS.split() if each not in texts] == []


WARNINGS = re.findall(
    r"^\| `([^`]+)`(.*?) \| ", (DOCS / "language.md").read_text("utf-8").partition("\n## Warnings\n")[2], re.MULTILINE
)[:6]


@pytest.mark.parametrize(("text", "where"), WARNINGS)
def test_a_text_is_warned_of_as_the_page_says(text: str, where: str) -> None:
    schema = harken.Schema(attributes={("title",): BUILT_IN["string"]}) if "schema says" in where else None
    assert harken.Engine(schema).subscribe("example", text).warnings
