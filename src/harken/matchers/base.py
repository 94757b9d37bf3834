"""What every matcher is: compiled subscriptions in, batches of events in, numbers of the matching subscriptions out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from harken.errors import HarkenError
from harken.events import EventBatch
from harken.language.ast import Comparison, Contains
from harken.language.compiled import Compiled
from harken.language.intervals import Intervals, Line
from harken.language.normal_form import Conjunction, Constraint, NormalForm, Presence, Residual, line_of
from harken.schema import Domain, Schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FormOf = Callable[[int], NormalForm]
"""The normal form of a subscription that a matcher has taken, by its number: so that matchers need not keep it."""


class Capability(StrEnum):
    """What a subscription may ask of a matcher. A matcher that lacks one rejects the subscription by name."""

    EQUALITY = "equality"
    RANGE = "range"
    VALUE_SET = "several intervals"
    DISJUNCTION = "disjunction"
    PRESENCE = "is null"
    PATTERN = "like"
    CONTAINS = "contains"
    ATTRIBUTE_COMPARISON = "attribute with attribute"
    DOMAIN_ORDER = "hierarchies and partial orders"


class Trait(StrEnum):
    """How an algorithm takes changes. No subscription asks for it."""

    UNSUBSCRIBE = "unsubscribe"
    """Subscriptions can leave, and be replaced."""
    IN_PLACE = "changes in place"
    """A change costs what the subscription costs, not what all of them do."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled subscription under the number by which the matcher knows it. Numbers are small, and are recycled."""

    number: int
    compiled: Compiled


@dataclass(slots=True)
class MatchResult:
    """For every event of a batch the numbers of its matches, each once, and how many candidates were examined."""

    offsets: NDArray[np.int64]
    """The matches of event i are `numbers[offsets[i] : offsets[i + 1]]`."""
    numbers: NDArray[np.int32]
    candidates: NDArray[np.int64]
    errors: list[tuple[int, int, HarkenError]] = field(default_factory=list)
    """Subscriptions that failed on an event: (index of the event, number of the subscription, error)."""

    def by_event(self) -> Iterator[list[int]]:
        """The numbers of each event."""
        ends, numbers = self.offsets.tolist(), self.numbers.tolist()
        return (numbers[start:end] for start, end in pairwise(ends))


MatchPart = Callable[[int, int], MatchResult]
"""Matches the events first:last of a batch. Several threads may call it at once."""


class Matcher(Protocol):
    """An algorithm, made by `factory(limits=…, **options)`. What else it may do is said by roles (`roles.py`).

    Additions and removals come from one thread at a time; matching may go on in others meanwhile.
    """

    capabilities: ClassVar[frozenset[Capability]]
    traits: ClassVar[frozenset[Trait]]

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        """Take subscriptions, whose numbers are free, in place of others: no match sees both."""

    def remove(self, numbers: Iterable[int]) -> None:
        """Let go of subscriptions, whose numbers are taken."""

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        """The subscriptions that are true of each event. `form_of` tells what was added under a number."""

    def stats(self) -> dict[str, Any]:
        """Sizes and choices, as plain data."""


def required_capabilities(form: NormalForm, schema: Schema | None) -> frozenset[Capability]:
    """What a matcher has to be capable of to take a subscription that was normalised with this schema."""
    found: set[Capability] = set()
    if len(form.conjunctions) > 1:
        found.add(Capability.DISJUNCTION)
    for conjunction in form.conjunctions:
        found |= _required_by(conjunction, schema)
    return frozenset(found)


def _required_by(conjunction: Conjunction, schema: Schema | None) -> set[Capability]:
    found = {_capability_of_residual(residual) for residual in conjunction.residuals}
    for path, constraint in conjunction.constraints:
        found |= _capabilities_of_constraint(constraint, None if schema is None else schema.domain_of(path))
    return found


def _capability_of_residual(residual: Residual) -> Capability:
    if isinstance(residual.predicate, Comparison):
        return Capability.ATTRIBUTE_COMPARISON
    return Capability.CONTAINS if isinstance(residual.predicate, Contains) else Capability.PATTERN


def _capabilities_of_constraint(constraint: Constraint, domain: Domain | None) -> set[Capability]:
    if isinstance(constraint, Presence):
        return {Capability.PRESENCE}
    found = {_capability_of_set(admitted, line_of(kind, domain)) for kind, admitted in constraint.parts}
    if len(constraint.parts) > 1:
        found.add(Capability.VALUE_SET)
    if constraint.domain is not None and found != {Capability.EQUALITY}:
        found.add(Capability.DOMAIN_ORDER)
    return found


def _capability_of_set(admitted: Intervals, line: Line) -> Capability:
    if line.is_point(admitted):
        return Capability.EQUALITY
    pieces = (len(admitted.cuts) + admitted.inside + 1) // 2
    return Capability.VALUE_SET if pieces > 1 else Capability.RANGE
