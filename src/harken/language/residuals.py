"""The residual predicates: patterns, regular expressions, XPath and CONTAINS, each plain or negated.

To add one, write a class that follows `normal_form.Residual`, and let a front end put it into its conjunctions.
Indexing and verification use that protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harken.language.capabilities import Capability
from harken.language.intervals import FULL, LINES, points
from harken.language.normal_form import Implied, Presence, ValueSet
from harken.language.predicates import compare, either, like_matcher, rlike_matcher
from harken.language.registry import evaluator_of
from harken.schema import Kind, Value
from harken.schema.derived import reading_of
from harken.schema.paths import Path
from harken.schema.scalar_functions import SCALAR

_ANY_STRING = ValueSet(((Kind.STRING, FULL),))


@dataclass(frozen=True, slots=True)
class _OfString:
    """A predicate of the strings at a path."""

    path: Path
    of_sets: ClassVar[bool] = False

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def implied(self) -> Implied:
        return ((self.path, _ANY_STRING),)


@dataclass(frozen=True, slots=True)
class LikeResidual(_OfString):
    """`path LIKE pattern`, of a string."""

    pattern: str
    escape: str
    negated: bool = False
    capability: ClassVar[Capability] = Capability.PATTERN

    def holds(self, values: Sequence[Any]) -> bool:
        (value,) = values
        return isinstance(value, str) and like_matcher(self.pattern, self.escape)(value) is not self.negated


@dataclass(frozen=True, slots=True)
class RLikeResidual(_OfString):
    """`path RLIKE pattern`, of a string."""

    pattern: str
    negated: bool = False
    capability: ClassVar[Capability] = Capability.PATTERN

    def holds(self, values: Sequence[Any]) -> bool:
        (value,) = values
        return isinstance(value, str) and rlike_matcher(self.pattern)(value) is not self.negated


@dataclass(frozen=True, slots=True)
class XPathResidual(_OfString):
    """`xpath_boolean(path, xpath)`, of a string that is a document."""

    xpath: str
    negated: bool = False
    capability: ClassVar[Capability] = Capability.XPATH

    def holds(self, values: Sequence[Any]) -> bool:
        (value,) = values
        return isinstance(value, str) and evaluator_of("xpath")(self.xpath)(value) is not self.negated


@dataclass(frozen=True, slots=True)
class ContainsResidual:
    """`path CONTAINS value`: whether the value is one of the attribute's values."""

    path: Path
    kind: Kind
    """The kind of the value: 1 and TRUE are equal in Python, but not here."""
    value: Value
    negated: bool = False
    lenient: bool = False
    """Whether it also holds where it is unknown because some value does not compare with this one."""
    reads: bool = False
    """Whether strings are read as values of the kind."""
    capability: ClassVar[Capability] = Capability.CONTAINS
    of_sets: ClassVar[bool] = True

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def implied(self) -> Implied:
        if self.negated or self.lenient:
            return ((self.path, Presence.PRESENT),)
        path = reading_of(self.path, self.kind) if self.reads else self.path
        return ((path, ValueSet(((self.kind, LINES[self.kind].canonical(points([self.value]))),))),)

    def holds(self, values: Sequence[Any]) -> bool:
        (elements,) = values
        if self.reads:
            elements = [SCALAR[self.kind](each) for each in elements]
        # Unknown without elements, and if none is equal but one does not compare.
        truth = either(compare("=", each, self.value) for each in elements)
        return bool(elements) and (truth is not self.negated if self.lenient else truth is (not self.negated))
