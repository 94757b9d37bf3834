"""From a subscription's text to what matchers take: parse, check against the schema, normalise."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from harken.errors import HarkenError, LanguageError, UnavailableError
from harken.language import sql
from harken.language.ast import Expression
from harken.language.check import check
from harken.language.normal_form import NormalForm
from harken.language.normalise import normalise
from harken.language.shapes import ShapeCache
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import Schema
from harken.schema.faults import first_of

# What was within the limits once is not judged again.
_NO_LIMITS = Limits(max_text_length=sys.maxsize, max_nesting=sys.maxsize, max_values=sys.maxsize)
ALWAYS_TRUE = "it is always true: every event will match"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A text that has been understood: its normal form, and what to warn of.

    The tree is not kept: those of millions of subscriptions would fill the memory. `expression` parses again.
    """

    text: str
    normal_form: NormalForm
    warnings: tuple[str, ...] = ()

    @property
    def expression(self) -> Expression:
        return sql.parse(self.text, _NO_LIMITS)


class Compiler:
    """Compiles many texts against one schema, parsing each shape once."""

    def __init__(self, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.schema = schema
        self.limits = limits
        self.shapes = ShapeCache(schema, limits, self._accept)

    def compile(self, text: str, language: str = "sql") -> Compiled:
        """The compiled text. Raises LanguageError or LimitError, with its place."""
        if language != "sql":
            raise UnavailableError(f"the language {language!r} is not available", hint="this version speaks 'sql'")
        if not isinstance(text, str):
            raise LanguageError(f"the text of a subscription is a string, not {type(text).__name__}")
        template, constants = self.shapes.parse(text)
        normal_form = normalise(template, self.schema, self.limits, constants)
        return Compiled(text, normal_form, (ALWAYS_TRUE,) if normal_form.always else ())

    def _accept(self, expression: Expression, text: str) -> None:
        faults = check(expression, self.schema, text)
        if faults:
            raise first_of(faults)

    def faults(self, text: str) -> list[HarkenError]:
        """Every fault of a text, each with its place."""
        try:
            expression = sql.parse(text, self.limits)
            found: list[HarkenError] = [*check(expression, self.schema, text)]
            if not found:
                normalise(expression, self.schema, self.limits)
        except HarkenError as error:
            return [error]
        return found
