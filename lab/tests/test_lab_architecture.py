"""The shape of the laboratory: which room may import which, and that it is announced as anybody's package is."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import harken_lab
from harken.announced import LABORATORY, imported
from harken.cli.commands import ANNOUNCED
from harken.matchers.algorithm_registry import ALGORITHMS
from harken.matchers.document_algorithms import DOCUMENT_ALGORITHMS

ROOT = Path(harken_lab.__file__).parent
PROJECT = ROOT.parents[1] / "pyproject.toml"

# From left to right, as in Harken: a room may import itself and whatever stands in a line before its own.
LAYERS = [
    {"papers.kernels"},
    {"papers", "plans"},
    {"workloads"},
    {"harness", "demo"},
    {"bench", "experiments"},
    {"report"},
    {"cli"},
    {"__init__"},
]
ROOMS = {room: place for place, rooms in enumerate(LAYERS) for room in rooms}


def modules() -> list[Path]:
    found = sorted(ROOT.rglob("*.py"))
    assert len(found) > 40
    return found


def room_of(module: str) -> str:
    parts = module.split(".")
    found = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((each for each in found if each in ROOMS), "__init__")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield f"{node.module}.{node.names[0].name}"


def test_imports_point_left() -> None:
    wrong = []
    for path in modules():
        room = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for name in imports(path):
            package, _, inner = name.partition(".")
            target = room_of(inner)
            is_right_of = package == "harken_lab" and target != room and ROOMS[target] >= ROOMS[room]
            # Kernels know nothing else of Harken.
            is_no_kernel = package == "harken" and room == "papers.kernels" and not inner.startswith("kernels.")
            if is_right_of or is_no_kernel:
                wrong.append(f"{path} imports {name}")
    assert not wrong


def test_what_is_announced_is_there_and_known_by_name_where_it_is_missing() -> None:
    groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    for group, registry in (
        ("harken.algorithms", ALGORITHMS),
        ("harken.documents", DOCUMENT_ALGORITHMS),
        ("harken.commands", ANNOUNCED),
    ):
        announced = groups.pop(group)
        assert {name: registry[name] for name in announced} == announced
        assert {registry.package(name) for name in announced} == {LABORATORY}
        assert all(imported(target).__doc__ for target in announced.values())
        assert set(registry.laboratory) == set(announced)
    assert not groups
