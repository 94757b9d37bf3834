"""The ways to match XML documents, by name: where each is, the options it takes, and what it cannot take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from harken.errors import CapabilityError, UnavailableError, did_you_mean
from harken.language.compiled import Plan
from harken.language.xpath.linear import refuse_unlinear
from harken.language.xpath.plan import DocumentPlan
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Matcher
from harken.matchers.registry import takes_option


@dataclass(frozen=True, slots=True)
class DocumentAlgorithm:
    """What is known of a way to match documents before its module is imported."""

    factory: str
    """"module:name" of what makes a matcher: `factory(limits, **options)`."""
    summary: str
    options: tuple[str, ...] = ()
    takes_all: bool = True
    """Whether it takes every expression; else those without `not`, whose alternatives can be multiplied out."""


def _plan(name: str, summary: str) -> DocumentAlgorithm:
    return DocumentAlgorithm(f"harken.relational.xml.plans:{name}", summary, ("database",), takes_all=False)


DOCUMENT_ALGORITHMS: dict[str, DocumentAlgorithm] = {
    "xpath": DocumentAlgorithm(
        "harken.matchers.documents:XPathMatcher",
        "Found through a rare value, decided by a program over lists of nodes.",
    ),
    "xpath_shared": _plan("XPathShared", "In a database: chains of predicates, which a recursive query follows."),
    "xpath_buckets": _plan("XPathBuckets", "In a database: the same, with buckets for inequalities."),
    "xpath_unrolled": _plan("XPathUnrolled", "In a database: rows of five predicates, joined without recursion."),
}
DEFAULT_DOCUMENTS = "xpath"


@dataclass(frozen=True, slots=True)
class DocumentMatching:
    """The way in which an engine matches documents. Raises CapabilityError if there is none of that name."""

    algorithm: str = DEFAULT_DOCUMENTS
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, str) or self.algorithm not in DOCUMENT_ALGORITHMS:
            names = ", ".join(DOCUMENT_ALGORITHMS)
            hint = did_you_mean(str(self.algorithm), DOCUMENT_ALGORITHMS) or f"there are: {names}"
            raise CapabilityError(f"there is no way to match documents that is called `{self.algorithm}`", hint=hint)

    @classmethod
    def chosen(
        cls, documents: str, options: Mapping[str, Any], algorithm: str
    ) -> tuple[DocumentMatching, dict[str, Any]]:
        """That of this name with those of the options that it takes, and those that are left for the flat algorithm.

        An option that both take is for both.
        """
        takes = cls(documents)._known.options
        own = {name: value for name, value in options.items() if name in takes}
        left = {name: value for name, value in options.items() if name not in own or takes_option(algorithm, name)}
        found = cls(documents, own)
        if own:
            found.create(DEFAULT_LIMITS)  # raises if an option cannot have such a value
        return found, left

    @property
    def _known(self) -> DocumentAlgorithm:
        return DOCUMENT_ALGORITHMS[self.algorithm]

    def create(self, limits: Limits) -> Matcher:
        """A new matcher."""
        module, _, name = self._known.factory.partition(":")
        matcher: Matcher = getattr(import_module(module), name)(limits, **self.options)
        return matcher

    def refuse_incapable(self, plan: Plan, limits: Limits) -> None:
        """Raise CapabilityError for an expression that this way does not take, and LimitError for one too large."""
        if self._known.takes_all or not isinstance(plan, DocumentPlan):
            return
        try:
            refuse_unlinear(plan.expression, limits)
        except UnavailableError as error:
            raise CapabilityError(
                f"`{self.algorithm}` cannot do this: {error.message}", hint=f"documents='{DEFAULT_DOCUMENTS}' can"
            ) from None


DEFAULT_MATCHING = DocumentMatching()
