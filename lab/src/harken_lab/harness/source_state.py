"""Which sources made a result: the commit, and an id of `src` and `lab/src`, which is compared."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import harken

UNKNOWN = "unknown"
_FOLDERS = ("src", "lab/src")


class SourceState(NamedTuple):
    """The commit of a clone, or `unknown`; and the id of the sources, which is compared."""

    commit: str
    sources: str


@cache
def source_state() -> SourceState:
    """The state of the sources that run.

    A clean clone has the git trees of its two folders as the id. An installed package, or a clone with changes, has a
    digest of its files and no commit.
    """
    places = [Path(harken.__file__).parent, Path(__file__).parents[1]]
    return _committed(places) or SourceState(UNKNOWN, f"files {_digest(places)}")


def _committed(places: list[Path]) -> SourceState | None:
    """The state of a clone without changes to its sources; None for anything else."""
    root = places[0].parents[1]
    if [root / folder / place.name for folder, place in zip(_FOLDERS, places, strict=True)] != places:
        return None
    if Path(_git(root, "rev-parse", "--show-toplevel") or "/") != root or _git(root, "status", "-s", "--", *_FOLDERS):
        return None
    commit, *trees = (_git(root, "rev-parse", name) for name in ("HEAD", *(f"HEAD:{each}" for each in _FOLDERS)))
    return SourceState(commit, f"trees {' '.join(trees)}") if commit and all(trees) else None


def _git(root: Path, *arguments: str) -> str:
    """The output of a git command; "" if it fails or there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _digest(places: list[Path]) -> str:
    digest = hashlib.sha256()
    for place in places:
        for path in sorted(place.rglob("*.py")):
            digest.update(f"{path.relative_to(place.parent)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:40]
