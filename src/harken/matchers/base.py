"""What every matcher is: compiled subscriptions in, batches of events in, numbers of the matching subscriptions out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from harken.errors import HarkenError
from harken.events import Event, EventBatch
from harken.language.capabilities import Capability
from harken.language.compiled import Compiled, Form

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FormOf = Callable[[int], Form]
"""What verifies a subscription that a matcher has taken, by its number: so that matchers need not keep it."""


class Trait(StrEnum):
    """How an algorithm takes changes. No subscription asks for it."""

    UNSUBSCRIBE = "unsubscribe"
    """Subscriptions can leave, and be replaced."""
    IN_PLACE = "changes in place"
    """A change costs what the subscription costs, not what all of them do."""
    PROGRAMS = "programs"
    """Subscriptions with patterns or many alternatives are left to the index of programs. Other algorithms take them
    as rows, and only what has no normal form goes there."""


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

    @classmethod
    def empty(cls, events: int) -> MatchResult:
        """Nothing, for so many events."""
        import numpy as np

        return cls(np.zeros(events + 1, np.int64), np.empty(0, np.int32), np.zeros(events, np.int64))

    def by_event(self) -> Iterator[list[int]]:
        """The numbers of each event."""
        ends, numbers = self.offsets.tolist(), self.numbers.tolist()
        return (numbers[start:end] for start, end in pairwise(ends))


class OneMatch(NamedTuple):
    """What one event matches, as lists: arrays would cost more than they spare."""

    numbers: list[int]
    candidates: int
    errors: list[tuple[int, int, HarkenError]]
    """As those of a MatchResult, for the event 0."""

    @classmethod
    def of(cls, result: MatchResult) -> OneMatch:
        """That of a batch of one."""
        return cls(result.numbers.tolist(), int(result.candidates[0]), result.errors)

    def joined(self, other: OneMatch) -> OneMatch:
        """This and what another matcher found for the same event, of other subscriptions."""
        return OneMatch(self.numbers + other.numbers, self.candidates + other.candidates, self.errors + other.errors)

    def result(self) -> MatchResult:
        """The same as that of a batch of one."""
        import numpy as np

        numbers = np.array(self.numbers, np.int32)
        return MatchResult(np.array([0, len(numbers)]), numbers, np.array([self.candidates]), self.errors)


MatchPart = Callable[[int, int], MatchResult]
"""Matches the events first:last of a batch. Several threads may call it at once."""


class Snapshot:
    """What a matcher holds at one moment. Changes that come later do not touch it."""

    @property
    def is_quick(self) -> bool:
        """Whether it has a way for one event that takes a fraction of the time of a batch of one."""
        return False

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        """The subscriptions that are true of each event."""
        raise NotImplementedError

    def match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        """What one event matches. None if a batch of one has to tell."""
        return None

    def parts_of(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        """What matches parts of a batch in several threads, and does once what all parts need."""
        return lambda first, last: self.match(batch[first:last], form_of)

    def release(self) -> None:
        """It is not needed any more."""


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
