"""The examples of README and docs are run, and print what the page says that they print."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
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


def test_readme_quotes_the_committed_benchmark() -> None:
    result = json.loads((ROOT / "benchmarks" / "results" / "shape_cache.json").read_text(encoding="utf-8"))
    rate = round(result["texts_per_second"]["with"]["median"], -3)
    quoted = f"{rate:,.0f} texts a second, {result['ratio']['median']:.1f} times as many as without"
    assert quoted in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_readme_shows_what_a_user_gets() -> None:
    result = json.loads((ROOT / "benchmarks" / "results" / "user.json").read_text(encoding="utf-8"))
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    for row in result["sizes"]:
        figures = {name: each["median"] for name, each in row["us_per_event"].items()}
        names = ("loop", "fresh_match", "reloaded_match", "fresh_batch", "fresh_arrow")
        quoted = " | ".join(told(figures[name]) for name in names)
        assert f"| {row['subscriptions']:,} | {quoted} |" in lines


def told(microseconds: float) -> str:
    """A time as README writes it: two digits, or all before the point."""
    return f"{microseconds:,.0f} µs" if microseconds >= 9.95 else f"{microseconds:.1f} µs"
