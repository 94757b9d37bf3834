"""Tokens → AST, by recursive descent: the whole language, and every error.

`and`, `or`, `div`, `mod` and `*` are names where a step may stand, as XPath 1.0 has it. A level of nesting takes at
most five calls, so that the default `max_nesting` stays below Python's own limit.
"""

from __future__ import annotations

from math import isinf

from harken.language.xpath.ast import (
    And,
    AxisStep,
    DocumentRoot,
    Expression,
    FilteredNodes,
    FunctionCall,
    Location,
    NodeKind,
    NodeUnion,
    Or,
    Value,
)
from harken.language.xpath.core_functions import CORE_FUNCTIONS, ValueKind, kind_of
from harken.language.xpath.expression_building import (
    ANYWHERE,
    PARENT,
    SELF,
    calculation,
    called,
    comparison,
    minus,
    stepped,
    truth_of,
)
from harken.language.xpath.syntax_errors import (
    rejected,
    rejected_arguments,
    rejected_axis,
    rejected_call,
    rejected_node_test,
)
from harken.language.xpath.token_reader import TokenReader
from harken.language.xpath.tokens import END, QUOTES, is_name, is_number

AXES = frozenset(
    "ancestor ancestor-or-self attribute child descendant descendant-or-self following following-sibling parent"
    " preceding preceding-sibling self".split()
)
_OR, _AND, _SUM = 1, 2, 5
_LEVELS = dict.fromkeys(("or", "OR"), _OR) | dict.fromkeys(("and", "AND"), _AND) | dict.fromkeys(("=", "!="), 3)
_LEVELS |= dict.fromkeys(("<", "<=", ">", ">="), 4) | dict.fromkeys("+-", _SUM) | dict.fromkeys(("*", "div", "mod"), 6)
BEFORE_TEST = frozenset(("(", "::"))
"""Tokens behind the name of a function, a node test or an axis."""
_AFTER_ROOT = frozenset((END, ")", "]", ",", "|", "+", "-", "=", "!=", "<", "<=", ">", ">="))
"""Tokens behind a `/` that is the root node."""
_NODE_TESTS = frozenset(("text", "node", "comment", "processing-instruction"))
_OPERAND = "a path, a value, a function or a parenthesis"
_STEP = "a step: a name, *, @name, text(), . or .."


class Parser(TokenReader):
    """Parses one text."""

    __slots__ = ()

    def parse(self) -> Expression:
        if self.words[0] == "declare" and self.words[1] in ("namespace", "default"):
            self._prologue()
        value = self._value(0)
        if self.words[self.place] != END:
            raise self._no_operator("and, or, a comparison or the end")
        return truth_of(value)

    # Each of these methods reads on from `place`. `depth` is the number of steps from the root to the context node.

    def _value(self, depth: int, least: int = _OR) -> Value:
        """Operands joined by operators that bind at least as tightly as the level `least`."""
        words = self.words
        value = self._operand(depth)
        last_level = 0
        while True:
            sign = words[self.place]
            level = _LEVELS.get(sign, 0)
            if not level or level < least:
                return value
            if level == last_level:
                self._link()
            last_level = level
            self.place += 1
            if level <= _AND:
                value = self._junction(value, level, depth)
                continue
            right = self._value(depth, level + 1)
            value = calculation(value, sign, right) if level >= _SUM else comparison(value, sign, right)

    def _junction(self, first: Value, level: int, depth: int) -> Expression:
        """All operands of one `and` or `or`, behind the first of its signs."""
        kind = Or if level == _OR else And
        items: list[Expression] = []
        value, has_all = first, False
        while True:
            condition = truth_of(value)
            if isinstance(condition, kind):
                items.extend(condition.items)
            else:
                items.append(condition)
            if has_all:
                return kind(tuple(items))
            value = self._value(depth, level + 1)
            has_all = _LEVELS.get(self.words[self.place]) != level
            self.place += not has_all

    def _operand(self, depth: int) -> Value:
        """A union of paths, or one other value, with the signs before it."""
        words = self.words
        start = self.place
        while words[self.place] == "-":
            self.place += 1
        signs = self.place - start
        value = self._path(depth)
        if words[self.place] == "|":
            parts = [self._nodes(value, "|")]
            while words[self.place] == "|":
                self.place += 1
                parts.append(self._nodes(self._path(depth), "|"))
            value = NodeUnion(tuple(parts))
        for _ in range(2 - signs % 2 if signs else 0):
            value = minus(value)
        return value

    def _path(self, depth: int) -> Value:
        """A location, or another value with the predicates and steps behind it."""
        words = self.words
        start = self.place
        word, following = words[start], words[start + 1]
        if word[:1] in QUOTES or is_number(word):
            value: Value = self._literal(word)
        elif word == "(":
            self._enter()
            value = self._value(depth)
            self._leave(")")
        elif following == "(" and is_name(word) and word not in _NODE_TESTS:
            value = self._call(depth)
        else:
            return self._location(depth)
        if words[self.place] == "[":
            self._nodes(value, "[")
            value = FilteredNodes(value, self._predicates(depth + 1))
        if words[self.place] in ("/", "//"):
            self._nodes(value, words[self.place])
            value = self._steps(value, depth)
        return value

    def _literal(self, word: str) -> str | float:
        self.place += 1
        self._count_value()
        if word[:1] in QUOTES:
            return word[1:-1]
        value = float(word)
        if isinf(value):
            raise rejected(self.text, self.starts[self.place - 1], "the number is too large")
        return value

    def _call(self, depth: int) -> Value:
        start = self.place
        name = self.words[start]
        at = self.starts[start]
        signature = CORE_FUNCTIONS.get(name)
        if signature is None:
            raise rejected_call(self.text, at, name)
        self.place += 1
        if name == "not" and self.words[self.place + 1] == ")":
            raise rejected(self.text, self.starts[self.place + 1], "not() is empty", "write a condition: not(a)")
        self._enter()
        arguments: list[Value] = []
        while self.words[self.place] != ")" or arguments:
            arguments.append(self._value(depth))
            if self.words[self.place] != ",":
                break
            self.place += 1
        self._leave(")")
        if not signature.takes(len(arguments)):
            raise rejected_arguments(self.text, at, name, len(arguments))
        if signature.needs_nodes and any(kind_of(each) is not ValueKind.NODES for each in arguments):
            raise rejected(self.text, at, f"{name}() takes nodes", f"write a path: {name}(a/b)")
        return called(name, tuple(arguments))

    # Paths

    def _location(self, depth: int) -> Value:
        word = self.words[self.place]
        start: Value = Location((), self.starts[self.place])
        if word in ("/", "//"):
            start = DocumentRoot() if depth else start
            if word == "/" and self.words[self.place + 1] in _AFTER_ROOT:
                self.place += 1
                return start
            return self._steps(start, depth)
        return self._steps(start, depth, has_slash=False)

    def _steps(self, value: Value, depth: int, *, has_slash: bool = True) -> Value:
        """Steps from nodes. With `has_slash`, a slash stands before the first one."""
        words = self.words
        steps = 0
        while True:
            if has_slash:
                if words[self.place] == "//":
                    value = stepped(value, ANYWHERE)
                self.place += 1
            has_slash = True
            step = self._step()
            if step not in (SELF, ANYWHERE):
                if depth + steps >= self.most_steps:
                    raise self._too_far()
                steps += 1
            if words[self.place] == "[":
                predicates = self._predicates(depth + steps or 1)
                step = AxisStep(step.axis, step.kind, step.name, predicates)
            value = stepped(value, step)
            if words[self.place] not in ("/", "//"):
                return value

    def _predicates(self, depth: int) -> tuple[Expression, ...]:
        predicates = []
        while self.words[self.place] == "[":
            self._enter()
            value = self._value(depth)
            self._leave("]")
            if kind_of(value) is ValueKind.NUMBER:
                value = comparison(FunctionCall("position"), "=", value)
            predicates.append(truth_of(value))
        return tuple(predicates)

    def _step(self) -> AxisStep:
        """A step without its predicates."""
        words = self.words
        word, following = words[self.place], words[self.place + 1]
        if word in (".", ".."):
            self.place += 1
            if following == "[":
                message = f"`{word}` cannot have a predicate"
                hint = "put it on the step before: a[b], not a/.[b]"
                if word == "..":
                    hint = "write parent::node()[a]"
                raise rejected(self.text, self.starts[self.place], message, hint)
            return SELF if word == "." else PARENT
        axis = "child"
        if word == "@":
            axis = "attribute"
            self.place += 1
        elif following == "::":
            axis = word
            if axis not in AXES:
                raise rejected_axis(self.text, self.starts[self.place], axis)
            self.place += 2
        word, following = words[self.place], words[self.place + 1]
        if following == "::":
            raise self._no_operand(_STEP)
        if following == "(" and is_name(word):
            return self._node_test(axis)
        if word != "*" and not is_name(word):
            is_start = axis == "child" and self._is_start()
            expected = "a name of an attribute, or *" if axis == "attribute" else _OPERAND if is_start else _STEP
            raise self._no_operand(expected)
        kind = NodeKind.ATTRIBUTE if axis == "attribute" else NodeKind.ELEMENT
        name = None if word == "*" else self._expanded(word, is_element=kind is NodeKind.ELEMENT)
        self.place += 1
        return AxisStep(axis, kind, name)

    def _node_test(self, axis: str) -> AxisStep:
        name = self.words[self.place]
        if name not in ("text", "node"):
            raise rejected_node_test(self.text, self.starts[self.place], name)
        self.place += 2
        if self.words[self.place] != ")":
            raise self._no_operand(f"`)`: {name}() takes nothing")
        self.place += 1
        kind = NodeKind.TEXT if name == "text" else NodeKind.ATTRIBUTE if axis == "attribute" else None
        return AxisStep(axis, kind, None)

    def _nodes(self, value: Value, sign: str) -> Value:
        """The value, which has to be nodes, because of the sign at `place`."""
        if kind_of(value) is not ValueKind.NODES:
            message = f"only nodes can stand beside `{sign}`" if sign == "|" else f"`{sign}` needs nodes before it"
            hint = "join conditions with or" if sign == "|" else "a predicate or a step follows a path: a[b]/c"
            raise rejected(self.text, self.starts[self.place], message, hint)
        return value
