"""Writes docs/api.md, the reference of the public names, from signatures and docstrings: `make docs`."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from harken import HarkenError

PAGE = Path(__file__).parent / "api.md"
HEAD = """\
# The public names

Generated from the docstrings by `make docs`: do not edit. [In Python](python.md), [Spark](spark.md) and
[the client](client.md) tell the same as guides, with examples. What is not listed here may change without notice.
"""
MODULES = {
    "harken": "",
    "harken.spark": "Needs `pip install 'harken[spark]'`; the guide is [Spark](spark.md).",
    "harken.client": "Needs `pip install 'harken[client]'`; the guide is [the client](client.md).",
    "harken.schema": "The guide is [schemas](schema.md).",
    "harken.operators.box": "Needs `pip install 'harken[operators]'`; the guide is [operators in the box]"
    "(operators-in-the-box.md).",
    "harken.errors": "",
}
FIRST = ["Engine", "Matches", "BatchMatches", "Subscription", "Report", "Replacement", "Fault"]
FIRST += ["Explanation", "operator", "match"]
WITHOUT_METHODS = {("harken", "AsyncClient"), ("harken", "EventBatch"), "harken.schema"}
"""Those of `AsyncClient` are those of `Client`; those of batches and domains are for the engine."""
MADE = {"AsyncClient", "Client", "Engine", "Index"}
"""The classes whose constructor is shown, with those of schemas. Of others the fields tell enough."""
LONGEST_DEFAULT = 40
WIDTH = 100


class _Bare(str):
    """An annotation, which shows as it is written in the source."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def page() -> str:
    """The whole page."""
    body = "\n".join(_section(import_module(name), told) for name, told in MODULES.items())
    return "\n".join([HEAD, _contents(_anchors(body)), body])


def _contents(anchors: dict[str, str]) -> str:
    lines = []
    for module in MODULES:
        names = [f"[`{name}`](#{anchors[f'{module}.{name}']})" for name in _public(import_module(module))]
        lines.append(f"- [`{module}`](#{anchors[module]}){': ' if names else ''}{', '.join(names)}")
    return "\n".join(lines) + "\n"


def _anchors(body: str) -> dict[str, str]:
    """The anchor that GitHub gives to each heading: letters alone, with a number where one comes again."""
    times: Counter[str] = Counter()
    anchors: dict[str, str] = {}
    for heading in re.findall(r"^#{2,4} (.+)$", body, re.MULTILINE):
        plain = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        anchors[heading] = f"{plain}-{times[plain]}" if times[plain] else plain
        times[plain] += 1
    return anchors


def _public(module: ModuleType) -> list[str]:
    """The names that are described in the section of a module: the first ones first, then by the alphabet."""
    names = [name for name in getattr(module, "__all__", ()) if _home(module, name) == module.__name__]
    return sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name.lower(), name))


def _home(module: ModuleType, name: str) -> str:
    """The first module of the page that has this very object: it is described there, and nowhere else."""
    value = getattr(module, name)
    for each in MODULES:
        other = import_module(each)
        if name in getattr(other, "__all__", ()) and getattr(other, name) is value:
            return each
    return module.__name__


def _section(module: ModuleType, told: str) -> str:
    parts = [f"## {module.__name__}\n"]
    if module.__name__ == "harken.errors":  # the tree is in the docstring, and says it all
        parts.append(f"```text\n{inspect.getdoc(module)}\n```\n")
    elif told:
        parts.append(f"{told}\n")
    names = _public(module)
    parts += [_entry(module.__name__, name, getattr(module, name)) for name in names]
    return "\n".join(parts)


def _entry(module: str, name: str, value: Any) -> str:
    if inspect.isclass(value):
        return _class(module, name, value)
    if inspect.isfunction(value):
        return _function(f"### {module}.{name}\n", name, value)
    return f"### {module}.{name}\n\n{_text(_value_doc(name, value))}"


def _class(module: str, name: str, value: type) -> str:
    parts = [f"### {module}.{name}\n"]
    told = "" if value.__doc__ is None or value.__doc__.startswith(f"{name}(") else inspect.cleandoc(value.__doc__)
    made = vars(value).get("__init__")
    if inspect.isfunction(made) and (name in MADE or (module == "harken.schema" and is_dataclass(value))):
        parts.append(_fenced(f"{name}{_signature(made, is_method=True, returns=False)}"))
    parts.append(_text(told))
    # What a dataclass or an exception says of its making is said by the list of fields, or by its parent.
    if inspect.isfunction(made) and made.__doc__ and not made.__doc__.startswith("Initialize self"):
        parts.append(_text(inspect.cleandoc(made.__doc__)))
    attributes = [f"- `{each}`: {doc}" if doc else f"- `{each}`" for each, doc in _attributes(value)]
    if attributes:
        parts.append("\n".join(attributes) + "\n")
    if (module, name) not in WITHOUT_METHODS and module not in WITHOUT_METHODS:
        parts += [_function(f"#### {name}.{each}\n", each, method) for each, method in _methods(value)]
    return "\n".join(part for part in parts if part)


def _attributes(value: type) -> Iterator[tuple[str, str]]:
    """The fields and properties of a class, each with what is said of it."""
    yield from _field_docs(value)
    for name, member in vars(value).items():
        getter = member.fget if isinstance(member, property) else getattr(member, "func", None)
        if name.startswith("_") or not inspect.isfunction(getter):
            continue
        kind = inspect.signature(getter).return_annotation
        shown = name if kind is inspect.Signature.empty else f"{name}: {kind}"
        yield shown, " ".join((inspect.getdoc(getter) or "").split())


def _field_docs(value: type) -> Iterator[tuple[str, str]]:
    """The annotated fields in the body of a class, each with the string behind it."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    except (OSError, TypeError):
        return
    assert isinstance(tree, ast.ClassDef)
    for line, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        if line.target.id.startswith("_") or ast.unparse(line.annotation).startswith("ClassVar"):
            continue
        doc = " ".join(_string(following).split())
        shown = f"{line.target.id}: {ast.unparse(line.annotation)}"
        default = "" if line.value is None else ast.unparse(line.value)
        is_plain = default and len(default) <= LONGEST_DEFAULT and not default.startswith("field(")
        yield shown + (f" = {default}" if is_plain else ""), doc


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    """The public methods of a class that have a docstring, in the order of the source, its parents' last."""
    seen: set[str] = set()
    for owner in value.__mro__:
        is_base = owner is HarkenError and value is not owner
        if not owner.__module__.startswith("harken") or is_base:
            continue
        for name, member in vars(owner).items():
            method = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not name.startswith("_") and name not in seen and inspect.isfunction(method) and method.__doc__:
                seen.add(name)
                yield name, method


def _function(title: str, name: str, value: Any) -> str:
    is_method = title.startswith("####")
    awaited = "async " if inspect.iscoroutinefunction(value) else ""
    return "\n".join(
        [title, _fenced(f"{awaited}{name}{_signature(value, is_method=is_method)}"), _text(inspect.getdoc(value) or "")]
    )


def _signature(value: Any, *, is_method: bool, returns: bool = True) -> str:
    signature = inspect.signature(value)
    parameters = list(signature.parameters.values())
    if is_method and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    shown = [_parameter(each) for each in parameters]
    result = signature.return_annotation if returns else inspect.Signature.empty
    if result is not inspect.Signature.empty:
        result = _Bare(result)
    return _folded(str(signature.replace(parameters=shown, return_annotation=result)), shown, result)


def _folded(line: str, parameters: list[inspect.Parameter], result: Any) -> str:
    """A signature on one line or, where it is long, with a line for each argument."""
    if len(line) <= WIDTH:
        return line
    lines, kind = [], None
    for each in parameters:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and kind not in (each.kind, inspect.Parameter.VAR_POSITIONAL):
            lines.append("    *,")
        kind = each.kind
        lines.append(f"    {each},")
    return "\n".join(["(", *lines, ")" if result is inspect.Signature.empty else f") -> {result}"])


def _parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    empty = inspect.Parameter.empty
    annotation, default = parameter.annotation, parameter.default
    if annotation is not empty:
        annotation = _Bare(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))
    if default is not empty and (len(repr(default)) > LONGEST_DEFAULT or re.search("^<| at 0x", repr(default))):
        default = _Bare("…")
    return parameter.replace(annotation=annotation, default=default)


def _value_doc(name: str, value: Any) -> str:
    """What stands behind the assignment of a value in the source or, if nothing does, what its class or it says."""
    homes = [each for key, each in sorted(sys.modules.items()) if key.startswith("harken.")]
    for home in homes:
        if vars(home).get(name) is value and (doc := dict(_assigned(inspect.getsource(home))).get(name)):
            return doc
    if isinstance(value, dict):
        return ", ".join(f"`{each}`" for each in value)
    is_own = type(value).__module__.startswith("harken")
    return inspect.getdoc(value) or "" if is_own else f"`{value!r}`"


def _assigned(source: str) -> Iterator[tuple[str, str]]:
    """The names that the body of a module assigns, each with the string behind it."""
    body = ast.parse(source).body
    for line, following in pairwise(body):
        target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
        if isinstance(target, ast.Name) and (doc := _string(following)):
            yield target.id, doc


def _string(line: ast.stmt | None) -> str:
    """The text of a line that is nothing but a string."""
    is_string = (
        isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
    )
    return inspect.cleandoc(line.value.value) if is_string else ""  # type: ignore[union-attr]


def _fenced(code: str) -> str:
    return f"```py\n{code}\n```\n"


def _text(doc: str) -> str:
    """A docstring as Markdown: what is indented in it is code, and a `<` is no tag."""
    if not doc:
        return ""
    paragraphs = re.split(r"\n\s*\n", doc)
    shown = [
        f"```text\n{textwrap.dedent(each)}\n```" if all(line.startswith("    ") for line in each.split("\n")) else each
        for each in paragraphs
    ]
    return "\n\n".join(shown) + "\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE} is written.", file=sys.stderr)


if __name__ == "__main__":
    main()
