"""Derived attributes: expressions over attributes that stand in an index like attributes of their own.

The path of one is ("", text): no name has an empty key. The text is JSON, so that whoever reads a saved index needs
no parser: `["lower",{"at":["page"]}]` is lower(page). Equal texts are one attribute.

Besides the functions of the language there are a few that only an index asks for: `compare` tells how two values
compare (-1, 0, 1, or 2 where a domain's own order relates them neither way), `address` writes an internet address so
that networks are intervals, `lacks` tells whether there is no value of some kinds, and `timestamp` and `date` give
values of that kind as they are, and strings as `read_timestamp` and `read_date` have them. One of these two of an
attribute is a *reading* of it.
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
READ_AS = (Kind.TIMESTAMP, Kind.DATE)
"""The kinds that strings are read as."""
_READINGS = tuple(f'["{kind}",{{"at"' for kind in READ_AS)


@dataclass(frozen=True, slots=True)
class SourceAttribute:
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
        sources: dict[SourceAttribute, int] = {}
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


class TimeReading(Derivation):
    """How an attribute is read as a timestamp or a date. Of a value that is one already, it is next to nothing."""

    __slots__ = ("_last", "_type", "own_path", "path", "read", "read_as")

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.path = self.sources[0].path
        """That of the attribute."""
        self.own_path: Path = (*DERIVED, text)
        self.read_as = Kind(self.tree[0])
        self.read: Callable[[Any], Any] = SCALAR[self.read_as]
        self._type = datetime if self.read_as is Kind.TIMESTAMP else date
        self._last: tuple[Any, Any] = (None, None)
        """The last string of a single event, and what it was read as: it is asked for several times."""

    def of_one(self, attributes: dict[str, Any]) -> Any:
        path = self.path
        value: Any = attributes.get(path[0]) if len(path) == 1 else advance((attributes, path))[0]
        given = type(value)
        if given is self._type or given is list:
            return value
        last, found = self._last
        if given is str and value is not last:
            found = self.read(value)
            self._last = value, found
        return found if given is str else None

    def unparsed(self, attributes: dict[str, Any]) -> int:
        """How many strings of an event are no such timestamp or date."""
        path = self.path
        value: Any = attributes.get(path[0]) if len(path) == 1 else advance((attributes, path))[0]
        if type(value) is str:
            return int(self.of_one(attributes) is None)
        every = every_value(attributes, path) if type(value) is list else ()
        return sum(type(each) is str and self.read(each) is None for each in every)


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


def reading(path: Path) -> TimeReading | None:
    """How the attribute is read whose reading a path is; None if it is another path."""
    found = derivation(path) if is_derived(path) else None
    return found if isinstance(found, TimeReading) else None


def place_of(path: Path) -> Path:
    """Where in an event the values of a path lie: of an attribute that is read, the attribute; else the path itself."""
    found = reading(path)
    return path if found is None else found.path


def reading_of(path: Path, kind: Kind) -> Path:
    """The path of an attribute read as a timestamp or a date."""
    return derived_path(call(str(kind), of_attribute(path)))


@lru_cache(maxsize=_MOST_KNOWN)
def _derivation(text: str) -> Derivation:
    return (TimeReading if text.startswith(_READINGS) else Derivation)(text)


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
    place = place_of(path)
    return list(derivation(place).needs.items()) if is_derived(place) else [(place, kind)]


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
    if name in READ_AS:  # which nobody has written
        return _shown(arguments[0], is_inner)
    if name in ARITHMETIC:
        text = f" {name} ".join(_shown(each, True) for each in arguments)
        return f"({text})" if is_inner else text
    if name == "compare":
        return " compared with ".join(map(_shown, arguments[:2]))
    return f"{name}({', '.join(map(_shown, arguments))})"


# What single values give


def _compiled(tree: Any, sources: dict[SourceAttribute, int]) -> Evaluate:
    """What works out a tree from the values of its sources, which are numbered here."""
    if is_attribute(tree):
        place = sources.setdefault(SourceAttribute(tuple(tree["at"]), False), len(sources))
        return lambda values: values[place] if type(values[place]) in KINDS else None
    if type(tree) is not list:
        constant = _literal(tree)
        return lambda values: constant
    name, *arguments = tree
    if name == "size":
        place = sources.setdefault(SourceAttribute(tuple(arguments[0]["at"]), True), len(sources))
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


def _in_order(arguments: list[Any], sources: dict[SourceAttribute, int]) -> Evaluate:
    """`compare` where a domain brings an order."""
    order = arguments[2]["order"]
    left, right = (_compiled(each, sources) for each in arguments[:2])
    compared = order_of(tuple(order["values"]), tuple(map(tuple, order["below"])))
    return lambda values: compared(left(values), right(values))
