"""The shape of the package: which room may import which, where heavy libraries are allowed, and what is public."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken

ROOT = Path(harken.__file__).parent

# A room may import itself, the rooms named, and nothing else of the package. docs/architecture.md draws it.
_MEASURED = {
    "errors",
    "limits",
    "schema",
    "language",
    "events",
    "segments",
    "matchers",
    "kernels",
    "engine",
    "workloads",
}
"""What is measured, and what measuring takes."""
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "limits": set(),
    "schema": {"errors", "limits"},
    "language": {"errors", "limits", "schema"},
    "events": {"errors", "limits", "schema"},
    "kernels": set(),
    "segments": {"errors", "limits", "schema", "language", "events", "kernels"},
    "reference": {"errors", "limits", "schema", "language"},
    "subscriptions": {"errors", "schema", "events"},
    "forking": set(),
    "numbering": {"forking"},
    "catalogue": {"forking", "segments", "subscriptions"},
    "bulk": {"errors", "limits", "segments", "catalogue", "subscriptions"},
    "filling": {"errors", "language", "matchers", "subscriptions"},
    "parts": {"limits", "segments", "matchers", "catalogue", "numbering"},
    "saved": {"errors", "limits", "schema", "segments", "matchers", "catalogue", "numbering"},
    "mismatch": {"errors", "schema", "language", "segments", "catalogue"},
    "results": {"errors", "events", "matchers", "catalogue", "numbering"},
    "matchers": {"errors", "limits", "schema", "language", "events", "forking", "segments", "kernels"},
    "explain": {"limits", "schema", "language", "reference"},
    "engine": {"errors", "limits", "schema", "language", "events", "segments", "matchers", "explain", "subscriptions"}
    | {"forking", "catalogue", "numbering", "results", "bulk", "filling", "mismatch", "saved", "parts"},
    "rehearsal": {"engine"},
    "bench": _MEASURED,
    "experiments": _MEASURED | {"bench"},
    "workloads": {
        "errors",
        "schema",
        "language",
        "events",
        "segments",
        "engine",
        "results",
        "explain",
        "subscriptions",
    },
    "spark": {"errors", "limits", "schema", "language", "events", "matchers", "engine", "mismatch", "results"}
    | {"subscriptions"},
    "cli": {"*"},
    "__main__": {"cli"},
    "__init__": {"errors", "limits", "schema", "events", "engine", "results", "explain", "subscriptions"}
    | {"rehearsal"},
}

# Where every module works on arrays, they stand at its head; elsewhere they are imported where they are used.
ON_ARRAYS = {"kernels", "segments", "matchers", "bulk", "parts", "saved", "workloads", "bench", "experiments", "spark"}
# Even there these are imported where they are used: pyspark is an extra, and most of `spark` runs in its workers.
NEVER_AT_HEAD = {"pyspark", "pandas"}

# Libraries that cost much to import, and the rooms that may, at the head of a module or inside a function.
HEAVY: dict[str, set[str]] = {
    "pyspark": {"spark"},
    "pandas": {"spark"},
    "duckdb": set(),
    "pyarrow": {"schema", "events", "results", "mismatch", "catalogue", "engine", "rehearsal", "cli"}
    | ON_ARRAYS - {"kernels"},
    "numpy": {"events", "results", "mismatch", "catalogue", "cli"} | ON_ARRAYS,
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "altair": {"bench"},
    "vl_convert": {"bench"},
    "typer": {"cli"},
    "rich": {"cli"},
}
# `import harken` loads none of these.
LAZY = ("pyspark", "pandas", "duckdb", "pyarrow", "numpy", "numba", "llvmlite", "altair", "vl_convert")

PUBLIC = {
    "BatchMatches",
    "Engine",
    "Event",
    "EventBatch",
    "Explanation",
    "Fault",
    "HarkenError",
    "HarkenWarning",
    "Limits",
    "Matches",
    "Report",
    "Schema",
    "Subscription",
    "load_schema",
    "warm_up",
}


def modules() -> list[Path]:
    found = sorted(ROOT.rglob("*.py"))
    assert len(found) > 40
    return found


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every import of a module, and whether it stands at the head, where importing the module runs it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    head = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in head) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from ((f"{node.module}.{alias.name}", id(node) in head) for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_left(path: Path) -> None:
    room = room_of(path)
    allowed = MAY_IMPORT[room]
    for name, _ in imports(path):
        parts = name.split(".")
        if parts[0] != "harken" or "*" in allowed:
            continue
        target = parts[1] if (ROOT / parts[1]).exists() or (ROOT / f"{parts[1]}.py").exists() else "__init__"
        assert target == room or target in allowed, f"{room} may not import {target}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_heavy_libraries_stay_in_their_rooms(path: Path) -> None:
    for name, at_head in imports(path):
        library = name.split(".")[0]
        if library in HEAVY:
            assert room_of(path) in HEAVY[library], f"{path.name} imports {library}"
            lazily = library in NEVER_AT_HEAD or (library in LAZY and room_of(path) not in ON_ARRAYS)
            assert not (at_head and lazily), f"{path.name} imports {library} at its head"


@pytest.mark.parametrize("package", ["harken", "harken.spark"])
def test_importing_harken_imports_nothing_heavy(package: str) -> None:
    program = f"import sys, {package}; print([name for name in {LAZY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_public_surface() -> None:
    assert set(harken.__all__) == PUBLIC
    assert all(hasattr(harken, name) for name in PUBLIC)


def test_reference_judges_alone() -> None:
    """The oracle shares the AST, the schema, errors and limits with what it judges, and no other code."""
    allowed = ("harken.language.ast.", "harken.schema.", "harken.errors.", "harken.limits.")
    names = [name for name, _ in imports(ROOT / "reference.py") if name.startswith("harken.")]
    assert names
    assert all(name.startswith(allowed) for name in names), names
    for path in (ROOT / "matchers").glob("*.py"):
        assert not any(name.startswith("harken.reference") for name, _ in imports(path)), path


def test_every_room_is_known() -> None:
    rooms = {room_of(path) for path in modules()}
    assert rooms == set(MAY_IMPORT)


def test_house_names() -> None:
    shunned = {"utils", "helpers", "common", "misc", "manager"}
    assert not [path for path in modules() if path.stem in shunned or shunned & set(path.relative_to(ROOT).parts)]
