"""The sources that made a result: the trees of a clean clone, or a digest of the files of anything else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken_lab.harness import source_state as room
from harken_lab.harness.source_state import UNKNOWN, SourceState, source_state

MODULE = "lab/src/harken_lab/harness/source_state.py"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with the two packages, which seems to be the one that runs."""
    for name in ("src/harken/__init__.py", MODULE, "docs/page.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one = 1\n", encoding="utf-8")
    monkeypatch.setattr(harken, "__file__", str(tmp_path / "src/harken/__init__.py"))
    monkeypatch.setattr(room, "__file__", str(tmp_path / MODULE))
    source_state.cache_clear()
    yield tmp_path
    source_state.cache_clear()


def commit(folder: Path) -> SourceState:
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a change")
    source_state.cache_clear()
    return source_state()


def test_a_clean_clone_has_its_commit_and_the_trees_of_both_folders(clone: Path) -> None:
    git(clone, "init", "-q")
    found = commit(clone)
    assert found.commit == git(clone, "rev-parse", "HEAD")
    assert found.sources == f"trees {git(clone, 'rev-parse', 'HEAD:src')} {git(clone, 'rev-parse', 'HEAD:lab/src')}"


def test_a_commit_of_docs_leaves_the_sources_as_they_are(clone: Path) -> None:
    git(clone, "init", "-q")
    first = commit(clone)
    (clone / "docs/page.md").write_text("two", encoding="utf-8")
    second = commit(clone)
    assert (first.commit == second.commit, first.sources == second.sources) == (False, True)
    (clone / MODULE).write_text("two = 2\n", encoding="utf-8")
    assert commit(clone).sources != first.sources


def test_changes_that_are_not_committed_have_no_commit(clone: Path) -> None:
    git(clone, "init", "-q")
    committed = commit(clone)
    (clone / "src/harken/__init__.py").write_text("two = 2\n", encoding="utf-8")
    source_state.cache_clear()
    found = source_state()
    assert found.commit == UNKNOWN
    assert found.sources.startswith("files ")
    assert found != committed


def test_without_git_the_files_say_what_it_is(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = source_state()
    assert (found.commit, found.sources[:6]) == (UNKNOWN, "files ")
    (clone / "docs/page.md").write_text("two", encoding="utf-8")
    source_state.cache_clear()
    assert source_state() == found
    (clone / MODULE).write_text("two = 2\n", encoding="utf-8")
    source_state.cache_clear()
    assert source_state() != found
    git(clone, "init", "-q")
    commit(clone)
    monkeypatch.setenv("PATH", "")
    source_state.cache_clear()
    assert source_state().commit == UNKNOWN


def test_a_package_inside_another_repository_is_not_of_it(clone: Path) -> None:
    git(clone.parent, "init", "-q", str(clone.parent))
    assert source_state().commit == UNKNOWN
