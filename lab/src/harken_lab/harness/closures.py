"""The plain way to match: a compiled Python function a subscription, all of them called for every event.

A user without a library would write this, with care: a value is read once for all its tests, AND and OR stop early,
texts are lowered once an event, and patterns without inner wildcards become plain searches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from harken.errors import CapabilityError
from harken.language.ast import (
    And,
    Attribute,
    Between,
    Comparison,
    Constant,
    Expression,
    Function,
    Holds,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Or,
    RLike,
    leaves,
    predicates,
)
from harken.language.sql.parser import parse
from harken.schema.paths import Path

Test = Callable[..., bool]
_AT_ONCE = 200
"""Functions per call of `compile`."""
_PYTHON = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class ClosureLoop:
    """Subscriptions as functions of an event, and the loop over them."""

    def __init__(self, subscriptions: Iterable[tuple[Any, str]], arrays: Iterable[str] = ()) -> None:
        """`subscriptions` are pairs of an answer, such as an id, and a text; `arrays` names the list attributes."""
        self._writer = _Writer(frozenset(arrays))
        pairs = list(subscriptions)
        sources = [self._writer.function(parse(text)) for _, text in pairs]
        tests: list[Test] = []
        for start in range(0, len(sources), _AT_ONCE):
            code = "[" + ",\n".join(sources[start : start + _AT_ONCE]) + "]"
            tests += eval(compile(code, "<subscriptions>", "eval"), self._writer.names)
        self._tests = [(answer, test) for (answer, _), test in zip(pairs, tests, strict=True)]

    def __len__(self) -> int:
        return len(self._tests)

    def remove(self, answers: Iterable[Any]) -> None:
        """Remove the subscriptions that have these answers."""
        removed = set(answers)
        self._tests = [each for each in self._tests if each[0] not in removed]

    def match(self, event: Mapping[str, Any]) -> list[Any]:
        """The answers of the subscriptions that match an event."""
        get, lowered = event.get, self._writer.lowered
        if not lowered:
            return [answer for answer, test in self._tests if test(get)]
        low = {name: None if (value := get(name)) is None else value.lower() for name in lowered}.get
        return [answer for answer, test in self._tests if test(get, low)]


def arrays_of(events: pa.Table) -> list[str]:
    """The names of the attributes that are lists."""
    return [field.name for field in events.schema if pa.types.is_list(field.type)]


class _Writer:
    """Writes Python source that is true exactly if an expression is true, or exactly if it is false."""

    def __init__(self, arrays: frozenset[str]) -> None:
        self.names: dict[str, Any] = {"nothing": {}}
        """The global names of the functions."""
        self.lowered: dict[str, None] = {}
        """The attributes that functions read in lower case."""
        self._arrays = arrays
        self._array: str | None = None
        """The array whose elements the source under way binds to `item`, one after the other."""
        self._patterns: dict[str, str] = {}

    def function(self, expression: Expression) -> str:
        return f"lambda get, low=None: {self._true(expression, True)}"

    def _true(self, node: Expression, wanted: bool) -> str:
        """Python that is true if the node has the wanted truth value. An unknown node is neither true nor false."""
        if isinstance(node, Not):
            return self._true(node.item, not wanted)
        if isinstance(node, And | Or):
            return self._joined(node.items, wanted, isinstance(node, And) is wanted)
        if self._array is None and (arrays := self._arrays_in(node)):
            return self._some([node], wanted, arrays)
        return self._group([node], wanted, True)

    def _joined(self, items: Sequence[Expression], wanted: bool, is_and: bool) -> str:
        parts: list[str] = []
        inside: list[Expression] = []
        if is_and and self._array is None:  # one element has to meet all conditions on its array
            inside = [item for item in items if self._arrays_in(item)]
            items = [item for item in items if not self._arrays_in(item)]
        for operand, group in groupby(items, _tested):
            nodes = list(group)
            if operand is None or (self._array is None and self._arrays_in(nodes[0])):
                parts += (self._true(each, wanted) for each in nodes)
            else:
                parts.append(self._group(nodes, wanted, is_and))
        if inside:
            parts.append(self._some(inside, wanted, {name for each in inside for name in self._arrays_in(each)}))
        return "(" + (" and " if is_and else " or ").join(parts) + ")"

    def _some(self, items: Sequence[Expression], wanted: bool, arrays: set[str]) -> str:
        """Python that is true if one element of the array gives all items the wanted truth value."""
        if len(arrays) > 1:
            raise CapabilityError("the loop of closures binds one array a subscription")
        (self._array,) = arrays
        try:
            test = self._joined(items, wanted, True)
        finally:
            self._array = None
        return f"any({test} for item in get({arrays.pop()!r}) or ())"

    def _arrays_in(self, node: Expression) -> set[str]:
        paths = (leaf.path[0] for each, _ in predicates(node) for leaf in leaves(each) if isinstance(leaf, Attribute))
        return {str(name) for name in paths if name in self._arrays}

    def _group(self, group: list[Expression], wanted: bool, is_and: bool) -> str:
        """Python for predicates on one value, which is read once."""
        node = group[0]
        if isinstance(node, IsNull):
            return f"({self._value(node.attribute)} {'is' if wanted else 'is not'} None)"
        if isinstance(node, Holds) and isinstance(node.operand, Attribute):
            return f"({self._value(node.operand)} is {wanted})"
        operand = _tested(node)
        if operand is None:
            raise CapabilityError(f"the loop of closures cannot say {type(node).__name__}")
        value = self._value(operand)
        if len(group) == 1 and wanted and isinstance(node, Comparison) and node.operator == "=":
            return f"{value} == {_constant(node).value!r}"
        tests = (" and " if is_and else " or ").join(self._test(each, wanted) for each in group)
        return f"((v := {value}) is not None and {tests if len(group) == 1 or is_and else f'({tests})'})"

    def _value(self, operand: Operand) -> str:
        if isinstance(operand, Function) and operand.name == "lower" and isinstance(operand.arguments[0], Attribute):
            path = operand.arguments[0].path
            if len(path) == 1:
                self.lowered[str(path[0])] = None
                return f"low({path[0]!r})"
        if not isinstance(operand, Attribute):
            raise CapabilityError(f"the loop of closures cannot compute {type(operand).__name__}")
        return self._at(operand.path)

    def _at(self, path: Path) -> str:
        begin, *rest = path
        value = "item" if begin == self._array and rest else f"get({begin!r})"
        for place, key in enumerate(rest):
            value = f"{value}.get({key!r})" if value == "item" and not place else f"({value} or nothing).get({key!r})"
        return value

    def _test(self, node: Expression, wanted: bool) -> str:
        """Python that tests `v`, the value of the node's operand."""
        if isinstance(node, Comparison):
            operator = node.operator if isinstance(node.right, Constant) else _MIRRORED[node.operator]
            return f"v {_PYTHON[operator if wanted else _OPPOSITE[operator]]} {_constant(node).value!r}"
        if isinstance(node, Between):
            test = f"{_literal(node.low)} <= v <= {_literal(node.high)}"
        elif isinstance(node, In):
            test = f"v in {{{', '.join(repr(each.value) for each in node.values)}}}"
        elif isinstance(node, Like):
            test = self._like(node)
        elif isinstance(node, RLike):
            test = f"{self._pattern(str(node.pattern.value))}(v) is not None"
        else:
            raise CapabilityError(f"the loop of closures cannot say {type(node).__name__}")
        return test if wanted else f"not ({test})"

    def _like(self, node: Like) -> str:
        pieces = node.pieces()
        begin, end = (len(pieces) > 0 and pieces[place] is None for place in (0, -1))
        inner = pieces[1 if begin else 0 : len(pieces) - (1 if end else 0)]
        if None in inner or "" in inner:
            expression = "".join(".*" if each is None else "." if not each else re.escape(each) for each in pieces)
            return f"{self._pattern(f'(?s:{expression})', 'fullmatch')}(v) is not None"
        text = "".join(each for each in inner if each)
        if begin and end:
            return f"{text!r} in v"
        if begin or end:
            return f"v.{'endswith' if begin else 'startswith'}({text!r})"
        return f"v == {text!r}"

    def _pattern(self, expression: str, method: str = "search") -> str:
        """The global name of a method of a compiled pattern."""
        name = self._patterns.setdefault(f"{method} {expression}", f"p{len(self._patterns)}")
        if name not in self.names:
            self.names[name] = getattr(re.compile(expression), method)
        return name


def _tested(node: Expression) -> Operand | None:
    """The operand that a predicate compares with constants; None for other nodes."""
    if isinstance(node, Comparison):
        if isinstance(node.right, Constant) is isinstance(node.left, Constant):
            return None
        return node.left if isinstance(node.right, Constant) else node.right
    return node.operand if isinstance(node, Between | In | Like | RLike) else None


def _constant(node: Comparison) -> Constant:
    return node.right if isinstance(node.right, Constant) else node.left  # type: ignore[return-value]


def _literal(operand: Operand) -> str:
    if not isinstance(operand, Constant):
        raise CapabilityError("the loop of closures compares with constants only")
    return repr(operand.value)
