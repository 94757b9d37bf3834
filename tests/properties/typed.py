"""An open schema with a domain of every kind, events that conform to it, and the questions that its check lets pass."""

from __future__ import annotations

from random import Random
from typing import Any

from harken.schema import CodedDomain, IntegerDomain, Schema, parse_schema
from harken.schema.paths import Path
from harken.schema.values import Value
from properties.generators import RawEvent, Vocabulary
from properties.scalars import SCALARS, near, one_in, small_number

SCHEMA: Schema = parse_schema("""
[domains.rating]
type = "integer"
low = 1
high = 5

[domains.huge]
type = "integer"
low = 9007199254740990
high = 9007199254740996

[domains.size]
type = "enumerated"
values = ["S", "M", "L", "one size", "kids S", "kids M", "no size"]
order = [["S", "M", "L"], ["kids S", "kids M", "M"]]

[domains.kind]
type = "hierarchical"
[domains.kind.children]
toy = ["doll", "car", "puzzle"]
puzzle = ["jigsaw", "cube"]
lamp = []

[domains.colour]
type = "enumerated"
values = ["red", "green", "blue"]

[attributes]
n = "integer"
huge = "huge"
rating = "rating"
x = "float"
s = "string"
flag = "boolean"
at = "timestamp"
day = "date"
size = "size"
kind = "kind"
colour = "colour"
tags = "string"
scores = "rating"
kinds = "kind"
"items.rating" = "rating"
"items.n" = "integer"
"items.name" = "string"
"items.flag" = "boolean"
"items.kind" = "kind"
"items.size" = "size"
"items.at" = "timestamp"
"items.parts.rating" = "rating"
"items.parts.x" = "float"
"items.parts.day" = "date"
""")


class TypedVocabulary(Vocabulary):
    """The attributes of the schema. What is compared is of one kind, and a coded value is one of its domain."""

    is_typed = True

    def __init__(self, rng: Random) -> None:
        super().__init__({path: [_value(rng, path) for _ in range(6)] for path in SCHEMA.attributes})

    def path(self, rng: Random) -> Path:
        return rng.choice(self.paths)

    def partner(self, rng: Random, path: Path) -> Path:
        return rng.choice([other for other in self.paths if _comparable(path, other)])

    def constants(self, rng: Random, path: Path, count: int) -> list[Value]:
        drawn = [rng.choice(self.values[path]) for _ in range(count)]
        if isinstance(SCHEMA.attributes[path], CodedDomain):
            return drawn
        moved = [near(rng, value) for value in drawn]
        if isinstance(SCHEMA.attributes[path], IntegerDomain):  # whose constants may be floats, or outside
            return [small_number(rng, value) if one_in(rng, 4) else value for value in moved]  # type: ignore[arg-type]
        return moved


def _comparable(left: Path, right: Path) -> bool:
    mine, theirs = SCHEMA.attributes[left], SCHEMA.attributes[right]
    if isinstance(mine, CodedDomain) or isinstance(theirs, CodedDomain):
        return mine == theirs
    return mine.kind is theirs.kind


def _value(rng: Random, path: Path) -> Value:
    domain = SCHEMA.attributes[path]
    if isinstance(domain, CodedDomain):
        return rng.choice(domain.values)
    if isinstance(domain, IntegerDomain) and domain.low is not None and domain.high is not None:
        return rng.randrange(domain.low, domain.high + 1)
    return SCALARS[domain.name](rng)


def typed_events(rng: Random, vocabulary: TypedVocabulary, count: int) -> list[RawEvent]:
    """Events of the schema, most attributes with one value, some with several or none."""
    return [_object(rng, vocabulary, ()) for _ in range(count)]


def _object(rng: Random, vocabulary: TypedVocabulary, path: Path) -> RawEvent:
    inner = dict.fromkeys(known[: len(path) + 1] for known in vocabulary.values if known[: len(path)] == path)
    return {below[-1]: _node(rng, vocabulary, below) for below in inner if not one_in(rng, 12)}


def _node(rng: Random, vocabulary: TypedVocabulary, path: Path) -> Any:
    roll = rng.randrange(20)
    if path not in vocabulary.values:  # an object, or several
        count = rng.choice((2, 1, 3, 0))
        return [_object(rng, vocabulary, path) for _ in range(count)] if roll else _object(rng, vocabulary, path)
    values = [_raw(rng, rng.choice(vocabulary.values[path])) for _ in range(rng.choice((2, 3, 0, 1)))]
    if roll < 14:
        return _raw(rng, rng.choice(vocabulary.values[path]))
    if roll < 18:
        return values
    return rng.choice((None, [], [None, *values], [values, []]))


def _raw(rng: Random, value: Value) -> Value:
    """The value as a decoder might give it: an integral float for an integer, now and then."""
    small = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
    return float(value) if small and one_in(rng, 8) else value
