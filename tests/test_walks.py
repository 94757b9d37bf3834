"""The walks of docs/architecture.md: the functions that data goes through, in this order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import harken

ROOT = Path(harken.__file__).parent
PAGE = ROOT.parents[1] / "docs" / "architecture.md"
STATION = re.compile(r"^\d+\. `([\w/]+\.py): ([\w.]+)`", re.MULTILINE)
FLAT = [(f"s{n}", f"category = 'c{n % 50}' AND price < {n}") for n in range(2_000)]


def walks() -> dict[str, list[str]]:
    """The stations of each walk, by the words that head it."""
    section = PAGE.read_text().split("## Four walks")[1].split("\n## ")[0]
    parts = re.split(r"^\*\*(.+?)\*\*", section, flags=re.MULTILINE)[1:]
    return {
        head: [f"{file}: {name}" for file, name in STATION.findall(text)]
        for head, text in zip(parts[::2], parts[1::2], strict=True)
    }


def called(work: Callable[[], object]) -> list[str]:
    """The functions of Harken that were called, each where it was called first."""
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{ROOT}/"):
            seen[f"{Path(code.co_filename).relative_to(ROOT).as_posix()}: {code.co_qualname}"] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return list(seen)


def a_dict(_: Path) -> Callable[[], object]:
    engine = harken.Engine()
    engine.subscribe_many(FLAT)
    engine.merge()
    engine.match({"category": "c3", "price": 100})
    return lambda: engine.match({"category": "c3", "price": 100}).ids


def an_arrow_table(_: Path) -> Callable[[], object]:
    engine = harken.Engine()
    engine.subscribe_many(FLAT)
    engine.merge()
    table = pa.table({"category": ["c3", "c4"] * 50, "price": [100, 1] * 50})
    engine.match_batch(table)
    return lambda: engine.match_batch(table).ids


def a_document(_: Path) -> Callable[[], object]:
    engine = harken.Engine()
    engine.subscribe("a", "/a/b = 'x'", language="xpath")
    engine.match(b"<a><b>x</b></a>")
    return lambda: engine.match(b"<a><b>x</b></a>").ids


def a_text(folder: Path) -> Callable[[], object]:
    engine = harken.Engine()

    def subscribe_and_save() -> None:
        engine.subscribe("a", "category = 'x' AND price < 3")
        engine.save(folder / "engine")

    return subscribe_and_save


@pytest.mark.parametrize(
    ("head", "prepared"),
    [
        ("An event as a dict", a_dict),
        ("An Arrow table", an_arrow_table),
        ("An XML document", a_document),
        ("A text, to the index on disk", a_text),
    ],
)
def test_data_goes_the_way_that_is_written(
    head: str, prepared: Callable[[Path], Callable[[], object]], tmp_path: Path
) -> None:
    stations = walks()[head]
    assert len(stations) >= 12
    order = called(prepared(tmp_path))
    assert [each for each in order if each in stations] == stations
