"""Tokens → AST, by recursive descent.

`and`, `or`, `not` and `*` are names where a step may stand, as XPath 1.0 has it. A level of
nesting takes at most five calls, so that the default `max_nesting` stays below Python's own limit.
"""

from __future__ import annotations

from math import isinf

from harken.errors import LimitError
from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, NodeKind, Not, Or, Step
from harken.language.xpath.syntax_errors import (
    ARITHMETIC,
    located,
    no_operand,
    no_operator,
    rejected,
    rejected_axis,
    rejected_call,
    rejected_constant,
    rejected_self,
)
from harken.language.xpath.tokens import END, QUOTES, Tokens, is_name, is_number
from harken.limits import Limits

MOST_STEPS = 1_000
"""Most steps from the root to a node, whatever `max_xpath_steps` is: the index keeps a list of nodes for each."""
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_AND = frozenset(("and", "AND"))
_OR = frozenset(("or", "OR"))
BEFORE_TEST = frozenset(("(", "::"))
"""Tokens behind the name of a function, a node test or an axis."""
_AFTER_ROOT = frozenset((END, ")", "]", *_MIRRORED))
"""Tokens behind a `/` that is the root node."""
_CHILD_AXES = {"child": False, "descendant": True}
_OPERAND = "a path, a value, not(…) or a parenthesis"
_STEP = "a step: a name, *, @name, text() or ."
MOST_CACHED = 65_536
_SHORT = 64
"""The longest name whose steps are cached, in characters."""

# Cached steps without a namespace and without predicates, by name.
_ANY_CHILD = Step(False, NodeKind.ELEMENT, None)
_ANY_DESCENDANT = Step(True, NodeKind.ELEMENT, None)
_children: dict[str, Step] = {"*": _ANY_CHILD}
_descendants: dict[str, Step] = {"*": _ANY_DESCENDANT}
_attributes: dict[str, Step] = {"*": Step(False, NodeKind.ATTRIBUTE, None)}
_descendant_attributes: dict[str, Step] = {"*": Step(True, NodeKind.ATTRIBUTE, None)}
_TEXTS = (Step(False, NodeKind.TEXT, None), Step(True, NodeKind.TEXT, None))

_Operand = Expression | Location | str | float


class Parser:
    """Parses one text."""

    __slots__ = (
        "children",
        "descendants",
        "limits",
        "most_steps",
        "nesting",
        "place",
        "prefixes",
        "starts",
        "text",
        "values",
        "words",
    )

    def __init__(self, text: str, limits: Limits, tokens: Tokens) -> None:
        self.text = text
        self.limits = limits
        self.most_steps = min(limits.max_xpath_steps, MOST_STEPS)
        self.words, self.starts = tokens
        self.place = 0
        """The index of the next token."""
        self.nesting = 0
        self.values = 0
        self.children = _children
        self.descendants = _descendants
        self.prefixes: dict[str, str] | None = None

    def parse(self) -> Expression:
        self._declarations()
        start = self.place
        expression = self._condition(self._expression(0), start, is_predicate=False)
        if self.words[self.place] != END:
            raise self._no_operator("and, or, a comparison or the end")
        return expression

    def path(self) -> tuple[Step, ...]:
        """The steps of a text that is a path. Raises ParseError or LimitError."""
        self._declarations()
        location = self.location(0)
        if self.words[self.place] != END:
            raise self._no_operator("the end")
        return location.steps

    def _declarations(self) -> None:
        if self.words[0] == "declare" and self.words[1] in ("namespace", "default"):
            self.prologue()

    def too_deep(self) -> LimitError:
        message = f"the expression is nested more than {min(self.nesting, self.limits.max_nesting)} deep"
        return LimitError(message, limit="max_nesting").at(*located(self.text, self.starts[self.place]))

    # Each of these methods reads on from `place`. `depth` is the number of steps from the root to the context node.

    def _expression(self, depth: int) -> _Operand:
        """Conditions joined by `and` and `or`; an operand alone, if nothing follows it, may be a path or a constant."""
        words = self.words
        start = self.place
        operand = self._comparison(depth)
        word = words[self.place]
        if word not in _AND and word not in _OR:
            return operand
        either: list[Expression] = []
        both: list[Expression] = []
        while True:
            operand = self._condition(operand, start, is_predicate=False)
            if type(operand) is And:
                both.extend(operand.items)
            else:
                both.append(operand)
            word = words[self.place]
            if word not in _AND:
                _add(either, both[0] if len(both) == 1 else And(tuple(both)))
                if word not in _OR:
                    return either[0] if len(either) == 1 else Or(tuple(either))
                both = []
            self.place += 1
            start = self.place
            operand = self._comparison(depth)

    def _comparison(self, depth: int) -> _Operand:
        """An operand, or a path compared with a constant."""
        words = self.words
        start = self.place
        left = self._operand(depth)
        sign = words[self.place]
        if sign not in _MIRRORED:
            return left
        self.place += 1
        right = self._operand(depth)
        if words[self.place] in _MIRRORED:
            message = "a comparison cannot be compared"
            raise rejected(self.text, self.starts[self.place], message, "join comparisons with and: a > 1 and a < 5")
        if type(left) is Location and (type(right) is str or type(right) is float):
            return Comparison(left, sign, right)
        if type(right) is Location and (type(left) is str or type(left) is float):
            return Comparison(right, _MIRRORED[sign], left)
        raise self._no_comparison(left, right, start)

    def _operand(self, depth: int) -> _Operand:
        words = self.words
        place = self.place
        word = words[place]
        first = word[:1]
        if first in QUOTES:
            self.place = place + 1
            self._count_value()
            return word[1:-1]
        if word == "(":
            return self._group(depth)
        if word == "not" and words[place + 1] == "(":
            return self._negation(depth)
        if first == "-" or is_number(word):
            return self._number()
        return self.location(depth)

    def _group(self, depth: int) -> _Operand:
        self._enter()
        operand = self._expression(depth)
        self._leave(")")
        return operand

    def _negation(self, depth: int) -> Expression:
        self.place += 1
        if self.words[self.place + 1] == ")":
            raise rejected(self.text, self.starts[self.place + 1], "not() is empty", "write a condition: not(a)")
        self._enter()
        start = self.place
        condition = self._condition(self._expression(depth), start, is_predicate=False)
        self._leave(")")
        return condition.item if type(condition) is Not else Not(condition)

    def _number(self) -> float:
        start = self.place
        while self.words[self.place] == "-":
            self.place += 1
        word = self.words[self.place]
        if not is_number(word):
            self.place = start
            raise self._no_operand(_OPERAND)
        value = float(word)
        if isinf(value):
            raise rejected(self.text, self.starts[self.place], "the number is too large")
        is_negative = (self.place - start) % 2 == 1
        self.place += 1
        self._count_value()
        return -value + 0.0 if is_negative else value  # no -0

    def location(self, depth: int) -> Location:
        words = self.words
        place = self.place
        at = self.starts[place]
        word = words[place]
        names = self.children
        if word == "/" or word == "//":  # noqa: PLR1714 -- a tuple of them is slower
            if depth:
                raise self._absolute(word)
            place += 1
            if word == "//":
                names = self.descendants
            elif words[place] in _AFTER_ROOT:
                self.place = place
                return Location((), at)
        steps: list[Step] = []
        while True:
            word = words[place]
            step = names.get(word)
            following = words[place + 1]
            if step is not None and following not in BEFORE_TEST:
                place += 1
            else:
                self.place = place
                step = self._rare_step(names is self.descendants)
                place = self.place
                following = words[place]
            if step is not None:
                if depth + len(steps) >= self.most_steps:
                    raise self._too_far(place)
                if following == "[":
                    self.place = place
                    step = self.with_predicates(step, depth + len(steps) + 1)
                    place = self.place
                    following = words[place]
                steps.append(step)
            if following == "/":
                names = self.children
            elif following == "//":
                names = self.descendants
            else:
                self.place = place
                return Location(tuple(steps), at)
            place += 1

    def with_predicates(self, step: Step, depth: int) -> Step:
        predicates = []
        while self.words[self.place] == "[":
            self._enter()
            start = self.place
            predicates.append(self._condition(self._expression(depth), start, is_predicate=True))
            self._leave("]")
        return Step(step.is_descendant, step.kind, step.name, tuple(predicates))

    def _rare_step(self, is_descendant: bool) -> Step | None:
        """A step that is not cached; None if it stays at the context node."""
        words = self.words
        word, following = words[self.place], words[self.place + 1]
        if word == "@":
            self.place += 1
            return self._attribute(is_descendant)
        if word == ".":
            self.place += 1
            self._check_self(is_descendant, self.place - 1)
            return None
        if following == "::":
            return self._axis(is_descendant)
        if following == "(" and is_name(word):
            return self._call(is_descendant)
        return self._element(is_descendant)

    def _element(self, is_descendant: bool) -> Step:
        word = self.words[self.place]
        names = self.descendants if is_descendant else self.children
        step = names.get(word)
        if step is None:
            if not is_name(word):
                raise self._no_operand(_OPERAND if self._is_start() else _STEP)
            step = Step(is_descendant, NodeKind.ELEMENT, self._expanded(word, is_element=True))
            if ":" not in word and len(names) < MOST_CACHED and len(word) <= _SHORT:
                names[word] = step
        self.place += 1
        return step

    def _attribute(self, is_descendant: bool) -> Step:
        """The step behind `@` or `attribute::`."""
        word = self.words[self.place]
        names = _descendant_attributes if is_descendant else _attributes
        step = names.get(word)
        if step is None:
            if not is_name(word):
                raise self._no_operand("a name of an attribute, or *")
            step = Step(is_descendant, NodeKind.ATTRIBUTE, self._expanded(word, is_element=False))
            if ":" not in word and len(names) < MOST_CACHED and len(word) <= _SHORT:
                names[word] = step
        self.place += 1
        if self.words[self.place] in BEFORE_TEST:
            raise self._no_operator("a name of an attribute, or *")
        return step

    def _check_self(self, is_descendant: bool, start: int) -> None:
        """Reject `.` or `self::node()`, which was read from the token `start` on, where it cannot stand."""
        if is_descendant:
            message = "`//.` is not supported"
            raise rejected(
                self.text, self.starts[start], message, "write //* for every element, //text() for every text"
            )
        if self.words[self.place] == "[":
            message = "`.` cannot have a predicate"
            raise rejected(self.text, self.starts[self.place], message, "put it on the step before: a[b], not a/.[b]")

    def _axis(self, is_descendant: bool) -> Step | None:
        words = self.words
        start = self.place
        axis = words[start]
        self.place += 2
        is_node = words[self.place : self.place + 3] == ["node", "(", ")"]
        if axis == "self" and is_node:
            self.place += 3
            self._check_self(is_descendant, start)
            return None
        if axis == "descendant-or-self" and is_node:
            self.place += 3
            if words[self.place] not in ("/", "//"):
                message = "descendant-or-self::node() needs a step behind it"
                raise rejected(self.text, self.starts[start], message, "write descendant-or-self::node()/a, or .//a")
            self.place += 1
            return self._rare_step(is_descendant=True)
        if axis == "attribute":
            return self._attribute(is_descendant)
        if axis in ("self", "descendant-or-self"):
            raise rejected_self(self.text, self.starts[start], axis)
        if axis not in _CHILD_AXES:
            raise rejected_axis(self.text, self.starts[start], axis)
        is_descendant = is_descendant or _CHILD_AXES[axis]
        following = words[self.place + 1]
        if following == "(" and is_name(words[self.place]):
            return self._call(is_descendant)
        if following == "::":
            raise self._no_operand(_STEP)
        return self._element(is_descendant)

    def _call(self, is_descendant: bool) -> Step:
        """A name and a parenthesis: `text()`, or what is rejected."""
        name = self.words[self.place]
        if name != "text":
            raise rejected_call(self.text, self.starts[self.place], name)
        self.place += 2
        if self.words[self.place] != ")":
            raise self._no_operand("`)`: text() takes nothing")
        self.place += 1
        return _TEXTS[is_descendant]

    # Names

    def _expanded(self, word: str, *, is_element: bool) -> str:
        """The expanded name of a name in the text."""
        prefix, colon, local = word.partition(":")
        if not colon:
            default = self.prefixes.get("") if self.prefixes and is_element else None
            return f"{{{default}}}{word}" if default else word
        if local == "*":
            message = f"`{word}` (any name of a namespace) is not supported"
            raise rejected(self.text, self.starts[self.place], message, "write * for any name, or the names one by one")
        if prefix == "xml":
            return f"{{{XML_NAMESPACE}}}{local}"
        uri = self.prefixes.get(prefix) if self.prefixes else None
        if uri is None:
            hint = f"declare it before the expression: declare namespace {prefix} = 'uri'; …"
            message = f"the prefix `{prefix}` is not declared"
            raise rejected(self.text, self.starts[self.place], message, hint)
        return f"{{{uri}}}{local}"

    def prologue(self) -> None:
        """Read the declarations of namespaces before the expression. Elements without a prefix have the prefix ""."""
        words = self.words
        prefixes: dict[str, str] = {}
        while words[self.place] == "declare" and words[self.place + 1] in ("namespace", "default"):
            if words[self.place + 1] == "default":
                for word in ("declare", "default", "element", "namespace"):
                    self._take(word, "declare default element namespace 'uri';")
                prefix = ""
            else:
                self.place += 2
                prefix = self._prefix()
                self._take("=", f"declare namespace {prefix} = 'uri';")
            if prefix in prefixes:
                what = f"the prefix `{prefix}`" if prefix else "the default namespace"
                raise rejected(self.text, self.starts[self.place - 1], f"{what} is declared twice")
            prefixes[prefix] = self._uri(prefix)
            self._take(";", "a declaration ends with ;")
        self.prefixes = prefixes
        if prefixes.get(""):
            self.children, self.descendants = {"*": _ANY_CHILD}, {"*": _ANY_DESCENDANT}

    def _prefix(self) -> str:
        word = self.words[self.place]
        if not is_name(word) or ":" in word:
            raise self._no_operand("a prefix: declare namespace p = 'uri';")
        if word in ("xml", "xmlns"):
            raise rejected(self.text, self.starts[self.place], f"the prefix `{word}` cannot be declared")
        self.place += 1
        return word

    def _uri(self, prefix: str) -> str:
        word = self.words[self.place]
        if word[:1] not in QUOTES:
            raise self._no_operand("the URI of the namespace, in quotes")
        if prefix and word[1:-1] == "":
            raise rejected(self.text, self.starts[self.place], "the URI of a prefix is empty")
        self.place += 1
        return word[1:-1]

    def _take(self, word: str, expected: str) -> None:
        if self.words[self.place] != word:
            raise self._no_operand(f"`{word}`: {expected}")
        self.place += 1

    # Conditions, limits and rejections

    def _condition(self, operand: _Operand, start: int, *, is_predicate: bool) -> Expression:
        """The operand that was read from the token `start` on, as a condition."""
        if type(operand) is Location:
            return Exists(operand)
        if type(operand) is str or type(operand) is float:
            if self.words[self.place] in ARITHMETIC:
                raise self._no_operator(_OPERAND)
            raise rejected_constant(self.text, self.starts[start], operand, is_predicate=is_predicate)
        return operand  # type: ignore[return-value]

    def _enter(self) -> None:
        self.nesting += 1
        if self.nesting > self.limits.max_nesting:
            raise self.too_deep()
        self.place += 1

    def _leave(self, word: str) -> None:
        if self.words[self.place] != word:
            raise self._no_operator(f"and, or, a comparison or `{word}`")
        self.nesting -= 1
        self.place += 1

    def _count_value(self) -> None:
        self.values += 1
        if self.values > self.limits.max_values:
            message = f"the text has more than {self.limits.max_values:,} constants"
            raise LimitError(message, limit="max_values").at(*located(self.text, self.starts[self.place - 1]))

    def _too_far(self, place: int) -> LimitError:
        message = f"the expression goes more than {self.most_steps:,} steps below the root"
        if self.most_steps < self.limits.max_xpath_steps:
            message += ", the most that an index takes"
        error = LimitError(message, limit="max_xpath_steps")
        return error.at(*located(self.text, self.starts[place - 1]))

    def _absolute(self, word: str) -> Exception:
        message = "a path inside a predicate starts at its step, not at the root"
        hint = "write .//a for an a below the step" if word == "//" else "write a for a child of the step, or .//a"
        return rejected(self.text, self.starts[self.place], message, hint)

    def _no_comparison(self, left: _Operand, right: _Operand, start: int) -> Exception:
        kinds = {type(left), type(right)}
        message, hint = "a condition cannot be compared", "compare a path with a value: a = 'x'"
        if kinds == {Location}:
            message = "a path compared with a path is not supported"
        elif kinds <= {str, float}:
            message = "a comparison needs a path on one side"
        return rejected(self.text, self.starts[start], message, hint)

    def _is_start(self) -> bool:
        """Whether the next token would be the first of an operand."""
        return self.place == 0 or self.words[self.place - 1] not in ("/", "//", "@", "::")

    def _no_operand(self, expected: str) -> Exception:
        return no_operand(self.text, Tokens(self.words, self.starts), self.place, expected)

    def _no_operator(self, expected: str) -> Exception:
        return no_operator(self.text, Tokens(self.words, self.starts), self.place, expected)


def _add(either: list[Expression], item: Expression) -> None:
    if type(item) is Or:
        either.extend(item.items)
    else:
        either.append(item)
