"""The examples of README and docs are run, and print what the page says that they print."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import harken
from test_architecture import LAYERS

ROOT = Path(__file__).parent.parent
PACKAGE = Path(harken.__file__).parent
LABORATORY = ROOT / "lab" / "src" / "harken_lab"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```text\n(?P<output>.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?P<target>[^)#:]+)(#[^)]*)?\)")


def examples() -> list[tuple[str, str, str]]:
    found = [
        (f"{page.relative_to(ROOT)}:{number}", each["code"], each["output"])
        for page in PAGES
        for number, each in enumerate(EXAMPLE.finditer(page.read_text(encoding="utf-8")), 1)
    ]
    assert any(name.startswith("README") for name, _, _ in found), "README has no example"
    return found


def needs_spark(code: str) -> bool:
    return "local_session" in code


PARAMETERS = [
    pytest.param(code, output, id=name, marks=[pytest.mark.spark] if needs_spark(code) else [])
    for name, code, output in examples()
]


@pytest.mark.parametrize(("code", "output"), PARAMETERS)
def test_example_prints_what_the_page_says(code: str, output: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), {"__name__": "example"})
    assert printed.getvalue() == output


# What extending.md shows are files of a package, which test_docs_extending.py installs.
@pytest.mark.parametrize(
    "page", [each for each in PAGES if each.name != "extending.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_python_block_has_its_output(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("```python\n") == len(EXAMPLE.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        assert (page.parent / link["target"]).exists(), f"{page.name} links to {link['target']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_papers_are_named_and_not_numbered(page: Path) -> None:
    assert re.findall(r"\b\d{3} §", page.read_text(encoding="utf-8")) == []


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = folder / "README.md"
    linked = [link["target"] for link in LINK.finditer(index.read_text(encoding="utf-8"))]
    assert sorted(linked) == sorted(str(page.relative_to(folder)) for page in folder.rglob("*.md") if page != index)


def test_every_room_is_in_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {room.replace(".", "/") for rooms in LAYERS for room in rooms} - {"__init__", "__main__"}
    assert [room for room in sorted(rooms) if f"| `{room}` |" not in page and f"| `{room}/` |" not in page] == []


@pytest.mark.parametrize("name", ["architecture.md", "columnar.md", "glossary.md"])
def test_named_files_exist(name: str) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", page)
    assert named
    assert [each for each in named if not any((folder / each).exists() for folder in (PACKAGE, ROOT, LABORATORY))] == []
