"""Derived attributes: expressions over attributes that stand in an index like attributes of their own.

The path of one is ("", text): no name has an empty key. The text is JSON, so that whoever reads a saved index needs
no parser: `["lower",{"at":["page"]}]` is lower(page). Equal texts are one attribute.

Besides the functions of the language there are a few that only an index asks for: `compare` tells how two values
compare (-1, 0, 1, or 2 where a domain's own order relates them neither way), `address` writes an internet address so
that networks are intervals, and `lacks` tells whether there is no value of some kinds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from harken.schema.paths import DERIVED, Path, format_path
from harken.schema.scalar_functions import ARGUMENTS, ARITHMETIC, RESULTS, SCALAR, order_of
from harken.schema.values import KINDS, Kind, Value, parse_date, parse_timestamp, show

Evaluate = Callable[[Sequence[Any]], Any]
"""From the values of the sources, None for what is missing, to the value, or None."""

_MOST_KNOWN = 65_536


@dataclass(frozen=True, slots=True)
class Source:
    """An attribute that a derived one is worked out from."""

    path: Path
    is_whole: bool
    """It gets all values of the attribute, as a list; else the one that a binding picks."""


class Derivation:
    """How a derived attribute is worked out."""

    __slots__ = ("evaluate", "kind", "needs", "sources", "text", "tree")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree: Any = json.loads(text)
        sources: dict[Source, int] = {}
        self.evaluate: Evaluate = _compiled(self.tree, sources)
        self.sources = tuple(sources)
        self.kind: Kind | None = kind_of(self.tree)
        """The kind of its values; None if that depends on the event."""
        self.needs: dict[Path, Kind | None] = dict(_needs(self.tree, None))
        """Attributes without which it has no value, each with the kind that it has to be of; None: any."""

    def __str__(self) -> str:
        return _shown(self.tree)

    def of_one(self, attributes: dict[str, Any]) -> Any:
        """The value for an event; a list if that has several bindings for it, or may have."""
        values: list[Any] = []
        for path, is_whole in ((each.path, each.is_whole) for each in self.sources):
            if is_whole:
                values.append(every_value(attributes, path))
                continue
            found, _ = advance((attributes, path))
            if type(found) is list:
                return found
            values.append(found)
        return self.evaluate(values)

    def possible(self, attributes: dict[str, Any], most: int) -> list[Value] | None:
        """The different values over all bindings; None if these are more than so many."""
        cursors: list[Cursor] = []
        for source in self.sources:
            if source.is_whole:
                cursors.append((Whole(every_value(attributes, source.path)), ()))
            else:
                cursors.append(advance((attributes, source.path)))
        found: dict[tuple[type, Any], Value] = {}
        waiting = [cursors]
        tries = 0
        while waiting:
            chosen = waiting.pop()
            array = next((node for node, _ in chosen if type(node) is list), None)
            if array is None:
                value = self.evaluate([node.values if type(node) is Whole else node for node, _ in chosen])
                if value is not None:
                    found[type(value), value] = value
                tries += 1
                if tries > most:
                    return None
            else:
                if len(array) + len(waiting) > most:
                    return None
                waiting.extend(
                    [advance((element, path)) if node is array else (node, path) for node, path in chosen]
                    for element in array
                )
        return list(found.values())


Cursor = tuple[Any, Path]
"""A node of an event, and the path that is left to go from it."""


class Whole:
    """All values of an attribute, where a binding picks none of them."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values


def advance(cursor: Cursor) -> Cursor:
    """As far along the path as objects lead: to an array with the path that is left, or to a value, or to None."""
    node, path = cursor
    for steps, key in enumerate(path):
        if type(node) is dict:
            node = node.get(key)
        else:
            return (node, path[steps:]) if type(node) is list else (None, ())
    return node, ()


def every_value(node: Any, path: Path) -> list[Any]:
    """All values of an attribute in a canonical event, through arrays; an object at the end of the path is one."""
    if type(node) is list:
        return [value for element in node for value in every_value(element, path)]
    if not path:
        return [] if node is None else [node]
    return every_value(node.get(path[0]), path[1:]) if type(node) is dict else []


def is_derived(path: Path) -> bool:
    """Whether a path is that of a derived attribute."""
    return path[:1] == DERIVED


def is_comparison(path: Path) -> bool:
    """Whether a path is that of how two attributes compare."""
    return is_derived(path) and path[1].startswith('["compare"')


@lru_cache(maxsize=_MOST_KNOWN)
def _derivation(text: str) -> Derivation:
    return Derivation(text)


def derivation(path: Path) -> Derivation:
    """How the derived attribute of a path is worked out."""
    return _derivation(path[1])


def format_derived(path: Path) -> str | None:
    """A derived attribute for people to read; None if an event has just such keys as its path."""
    try:
        return str(derivation(path))
    except (ValueError, LookupError, TypeError):
        return None


def sources_of(path: Path) -> tuple[Path, ...]:
    """The attributes of an event that are looked at for a path: itself, unless it is a derived one."""
    return tuple(dict.fromkeys(each.path for each in derivation(path).sources)) if is_derived(path) else (path,)


def bound_sources(path: Path) -> tuple[Path, ...]:
    """Those attributes of a derived one of which a binding picks a value."""
    return tuple(each.path for each in derivation(path).sources if not each.is_whole)


def needs_of(path: Path) -> tuple[Path, ...]:
    """The attributes without which there is no value at a path: itself, unless it is a derived one."""
    return tuple(derivation(path).needs) if is_derived(path) else (path,)


def needed(path: Path, kind: Kind | None) -> list[tuple[Path, Kind | None]]:
    """The attributes without which there is no value of a kind at a path, each with its own kind; None: any."""
    return list(derivation(path).needs.items()) if is_derived(path) else [(path, kind)]


# Texts


@lru_cache(maxsize=4_096)
def of_attribute(path: Path) -> str:
    """The text of an attribute, for `call`."""
    return json.dumps({"at": path}, ensure_ascii=False, separators=(",", ":"))


def of_constant(value: Value) -> str:
    """The text of a constant."""
    if isinstance(value, datetime):
        return json.dumps({"timestamp": value.isoformat()})
    if isinstance(value, date):
        return json.dumps({"date": value.isoformat()})
    return json.dumps(value, ensure_ascii=False)


def call(name: str, *arguments: str) -> str:
    """The text of a function of others."""
    return f'["{name}",{",".join(arguments)}]'


def of_order(values: Sequence[str], below: Iterable[tuple[str, str]]) -> str:
    """The text of a domain's own order, for `compare`: its values, and which are directly below which."""
    order = {"values": values, "below": [list(pair) for pair in below]}
    return json.dumps({"order": order}, ensure_ascii=False, separators=(",", ":"))


def derived_path(text: str) -> Path:
    """The path of the derived attribute of a text; that of an attribute is the attribute's own."""
    return tuple(json.loads(text)["at"]) if text.startswith("{") else (*DERIVED, text)


# Trees, which are what JSON makes of texts


def is_attribute(tree: Any) -> bool:
    return type(tree) is dict and "at" in tree


def constant_of(tree: Any) -> Any:
    """The value that a tree without attributes has, or None."""
    return _compiled(tree, {})([])


def constant_of_text(text: str) -> Any:
    """The same of a text."""
    return constant_of(json.loads(text))


def kind_of(tree: Any) -> Kind | None:
    """The kind of the values of a tree, where they are always of one."""
    if type(tree) is not list:
        return None if is_attribute(tree) else KINDS[type(_literal(tree))]
    name, *arguments = tree
    if name == "coalesce":
        kinds = {kind_of(each) for each in arguments}
        return kinds.pop() if len(kinds) == 1 else None
    return RESULTS[name]


def has_attributes(tree: Any) -> bool:
    return any(map(has_attributes, tree[1:])) if type(tree) is list else is_attribute(tree)


def _literal(tree: Any) -> Any:
    """The value of a constant, or a domain's order."""
    if type(tree) is dict:
        if "timestamp" in tree:
            return parse_timestamp(tree["timestamp"])
        if "date" in tree:
            return parse_date(tree["date"])
    return tree


def _needs(tree: Any, kind: Kind | None) -> Iterable[tuple[Path, Kind | None]]:
    if is_attribute(tree):
        yield tuple(tree["at"]), kind
    elif type(tree) is list and tree[0] not in ("lacks", "coalesce"):
        for argument in tree[1:]:
            yield from _needs(argument, ARGUMENTS.get(tree[0]))


def _shown(tree: Any, is_inner: bool = False) -> str:
    if is_attribute(tree):
        return format_path(tuple(tree["at"]))
    if type(tree) is not list:
        return show(_literal(tree))
    name, *arguments = tree
    if name in ARITHMETIC:
        text = f" {name} ".join(_shown(each, True) for each in arguments)
        return f"({text})" if is_inner else text
    if name == "compare":
        return " compared with ".join(map(_shown, arguments[:2]))
    return f"{name}({', '.join(map(_shown, arguments))})"


# What single values give


def _compiled(tree: Any, sources: dict[Source, int]) -> Evaluate:
    """What works out a tree from the values of its sources, which are numbered here."""
    if is_attribute(tree):
        place = sources.setdefault(Source(tuple(tree["at"]), False), len(sources))
        return lambda values: values[place] if type(values[place]) in KINDS else None
    if type(tree) is not list:
        constant = _literal(tree)
        return lambda values: constant
    name, *arguments = tree
    if name == "size":
        place = sources.setdefault(Source(tuple(arguments[0]["at"]), True), len(sources))
        return lambda values: len(values[place]) or None
    if name == "compare" and len(arguments) > 2:
        return _in_order(arguments, sources)
    several = [_compiled(each, sources) for each in arguments]
    if name == "coalesce":
        return lambda values: next((found for each in several if (found := each(values)) is not None), None)
    function = SCALAR[name]
    first = several[0]
    if len(several) == 1:
        return lambda values: function(first(values))
    second = several[1]
    if len(several) == 2:
        return lambda values: function(first(values), second(values))
    return lambda values: function(*[each(values) for each in several])


def _in_order(arguments: list[Any], sources: dict[Source, int]) -> Evaluate:
    """`compare` where a domain brings an order."""
    order = arguments[2]["order"]
    left, right = (_compiled(each, sources) for each in arguments[:2])
    compared = order_of(tuple(order["values"]), tuple(map(tuple, order["below"])))
    return lambda values: compared(left(values), right(values))
