"""Operators on text: regular expressions, and the similarity of two texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harken.errors import OperatorError, needing_extra
from harken.language.predicates import rlike_matcher
from harken.operators.box.declaring import NEVER, attempt, declared, failing, rows_of, unknown
from harken.operators.operator import FREE, Operator
from harken.schema.signatures import OperatorParameter
from harken.schema.values import Kind

_TEXT = OperatorParameter("text", Kind.STRING)
_SCORERS = (
    "ratio",
    "partial_ratio",
    "token_sort_ratio",
    "token_set_ratio",
    "token_ratio",
    "partial_token_sort_ratio",
    "partial_token_set_ratio",
    "partial_token_ratio",
    "WRatio",
    "QRatio",
)
"""Functions of rapidfuzz.fuzz."""


def similarity(scorer: str = "ratio", *, ignore_case: bool = True, name: str = "similar") -> Operator:
    """An operator `similar(text, 'other', ?score)`: the similarity of two texts, from 0.0 to 100.0.

    `scorer` names a function of `rapidfuzz.fuzz`. `ratio`, the default, is 100 · (1 − d / n): d is the least number of
    characters to insert and delete to turn one text into the other, n the sum of their lengths. `ignore_case` folds
    the case of both first. Raises OperatorError.
    """
    if scorer not in _SCORERS:
        raise unknown("scorer of rapidfuzz", scorer, _SCORERS)
    parameters = (_TEXT, OperatorParameter("other", Kind.STRING), OperatorParameter("score", Kind.NUMBER, True))
    return declared(name, _Similarity(scorer, ignore_case), *parameters, most_failures=NEVER)


@dataclass(frozen=True, slots=True)
class _Similarity:
    scorer: str
    ignore_case: bool

    def __call__(self, events: Sequence[Any], texts: Any, others: Any, scores: Any) -> list[Any]:
        with needing_extra():
            import numpy as np
            from rapidfuzz import fuzz, process
        if scores is not FREE:
            message = "a score is a variable: write similar(text, 'other', ?score) AND ?score >= 90"
            return [failing(OperatorError(message)) for _ in events]
        answers: list[Any] = [attempt(_strings, *row) for row in rows_of(events, texts, others)]
        places = [place for place, answer in enumerate(answers) if isinstance(answer, tuple)]
        fold: Callable[[str], str] = str.casefold if self.ignore_case else str
        scored = process.cpdist(
            [fold(answers[place][0]) for place in places],
            [fold(answers[place][1]) for place in places],
            scorer=getattr(fuzz, self.scorer),
            dtype=np.float64,
        )
        for place, score in zip(places, scored.tolist(), strict=True):
            answers[place] = [score]
        return answers


def _matches(events: Sequence[Any], texts: Any, patterns: Any) -> list[Any]:
    return [attempt(_has, *row) for row in rows_of(events, texts, patterns)]


def _has(text: Any, pattern: Any) -> bool:
    """Whether a regular expression matches anywhere in a text."""
    _strings(text, pattern)
    return _matcher(pattern)(text)


def _matcher(pattern: Any) -> Callable[[str], bool]:
    """A function that searches a text for a regular expression. Raises OperatorError."""
    import re2

    try:
        return rlike_matcher(pattern)
    except re2.error as problem:
        reason = problem.args[0] if problem.args else ""
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise OperatorError(f"the regular expression `{pattern:.60}` cannot be read: {shown}") from problem


def _strings(*given: Any) -> tuple[str, ...]:
    for each in given:
        if not isinstance(each, str):
            raise OperatorError(f"{each!r:.40} is no string")
        if not each.isascii():
            try:
                each.encode()
            except UnicodeEncodeError as problem:
                raise OperatorError(f"{each!r:.40} is not text: it has half of a surrogate pair") from problem
    return given


_PATTERN = OperatorParameter("pattern", Kind.STRING, check=_matcher)
matches = declared("matches", _matches, _TEXT, _PATTERN, most_failures=NEVER)
"""`matches(text, 'regular expression')`: whether the expression matches anywhere in the text, by RE2, as RLIKE does."""
similar = similarity()
"""`similar(text, 'other', ?score)`: the similarity of two texts, from 0.0 to 100.0, ignoring case."""
