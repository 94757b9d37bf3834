"""What an explanation is made of: a tree of parts, each with its truth and the values that it met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from html import escape
from math import isfinite
from typing import Any

from harken.schema.values import show

MARKS: dict[bool | None, str] = {True: "✓", False: "✗", None: "?"}
_COLOURS = {"✓": "green", "✗": "red", "?": "darkorange"}
_MOST_VALUES = 8


@dataclass(frozen=True, slots=True)
class Met:
    """The values of an attribute that a part met; `picked` is the one that a binding picked of several."""

    attribute: str
    values: tuple[Any, ...]
    picked: Any = None

    def __str__(self) -> str:
        if not self.values:
            return f"{self.attribute} is missing"
        shown = ", ".join(map(_shown, self.values[:_MOST_VALUES]))
        if len(self.values) == 1:
            return f"{self.attribute} is {shown}"
        more = f", and {len(self.values) - _MOST_VALUES} more" if len(self.values) > _MOST_VALUES else ""
        here = "" if self.picked is None else f", here {_shown(self.picked)}"
        return f"{self.attribute} is one of {{{shown}{more}}}{here}"

    def to_dict(self) -> dict[str, Any]:
        """The values as plain data."""
        plain: dict[str, Any] = {"attribute": self.attribute, "values": list(map(_plain, self.values))}
        return plain if self.picked is None else plain | {"picked": _plain(self.picked)}


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of the expression: what it says, its truth, the values that it met, and its own parts."""

    text: str
    truth: bool | None
    met: tuple[Met, ...] = ()
    note: str | None = None
    parts: tuple[Clause, ...] = ()

    @property
    def values(self) -> str:
        """The values that it met, in words."""
        return ", ".join(map(str, self.met))

    def lines(self, indent: str = "") -> list[str]:
        """The tree as lines of text."""
        line = f"{indent}{MARKS[self.truth]} {self.text}"
        if self.met:
            line += f"   ({self.values})"
        if self.note is not None:
            line += f"   -- {self.note}"
        return [line, *(below for part in self.parts for below in part.lines(indent + "  "))]

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain data."""
        plain: dict[str, Any] = {"text": self.text, "truth": self.truth}
        if self.met:
            plain["values"] = [each.to_dict() for each in self.met]
        if self.note is not None:
            plain["note"] = self.note
        if self.parts:
            plain["parts"] = [part.to_dict() for part in self.parts]
        return plain


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether the event matched, and why."""

    matched: bool
    tree: Clause

    def __str__(self) -> str:
        return "\n".join(["matches" if self.matched else "does not match", *self.tree.lines()])

    def _repr_html_(self) -> str:
        verdict, *lines = str(self).split("\n")
        marked = "\n".join(map(_marked, lines))
        return f"<p><b>{verdict}</b></p><pre>{marked}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {"matched": self.matched, "tree": self.tree.to_dict()}


def _marked(line: str) -> str:
    """A line of the tree in HTML, its mark in a colour."""
    text = line.lstrip(" ")
    colour = _COLOURS.get(text[:1])
    if colour is None:  # the rest of a text of several lines
        return escape(line)
    return f'{line[: -len(text)]}<span style="color: {colour}">{text[0]}</span>{escape(text[1:])}'


def _plain(value: Any) -> Any:
    """A value as JSON can write it."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(_plain, value))
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value.isoformat() if isinstance(value, date) else value


def _shown(value: Any) -> str:
    return "an object" if isinstance(value, Mapping) else show(value)
