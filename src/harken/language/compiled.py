"""Compiles the text of a subscription, in any language, to what matchers take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from harken.errors import BOOLEAN_OF_YAML, HarkenError, LanguageError, ParseError
from harken.language.capabilities import Capability, capabilities_of_tree, required_capabilities
from harken.language.explanation import Explanation
from harken.language.normal_form import NormalForm
from harken.language.places import located
from harken.language.registry import DEFAULT_LANGUAGE, FindEvent, FrontEnd, explainer_of, front_end_of
from harken.language.trees import TRUE, Tree, names_of
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import Schema
from harken.schema.signatures import NO_SIGNATURES, Signatures

Form = NormalForm | Tree
"""The forms that decide exactly whether an event matches."""


class Plan(Protocol):
    """What a text was compiled to, and which kind of index holds it."""

    @property
    def kind(self) -> str:
        """The kind of index: `flat`, `programs`, `documents` or `operators`."""

    @property
    def always(self) -> bool:
        """Whether every event matches."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it requires of a matcher. Not cached, since few matchers lack any."""

    def names(self) -> set[str]:
        """The attributes that it reads, each by the first key of its path."""


@dataclass(slots=True)
class FlatPlan:
    """A normal form, for an index of rows with one interval per column. Immutable by convention."""

    form: NormalForm
    kind: ClassVar[str] = "flat"

    @property
    def always(self) -> bool:
        return self.form.always

    @property
    def capabilities(self) -> frozenset[Capability]:
        return required_capabilities(self.form)

    def names(self) -> set[str]:
        return self.form.names()


@dataclass(slots=True)
class ProgramPlan:
    """A tree, for the index of programs, and how to multiply it out for matchers that take only normal forms."""

    tree: Tree
    multiplied: Callable[[], NormalForm]
    """Makes the normal form. Raises LimitError if it is too large."""
    reads_documents: bool = False
    """Whether it reads an attribute as an XML document, which no index of rows does."""
    kind: ClassVar[str] = "programs"

    @property
    def always(self) -> bool:
        return self.tree == TRUE

    @property
    def capabilities(self) -> frozenset[Capability]:
        return capabilities_of_tree(self.tree)

    def names(self) -> set[str]:
        return names_of(self.tree)


class Compiled(NamedTuple):
    """A compiled text: its plan and its warnings.

    The expression is not kept: those of millions of subscriptions would fill the memory.
    """

    text: str
    language: str
    plan: Plan
    warnings: tuple[str, ...] = ()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it requires of a matcher."""
        return self.plan.capabilities

    @property
    def normal_form(self) -> NormalForm:
        """The normal form, for the matchers that take those. Raises LimitError if it is too large."""
        plan = self.plan
        if isinstance(plan, FlatPlan):
            return plan.form
        if isinstance(plan, ProgramPlan):
            return plan.multiplied()
        raise TypeError(f"a plan of the kind {plan.kind!r} has no normal form")

    @property
    def form(self) -> Form:
        """The form by which events are verified: the tree if there is one, else the normal form.

        Of an expression on a document it is the expression: tables that were lost are filled again from it.
        """
        if isinstance(self.plan, ProgramPlan):
            return self.plan.tree
        expression: Any = getattr(self.plan, "expression", None)
        return self.normal_form if expression is None else expression


def _reject_surrogates(text: str) -> None:
    """Raise ParseError for a text with a lone surrogate: no event and no file could hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        surrogate = text[problem.start]
        place, _ = located(text, problem.start)
        raise ParseError(f"the text has a lone surrogate: {surrogate!r}").at(place) from None


class Compiler:
    """Compiles many texts against one schema. Threads may share one."""

    def __init__(
        self,
        schema: Schema | None = None,
        limits: Limits = DEFAULT_LIMITS,
        signatures: Signatures = NO_SIGNATURES,
    ) -> None:
        """`signatures`: the operators that texts may call."""
        self.schema = schema
        self.limits = limits
        self.signatures = signatures
        self._front_ends: dict[str, FrontEnd] = {}

    def compile(self, text: str, language: str = DEFAULT_LANGUAGE) -> Compiled:
        """The compiled text. Raises LanguageError or LimitError, with its place."""
        front_end = self._front_end(language)
        if not isinstance(text, str):
            hint = BOOLEAN_OF_YAML if isinstance(text, bool) else None
            raise LanguageError(f"the text of a subscription is a string, not {type(text).__name__}", hint=hint)
        if not text.isascii():
            _reject_surrogates(text)
        return front_end.compile(text)

    def faults(self, text: str, language: str = DEFAULT_LANGUAGE) -> list[HarkenError]:
        """Every fault of a text, each with its place."""
        try:
            return self._front_end(language).faults(text)
        except HarkenError as error:
            return [error]

    def print(self, text: str, dialect: str, language: str = DEFAULT_LANGUAGE) -> str:
        """The text in a dialect that its language can be written in. Raises LanguageError or LimitError."""
        return self._front_end(language).print(text, dialect)

    def explain(self, text: str, find_event: FindEvent, language: str = DEFAULT_LANGUAGE) -> Explanation:
        """Why an event matches a text or does not. Raises LanguageError or LimitError, and what `find_event` raises."""
        self.compile(text, language)
        return explainer_of(language)(self._front_end(language), text, find_event)

    def stats(self) -> Mapping[str, Any]:
        """Counts of the front ends, as plain data."""
        self._front_end(DEFAULT_LANGUAGE)
        return {key: value for front_end in self._front_ends.values() for key, value in front_end.stats().items()}

    def _front_end(self, language: str) -> FrontEnd:
        front_end = self._front_ends.get(language) if isinstance(language, str) else None  # a record may hold anything
        if front_end is None:
            front_end = self._front_ends.setdefault(
                language, front_end_of(language, self.schema, self.limits, self.signatures)
            )
        return front_end
