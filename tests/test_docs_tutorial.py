"""The shell blocks of the tutorial run, and print what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pasted import assert_prints_what_it_says

PAGE = Path(__file__).parent.parent / "docs" / "tutorial.md"


@pytest.mark.processes
@pytest.mark.seconds
def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    assert_prints_what_it_says(PAGE, ("8080", "8099"), tmp_path)
