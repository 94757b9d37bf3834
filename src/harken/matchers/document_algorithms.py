"""The algorithms that match XML documents, by name: built in, or announced by installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harken.announced import Announced, imported, target_of
from harken.errors import CapabilityError, UnavailableError
from harken.language.compiled import Plan
from harken.language.xpath.document_plan import DocumentPlan
from harken.language.xpath.linear import reject_unlinear
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.algorithm_registry import options_of, takes_option
from harken.matchers.base import Matcher
from harken.matchers.roles import Loads, UsesDatabase

if TYPE_CHECKING:
    from harken.versions.array_file import ArrayFile

DOCUMENT_ALGORITHMS: Announced[str] = Announced(
    "harken.documents",
    {"xpath": "harken.matchers.documents:XPathMatcher"},
    target_of,
    laboratory="xpath_buckets xpath_shared xpath_unrolled yfilter",
)
"""By name, the "module:name" of a factory: `factory(limits, **options)` makes a matcher. If its `takes_all` is False,
it takes only indexable expressions without `not` whose alternatives can be multiplied out."""
DEFAULT_DOCUMENTS = "xpath"
DATABASE_MOMENT = "relational_documents"
"""The file of a saved engine that says to which moment of its database the tables of documents belong."""


@dataclass(frozen=True, slots=True)
class DocumentMatching:
    """The algorithm that matches documents in an engine. Raises CapabilityError for an unknown name."""

    algorithm: str = DEFAULT_DOCUMENTS
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, str) or self.algorithm not in DOCUMENT_ALGORITHMS:
            hint = DOCUMENT_ALGORITHMS.hint(str(self.algorithm)) or f"there are: {', '.join(DOCUMENT_ALGORITHMS)}"
            raise CapabilityError(f"there is no algorithm for documents called `{self.algorithm}`", hint=hint)

    @classmethod
    def chosen(
        cls, documents: str, options: Mapping[str, Any], algorithm: str
    ) -> tuple[DocumentMatching, dict[str, Any]]:
        """The algorithm of this name with the options that it takes, and the options for the flat algorithm.

        An option that both take is given to both.
        """
        # The default takes none, and is not imported just to learn that.
        takes = () if documents == DEFAULT_DOCUMENTS else document_options(cls(documents).algorithm)
        taken = {name: value for name, value in options.items() if name in takes}
        flat = {name: value for name, value in options.items() if name not in taken or takes_option(algorithm, name)}
        matching = cls(documents, taken)
        if taken:
            matching._factory(DEFAULT_LIMITS, **taken)  # raises for an invalid value of an option
        return matching, flat

    @property
    def _factory(self) -> Any:
        return imported(DOCUMENT_ALGORITHMS[self.algorithm])

    def create(self, limits: Limits) -> Matcher:
        """A new matcher. Raises CapabilityError if its database is a file that has subscriptions."""
        matcher: Matcher = self._factory(limits, **self.options)
        if isinstance(matcher, UsesDatabase):
            matcher.reject_used()
        return matcher

    def load(self, files: Mapping[str, ArrayFile], limits: Limits) -> Any:
        """The matcher whose tables are in a file of a database; None if there is none. Raises SegmentError.

        It plays the role `Renumbers` as far as `numbers`. The default algorithm is loaded by `load_others`.
        """
        if not self.options or not issubclass(self._factory, Loads):
            return None
        return self._factory.load(files, limits, **self.options)

    def reject_incapable(self, plan: Plan, limits: Limits) -> None:
        """Raise CapabilityError for an expression that the algorithm does not take, LimitError for a large one."""
        if not isinstance(plan, DocumentPlan) or getattr(self._factory, "takes_all", True):
            return
        try:
            reject_unlinear(plan.expression, limits)
        except UnavailableError as error:
            raise CapabilityError(
                f"`{self.algorithm}` cannot do this: {error.message}", hint=f"documents='{DEFAULT_DOCUMENTS}' can"
            ) from None


DEFAULT_MATCHING = DocumentMatching()


def document_summary(algorithm: str) -> str:
    """The first line of the docstring of an algorithm for documents."""
    return (imported(DOCUMENT_ALGORITHMS[algorithm]).__doc__ or "").strip().partition("\n")[0]


def document_options(algorithm: str) -> tuple[str, ...]:
    """The names of the options that an algorithm for documents takes."""
    return options_of(imported(DOCUMENT_ALGORITHMS[algorithm]))
