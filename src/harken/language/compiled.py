"""From a subscription's text to what matchers take: parse, check against the schema, normalise."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from harken.errors import ContradictionError, HarkenError, LanguageError, LimitError, UnavailableError
from harken.language.ast import Attribute, Expression, leaves, predicates
from harken.language.normal_form import NormalForm
from harken.language.normalise import normalise
from harken.language.sql import parser as sql
from harken.language.sql.check import check
from harken.language.sql.complaints import located
from harken.language.sql.doubts import doubts
from harken.language.sql.shapes import ShapeCache
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
    language: str
    normal_form: NormalForm
    warnings: tuple[str, ...] = ()

    @property
    def expression(self) -> Expression:
        return sql.parse(self.text, _NO_LIMITS)


class Compiler:
    """Compiles many texts against one schema, parsing each shape once. Threads may share one."""

    def __init__(self, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.schema = schema
        self.limits = limits
        self.shapes = ShapeCache(schema, limits, self._accept)

    def compile(self, text: str, language: str = "sql") -> Compiled:
        """The compiled text. Raises LanguageError or LimitError, with its place."""
        _check_language(language)
        if not isinstance(text, str):
            raise LanguageError(f"the text of a subscription is a string, not {type(text).__name__}")
        try:
            template, constants = self.shapes.parse(text)
            normal_form = normalise(template, self.schema, self.limits, constants)
        except RecursionError:  # where max_nesting was set beyond what Python can follow
            message = "the expression is nested too deeply"
            raise LimitError(message, limit="max_nesting").at(*located(text, 0)) from None
        except (ContradictionError, LimitError) as error:
            raise self._placed(error, text) from None
        warnings = (*((ALWAYS_TRUE,) if normal_form.always else ()), *doubts(template, text, constants, self.schema))
        return Compiled(text, language, normal_form, warnings)

    def faults(self, text: str, language: str = "sql") -> list[HarkenError]:
        """Every fault of a text, each with its place."""
        try:
            _check_language(language)
            found: list[HarkenError] = [*check(sql.parse(text, self.limits), self.schema, text)]
            if not found:
                self.compile(text, language)
        except HarkenError as error:
            return [error]
        return found

    def _accept(self, expression: Expression, text: str) -> None:
        faults = check(expression, self.schema, text)
        if faults:
            raise first_of(faults)

    def _placed(self, error: ContradictionError | LimitError, text: str) -> HarkenError:
        """The error at the part of the text that it is about, or at its start."""
        if error.place is not None:
            return error
        expression = sql.parse(text, _NO_LIMITS)
        if isinstance(error, LimitError):
            offset = self._offset_of_limit(expression)
        else:
            found = (leaf for each, _ in predicates(expression) for leaf in leaves(each))
            offset = next((leaf.at for leaf in found if isinstance(leaf, Attribute) and leaf.path == error.path), 0)
        return error.at(*located(text, offset))

    def _offset_of_limit(self, expression: Expression) -> int:
        """Where normalising an expression of this very text passes a limit: that of a template has other offsets."""
        try:
            normalise(expression, self.schema, self.limits)
        except LimitError as error:
            return error.offset or 0
        return 0


def _check_language(language: str) -> None:
    if language != "sql":
        raise UnavailableError(f"the language {language!r} is not available", hint="this version speaks 'sql'")
