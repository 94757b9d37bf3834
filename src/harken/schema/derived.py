"""Derived attributes: expressions over attributes, which are indexed like attributes.

The path of a derived attribute is ("", text): no other path has an empty key. The text is JSON, so that a saved index
is read without a parser: `["lower",{"at":["page"]}]` is lower(page). Equal texts are one attribute.

Besides the functions of the language there are internal ones: `compare` is how two values compare (-1, 0, 1, or 2
where a domain's own order relates them neither way), `address` writes an internet address so that networks are
intervals, `lacks` is whether there is no value of some kinds, and `timestamp` and `date` pass values of that kind
through and parse strings with `read_timestamp` and `read_date`. An attribute inside one of these two is a *time
reading*.
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
"""Computes the value from those of the sources. None is a missing value."""

_CACHE_SIZE = 65_536
READ_AS = (Kind.TIMESTAMP, Kind.DATE)
"""The kinds that strings are read as."""
_READINGS = tuple(f'["{kind}",{{"at"' for kind in READ_AS)


@dataclass(frozen=True, slots=True)
class SourceAttribute:
    """An attribute that a derived one is computed from."""

    path: Path
    is_whole: bool
    """Whether all values of the attribute are passed, as a list; else the one that a binding picks."""


class Derivation:
    """How a derived attribute is computed."""

    __slots__ = ("evaluate", "kind", "needs", "sources", "text", "tree")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree: Any = json.loads(text)
        sources: dict[SourceAttribute, int] = {}
        self.evaluate: Evaluate = _compiled(self.tree, sources)
        self.sources = tuple(sources)
        self.kind: Kind | None = kind_of(self.tree)
        """The kind of the values; None if it depends on the event."""
        self.needs: dict[Path, Kind | None] = dict(_needs(self.tree, None))
        """Attributes without which there is no value, each with its required kind; None: any kind."""

    def __str__(self) -> str:
        return _shown(self.tree)

    def of_one(self, attributes: dict[str, Any]) -> Any:
        """The value for an event, or the array by which the event may have several bindings."""
        values: list[Any] = []
        for source in self.sources:
            if source.is_whole:
                values.append(every_value(attributes, source.path))
                continue
            node, _ = advance((attributes, source.path))
            if type(node) is list:
                return node
            values.append(node)
        return self.evaluate(values)

    def possible(self, attributes: dict[str, Any], most: int) -> list[Value] | None:
        """The distinct values over all bindings; None if there are more than `most` bindings."""
        cursors: list[Cursor] = []
        for source in self.sources:
            if source.is_whole:
                cursors.append((Whole(every_value(attributes, source.path)), ()))
            else:
                cursors.append(advance((attributes, source.path)))
        distinct: dict[tuple[type, Any], Value] = {}
        waiting = [cursors]
        tries = 0
        while waiting:
            chosen = waiting.pop()
            array = next((node for node, _ in chosen if type(node) is list), None)
            if array is None:
                value = self.evaluate([node.values if type(node) is Whole else node for node, _ in chosen])
                if value is not None:
                    distinct[type(value), value] = value
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
        return list(distinct.values())


class TimeReading(Derivation):
    """Reads an attribute as a timestamp or a date. Values that are one already cost next to nothing."""

    __slots__ = ("_last", "_type", "own_path", "path", "read", "read_as")

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.path = self.sources[0].path
        """The path of the attribute."""
        self.own_path: Path = (*DERIVED, text)
        self.read_as = Kind(self.tree[0])
        self.read: Callable[[Any], Any] = SCALAR[self.read_as]
        self._type = datetime if self.read_as is Kind.TIMESTAMP else date
        self._last: tuple[Any, Any] = (None, None)
        """The string read last, and its value: one event's string is read several times."""

    def of_one(self, attributes: dict[str, Any]) -> Any:
        path = self.path
        value: Any = attributes.get(path[0]) if len(path) == 1 else advance((attributes, path))[0]
        value_type = type(value)
        if value_type is self._type or value_type is list:
            return value
        last, parsed = self._last
        if value_type is str and value is not last:
            parsed = self.read(value)
            self._last = value, parsed
        return parsed if value_type is str else None

    def unparsed(self, attributes: dict[str, Any]) -> int:
        """Number of strings of an event that do not parse."""
        path = self.path
        value: Any = attributes.get(path[0]) if len(path) == 1 else advance((attributes, path))[0]
        if type(value) is str:
            return int(self.of_one(attributes) is None)
        elements = every_value(attributes, path) if type(value) is list else ()
        return sum(type(element) is str and self.read(element) is None for element in elements)


Cursor = tuple[Any, Path]
"""A node of an event, and the rest of the path below it."""


class Whole:
    """All values of an attribute, of which no binding picks one."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values


def advance(cursor: Cursor) -> Cursor:
    """Follow the path through objects: to an array with the rest of the path, to a value, or to None."""
    node, path = cursor
    for steps, key in enumerate(path):
        if type(node) is dict:
            node = node.get(key)
        else:
            return (node, path[steps:]) if type(node) is list else (None, ())
    return node, ()


def every_value(node: Any, path: Path) -> list[Any]:
    """All values of an attribute in a canonical event, through arrays; an object at the end of the path counts."""
    if type(node) is list:
        return [value for element in node for value in every_value(element, path)]
    if not path:
        return [] if node is None else [node]
    return every_value(node.get(path[0]), path[1:]) if type(node) is dict else []


def is_derived(path: Path) -> bool:
    """Whether a path is that of a derived attribute."""
    return path[:1] == DERIVED


def is_comparison(path: Path) -> bool:
    """Whether a path is that of a comparison of two attributes."""
    return is_derived(path) and path[1].startswith('["compare"')


def reading(path: Path) -> TimeReading | None:
    """The time reading at a path; None if there is something else."""
    derived = derivation(path) if is_derived(path) else None
    return derived if isinstance(derived, TimeReading) else None


def place_of(path: Path) -> Path:
    """Where an event has the values of a path: for a time reading, at its attribute; else at the path itself."""
    time_reading = reading(path)
    return path if time_reading is None else time_reading.path


def reading_of(path: Path, kind: Kind) -> Path:
    """The path of an attribute read as a timestamp or a date."""
    return derived_path(call(str(kind), of_attribute(path)))


@lru_cache(maxsize=_CACHE_SIZE)
def _derivation(text: str) -> Derivation:
    return (TimeReading if text.startswith(_READINGS) else Derivation)(text)


def derivation(path: Path) -> Derivation:
    """How the derived attribute at a path is computed."""
    return _derivation(path[1])


def format_derived(path: Path) -> str | None:
    """A derived attribute as people read it; None if the path is made of an event's own keys."""
    try:
        return str(derivation(path))
    except (ValueError, LookupError, TypeError):
        return None


def sources_of(path: Path) -> tuple[Path, ...]:
    """The attributes that have to be read for a path: the path itself, unless it is derived."""
    return tuple(dict.fromkeys(source.path for source in derivation(path).sources)) if is_derived(path) else (path,)


def bound_sources(path: Path) -> tuple[Path, ...]:
    """The sources of a derived attribute of which a binding picks one value."""
    return tuple(source.path for source in derivation(path).sources if not source.is_whole)


def needs_of(path: Path) -> tuple[Path, ...]:
    """The attributes without which a path has no value: the path itself, unless it is derived."""
    return tuple(derivation(path).needs) if is_derived(path) else (path,)


def needed(path: Path, kind: Kind | None) -> list[tuple[Path, Kind | None]]:
    """The attributes without which a path has no value of a kind, each with its required kind; None: any kind."""
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
    """The text of a function call."""
    return f'["{name}",{",".join(arguments)}]'


def of_order(values: Sequence[str], below: Iterable[tuple[str, str]]) -> str:
    """The text of a domain's own order, for `compare`: its values, and (lower, higher) pairs of them."""
    order = {"values": values, "below": [list(pair) for pair in below]}
    return json.dumps({"order": order}, ensure_ascii=False, separators=(",", ":"))


def derived_path(text: str) -> Path:
    """The path of the derived attribute with this text; for an attribute's text, the path of the attribute."""
    return tuple(json.loads(text)["at"]) if text.startswith("{") else (*DERIVED, text)


# Trees: texts as parsed by JSON


def is_attribute(tree: Any) -> bool:
    return type(tree) is dict and "at" in tree


def constant_of(tree: Any) -> Any:
    """The value of a tree without attributes, or None."""
    return _compiled(tree, {})([])


def constant_of_text(text: str) -> Any:
    """The value of a text without attributes, or None."""
    return constant_of(json.loads(text))


def kind_of(tree: Any) -> Kind | None:
    """The kind of a tree's values; None if it depends on the event."""
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
    if name in READ_AS:  # internal: no text calls it
        return _shown(arguments[0], is_inner)
    if name in ARITHMETIC:
        text = f" {name} ".join(_shown(each, True) for each in arguments)
        return f"({text})" if is_inner else text
    if name == "compare":
        return " compared with ".join(map(_shown, arguments[:2]))
    return f"{name}({', '.join(map(_shown, arguments))})"


# Evaluation


def _compiled(tree: Any, sources: dict[SourceAttribute, int]) -> Evaluate:
    """The function that evaluates a tree on the values of its sources. Numbers the sources."""
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
    operands = [_compiled(each, sources) for each in arguments]
    if name == "coalesce":
        return lambda values: next((value for evaluate in operands if (value := evaluate(values)) is not None), None)
    function = SCALAR[name]
    first = operands[0]
    if len(operands) == 1:
        return lambda values: function(first(values))
    second = operands[1]
    if len(operands) == 2:
        return lambda values: function(first(values), second(values))
    return lambda values: function(*[evaluate(values) for evaluate in operands])


def _in_order(arguments: list[Any], sources: dict[SourceAttribute, int]) -> Evaluate:
    """`compare` by a domain's own order."""
    order = arguments[2]["order"]
    left, right = (_compiled(each, sources) for each in arguments[:2])
    compared = order_of(tuple(order["values"]), tuple(map(tuple, order["below"])))
    return lambda values: compared(left(values), right(values))
