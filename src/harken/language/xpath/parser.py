"""Text → AST: a quick way that takes most texts, and a careful one that takes them all and words every error."""

from __future__ import annotations

import sys

from harken.errors import HarkenError, LimitError
from harken.language.xpath.ast import Expression, Location, Step
from harken.language.xpath.grammar import BEFORE_TEST, MOST_KNOWN, MOST_STEPS, Parser
from harken.language.xpath.syntax_errors import located
from harken.language.xpath.tokens import runs_of, tokens_of
from harken.limits import DEFAULT_LIMITS, Limits

_runs: dict[str, tuple[Step, ...]] = {}
"""Steps of paths without predicates, by their text. The same come again and again, and their steps are kept once."""
_NO_LIMITS = Limits(max_text_length=sys.maxsize, max_nesting=sys.maxsize, max_values=sys.maxsize)
_MOST_RUN = 256
"""Characters of such a path that is remembered."""


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
    """The same, token by token: the quick way takes what is plain, and every error comes from here."""
    parser = Parser(text, limits, tokens_of(text))
    try:
        return parser.parse()
    except RecursionError:  # where max_nesting was set beyond what Python can follow
        raise parser.too_deep() from None


class _UnknownError(Exception):
    """The quick way ends here."""


class _QuickParser(Parser):
    """One text whose paths are tokens, but for their predicates, and mostly known from other texts."""

    __slots__ = ()

    def prologue(self) -> None:
        raise _UnknownError

    def location(self, depth: int) -> Location:
        words = self.words
        place = self.place
        at = self.starts[place]
        word = words[place]
        if depth and word[:1] == "/":
            raise _UnknownError
        found: tuple[Step, ...] = ()
        while True:
            steps = _runs.get(word)
            if steps is None:
                steps = _learn(word)
            place += 1
            following = words[place]
            if following in BEFORE_TEST or depth + len(found) + len(steps) > MOST_STEPS:
                raise _UnknownError
            if following != "[":
                self.place = place
                return Location(found + steps if found else steps, at)
            if not steps:
                raise _UnknownError
            self.place = place
            last = self.with_predicates(steps[-1], depth + len(found) + len(steps))
            found = (*found, *steps[:-1], last)
            place = self.place
            word = words[place]
            if word[:1] != "/":
                return Location(found, at)


def parse_accepted(text: str) -> Expression:
    """The expression of a text that was within the limits once: they are not judged again."""
    return parse(text, _NO_LIMITS)


def _learn(run: str) -> tuple[Step, ...]:
    """The steps of a path without predicates. Raises _UnknownError if it is none."""
    if run == "/":  # what follows decides whether it is the root or a step is to come
        raise _UnknownError
    reader = Parser(run, DEFAULT_LIMITS, tokens_of(run))
    try:
        steps = reader.path()
    except HarkenError:
        raise _UnknownError from None
    if len(run) <= _MOST_RUN:
        if len(_runs) >= MOST_KNOWN:
            _runs.clear()
        _runs[run] = steps
    return steps
