"""XPath as one of the languages of subscriptions: parse, warn, compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.errors import HarkenError, UnavailableError
from harken.language.compiled import Compiled
from harken.language.places import located
from harken.language.xpath import parser
from harken.language.xpath.ast import Expression
from harken.language.xpath.document_plan import DocumentPlan
from harken.language.xpath.path_doubts import doubts, never_true
from harken.language.xpath.printer import print_expression
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import Schema
from harken.schema.signatures import NO_SIGNATURES, Signatures


class XPathFrontEnd:
    """The front end of XPath. The schema says nothing about what is inside documents, and there are no operators."""

    def __init__(
        self,
        schema: Schema | None = None,
        limits: Limits = DEFAULT_LIMITS,
        signatures: Signatures = NO_SIGNATURES,
    ) -> None:
        self.schema = schema
        self.limits = limits

    def compile(self, text: str) -> Compiled:
        expression = parser.parse(text, self.limits)
        error = never_true(expression)
        if error is not None:
            raise error.at(*located(text, 0))
        return Compiled(text, "xpath", DocumentPlan(expression), doubts(expression))

    def faults(self, text: str) -> list[HarkenError]:
        self.compile(text)
        return []

    def print(self, text: str, dialect: str) -> str:
        if dialect != "xpath":
            hint = "an XPath text is printed as 'xpath'"
            raise UnavailableError(f"an XPath text has no form in the dialect {dialect!r}", hint=hint)
        return print_expression(parser.parse(text, self.limits))

    def stats(self) -> Mapping[str, Any]:
        return {}

    def parse(self, text: str) -> Expression:
        """The expression of a text that was compiled before."""
        return parser.parse_accepted(text)
