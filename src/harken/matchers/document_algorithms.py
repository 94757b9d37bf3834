"""The ways to match XML documents, by name, ours and those of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harken.announced import Announced, imported, target_of
from harken.errors import CapabilityError, UnavailableError
from harken.language.compiled import Plan
from harken.language.xpath.document_plan import DocumentPlan
from harken.language.xpath.linear import refuse_unlinear
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.algorithm_registry import options_of, takes_option
from harken.matchers.base import Matcher

DOCUMENT_ALGORITHMS: Announced[str] = Announced(
    "harken.documents",
    {"xpath": "harken.matchers.documents:XPathMatcher"},
    target_of,
    laboratory="xpath_buckets xpath_shared xpath_unrolled",
)
"""Each as "module:name" of what makes a matcher: `factory(limits, **options)`. Where its `takes_all` is False it takes
only expressions without `not`, whose alternatives can be multiplied out."""
DEFAULT_DOCUMENTS = "xpath"


@dataclass(frozen=True, slots=True)
class DocumentMatching:
    """The way in which an engine matches documents. Raises CapabilityError if there is none of that name."""

    algorithm: str = DEFAULT_DOCUMENTS
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, str) or self.algorithm not in DOCUMENT_ALGORITHMS:
            hint = DOCUMENT_ALGORITHMS.hint(str(self.algorithm)) or f"there are: {', '.join(DOCUMENT_ALGORITHMS)}"
            raise CapabilityError(f"there is no way to match documents that is called `{self.algorithm}`", hint=hint)

    @classmethod
    def chosen(
        cls, documents: str, options: Mapping[str, Any], algorithm: str
    ) -> tuple[DocumentMatching, dict[str, Any]]:
        """That of this name with those of the options that it takes, and those that are left for the flat algorithm.

        An option that both take is for both.
        """
        # The default takes none, and is not imported to learn that.
        takes = () if documents == DEFAULT_DOCUMENTS else document_options(cls(documents).algorithm)
        own = {name: value for name, value in options.items() if name in takes}
        left = {name: value for name, value in options.items() if name not in own or takes_option(algorithm, name)}
        found = cls(documents, own)
        if own:
            found.create(DEFAULT_LIMITS)  # raises if an option cannot have such a value
        return found, left

    @property
    def _factory(self) -> Any:
        return imported(DOCUMENT_ALGORITHMS[self.algorithm])

    def create(self, limits: Limits) -> Matcher:
        """A new matcher."""
        matcher: Matcher = self._factory(limits, **self.options)
        return matcher

    def refuse_incapable(self, plan: Plan, limits: Limits) -> None:
        """Raise CapabilityError for an expression that this way does not take, and LimitError for one too large."""
        if not isinstance(plan, DocumentPlan) or getattr(self._factory, "takes_all", True):
            return
        try:
            refuse_unlinear(plan.expression, limits)
        except UnavailableError as error:
            raise CapabilityError(
                f"`{self.algorithm}` cannot do this: {error.message}", hint=f"documents='{DEFAULT_DOCUMENTS}' can"
            ) from None


DEFAULT_MATCHING = DocumentMatching()


def document_summary(algorithm: str) -> str:
    """What a way to match documents says of itself."""
    return (imported(DOCUMENT_ALGORITHMS[algorithm]).__doc__ or "").strip().partition("\n")[0]


def document_options(algorithm: str) -> tuple[str, ...]:
    """The names of the options that a way to match documents takes."""
    return options_of(imported(DOCUMENT_ALGORITHMS[algorithm]))
