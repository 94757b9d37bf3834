"""Roles: what a matcher can do besides matching.

A caller that needs more than `Matcher` tests for the role with `isinstance`, and copes without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.codes.columns import Column
    from harken.codes.encode import EncodedBatch
    from harken.codes.flat import Flat
    from harken.events import EventBatch
    from harken.limits import Limits
    from harken.matchers.base import Entry, Snapshot
    from harken.schema.paths import Path
    from harken.versions.array_file import ArrayFile

Write = Callable[[str, Mapping[str, "NDArray[Any]"], Mapping[str, Any]], object]
"""Writes a file with this name, these arrays and this plain data, as a draft of a folder does."""


@runtime_checkable
class AddsInBulk(Protocol):
    """Adds many subscriptions as columns, without a normal form for each."""

    def add_flat(self, flat: Flat, replaced: Collection[int] = ()) -> None:
        """Add rows of new subscriptions, and remove `replaced` in the same step."""

    def restore(self, entries: Iterable[Entry]) -> None:
        """As `add`, for subscriptions from a saved engine: they are indexed at once, even if they are few."""


@runtime_checkable
class Plans(Protocol):
    """Learns statistics of events, and plans its index by them."""

    def learn(self, batch: EventBatch) -> None:
        """Take a batch as a sample of future events."""

    def merge(self) -> None:
        """Rebuild the whole index, planned by the statistics learnt so far."""

    def favourite(self) -> Path | None:
        """The attribute that is the key of most rows, if it is the key of at least half of them."""


@runtime_checkable
class TellsColumns(Protocol):
    """Lists the attributes that its subscriptions test."""

    def columns(self) -> tuple[Column, ...]:
        """The columns that subscriptions test: the same tuple as long as they are the same."""

    def flats(self) -> list[Flat]:
        """All rows with their constants. Does not merge."""

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that rows test, and the subscriptions whose verification may read further attributes."""


@runtime_checkable
class Persists(Protocol):
    """Can be saved as array files."""

    def save(self, write: Write) -> None:
        """Write the whole matcher. Matching continues meanwhile."""


@runtime_checkable
class Loads(Protocol):
    """Can be loaded from its saved files. A matcher that only `Persists` is rebuilt from texts."""

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits, **options: Any) -> Self | None:
        """The matcher saved as these files. None if their layout is too old to be read."""


@runtime_checkable
class UsesDatabase(Protocol):
    """Has its rows in a database, which may be a file with the rows of an earlier engine."""

    def reject_used(self) -> None:
        """Raise CapabilityError if the file has subscriptions: a new matcher would mix them with its own."""


@runtime_checkable
class Divides(Protocol):
    """Can be cut into matchers that share its subscriptions, and made from the rows of several."""

    def rows(self) -> Flat:
        """All rows with their constants."""

    def weights(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The subscription of each row, in the order of the index, and each row's share of cost and size."""

    def made_of(self, rows: Flat) -> Self:
        """A matcher with the options and statistics of this one, but with these rows."""


@runtime_checkable
class Renumbers(Protocol):
    """Can be cut into matchers that share its subscriptions, and united with others, by numbers alone."""

    def numbers(self) -> list[int]:
        """The numbers of all subscriptions."""

    def shares(self, parts: int) -> list[NDArray[np.int64]]:
        """The numbers of all subscriptions, divided into parts of about the same size."""

    def renumbered(self, numbers: NDArray[np.int32]) -> Self:
        """A matcher with renumbered subscriptions: `numbers` has the new number at each old one, -1 to leave it out."""

    def united(self, others: Sequence[Self]) -> Self:
        """A matcher with the subscriptions of this one and of others. No two have the same number."""


@runtime_checkable
class ReadsDocuments(Protocol):
    """Reads attributes of events as XML documents."""

    def document_paths(self) -> tuple[Path, ...]:
        """The attributes that present subscriptions read as documents."""


@runtime_checkable
class CallsOperators(Protocol):
    """Evaluates predicates by operators, which get the events as published, and learns from the outcomes."""

    def reads(self) -> frozenset[str] | None:
        """The attributes that operators may read; None: all."""

    def recall(self, learnt: Mapping[str, list[int]]) -> None:
        """Take over the outcomes that another matcher counted."""

    def plan(self) -> list[dict[str, Any]]:
        """Statistics of the predicates, in descending order of worth."""


@runtime_checkable
class TakesSnapshots(Protocol):
    """Takes snapshots, by which events are matched while changes go on."""

    def snapshot(self) -> Snapshot:
        """All present subscriptions."""


@runtime_checkable
class MatchesCodes(Protocol):
    """Encodes and matches in two steps, so that matching can be timed alone. All rows have to be exact."""

    def encode(self, batch: EventBatch) -> EncodedBatch:
        """A batch in the codes of this matcher. Valid until its rows change."""

    def find(self, encoded: EncodedBatch) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Offsets by event, and matches, which `numbers_of` turns into numbers."""

    def numbers_of(self, matches: NDArray[np.int32]) -> NDArray[np.int32]:
        """The subscription numbers of the matches that `find` returned."""


@runtime_checkable
class CountsPredicates(Protocol):
    """Matches by counting, in two stages."""

    def satisfied(self, encoded: EncodedBatch) -> int:
        """Number of predicates that hold for the events of a batch: the first stage alone."""
