"""The size of functions, and names that stand once, over both packages."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import harken
import harken_lab

ROOTS = [Path(package.__file__).parent for package in (harken, harken_lab)]
OF_BOTH_LANGUAGES = {"And", "Comparison", "Not", "Or", "Tokens"}
"""Classes of the two languages that mirror each other."""
MIRRORED = {
    *("__main__.py", "run.py"),  # `harken run`, and the pipeline that it runs
    *("ast.py", "front_end.py", "parser.py", "printer.py", "syntax_errors.py", "tokens.py"),  # of each language
    *("documents.py", "expressions.py", "operators.py"),  # what the reference and explanations are about
    *("index.py", "matcher.py", "saving.py"),  # of each kind of index
}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for root in ROOTS:
        for path in root.rglob("*.py"):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_a_class_name_stands_once() -> None:
    found = defaultdict(list)
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path))
    assert {name for name, paths in found.items() if len(paths) > 1} == OF_BOTH_LANGUAGES


def test_a_file_name_stands_once() -> None:
    found = defaultdict(list)
    for path, _ in trees():
        found[path.name].append(str(path))
    assert {name for name, paths in found.items() if len(paths) > 1} - {"__init__.py"} == MIRRORED


def test_functions_are_short() -> None:
    """Kernels are not: what a kernel calls costs it time."""
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees()
        if "kernels" not in path.parts
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno > 60
    ]
    assert not long
