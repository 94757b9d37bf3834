"""Text → AST: a quick parser for most texts, and a careful one for all texts and every error message."""

from __future__ import annotations

import sys

from harken.errors import HarkenError, LimitError
from harken.language.places import located
from harken.language.xpath.ast import Expression, Location, Step
from harken.language.xpath.grammar import BEFORE_TEST, MOST_CACHED, Parser
from harken.language.xpath.tokens import Tokens, runs_of, tokens_of
from harken.limits import DEFAULT_LIMITS, Limits

_Runs = dict[str, tuple[Step, ...]]
"""Cached steps of paths without predicates, by the text of the path."""

_runs: _Runs = {}
_declared: dict[str, _Runs] = {}
"""The same for texts with a prologue, by the text of the prologue."""
_NO_LIMITS = Limits(
    max_text_length=sys.maxsize, max_nesting=sys.maxsize, max_values=sys.maxsize, max_xpath_steps=sys.maxsize
)
_MOST_RUN = 256
"""The longest path or prologue that is cached, in characters."""
_MOST_DECLARED = 64
"""Most prologues whose paths are cached."""


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """The expression that the text stands for. Raises ParseError or LimitError, each with its place."""
    if len(text) > limits.max_text_length:
        message = f"the text has {len(text):,} characters, more than {limits.max_text_length:,}"
        raise LimitError(message, limit="max_text_length").at(*located(text, limits.max_text_length))
    try:
        return _QuickParser(text, limits, runs_of(text)).parse()
    except (HarkenError, RecursionError, _UnknownError):
        return parse_carefully(text, limits)


def parse_carefully(text: str, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """As `parse`, token by token. Every error comes from here."""
    parser = Parser(text, limits, tokens_of(text))
    try:
        return parser.parse()
    except RecursionError:  # where max_nesting exceeds Python's own limit
        raise parser.too_deep() from None


class _UnknownError(Exception):
    """The quick parser cannot parse the text."""


class _QuickParser(Parser):
    """Parses one text, with each path up to a predicate as one token, which is mostly cached."""

    __slots__ = ("declarations", "runs")

    def __init__(self, text: str, limits: Limits, tokens: Tokens) -> None:
        super().__init__(text, limits, tokens)
        self.declarations = ""
        self.runs = _runs

    def prologue(self) -> None:
        """Find the end of the prologue. Its content is checked with the first path that is not cached."""
        words = self.words
        place = 0
        while words[place] == "declare":
            try:
                place = words.index(";", place) + 1
            except ValueError:
                raise _UnknownError from None
        self.place = place
        self.declarations = self.text[: self.starts[place]]
        runs = _declared.get(self.declarations)
        if runs is None:
            if len(self.declarations) > _MOST_RUN:
                raise _UnknownError
            if len(_declared) >= _MOST_DECLARED:
                _declared.clear()
            runs = _declared[self.declarations] = {}
        self.runs = runs

    def location(self, depth: int) -> Location:
        words = self.words
        runs = self.runs
        place = self.place
        at = self.starts[place]
        word = words[place]
        if depth and word[:1] == "/":
            raise _UnknownError
        passed: tuple[Step, ...] = ()
        while True:
            steps = runs.get(word)
            if steps is None:
                steps = _learn(runs, self.declarations, word, self.limits)
            place += 1
            following = words[place]
            if following in BEFORE_TEST or depth + len(passed) + len(steps) > self.most_steps:
                raise _UnknownError
            if following != "[":
                self.place = place
                return Location(passed + steps if passed else steps, at)
            if not steps:
                raise _UnknownError
            self.place = place
            last = self.with_predicates(steps[-1], depth + len(passed) + len(steps))
            passed = (*passed, *steps[:-1], last)
            place = self.place
            word = words[place]
            if word[:1] != "/":
                return Location(passed, at)


def parse_accepted(text: str) -> Expression:
    """The expression of a text that has passed the limits, without checking them again."""
    return parse(text, _NO_LIMITS)


def _learn(runs: _Runs, declarations: str, run: str, limits: Limits) -> tuple[Step, ...]:
    """The steps of a path without predicates. Raises _UnknownError for anything else."""
    if run == "/":  # the root, or the start of a path: the next token decides
        raise _UnknownError
    text = declarations + run
    reader = Parser(text, limits, tokens_of(text))
    try:
        steps = reader.path()
    except HarkenError:
        raise _UnknownError from None
    if len(run) <= _MOST_RUN:
        if len(runs) >= MOST_CACHED:
            runs.clear()
        runs[run] = steps
    return steps
