"""A quick parser for what most texts are: indexable expressions, with each path up to a predicate as one token.

Paths are mostly cached. Whatever else a text holds, and every error, is left to the careful parser in `grammar`.
"""

from __future__ import annotations

from math import inf, isinf
from typing import NoReturn

from harken.errors import HarkenError
from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, Not, Or, Step
from harken.language.xpath.expression_building import MIRRORED
from harken.language.xpath.grammar import BEFORE_TEST, Parser
from harken.language.xpath.token_reader import MOST_STEPS
from harken.language.xpath.tokens import END, QUOTES, is_number, runs_of, tokens_of
from harken.limits import Limits

_Runs = dict[str, tuple[Step, ...]]
"""Cached steps of paths without predicates, by the text of the path."""
_Operand = Expression | Location | str | float

_runs: _Runs = {}
_declared: dict[str, _Runs] = {}
"""The same for texts with a prologue, by the text of the prologue."""
_AND = frozenset(("and", "AND"))
_OR = frozenset(("or", "OR"))
_MOST_RUN = 256
"""The longest path or prologue that is cached, in characters."""
_MOST_DECLARED = 64
"""Most prologues whose paths are cached."""
_MOST_CACHED = 65_536


class UnknownTextError(Exception):
    """The quick parser cannot parse the text."""


class QuickParser:
    """Parses one text, or raises UnknownTextError."""

    __slots__ = (
        "declarations",
        "limits",
        "most_steps",
        "nesting",
        "place",
        "runs",
        "starts",
        "text",
        "values",
        "words",
    )

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.most_steps = min(limits.max_xpath_steps, MOST_STEPS)
        self.words, self.starts = runs_of(text)
        self.place = 0
        """The index of the next token."""
        self.nesting = 0
        self.values = 0
        self.declarations = ""
        self.runs = _runs

    def parse(self) -> Expression:
        if self.words[0] == "declare" and self.words[1] in ("namespace", "default"):
            self._prologue()
        expression = _condition(self._expression(0))
        if self.words[self.place] != END:
            _give_up()
        return expression

    # Each of these methods reads on from `place`. `depth` is the number of steps from the root to the context node.

    def _expression(self, depth: int) -> _Operand:
        """Conditions joined by `and` and `or`; an operand alone, if nothing follows it, may be a path or a constant."""
        words = self.words
        operand = self._comparison(depth)
        word = words[self.place]
        if word not in _AND and word not in _OR:
            return operand
        either: list[Expression] = []
        both: list[Expression] = []
        while True:
            operand = _condition(operand)
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
            operand = self._comparison(depth)

    def _comparison(self, depth: int) -> _Operand:
        """An operand, or a path compared with a constant."""
        words = self.words
        left = self._operand(depth)
        sign = words[self.place]
        if sign not in MIRRORED:
            return left
        self.place += 1
        right = self._operand(depth)
        if words[self.place] in MIRRORED:
            _give_up()
        if type(left) is Location and (type(right) is str or type(right) is float):
            return Comparison(left, sign, right)
        if type(right) is Location and (type(left) is str or type(left) is float):
            return Comparison(right, MIRRORED[sign], left)
        _give_up()

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
        return self._location(depth)

    def _group(self, depth: int) -> _Operand:
        self._enter()
        operand = self._expression(depth)
        self._leave(")")
        return operand

    def _negation(self, depth: int) -> Expression:
        self.place += 1
        self._enter()
        condition = _condition(self._expression(depth))
        self._leave(")")
        return condition.item if type(condition) is Not else Not(condition)

    def _number(self) -> float:
        start = self.place
        while self.words[self.place] == "-":
            self.place += 1
        word = self.words[self.place]
        value = float(word) if is_number(word) else inf
        if isinf(value):
            _give_up()
        is_negative = (self.place - start) % 2 == 1
        self.place += 1
        self._count_value()
        return -value + 0.0 if is_negative else value  # no -0

    def _prologue(self) -> None:
        """Find the end of the prologue. Its content is checked with the first path that is not cached."""
        words = self.words
        place = 0
        while words[place] == "declare":
            try:
                place = words.index(";", place) + 1
            except ValueError:
                raise UnknownTextError from None
        self.place = place
        self.declarations = self.text[: self.starts[place]]
        runs = _declared.get(self.declarations)
        if runs is None:
            if len(self.declarations) > _MOST_RUN:
                raise UnknownTextError
            if len(_declared) >= _MOST_DECLARED:
                _declared.clear()
            runs = _declared[self.declarations] = {}
        self.runs = runs

    def _location(self, depth: int) -> Location:
        words = self.words
        runs = self.runs
        place = self.place
        at = self.starts[place]
        word = words[place]
        if depth and word[:1] == "/":
            raise UnknownTextError
        passed: tuple[Step, ...] = ()
        while True:
            steps = runs.get(word)
            if steps is None:
                steps = _learn(runs, self.declarations, word, self.limits)
            place += 1
            following = words[place]
            if following in BEFORE_TEST or depth + len(passed) + len(steps) > self.most_steps:
                raise UnknownTextError
            if following != "[":
                self.place = place
                return Location(passed + steps if passed else steps, at)
            if not steps:
                raise UnknownTextError
            self.place = place
            last = self._with_predicates(steps[-1], depth + len(passed) + len(steps))
            passed = (*passed, *steps[:-1], last)
            place = self.place
            word = words[place]
            if word[:1] != "/":
                return Location(passed, at)

    def _with_predicates(self, step: Step, depth: int) -> Step:
        predicates = []
        while self.words[self.place] == "[":
            self._enter()
            predicates.append(_condition(self._expression(depth)))
            self._leave("]")
        return Step(step.is_descendant, step.kind, step.name, tuple(predicates))

    def _enter(self) -> None:
        self.nesting += 1
        if self.nesting > self.limits.max_nesting:
            _give_up()
        self.place += 1

    def _leave(self, word: str) -> None:
        if self.words[self.place] != word:
            _give_up()
        self.nesting -= 1
        self.place += 1

    def _count_value(self) -> None:
        self.values += 1
        if self.values > self.limits.max_values:
            _give_up()


def _give_up() -> NoReturn:
    raise UnknownTextError


def _condition(operand: _Operand) -> Expression:
    if type(operand) is Location:
        return Exists(operand)
    if type(operand) is str or type(operand) is float:
        _give_up()
    return operand  # type: ignore[return-value]


def _add(either: list[Expression], item: Expression) -> None:
    if type(item) is Or:
        either.extend(item.items)
    else:
        either.append(item)


def _learn(runs: _Runs, declarations: str, run: str, limits: Limits) -> tuple[Step, ...]:
    """The steps of a path without predicates. Raises UnknownTextError for anything else."""
    if run == "/":  # the root, or the start of a path: the next token decides
        raise UnknownTextError
    text = declarations + run
    try:
        path = Parser(text, limits, tokens_of(text)).parse()
    except HarkenError:
        raise UnknownTextError from None
    if type(path) is not Exists:
        _give_up()
    steps = path.path.steps
    if len(run) <= _MOST_RUN:
        if len(runs) >= _MOST_CACHED:
            runs.clear()
        runs[run] = steps
    return steps
