"""Text → AST, by operator precedence on two stacks, without recursion: a text may be nested deeply.

Conditions and operands share one grammar, because a parenthesis may open either; nodes.py tells them apart when an
operator takes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harken.errors import HarkenError, LimitError, ParseError
from harken.language.ast import (
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Expression,
    Not,
    Variable,
    arithmetic_depth,
    conjunction,
    disjunction,
    leaves,
    offset_of,
    predicates,
)
from harken.language.places import located
from harken.language.sql import nodes
from harken.language.sql.habits import ONE_NAME, name_hint
from harken.language.sql.nodes import Null, Part, RejectedError
from harken.language.sql.syntax_errors import unexpected
from harken.language.sql.tokens import COMPARATOR, END, NAME, NAMES, NUMBER, QUOTED_NAME, STRING, VARIABLE, tokens_of
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.values import Kind

_NUMBER = Kind.NUMBER


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """The expression that the text stands for. Raises ParseError or LimitError, each with its place."""
    if len(text) > limits.max_text_length:
        message = f"the text has {len(text):,} characters, more than {limits.max_text_length:,}"
        raise LimitError(message, limit="max_text_length").at(*located(text, limits.max_text_length))
    parser = _Parser(text)
    try:
        expression = nodes.condition(parser.parse())
    except RejectedError as rejection:
        hint = name_hint(text, rejection.at) or rejection.hint
        raise ParseError(rejection.message, hint=hint).at(*located(text, rejection.at)) from None
    # Every level and every constant takes a token.
    if len(parser.words) > min(limits.max_nesting, limits.max_values):
        _check_limits(expression, text, limits)
    return expression


def reads_like_condition(text: str) -> bool:
    """Whether a text given as an id or a path is a condition. A name alone does not count."""
    if len(text) > _LONGEST_MISPLACED or _OF_CONDITIONS.search(text) is None:
        return False
    try:
        parse(text)
    except HarkenError:
        return False
    return True


def _check_limits(expression: Expression, text: str, limits: Limits) -> None:
    values = 0
    for predicate, depth in predicates(expression):
        if depth + arithmetic_depth(predicate) > limits.max_nesting:
            message = f"the expression is nested more than {limits.max_nesting} deep"
            raise LimitError(message, limit="max_nesting").at(*located(text, offset_of(predicate)))
        for leaf in leaves(predicate):
            values += isinstance(leaf, Constant)
            if values > limits.max_values:
                message = f"the text has more than {limits.max_values:,} constants"
                raise LimitError(message, limit="max_values").at(*located(text, leaf.at))


_OF_CONDITIONS = re.compile(r"\s[<>=!]|[<>=]\s|^[^/]+[<>=]|\s(?:IN|I?LIKE|RLIKE|IS|BETWEEN|CONTAINS)\s", re.IGNORECASE)
"""What is rare in ids and paths. (Paths of partitions, such as sales/day=5, have a slash.)"""
_LONGEST_MISPLACED = 1_000
"""The longest id or path that is tried as a condition, in characters."""

# How tightly operators bind, from an open group or list to a sign.
_OPEN, _OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _SIGN = range(8)
_ARITHMETIC = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
# Groups and lists that may be open: the text, a parenthesis, arguments of a call, values of IN, patterns of LIKE ANY
# and LIKE ALL.
_TEXT, _GROUP, _CALL, _VALUES, _ANY, _ALL = "TEXT", "(", "CALL", "VALUES", "ANY", "ALL"
_LISTS = frozenset((_CALL, _VALUES, _ANY, _ALL))
_QUANTIFIERS = {"ANY": _ANY, "SOME": _ANY, "ALL": _ALL}
# BETWEEN behind its AND, LIKE and ILIKE behind their ESCAPE.
_BOUNDED = "BETWEEN AND"
_ESCAPED = {"LIKE": "LIKE ESCAPE", "ILIKE": "ILIKE ESCAPE"}
_OF_THREE = frozenset((_BOUNDED, *_ESCAPED.values()))

_AFTER_NOT = frozenset(("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "CONTAINS"))
_AFTER_IS = frozenset(("NULL", "TRUE", "FALSE"))
_PREDICATES = _AFTER_NOT | {COMPARATOR, "NOT", "IS"}
_OPERANDS = NAMES | {NUMBER, STRING, VARIABLE, "TRUE", "FALSE", "NULL", "(", "-"}

_PLAIN = frozenset((NUMBER, STRING))
_ENDS = frozenset(("AND", "OR", ")", END))

_COPIES_PER_TOKEN = 64
"""Items per token that may be copied where junctions of one kind are nested."""

_Operator = tuple[int, str, int, int]
"""How tightly it binds; its kind; the place of its token; whether it is negated or, for a list, its first operand."""


class _Parser:
    """Parses one text. Keeps the operands read so far, and the operators that wait for an operand."""

    __slots__ = ("is_complete", "kinds", "operands", "operators", "starts", "text", "words", "work")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words, self.kinds, self.starts = tokens_of(text)
        self.operands: list[Part] = []
        self.operators: list[_Operator] = [(_OPEN, _TEXT, 0, 0)]
        self.work = 0
        self.is_complete = False
        """Whether the last operand is a predicate, which only AND, OR or a parenthesis may follow."""

    def parse(self) -> Part:
        """The part that the whole text is."""
        kinds = self.kinds
        place = self._operand(self._plain(0))
        while True:
            step = _STEPS.get(kinds[place])
            if step is None:
                break
            place = step(self, place)
        if kinds[place] != END:
            raise self._unexpected(place)
        self._finish(_OR, place)
        if len(self.operators) > 1:
            raise self._unexpected(place)
        return self.operands[0]

    # Each of these methods takes the place of a token, and returns the place behind what it read.

    def _operand(self, place: int) -> int:
        """An operand, with what may stand before it."""
        kinds, words, starts, operands, operators = self.kinds, self.words, self.starts, self.operands, self.operators
        self.is_complete = False
        while True:
            kind = kinds[place]
            if kind in NAMES:
                following = kinds[place + 1]
                if following == COMPARATOR and kind == NAME:  # fast path
                    operands.append(nodes.attribute((words[place],), starts[place]))
                    return place + 1
                if following == "(":
                    operators.append((_OPEN, _CALL, place, len(operands)))
                    place += 2
                    if kinds[place] == ")":
                        return self._close(place)
                    continue
                if following == STRING and kind in ("DATE", "TIMESTAMP"):
                    at, text_at = starts[place : place + 2]
                    operands.append(nodes.day_or_time(kind == "DATE", words[place + 1], at, text_at))
                    return place + 2
                return self._path(place)
            if kind == NUMBER:
                operands.append(nodes.number(words[place], starts[place]))
            elif kind == STRING:
                operands.append(nodes.string_constant(words[place], starts[place]))
            elif kind == "(":
                operators.append((_OPEN, _GROUP, place, 0))
                place += 1
                continue
            elif kind == "-":
                operators.append((_SIGN, "-", place, 0))
                place += 1
                continue
            elif kind == "NOT" and self._may_be_condition():
                operators.append((_NOT, "NOT", place, 0))
                place += 1
                continue
            else:
                operands.append(self._word(kind, place))
            return place + 1

    def _path(self, place: int) -> int:
        start = self.starts[place]
        names = [self._key(place)]
        while self.kinds[place + 1] == ".":
            place += 2
            if self.kinds[place] not in NAMES:
                raise self._unexpected(place, NAMES)
            names.append(self._key(place))
        self.operands.append(nodes.attribute(tuple(names), start))
        return place + 1

    def _key(self, place: int) -> str:
        word = self.words[place]
        return word[1:-1].replace("``", "`") if self.kinds[place] == QUOTED_NAME else word

    def _word(self, kind: str, place: int) -> Part:
        at = self.starts[place]
        if kind in ("TRUE", "FALSE"):
            return Constant(kind == "TRUE", at)
        if kind == "NULL":
            return Null(at)
        if kind == VARIABLE:
            return Variable(self.words[place][1:], at)
        expected = _OPERANDS | {"NOT"} if self._may_be_condition() else _OPERANDS
        if self.operators[-1][1] in _LISTS and self.kinds[place - 1] == "(":
            expected |= {")"}
        raise self._unexpected(place, expected)

    def _arithmetic(self, place: int) -> int:
        kind = self.kinds[place]
        if self.is_complete:
            raise self._unexpected(place)
        level = _ARITHMETIC[kind]
        self._reduce(level)
        self.operators.append((level, kind, place, 0))
        return self._operand(place + 1)

    def _junction(self, place: int) -> int:
        """AND or OR."""
        operators = self.operators
        kind = self.kinds[place]
        level = _AND if kind == "AND" else _OR
        if operators[-1][0] > level:
            self._reduce(_SUM)
            if kind == "AND" and operators[-1][1] == "BETWEEN":
                _, _, at, is_negated = operators[-1]
                operators[-1] = (_PREDICATE, _BOUNDED, at, is_negated)
                return self._operand(place + 1)
            self._finish(level + 1, place)
        if operators[-1][1] in _LISTS:
            raise self._unexpected(place)
        operators.append((level, kind, place, 0))
        return self._operand(self._plain(place + 1))

    def _plain(self, place: int) -> int:
        """Fast path: comparisons of a name with a constant, followed by AND."""
        kinds, words, starts, operands, operators = self.kinds, self.words, self.starts, self.operands, self.operators
        while kinds[place] == NAME and kinds[place + 1] == COMPARATOR:
            kind = kinds[place + 2]
            if kind not in _PLAIN or kinds[place + 3] != "AND":
                break
            word, sign, at = words[place + 2], words[place + 1], starts[place + 2]
            value = nodes.string_constant(word, at) if kind == STRING else nodes.operand(nodes.number(word, at))
            name = nodes.attribute((words[place],), starts[place])
            operands.append(Comparison(name, "<>" if sign == "!=" else sign, value))
            operators.append((_AND, "AND", place + 3, 0))
            place += 4
        return place

    def _comparison(self, place: int) -> int:
        kinds, operands, operators = self.kinds, self.operands, self.operators
        self._begin_predicate(place)
        if kinds[place + 1] in _PLAIN and kinds[place + 2] in _ENDS and type(operands[-1]) is Attribute:
            # Fast path: an attribute and a constant, without arithmetic.
            self._operand(place + 1)
            value = nodes.operand(operands.pop())
            sign = self.words[place]
            operands[-1] = Comparison(operands[-1], "<>" if sign == "!=" else sign, value)
            self.is_complete = True
            return place + 2
        operators.append((_PREDICATE, COMPARATOR, place, False))
        return self._operand(place + 1)

    def _predicate(self, place: int) -> int:
        """BETWEEN, IN, LIKE and their like, with NOT before them or without."""
        kinds, operators, operands = self.kinds, self.operators, self.operands
        self._begin_predicate(place)
        kind = kinds[place]
        is_negated = kind == "NOT"
        if is_negated:
            place += 1
            kind = kinds[place]
            if kind not in _AFTER_NOT:
                raise self._unexpected(place, _AFTER_NOT)
        operators.append((_PREDICATE, kind, place, is_negated))
        opened = _VALUES if kind == "IN" else None
        if kind in _ESCAPED and kinds[place + 2 : place + 3] == ["("]:
            opened = _QUANTIFIERS.get(self.words[place + 1].upper())
            place += opened is not None
        if opened is None:
            return self._operand(place + 1)
        if kinds[place + 1] != "(":
            raise self._unexpected(place + 1, frozenset("("))
        operators.append((_OPEN, opened, place, len(operands)))
        return self._close(place + 2) if kinds[place + 2] == ")" else self._operand(self._constants(place + 2))

    def _constants(self, place: int) -> int:
        """Fast path: constants followed by commas."""
        kinds, words, starts, operands = self.kinds, self.words, self.starts, self.operands
        while (kind := kinds[place]) in _PLAIN and kinds[place + 1] == ",":
            word, at = words[place], starts[place]
            operands.append(nodes.string_constant(word, at) if kind == STRING else nodes.number(word, at))
            place += 2
        return place

    def _is(self, place: int) -> int:
        operators, operands, kinds = self.operators, self.operands, self.kinds
        is_negated = kinds[place + 1] == "NOT"
        behind = place + 1 + is_negated
        word = kinds[behind]
        self._reduce(_SUM)
        # As in Spark a = 1 IS TRUE is (a = 1) IS TRUE.
        if operators[-1][1] == COMPARATOR and word in ("TRUE", "FALSE"):
            self._reduce(_PREDICATE)
        self._begin_predicate(place)
        if word not in _AFTER_IS:
            raise self._unexpected(behind, _AFTER_IS if is_negated else _AFTER_IS | {"NOT"})
        part = operands.pop()
        predicate = nodes.is_null(part) if word == "NULL" else nodes.is_truth(part, word == "TRUE")
        operands.append(Not(predicate) if is_negated else predicate)
        self.is_complete = True
        return behind + 1

    def _escape(self, place: int) -> int:
        self._reduce(_SUM)
        level, kind, at, is_negated = self.operators[-1]
        if kind not in _ESCAPED or self.is_complete:
            raise self._unexpected(place)
        self.operators[-1] = (level, _ESCAPED[kind], at, is_negated)
        return self._operand(place + 1)

    def _comma(self, place: int) -> int:
        self._reduce(_SUM)
        if self.operators[-1][1] not in _LISTS:
            raise self._unexpected(place)
        return self._operand(place + 1)

    def _close(self, place: int) -> int:
        """A parenthesis that ends a group or a list."""
        operators, operands = self.operators, self.operands
        self._finish(_OR, place)
        if len(operators) == 1:
            raise self._unexpected(place, frozenset((END,)))
        _, kind, at, first = operators.pop()
        self.is_complete = False
        if kind == _GROUP:
            return place + 1
        items = operands[first:]
        del operands[first:]
        if kind == _CALL:
            operands.append(nodes.call(self._key(at), items, self.starts[at]))
            return place + 1
        _, word, _, is_negated = operators.pop()
        part = operands.pop()
        if isinstance(part, Arithmetic):
            self._check_name(part, *items)
        if kind == _VALUES:
            listed = nodes.listed(part, items, bool(is_negated))
            operands.append(Not(listed) if is_negated else listed)
        else:
            patterns = [nodes.like(part, item, folds=word == "ILIKE") for item in items]
            if not patterns:
                raise RejectedError(f"{word} {kind} needs at least one pattern", self.starts[at])
            patterns = [Not(each) if is_negated else each for each in patterns]
            operands.append((disjunction if kind == _ANY else conjunction)(patterns))
        self.is_complete = True
        return place + 1

    # Operators that have their operands

    def _finish(self, level: int, place: int) -> None:
        """Apply the operators that bind at least this tightly, before the token at a place."""
        if self.operators[-1][0] < level:
            return
        self._reduce(_SUM)
        if self.operators[-1][1] == "BETWEEN":
            raise self._unexpected(place)
        self._reduce(level)

    def _reduce(self, level: int) -> None:
        operators, operands = self.operators, self.operands
        while operators[-1][0] >= level:
            tightness, kind, place, is_negated = operators.pop()
            if tightness in (_AND, _OR):
                count = 2
                while operators[-1][0] == tightness:
                    operators.pop()
                    count += 1
                items = [nodes.condition(part) for part in operands[-count:]]
                del operands[-count:]
                operands.append(joined := conjunction(items) if tightness == _AND else disjunction(items))
                self._spend(len(joined.items), place)  # type: ignore[union-attr]
            elif tightness == _PREDICATE:
                parts = operands[-3:] if kind in _OF_THREE else operands[-2:]
                if Arithmetic in map(type, parts):
                    self._check_name(*parts)
                predicate = self._applied(kind, place)
                operands.append(Not(predicate) if is_negated else predicate)
            elif tightness == _NOT:
                operands.append(Not(nodes.condition(operands.pop())))
            elif tightness == _SIGN:
                operands.append(nodes.negative(operands.pop(), self.starts[place]))
            else:
                right = operands.pop()
                operands.append(nodes.arithmetic(operands.pop(), kind, right))

    def _spend(self, work: int, place: int) -> None:
        """Reject a AND (b AND (c AND …: each level copies all that are inside it."""
        self.work += work
        if self.work > _COPIES_PER_TOKEN * len(self.words):
            message = "the expression is nested too deeply"
            raise LimitError(message, limit="max_nesting").at(*located(self.text, self.starts[place]))

    def _applied(self, kind: str, place: int) -> Expression:
        """The predicate of the last operands."""
        operands = self.operands
        last = operands.pop()
        if kind == COMPARATOR:
            first = operands.pop()
            return nodes.comparison(first, self.words[place], last)
        if kind == _BOUNDED:
            low = operands.pop()
            return nodes.between(operands.pop(), low, last)
        if kind == "CONTAINS":
            return nodes.contains(operands.pop(), last)
        if kind in ("RLIKE", "REGEXP"):
            return nodes.regular(operands.pop(), last)
        escape = None
        if kind not in _ESCAPED:
            escape, last = last, operands.pop()
        return nodes.like(operands.pop(), last, escape, folds=kind.startswith("I"))

    def _check_name(self, *parts: Part) -> None:
        """Reject user-agent = 'x': that is a name, not a difference."""
        for side in parts:
            if isinstance(side, Arithmetic):
                other = next((each for each in parts if isinstance(each, Constant) and each.kind is not _NUMBER), None)
                at = offset_of(side)
                if other is not None and (name_hint(self.text, at) or "").startswith(ONE_NAME):
                    raise RejectedError(f"a number does not compare with a {other.kind}", at)

    # Errors

    def _may_be_condition(self) -> bool:
        """Whether a condition may begin here, and not only an operand."""
        level, kind, _, _ = self.operators[-1]
        return level < _PREDICATE and kind not in _LISTS

    def _begin_predicate(self, place: int) -> None:
        """Finish the operand before an operator of a predicate; reject a second such operator."""
        if self.operators[-1][0] >= _SUM:
            self._reduce(_SUM)
        level, kind, _, _ = self.operators[-1]
        if self.is_complete or level >= _PREDICATE or kind in _LISTS:
            raise self._unexpected(place)

    def _unexpected(self, place: int, expected: frozenset[str] | None = None) -> ParseError:
        if expected is None:
            expected = self._expected(self.kinds[place])
        return unexpected(self.text, self.words[place], self.kinds[place], self.starts[place], expected)

    def _expected(self, actual: str) -> frozenset[str]:
        """The kinds of tokens that may follow an operand, given the one that does."""
        level, kind, _, _ = next(each for each in reversed(self.operators) if each[0] <= _PREDICATE)
        expected = set() if self.is_complete else set(_ARITHMETIC)
        if kind == "BETWEEN":
            return frozenset(expected | {"AND"})
        if kind in _LISTS:
            return frozenset(expected | {",", ")"})
        opened = next(each[1] for each in reversed(self.operators) if each[0] == _OPEN)
        closing = END if opened == _TEXT else ")"
        if actual == END:
            return frozenset((closing,))
        if level != _PREDICATE and not self.is_complete:
            expected |= _PREDICATES
        if kind in _ESCAPED:
            expected.add("ESCAPE")
        return frozenset(expected | {"AND", "OR", closing})


_Step = Callable[[_Parser, int], int]
_STEPS: dict[str, _Step] = {
    **dict.fromkeys(_ARITHMETIC, _Parser._arithmetic),
    **dict.fromkeys(("AND", "OR"), _Parser._junction),
    **dict.fromkeys((*_AFTER_NOT, "NOT"), _Parser._predicate),
    COMPARATOR: _Parser._comparison,
    "IS": _Parser._is,
    "ESCAPE": _Parser._escape,
    ",": _Parser._comma,
    ")": _Parser._close,
}
"""What each kind of token does behind an operand."""
