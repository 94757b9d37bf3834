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
"""Returns the form that verifies a subscription, by its number, so that matchers need not keep forms."""


class Trait(StrEnum):
    """How an algorithm handles changes. No subscription requires a trait."""

    UNSUBSCRIBE = "unsubscribe"
    """Subscriptions can be removed and replaced."""
    IN_PLACE = "changes in place"
    """The cost of a change depends on the changed subscription, not on the number of all."""
    PROGRAMS = "programs"
    """Subscriptions with patterns or many alternatives go to the index of programs. Other algorithms take them as rows;
    only subscriptions without a normal form go to programs."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled subscription and its number. Numbers are small, and are recycled."""

    number: int
    compiled: Compiled


@dataclass(slots=True)
class MatchResult:
    """For every event of a batch, the numbers of its matches, each once, and the number of candidates examined."""

    offsets: NDArray[np.int64]
    """The matches of event i are `numbers[offsets[i] : offsets[i + 1]]`."""
    numbers: NDArray[np.int32]
    candidates: NDArray[np.int64]
    errors: list[tuple[int, int, HarkenError]] = field(default_factory=list)
    """Subscriptions that failed on an event: (index of the event, number of the subscription, error)."""

    @classmethod
    def empty(cls, events: int) -> MatchResult:
        """A result without matches."""
        import numpy as np

        return cls(np.zeros(events + 1, np.int64), np.empty(0, np.int32), np.zeros(events, np.int64))

    def by_event(self) -> Iterator[list[int]]:
        """The numbers of the matches of each event."""
        ends, numbers = self.offsets.tolist(), self.numbers.tolist()
        return (numbers[start:end] for start, end in pairwise(ends))


class OneMatch(NamedTuple):
    """The matches of one event, as lists: arrays would cost more than they save."""

    numbers: list[int]
    candidates: int
    errors: list[tuple[int, int, HarkenError]]
    """As in a MatchResult; the index of the event is 0."""

    @classmethod
    def of(cls, result: MatchResult) -> OneMatch:
        """The matches of a batch of one."""
        return cls(result.numbers.tolist(), int(result.candidates[0]), result.errors)

    def joined(self, other: OneMatch) -> OneMatch:
        """These matches and those of another matcher, whose subscriptions are different."""
        return OneMatch(self.numbers + other.numbers, self.candidates + other.candidates, self.errors + other.errors)

    def result(self) -> MatchResult:
        """The same as the result of a batch of one."""
        import numpy as np

        numbers = np.array(self.numbers, np.int32)
        return MatchResult(np.array([0, len(numbers)]), numbers, np.array([self.candidates]), self.errors)


MatchPart = Callable[[int, int], MatchResult]
"""Matches the events first:last of a batch. Several threads may call it at once."""


class Snapshot:
    """The subscriptions of a matcher at one moment. Later changes do not affect it."""

    @property
    def is_quick(self) -> bool:
        """Whether `match_one` takes a fraction of the time of a batch of one."""
        return False

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        """The subscriptions that are true of each event."""
        raise NotImplementedError

    def match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        """The matches of one event. None if the event has to be matched as a batch of one."""
        return None

    def parts_of(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        """A function that matches parts of a batch in several threads. Work that all parts share is done here, once."""
        return lambda first, last: self.match(batch[first:last], form_of)

    def release(self) -> None:
        """End the use of this snapshot."""


class Matcher(Protocol):
    """An algorithm, made by `factory(limits=…, **options)`. Roles (`roles.py`) say what else it can do.

    Additions and removals come from one thread at a time; other threads may match meanwhile.
    """

    capabilities: ClassVar[frozenset[Capability]]
    traits: ClassVar[frozenset[Trait]]

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        """Add subscriptions under unused numbers, and remove `replaced` in the same step: no match sees both."""

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions by their numbers."""

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        """The subscriptions that are true of each event. `form_of` returns the form added under a number."""

    def stats(self) -> dict[str, Any]:
        """Sizes and choices, as plain data."""
