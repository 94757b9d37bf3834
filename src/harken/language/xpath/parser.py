"""Text → AST: a quick parser for most texts, and a careful one for all texts and every error message."""

from __future__ import annotations

import sys

from harken.errors import LimitError
from harken.language.places import located
from harken.language.xpath.ast import Expression
from harken.language.xpath.grammar import Parser
from harken.language.xpath.quick_parser import QuickParser, UnknownTextError
from harken.language.xpath.tokens import tokens_of
from harken.limits import DEFAULT_LIMITS, Limits

_NO_LIMITS = Limits(
    max_text_length=sys.maxsize, max_nesting=sys.maxsize, max_values=sys.maxsize, max_xpath_steps=sys.maxsize
)


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """The expression that the text stands for. Raises ParseError or LimitError, each with its place."""
    if len(text) > limits.max_text_length:
        message = f"the text has {len(text):,} characters, more than {limits.max_text_length:,}"
        raise LimitError(message, limit="max_text_length").at(*located(text, limits.max_text_length))
    try:
        return QuickParser(text, limits).parse()
    except (RecursionError, UnknownTextError):
        return parse_carefully(text, limits)


def parse_carefully(text: str, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """As `parse`, token by token. Every error comes from here."""
    parser = Parser(text, limits, tokens_of(text))
    try:
        return parser.parse()
    except RecursionError:  # where max_nesting exceeds Python's own limit
        raise parser.too_deep() from None


def parse_accepted(text: str) -> Expression:
    """The expression of a text that has passed the limits, without checking them again."""
    return parse(text, _NO_LIMITS)
