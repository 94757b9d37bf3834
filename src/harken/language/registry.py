"""The languages by name. A language is a package with a front end, and a line here; it is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harken.announced import Announced, imported
from harken.errors import HarkenError, UnavailableError
from harken.limits import Limits
from harken.schema import Schema
from harken.schema.signatures import Signatures

if TYPE_CHECKING:
    from harken.language.compiled import Compiled
    from harken.language.explanation import Explanation

FindEvent = Callable[[frozenset[str]], Mapping[str, Any]]
"""The canonical event to explain, given the names of the attributes that a text reads."""


class FrontEnd(Protocol):
    """Compiles the texts of one language; made by `factory(schema, limits, signatures)`. Threads share it."""

    def compile(self, text: str) -> Compiled:
        """The compiled text. Raises LanguageError or LimitError, with its place."""

    def faults(self, text: str) -> list[HarkenError]:
        """Every fault of a text, each with its place. A fault that stops the parser may be raised."""

    def print(self, text: str, dialect: str) -> str:
        """The text in a dialect. Raises UnavailableError if it has no form there."""

    def stats(self) -> Mapping[str, Any]:
        """Counts under keys that no other language has, as plain data."""


Explainer = Callable[[Any, str, FindEvent], "Explanation"]
"""Explains why an event matches a text or does not. Called with the front end, and a text without faults."""


class Language(NamedTuple):
    """The parts of a language, each as "module:name"."""

    front_end: str
    explainer: str
    """Apart from the front end: it may use the reference semantics, which no front end imports."""
    evaluator: str | None = None
    """Makes a test of single values from a text, for texts inside texts of another language."""


LANGUAGES: Announced[Language] = Announced(
    "harken.languages",
    {
        "sql": Language("harken.language.sql.front_end:SqlFrontEnd", "harken.explain.expressions:explain_sql"),
        "xpath": Language(
            "harken.language.xpath.front_end:XPathFrontEnd",
            "harken.explain.documents:explain_xpath",
            evaluator="harken.matchers.documents.single:evaluator",
        ),
    },
    lambda entry: entry.load(),
)
"""The built-in languages, and those that other packages announce."""
DEFAULT_LANGUAGE = "sql"


def front_end_of(language: str, schema: Schema | None, limits: Limits, signatures: Signatures) -> FrontEnd:
    """A new front end. Raises UnavailableError if there is no such language."""
    front_end: FrontEnd = imported(_language(language).front_end)(schema, limits, signatures)
    return front_end


def explainer_of(language: str) -> Explainer:
    """The explainer of a language. Raises UnavailableError if there is no such language."""
    explainer: Explainer = imported(_language(language).explainer)
    return explainer


def evaluator_of(language: str) -> Callable[[str], Callable[[str], bool]]:
    """The function that makes a test of single values from a text. Raises UnavailableError if there is none."""
    target = _language(language).evaluator
    if target is None:
        raise UnavailableError(f"texts of the language {language!r} cannot stand inside other texts")
    evaluator: Callable[[str], Callable[[str], bool]] = imported(target)
    return evaluator


def _language(language: str) -> Language:
    if isinstance(language, str) and language in LANGUAGES:
        return LANGUAGES[language]
    hint = LANGUAGES.hint(str(language)) or f"this version speaks {', '.join(map(repr, LANGUAGES))}"
    raise UnavailableError(f"the language {language!r} is not available", hint=hint)
