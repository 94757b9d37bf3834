"""What ruff does not check: names that stand once, short functions, and plain words. Run by `make check`."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = [ROOT / "src" / "harken", ROOT / "lab" / "src" / "harken_lab"]
LONGEST = 60
"""Lines of a function. Kernels may be longer: a call costs them time."""
MIRRORED_CLASSES = {"And", "Comparison", "Not", "Or", "Tokens"}
"""Classes that each language has."""
MIRRORED_FILES = {
    "__init__.py",
    *("__main__.py", "run.py"),  # `harken run`, and the pipeline that it runs
    *("ast.py", "front_end.py", "parser.py", "printer.py", "syntax_errors.py", "tokens.py"),  # of each language
    *("documents.py", "expressions.py", "operators.py"),  # what the reference and explanations are about
    *("index.py", "matcher.py", "saving.py"),  # of each kind of index
}
PRIVATE_WORDS = re.compile(
    r"\b(so many|so[- ]manieth|by so|whoever|lest|anew|(?<!\")nobody|told of|is told|are told|asked for|asked in vain"
    r"|comes? along|be due|his change|who(?:ever)? subscribes|what is asked|looked at they)\b",
    re.IGNORECASE,
)
"""Phrases that a reader who never met the authors has to guess at."""


def repeated_classes() -> Iterator[str]:
    places = defaultdict(list)
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    for name, where in places.items():
        if len(where) > 1 and name not in MIRRORED_CLASSES:
            yield f"{where[1]}: the class name {name} stands at {where[0]} too"


def repeated_files() -> Iterator[str]:
    places = defaultdict(list)
    for path, _ in modules():
        places[path.name].append(path)
    for name, where in places.items():
        if len(where) > 1 and name not in MIRRORED_FILES:
            yield f"{where[1]}: the file name stands at {where[0]} too"


def long_functions() -> Iterator[str]:
    for path, tree in modules():
        if "kernels" in path.parts:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno
                if lines > LONGEST:
                    yield f"{path}:{node.lineno}: {node.name} has {lines} lines: is there a second concept in it?"


def private_words() -> Iterator[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    sources = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
    for path in [*sources, *pages]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if phrase := PRIVATE_WORDS.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: say {phrase[0]!r} more plainly"


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def main() -> None:
    findings = [*repeated_classes(), *repeated_files(), *long_functions(), *private_words()]
    print("\n".join(findings) or "Names stand once, functions are short, words are plain.")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
