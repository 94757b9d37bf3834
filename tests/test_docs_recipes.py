"""The shell blocks of the recipes run, and print what the pages say. test_docs.py runs the blocks of Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from pasted import assert_prints_what_it_says

RECIPES = Path(__file__).parent.parent / "docs" / "recipes"
PORTS = {"fastapi.md": ("8000",), "e-mail.md": ("8080", "8099", "2525")}
"""The ports that the pages name, which the test replaces by free ones."""


def test_every_recipe_is_run_and_in_the_index() -> None:
    pages = {page.name: page.read_text(encoding="utf-8") for page in RECIPES.glob("*.md")}
    index = pages.pop("README.md")
    assert {name for name, text in pages.items() if "```sh\n" in text} == set(PORTS)
    assert [name for name, text in pages.items() if "```sh\n" not in text and "```python\n" not in text] == []
    assert [name for name in pages if f"]({name})" not in index] == []


@pytest.mark.processes
@pytest.mark.seconds
@pytest.mark.parametrize("name", PORTS)
def test_a_recipe_prints_what_it_says(name: str, tmp_path: Path) -> None:
    assert_prints_what_it_says(RECIPES / name, PORTS[name], tmp_path)
