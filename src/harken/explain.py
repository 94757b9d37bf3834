"""Why an event did or did not match: the expression as a tree, with the truth and the value behind every part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harken.language.ast import And, Attribute, Expression, Not, Or, attributes, leaves, predicates
from harken.language.printer import print_expression
from harken.reference import all_values, array_on, find_binding
from harken.schema import Schema
from harken.schema.paths import Path, format_path
from harken.schema.values import show

MARKS: dict[bool | None, str] = {True: "✓", False: "✗", None: "?"}
_MOST_VALUES = 8


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the expression: what it says, its truth, the values that it met, and its own parts."""

    text: str
    truth: bool | None
    values: str | None = None
    note: str | None = None
    parts: tuple[Part, ...] = ()

    def lines(self, indent: str = "") -> list[str]:
        """The tree as lines of text."""
        line = f"{indent}{MARKS[self.truth]} {self.text}"
        if self.values is not None:
            line += f"   ({self.values})"
        if self.note is not None:
            line += f"   -- {self.note}"
        return [line, *(below for part in self.parts for below in part.lines(indent + "  "))]

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain data."""
        plain: dict[str, Any] = {"text": self.text, "truth": self.truth}
        if self.values is not None:
            plain["values"] = self.values
        if self.note is not None:
            plain["note"] = self.note
        if self.parts:
            plain["parts"] = [part.to_dict() for part in self.parts]
        return plain


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether the event matched, and why."""

    matched: bool
    tree: Part

    def __str__(self) -> str:
        return "\n".join(["matches" if self.matched else "does not match", *self.tree.lines()])

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {"matched": self.matched, "tree": self.tree.to_dict()}


def explain(expression: Expression, event: Mapping[str, Any], schema: Schema | None = None) -> Explanation:
    """Explain an expression on a canonical event, by the reference semantics."""
    bound = find_binding(expression, event, schema)
    teller = _Teller(event, bound, schema)
    return Explanation(bound is not None, teller.part(expression))


class _Teller:
    """Tells of the parts under the binding that made the event match; if none did, of each part under its own best."""

    def __init__(self, whole: Mapping[str, Any], bound: Mapping[str, Any] | None, schema: Schema | None) -> None:
        self.whole = whole
        self.bound = bound
        self.schema = schema

    def part(self, node: Expression) -> Part:
        found = self._truth(node)
        match node:
            case And(items=items) | Or(items=items):
                parts = tuple(map(self.part, items))
                return Part(
                    "AND" if isinstance(node, And) else "OR", found, None, self._note(node, found, parts), parts
                )
            case Not(item=And() | Or() | Not() as item):
                return Part("NOT", found, None, None, (self.part(item),))
            case _:
                return Part(print_expression(node), found, self._values(node))

    def _truth(self, node: Expression) -> bool | None:
        if find_binding(node, self.whole, self.schema, self.bound) is not None:
            return True
        return False if find_binding(Not(node), self.whole, self.schema, self.bound) is not None else None

    def _note(self, node: Expression, found: bool | None, parts: tuple[Part, ...]) -> str | None:
        if isinstance(node, And) and found is not True and all(part.truth for part in parts):
            arrays = {array_on(self.whole, path): None for path in attributes(node)}
            names = ", ".join(format_path(array) for array in arrays if array is not None)
            return f"each holds for some element of {names}, but no one choice of elements meets them all"
        return None

    def _values(self, node: Expression) -> str | None:
        paths = {
            leaf.path: None for each, _ in predicates(node) for leaf in leaves(each) if isinstance(leaf, Attribute)
        }
        return ", ".join(f"{format_path(path)} {self._value(path)}" for path in paths) or None

    def _value(self, path: Path) -> str:
        values = all_values(self.whole, path)
        if not values:
            return "is missing"
        if len(values) == 1:
            return f"is {_shown(values[0])}"
        more = f", and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
        text = f"is one of {{{', '.join(map(_shown, values[:_MOST_VALUES]))}{more}}}"
        picked = [] if self.bound is None else all_values(self.bound, path)
        return f"{text}, here {_shown(picked[0])}" if len(picked) == 1 else text


def _shown(value: Any) -> str:
    return "an object" if isinstance(value, Mapping) else show(value)
