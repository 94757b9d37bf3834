"""The reference of the public names is what `make docs` would write now, and every public name is described."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "make_api.py"))


@pytest.mark.seconds
def test_the_reference_is_up_to_date(generator: dict[str, Any]) -> None:
    assert (DOCS / "api.md").read_text(encoding="utf-8") == generator["page"](), "docs/api.md is stale: make docs"


@pytest.mark.seconds
def test_every_entry_says_something(generator: dict[str, Any]) -> None:
    """Under each heading there is a sentence, not only a signature."""
    entries = generator["page"]().split("\n### ")[1:]
    parts = [part for entry in entries for part in entry.split("\n#### ")]
    silent = [part.partition("\n")[0] for part in parts if not _prose(part)]
    assert silent == []


def _prose(part: str) -> list[str]:
    lines, is_code = [], False
    for line in part.split("\n")[1:]:
        is_code = is_code ^ line.startswith("```")
        if line and not is_code and not line.startswith(("```", "- ")):
            lines.append(line)
    return lines
