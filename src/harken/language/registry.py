"""The languages by name. A language is a package with a front end, and a line here; what it needs is imported late."""

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
"""The canonical event to explain, given the names of the attributes that a text looks at."""


class FrontEnd(Protocol):
    """What understands the texts of one language, made by `factory(schema, limits, signatures)`. Threads share it."""

    def compile(self, text: str) -> Compiled:
        """The compiled text. Raises LanguageError or LimitError, with its place."""

    def faults(self, text: str) -> list[HarkenError]:
        """Every fault of a text, each with its place. One that ends the reading may be raised."""

    def print(self, text: str, dialect: str) -> str:
        """The text in a dialect. Raises UnavailableError if it has no form there."""

    def stats(self) -> Mapping[str, Any]:
        """Counts under keys that no other language has, as plain data."""


Explainer = Callable[[Any, str, FindEvent], "Explanation"]
"""Tells why an event matches a text or does not. It is called with the front end, and a text without faults."""


class Language(NamedTuple):
    """Where the parts of a language are, each as "module:name"."""

    front_end: str
    explainer: str
    """Apart from the front end: it may go by the reference semantics, which no front end knows."""
    evaluator: str | None = None
    """What decides a text for one value, where texts of another language may hold one of this."""


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
"""Ours, and those whose `Language` other packages announce."""
DEFAULT_LANGUAGE = "sql"


def front_end_of(language: str, schema: Schema | None, limits: Limits, signatures: Signatures) -> FrontEnd:
    """A new front end. Raises UnavailableError if there is no such language."""
    made: FrontEnd = imported(_known(language).front_end)(schema, limits, signatures)
    return made


def explainer_of(language: str) -> Explainer:
    """What explains the texts of a language. Raises UnavailableError if there is no such language."""
    found: Explainer = imported(_known(language).explainer)
    return found


def evaluator_of(language: str) -> Callable[[str], Callable[[str], bool]]:
    """What makes a test of single values from a text. Raises UnavailableError if there is none."""
    target = _known(language).evaluator
    if target is None:
        raise UnavailableError(f"texts of the language {language!r} stand alone")
    found: Callable[[str], Callable[[str], bool]] = imported(target)
    return found


def _known(language: str) -> Language:
    if isinstance(language, str) and language in LANGUAGES:
        return LANGUAGES[language]
    hint = LANGUAGES.hint(str(language)) or f"this version speaks {', '.join(map(repr, LANGUAGES))}"
    raise UnavailableError(f"the language {language!r} is not available", hint=hint)
