"""The shape of the package: which room may import which, where heavy libraries are allowed, and what is public."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken

ROOT = Path(harken.__file__).parent

# From left to right: a room may import itself and whatever stands in a line before its own. docs/architecture.md
# draws the same picture. A module belongs to the longest name here that its own begins with.
LAYERS: list[set[str]] = [
    {"errors", "limits", "concurrency", "kernels", "release"},
    {"toml", "announced"},
    {"schema"},
    {"language", "events"},
    {"language.xpath"},
    {"language.sql"},
    {"databases"},
    {"operators"},
    {"reference", "versions"},
    {"codes"},
    {"codes.tables"},
    {"matchers", "explain"},
    {"matchers.columnar", "matchers.documents", "relational"},
    {"matchers.programs", "matchers.operators"},
    {"live"},
    {"engine"},
    {"rehearsal"},
    {"store"},
    {"client"},
    {"spark"},
    {"pipeline.config"},
    {"pipeline", "server"},
    {"cli"},
    {"__init__", "__main__"},
]
# Modules beside the room that they are a part of.
PART_OF = {"internals": "engine"}
# Some rooms know less than their line would let them.
NEVER: dict[str, set[str]] = {
    "toml": {"kernels"},
    "schema": {"kernels"},
    "language": {"kernels"},
    "language.sql": {"kernels"},
    "language.xpath": {"kernels"},
    "databases": {"kernels", "schema", "language", "language.sql", "language.xpath", "events"},
    "engine": {"kernels"},
    "spark": {"kernels"},
    "pipeline.config": {"kernels"},
    "pipeline": {"kernels"},
}
ONLY_TO: dict[str, set[str]] = {
    "reference": {"explain"},  # the oracle judges what the rest finds
}

# Where every module works on arrays, they stand at its head; elsewhere they are imported where they are used.
ON_ARRAYS = {"kernels", "codes", "versions", "matchers", "live", "spark", "pipeline", "relational"}
ON_ARRAYS |= {"store"}
# `import harken` loads nothing of these: their modules may have httpx and fastapi at their heads.
ON_REQUEST = {"client", "server"}
# Even there these are imported where they are used: pyspark is an extra, and most of `spark` runs in its workers.
NEVER_AT_HEAD = {"pyspark", "pandas"}
# Rooms on arrays that `import harken` loads all the same.
LOADED = {
    "live.catalogue",
    "live.results",
    "live.mismatch",
    "live.notebook",
    "live.subscriptions",
    "live.numbering",
    "live.loading",
}
LOADED |= {"live.live_set", "live.changes", "live.home"}

# Libraries that cost much to import, and the rooms that may, at the head of a module or inside a function.
HEAVY: dict[str, set[str]] = {
    "pyspark": {"spark", "pipeline", "cli"},
    "pandas": {"spark", "pipeline"},
    "duckdb": {"databases", "operators"},
    "fastapi": {"server"},
    "starlette": {"server"},
    "uvicorn": {"cli", "server"},
    "pydantic": {"server"},
    "prometheus_client": {"server"},
    "httpx": {"client", "server"},
    "psycopg": {"databases"},
    "rapidfuzz": {"operators"},
    "rdflib": {"operators"},
    "shapely": {"operators"},
    "pyarrow": {"schema", "events", "engine", "rehearsal", "cli", "databases", "operators"} | ON_ARRAYS - {"kernels"},
    "numpy": {"events", "cli", "databases", "operators"} | ON_ARRAYS,
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "typer": {"cli"},
    "rich": {"cli"},
}
# `import harken` loads none of these.
LAZY = ("pyspark", "pandas", "duckdb", "pyarrow", "numpy", "numba", "llvmlite")
LAZY += ("psycopg", "rapidfuzz", "rdflib", "shapely", "httpx", "fastapi", "starlette", "uvicorn")
LAZY += ("pydantic", "prometheus_client")

PUBLIC = {
    "FREE",
    "AsyncClient",
    "BatchMatches",
    "Client",
    "Engine",
    "Event",
    "EventBatch",
    "Explanation",
    "Fault",
    "HarkenError",
    "HarkenWarning",
    "Limits",
    "Matches",
    "Operator",
    "Replacement",
    "Report",
    "Schema",
    "Subscription",
    "load_schema",
    "operator",
    "warm_up",
}


@functools.cache
def modules() -> list[Path]:
    paths = sorted(ROOT.rglob("*.py"))
    assert len(paths) > 40
    return paths


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


ROOMS = {room: place for place, rooms in enumerate(LAYERS) for room in rooms}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def room_of(module: str) -> str:
    """The room of a module, or of a name in one: the longest that it begins with."""
    first, _, rest = module.partition(".")
    parts = ".".join(filter(None, (PART_OF.get(first, first), rest))).split(".")
    found = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((each for each in found if each in ROOMS), "__init__")


def may_import(room: str, target: str) -> bool:
    return target == room or _is_left_of(target, room)


def _is_left_of(target: str, room: str) -> bool:
    known = ROOMS[target] < ROOMS[room] and target not in NEVER.get(room, ())
    return known and not room.startswith("kernels") and room in ONLY_TO.get(target, {room})


@functools.cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Every import of a module, and whether it stands at the head, where importing the module runs it."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    tree = tree_of(path)
    head = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in head) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from ((f"{node.module}.{alias.name}", id(node) in head) for alias in node.names)


def test_imports_point_left() -> None:
    wrong = []
    for path in modules():
        room = room_of(module_of(path))
        for name, _ in imports(path):
            package, _, inner = name.partition(".")
            # The product knows nothing of the laboratory.
            if package == "harken_lab" or (package == "harken" and not may_import(room, room_of(inner))):
                wrong.append(f"{path} imports {name}")
    assert not wrong


def test_heavy_libraries_stay_in_their_rooms() -> None:
    wrong = []
    for path in modules():
        module = module_of(path)
        wing = module.split(".")[0]
        is_on_arrays = wing in ON_ARRAYS | ON_REQUEST or module.startswith("events.xml.")
        for name, at_head in imports(path):
            library = name.split(".")[0]
            if library not in HEAVY:
                continue
            if wing not in HEAVY[library]:
                wrong.append(f"{path} imports {library}")
            lazily = library in NEVER_AT_HEAD or (library in LAZY and (not is_on_arrays or module in LOADED))
            if at_head and lazily:
                wrong.append(f"{path} imports {library} at its head")
    assert not wrong


@pytest.mark.parametrize("package", ["harken", "harken.spark"])
def test_importing_harken_imports_nothing_heavy(package: str) -> None:
    program = f"import sys, {package}; print([name for name in {LAZY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_public_surface() -> None:
    assert set(harken.__all__) == PUBLIC
    assert all(hasattr(harken, name) for name in PUBLIC)


def lazy_packages() -> list[str]:
    """The packages that import some of their names only when they are used."""
    modules = [path for path in modules_with("__getattr__") if path.name == "__init__.py"]
    return [".".join(["harken", *path.parent.relative_to(ROOT).parts]) for path in modules]


def modules_with(function: str) -> Iterator[Path]:
    for path in modules():
        body = tree_of(path).body
        if any(isinstance(node, ast.FunctionDef) and node.name == function for node in body):
            yield path


def test_names_that_are_imported_when_used_are_listed() -> None:
    """IPython completes what `dir` lists."""
    assert {"harken", "harken.spark"} <= set(lazy_packages())
    for package in lazy_packages():
        module = importlib.import_module(package)
        assert set(module.__all__) <= set(dir(module)), package
        assert {"__doc__", "__name__"} <= set(dir(module)), package


def test_reference_judges_alone() -> None:
    """The oracle shares the AST, the schema, errors and limits with what it judges, and no other code."""
    allowed = ("harken.language.ast.", "harken.language.xpath.ast.", "harken.language.xpath.parser.")
    allowed += ("harken.schema.", "harken.errors.", "harken.limits.", "harken.reference.")
    names = [
        name for path in (ROOT / "reference").glob("*.py") for name, _ in imports(path) if name.startswith("harken.")
    ]
    assert names
    assert all(name.startswith(allowed) for name in names), names
    for path in (ROOT / "matchers").glob("*.py"):
        assert not any(name.startswith("harken.reference") for name, _ in imports(path)), path


def test_every_room_is_known() -> None:
    assert {room_of(module_of(path)) for path in modules()} == set(ROOMS)
    packages = {path.parent.relative_to(ROOT).parts[0] for path in modules() if path.parent != ROOT}
    assert packages <= set(ROOMS)


def test_house_names() -> None:
    shunned = {"utils", "helpers", "common", "misc", "manager"}
    assert not [path for path in modules() if path.stem in shunned or shunned & set(path.relative_to(ROOT).parts)]


def test_no_property_is_cached_under_a_lock() -> None:
    """Python 3.11 has one lock for all instances, and a child of fork() waits for it for ever."""
    wrong = []
    for path in modules():
        attributes = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute))
        is_imported = any(name == "functools.cached_property" for name, _ in imports(path))
        if is_imported or any(each.attr == "cached_property" for each in attributes):
            wrong.append(str(path))
    assert not wrong, "use harken.concurrency.caching"
