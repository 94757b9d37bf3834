"""Expressions and events at random, for the bulk tests (a seeded `random.Random`) and for Hypothesis (`st.randoms`).

A *vocabulary* knows the attributes of some events and the values that they hold. Expressions are made from it, so that
their constants are equal to or next to what the events hold, and are true about as often as not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import nan
from random import Random
from typing import Any

from harken.language.ast import (
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Constant,
    Contains,
    Expression,
    Function,
    Holds,
    In,
    IsNull,
    IsTruth,
    Like,
    Not,
    Operand,
    Predicate,
    RLike,
    Variable,
    conjunction,
    disjunction,
    leaves,
)
from harken.language.deriving import term
from harken.reference import expressions as reference
from harken.schema.derived import derivation
from harken.schema.paths import Path
from harken.schema.values import KINDS, Kind, Value, read_date, read_timestamp
from properties.scalars import SCALARS, near, one_in, pattern, regular, scalar, small_number

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
RawEvent = dict[str, Any]
Form = dict[str, Any] | list[Any] | tuple[Value, ...]

# The plain subset: two columns of each type, with names that need quoting in one dialect or another.
COLUMNS = {
    **{"n": "integer", "select": "integer", "x": "float", "y.z": "float", "s": "string", "a `b` \"c\" 'd'": "string"},
    **{"p": "boolean", "is ok": "boolean", "at": "timestamp", "Größe": "timestamp", "day": "date", "date": "date"},
}
PLAIN_ESCAPES = ("\\", "\\", "!", "#", "a", "%", "_", "'")
ESCAPES = (*PLAIN_ESCAPES, "é", "😀", "\0")
KEYS = ("a", "b", "c", "items", "a.b", "date", "contains", "not", "Größe", "`")


class Vocabulary:
    """The attributes of some events, each with the values that it holds there."""

    escapes = ESCAPES
    has_sets = True
    has_functions = True
    is_typed = False
    """Whether values of unlike kinds may not be compared."""
    has_regular = True
    numbers: tuple[int | float, ...] = (2, 3, -1, 0.5, 0, 7, 1e-3, 2**62)
    """What arithmetic is done with."""
    digits = range(-2, 4)

    def __init__(self, values: Mapping[Path, Sequence[Value]]) -> None:
        self.values = values
        # The more values an attribute has, the more often it is asked about.
        self.paths = [path for path, held in values.items() for _ in range(1 + len(held) ** 2 // 50)]
        self.all_values = [value for held in values.values() for value in held]

    def path(self, rng: Random) -> Path:
        if one_in(rng, 20):
            return tuple([rng.choice(KEYS) for _ in range(1 + rng.randrange(3))])
        return rng.choice(self.paths)

    def partner(self, rng: Random, path: Path) -> Path:
        """An attribute that is worth comparing with this one: of the same type if a few draws find such."""
        kinds = set(map(type, self.values.get(path, ())))
        drawn = [self.path(rng) for _ in range(4)]
        return next((other for other in drawn if kinds & set(map(type, self.values.get(other, ())))), drawn[0])

    def constants(self, rng: Random, path: Path, count: int) -> list[Value]:
        """Values that are worth comparing with this attribute."""
        held = self.values.get(path, self.all_values)
        drawn = [rng.choice(self.all_values if one_in(rng, 20) else held) for _ in range(count)]
        return [near(rng, self.as_time(rng, value)) for value in drawn]

    def as_time(self, rng: Random, value: Value) -> Value:
        """A string that is a timestamp or a date as such, as often as not; other values as they are."""
        if not isinstance(value, str) or one_in(rng, 2):
            return value
        found = read_timestamp(value) or read_date(value)
        return value if found is None else found


class PlainVocabulary(Vocabulary):
    """The columns of a table, where what is compared is of the type of the column."""

    escapes = PLAIN_ESCAPES
    has_sets = False
    has_functions = False

    def path(self, rng: Random) -> Path:
        return rng.choice(self.paths)

    def partner(self, rng: Random, path: Path) -> Path:
        return rng.choice([other for other in self.paths if COLUMNS[other[0]] == COLUMNS[path[0]]])

    def constants(self, rng: Random, path: Path, count: int) -> list[Value]:
        drawn = [near(rng, rng.choice(self.values[path])) for _ in range(count)]
        if COLUMNS[path[0]] in ("integer", "float") and one_in(rng, 6):
            return [small_number(rng, value) for value in drawn]  # type: ignore[arg-type]
        return drawn


class TameVocabulary(PlainVocabulary):
    """The columns again, with functions and arithmetic, as long as SQL does not differ by design."""

    has_functions = True
    is_typed = True
    numbers = Vocabulary.numbers[:-1]

    def __init__(self, values: Mapping[Path, Sequence[Value]], dialect: str) -> None:
        super().__init__(values)
        self.has_regular = dialect == "duckdb"
        self.digits = range(1) if dialect == "duckdb" else range(4)


class Expressions:
    """Makes expressions from a vocabulary."""

    def __init__(self, rng: Random, vocabulary: Vocabulary) -> None:
        self.rng = rng
        self.vocabulary = vocabulary

    def expression(self, depth: int = 3) -> Expression:
        """A predicate, or a nest of NOT, AND and OR of up to so many levels."""
        roll = self.rng.randrange(10) if depth else 0
        if roll < 4:
            return self.predicate()
        if roll < 6:
            inner = self.expression(depth - 1)
            return IsTruth(inner, one_in(self.rng, 2)) if self.vocabulary.has_functions and roll == 5 else Not(inner)
        items = [self.expression(depth - 1) for _ in range(self.rng.choice((2, 2, 3)))]
        return conjunction(items) if roll < 8 else disjunction(items)

    def predicate(self) -> Predicate:
        rng, path = self.rng, self.vocabulary.path(self.rng)
        if self.vocabulary.has_functions and one_in(rng, 4):
            return self.derived(path)
        roll = rng.randrange(20)
        if roll < 7:
            return self.comparison(path)
        if roll < 9:
            return self.between(path)
        if roll < 12:
            first, *values = self.vocabulary.constants(rng, path, rng.choice((2, 3, 4, 6, 13)))
            return In(Constant(first) if one_in(rng, 20) else Attribute(path), tuple(map(Constant, values)))
        if roll < 14:
            return Comparison(Attribute(path), rng.choice(OPERATORS), Attribute(self.vocabulary.partner(rng, path)))
        if roll == 14:
            return IsNull(Attribute(path))
        if roll < 17 and self.vocabulary.has_sets:
            return Contains(Attribute(path), *map(Constant, self.vocabulary.constants(rng, path, 1)))
        return self.by_type()

    def comparison(self, path: Path) -> Predicate:
        constant, other = map(Constant, self.vocabulary.constants(self.rng, path, 2))
        operator = self.rng.choice(OPERATORS)
        operand = other if one_in(self.rng, 20) else Attribute(path)
        if one_in(self.rng, 3):
            return Comparison(constant, operator, operand)
        return Comparison(operand, operator, constant)

    def between(self, path: Path) -> Predicate:
        """As a rule with the bounds in order; now and then with an attribute as a bound or a constant between."""
        low, high = self.vocabulary.constants(self.rng, path, 2)
        if KINDS[type(low)] is KINDS[type(high)] and not one_in(self.rng, 6):
            low, high = sorted((low, high))  # type: ignore[type-var]
        operands: list[Operand] = [Attribute(path), Constant(low), Constant(high)]
        if one_in(self.rng, 5):
            operands[1 + self.rng.randrange(2)] = Attribute(self.vocabulary.partner(self.rng, path))
        if one_in(self.rng, 8):
            operands[:2] = operands[1::-1]
        return Between(*operands)

    def derived(self, path: Path) -> Predicate:
        """A predicate about what a function or arithmetic makes of an attribute, asked near to what it gives."""
        operand, value = self.function(path)
        roll = self.rng.randrange(8) if not self.vocabulary.is_typed else 2 + self.rng.randrange(6)
        if roll == 0:
            other, _ = self.function(self.vocabulary.partner(self.rng, path))
            if kind_of(operand) is kind_of(other):
                return Comparison(operand, self.rng.choice(OPERATORS), other)
        if roll == 1:
            return Comparison(operand, self.rng.choice(OPERATORS), Attribute(self.vocabulary.partner(self.rng, path)))
        if isinstance(value, bool) and isinstance(operand, Function):
            return Holds(operand)
        if isinstance(value, str) and roll == 2 and self.vocabulary.has_regular:
            return RLike(operand, Constant(regular(self.rng, value)))
        if isinstance(value, str) and roll < 5:
            text, escape = pattern(self.rng, value, self.vocabulary.escapes)
            return Like(operand, Constant(text), escape)
        constants = [Constant(near(self.rng, value)) for _ in range(2)]
        if roll == 5:
            return In(operand, tuple(constants))
        if roll == 6:
            return Between(operand, *constants)
        return Comparison(operand, self.rng.choice(OPERATORS), constants[0])

    def function(self, path: Path, depth: int = 1, sample: Value | None = None) -> tuple[Operand, Value]:
        """Something that is worked out from an attribute, and what it gives for one of its values."""
        rng = self.rng
        if sample is None:
            (sample,) = self.vocabulary.constants(rng, path, 1)
        operand: Operand = Attribute(path)
        value = sample
        if depth and one_in(rng, 2):
            operand, value = self.function(path, depth - 1, sample)
        made = self.of_type(operand, value)
        found = reference.value_of(replaced(made, path, sample), {"": sample}, {})
        return made, value if found is None else found

    def of_type(self, operand: Operand, value: Value) -> Operand:
        """A function of an operand that has such values."""
        rng = self.rng
        if one_in(rng, 5):
            is_free = not self.vocabulary.is_typed and one_in(rng, 2)
            others = [Attribute(self.vocabulary.path(rng))] if is_free else []
            several = [operand, *others, Constant(near(rng, value))]
            return Function("coalesce", tuple(several))
        if self.vocabulary.has_sets and one_in(rng, 12) and isinstance(operand, Attribute):
            return Function("size", (operand,))
        if isinstance(value, str):
            name = rng.choice(("lower", "upper", "trim", "length", "substring", "lower"))
            if name == "substring":
                places = [Constant(rng.randrange(-3, 4)), *([Constant(rng.randrange(3))] if one_in(rng, 2) else [])]
                return Function(name, (operand, *places))
            return Function(name, (operand,))
        if isinstance(value, bool):
            return Function("coalesce", (operand, Constant(one_in(rng, 2))))
        if isinstance(value, int | float):
            return self.of_number(operand, value)
        if isinstance(value, datetime):
            return Function(rng.choice(("year", "month", "day", "hour", "dayofweek")), (operand,))
        return Function(rng.choice(("year", "month", "day", "dayofweek")), (operand,))

    def of_number(self, operand: Operand, value: int | float) -> Operand:
        rng = self.rng
        if one_in(rng, 2):
            name = rng.choice(("abs", "round", "floor", "ceil", "round"))
            digits = [Constant(rng.choice(self.vocabulary.digits))] if name == "round" and one_in(rng, 2) else []
            return Function(name, (operand, *digits))
        is_free = not self.vocabulary.is_typed and one_in(rng, 4)
        other = Attribute(self.vocabulary.path(rng)) if is_free else Constant(rng.choice(self.vocabulary.numbers))
        sides = [operand, other] if one_in(rng, 2) else [other, operand]
        return Arithmetic(sides[0], rng.choice("+-*/%"), sides[1])

    def by_type(self) -> Predicate:
        """What only some types have: LIKE is for strings, and a boolean can stand alone."""
        for path in [self.vocabulary.path(self.rng) for _ in range(4)]:
            value = self.vocabulary.constants(self.rng, path, 1)[0]
            if isinstance(value, str):
                text, escape = pattern(self.rng, value, self.vocabulary.escapes)
                return Like(Constant(value) if one_in(self.rng, 20) else Attribute(path), Constant(text), escape)
            if isinstance(value, bool):
                return Holds(Constant(value) if one_in(self.rng, 10) else Attribute(path))
        return self.comparison(path)


def kind_of(operand: Operand) -> Kind | None:
    """The kind of an operand's values, where the operand alone tells it."""
    constants = [leaf for leaf in leaves(operand) if isinstance(leaf, Constant)]
    made = term(operand, {id(each): place for place, each in enumerate(constants)})
    return derivation(made.path_of([each.value for each in constants])).kind


def replaced(operand: Operand, path: Path, value: Value) -> Operand:
    """The operand with a value in place of an attribute; others are missing."""
    match operand:
        case Attribute():
            return Constant(value) if operand.path == path else Attribute(("missing",))
        case Arithmetic(left=left, operator=operator, right=right):
            return Arithmetic(replaced(left, path, value), operator, replaced(right, path, value))
        case Function(name="size"):
            return Function("size", (Attribute(("",)),))
        case Function(name=name, arguments=arguments):
            return Function(name, tuple(replaced(each, path, value) for each in arguments))
        case _:
            return operand


class OperatorExpressions(Expressions):
    """Expressions of all that the language can say: operator predicates, variables, arithmetic, constants compared."""

    def predicate(self) -> Predicate:
        roll = self.rng.randrange(8)
        if roll < 5:
            return super().predicate()
        if roll == 5:
            name = self.rng.choice([key for key in KEYS if key != "contains"])  # which is a function
            return Call(name, tuple([self.argument() for _ in range(self.rng.randrange(4))]))
        if roll == 6:
            return Comparison(self.arithmetic(2), self.rng.choice(OPERATORS), self.arithmetic(2))
        return self.with_any_operand()

    def with_any_operand(self) -> Predicate:
        """A predicate about a variable, a constant or arithmetic."""
        constants = [
            Constant(value) for value in self.vocabulary.constants(self.rng, self.vocabulary.path(self.rng), 3)
        ]
        operand = self.rng.choice((Variable("x"), constants[0], self.arithmetic(3)))
        return self.rng.choice(
            (
                In(operand, tuple(constants)),
                Between(operand, self.arithmetic(1), constants[1]),
                Like(operand, Constant("a%_!_"), "!"),
                Comparison(operand, "=", constants[2]),
            )
        )

    def argument(self) -> Attribute | Constant | Variable:
        path = self.vocabulary.path(self.rng)
        constant = Constant(self.vocabulary.constants(self.rng, path, 1)[0])
        return self.rng.choice((Attribute(path), constant, Variable(self.rng.choice(("x", "größe", "_1")))))

    def arithmetic(self, depth: int) -> Operand:
        """Arithmetic with a variable in it, on one side or the other."""
        if not depth or one_in(self.rng, 3):
            return Variable(self.rng.choice(("x", "y", "not")))
        number = Constant(near(self.rng, self.rng.choice((1, -1, 0.5, -0.0, -(2**63), 1e300, -2.5e-7))))
        sides = [self.arithmetic(depth - 1), self.rng.choice((number, self.arithmetic(depth - 1)))]
        if one_in(self.rng, 2):
            sides.reverse()
        return Arithmetic(sides[0], self.rng.choice("+-*/"), sides[1])


# Events


def plain_events(rng: Random, count: int) -> list[RawEvent]:
    """Rows of the columns, a tenth of the cells null. There are few different values, so that they often meet."""
    pools = {kind: [draw(rng) for _ in range(5)] for kind, draw in SCALARS.items()}
    return [
        {name: None if one_in(rng, 10) else rng.choice(pools[kind]) for name, kind in COLUMNS.items()}
        for _ in range(count)
    ]


def tame_events(rng: Random, count: int, letters: str) -> list[RawEvent]:
    """The same rows with numbers and strings of these letters that functions of SQL treat as ours do."""
    draws: dict[str, Callable[[], Value]] = {
        "integer": lambda: rng.randrange(-40, 41),
        "float": lambda: rng.randrange(-40, 41) / 4,
        "string": lambda: "".join([rng.choice(letters) for _ in range(rng.randrange(5))]),
    }
    pools = {kind: [draws[kind]() if kind in draws else SCALARS[kind](rng) for _ in range(6)] for kind in SCALARS}
    return [
        {name: None if one_in(rng, 10) else rng.choice(pools[kind]) for name, kind in COLUMNS.items()}
        for _ in range(count)
    ]


def plain_vocabulary(rng: Random, events: Iterable[RawEvent]) -> PlainVocabulary:
    """The columns, each with what it holds in these events."""
    held = {name: [event[name] for event in events if event[name] is not None] for name in COLUMNS}
    return PlainVocabulary({(name,): held[name] or [SCALARS[kind](rng)] for name, kind in COLUMNS.items()})


def nested_events(rng: Random, count: int, depth: int = 3) -> list[RawEvent]:
    """Events with objects, arrays of anything, nulls and NaNs. Most follow one form, so that questions fit them."""
    form = _object_form(rng, depth)
    return [{key: _grown(rng, inner) for key, inner in form.items() if not one_in(rng, 12)} for _ in range(count)]


def _object_form(rng: Random, depth: int) -> dict[str, Form]:
    return {key: _form(rng, depth - 1) for key in [rng.choice(KEYS) for _ in range(4)]}


def _form(rng: Random, depth: int) -> Form:
    """An object is a dict, an array a list of its element's form, and a value the tuple that it is drawn from."""
    roll = rng.randrange(10) if depth > 0 else 0
    if roll < 5:
        draw = SCALARS[rng.choice(tuple(SCALARS))]
        return (*[draw(rng) for _ in range(4)], scalar(rng))
    return [_form(rng, depth - 1)] if roll < 8 else _object_form(rng, depth)


def _grown(rng: Random, form: Form) -> Any:
    """Something of this form, or now and then of none."""
    if one_in(rng, 16):
        return rng.choice((None, nan, [], [None, nan], {}, {"a": 1}, [[], [1]], scalar(rng)))
    if isinstance(form, dict):
        return {key: _grown(rng, inner) for key, inner in form.items() if not one_in(rng, 12)}
    if isinstance(form, list):
        return [_grown(rng, form[0]) for _ in range(rng.choice((1, 2, 2, 3, 3, 0)))]
    return rng.choice(form)


def vocabulary_of(events: Iterable[RawEvent]) -> Vocabulary:
    """All the paths of the events, each with the values that it leads to."""
    found: dict[Path, list[Value]] = {}
    for event in events:
        _collect(event, (), found)
    return Vocabulary(found or {("a",): [1]})


def _collect(node: Any, path: Path, found: dict[Path, list[Value]]) -> None:
    if isinstance(node, dict):
        for key, inner in node.items():
            _collect(inner, (*path, key), found)
    elif isinstance(node, list):
        for element in node:
            _collect(element, path, found)
    elif node is not None and node == node:
        found.setdefault(path, []).append(node)
