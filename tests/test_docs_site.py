"""The site of the documentation builds, which fails on links to pages and headings that do not exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STAGED = ROOT / "build" / "docs"


@pytest.mark.seconds
def test_the_site_builds() -> None:
    command = [sys.executable, "docs/make_site.py"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = {page.relative_to(STAGED).as_posix() for page in STAGED.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/")} - {"decisions/README.md"}
    assert set(re.findall(r"[\w/-]+\.md", navigation)) == pages - decisions
